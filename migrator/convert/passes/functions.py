"""Functions and methods: ``forward`` → ``__call__``, ``rngs``, hints, decorators, ``no_grad`` results."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.analyze.outliving import MEMOS, is_recomputed
from migrator.convert.bindings import bound_names
from migrator.convert.context import Context, Failure, Frame
from migrator.convert.no_grad_functions import asked_under_it
from migrator.convert.own_gradient import check_same
from migrator.convert.own_modes import NAME, besides, sets_mode, with_base
from migrator.convert.passes.annotations import convert_hint
from migrator.convert.passes.classes import extra_lines
from migrator.convert.passes.doubles import computes_in_double, in_64_bits, with_doubles
from migrator.convert.passes.initializers import returned_parameters
from migrator.convert.passes.making_functions import check_decorator, for_callers
from migrator.convert.rewriter import PASS, Rewriter, converts
from migrator.convert.stateless import as_static, is_stateless
from migrator.convert.untracked import is_another_name
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._autocast import Use, use

_DROPPED = frozenset(
    "torch.jit.script torch.jit.export torch.jit.ignore torch.jit.unused torch.compile "
    "torch.jit.script_method torch.compiler.disable torch._dynamo.disable torch.jit.script_if_tracing "
    "torch.jit._overload_method torch.jit._script_if_tracing torch.fx.wrap "
    "torch.autograd.function.once_differentiable torch.cuda.amp.custom_fwd torch.cuda.amp.custom_bwd "
    "torch.amp.custom_fwd torch.amp.custom_bwd timm_layers.register_model".split()
)
_NO_GRAD = frozenset("torch.no_grad torch.inference_mode torch.autograd.no_grad".split())


@converts(cst.FunctionDef)
def function_def(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """Convert a function or method."""
    ctx = rw.ctx
    info = ctx.facts.functions.get(node)
    if info is None:
        return rw.rebuild(node)
    owner = info.owner if info.owner is not None and info.owner.torch_base else None
    sets = owner is not None and sets_mode(ctx, info)
    modes = owner is not None and info.short in ("train", "eval")
    if owner is not None and modes and not sets and info.node in owner.node.body.body:
        raise Failure(
            node,
            "API010",
            f"torch calls {info.short}() of every module below, Flax sets the modes itself",
            "set the modes of the layers where train() and eval() are called",
        )
    decorators, no_grad = _decorators(rw, node)
    params = _params(rw, node.params)
    returns = node.returns
    if returns is not None:
        hint = convert_hint(rw, returns.annotation)
        returns = syntax.changed(returns, annotation=hint) if hint is not None else None
    frame = Frame(info, info.owner, bound_names(ctx.source.index, node), no_grad)
    ctx.frames.append(frame)
    around = ctx.no_grad
    if around and not asked_under_it(ctx, node):
        ctx.no_grad = 0  # torch asks where it is called
    try:
        body = rw.block(besides(ctx, info) if sets else node.body)
    finally:
        ctx.frames.pop()
        ctx.no_grad = around
    if sets:
        body = with_base(info, body)
    body = _without_dead_devices(ctx, node, body)
    if computes_in_double(ctx, info):
        body = in_64_bits(ctx, body)
    written = returned_parameters(ctx, info)
    if written is not None:
        returns = None
        last = cst.SimpleStatementLine([cst.Return(written)])
        if syntax.code(body.body[-1]).strip() != syntax.code(last).strip():
            body = syntax.changed(body, body=[*body.body, last])
    if ctx.plan.how(info) == "param":
        ctx.helpers.use("nnx")
        params = with_rngs(params)
    else:
        params = for_callers(ctx, info, params, body)
    name = node.name
    if owner is not None:
        if info.short == "__init__":
            body = _constructor_body(ctx, info, with_doubles(ctx, info, body))
        elif info.short == "forward":
            name = syntax.changed(name, value="__call__")
        elif sets:
            name = syntax.changed(name, value=NAME)
    made = syntax.changed(
        node, decorators=decorators, params=params, returns=returns, body=body, name=name
    )
    return as_static(made) if owner is not None and is_stateless(ctx, info) else made


def head(rw: Rewriter, node: cst.FunctionDef, info: FunctionInfo) -> cst.FunctionDef:
    """The function with its decorators, parameters and hints converted, its body as it was."""
    decorators, _ = _decorators(rw, node)
    params = _params(rw, node.params)
    if rw.ctx.plan.how(info) == "param":
        rw.ctx.helpers.use("nnx")
        params = with_rngs(params)
    returns = node.returns
    if returns is not None:
        hint = convert_hint(rw, returns.annotation)
        returns = syntax.changed(returns, annotation=hint) if hint is not None else None
    return syntax.changed(node, decorators=decorators, params=params, returns=returns)


def _decorators(rw: Rewriter, node: cst.FunctionDef) -> tuple[list[cst.Decorator], bool]:
    """The decorators that stay, and whether one asks for results without a gradient.

    An autograd function has a gradient of its own, whatever its methods are decorated with.
    """
    kept, no_grad = [], False
    info = rw.ctx.facts.functions.get(node)
    gradient = info is not None and info.owner is not None and info.owner.gradient
    for decorator in node.decorators:
        check_decorator(rw.ctx, decorator, info)
        inner = decorator.decorator
        target = inner.func if isinstance(inner, cst.Call) else inner
        name = rw.ctx.facts.qualified_name(target) or ""
        if name in _NO_GRAD:
            no_grad = not gradient
        elif name in MEMOS and info is not None and is_recomputed(rw.ctx.facts, info):
            continue
        elif _is_abstract(target) and info is not None and _may_be_unwritten(rw, info):
            continue
        elif name not in _DROPPED and use(inner, name) not in (Use.OFF, Use.ON_CUDA):
            kept.append(rw.visit(decorator))
    return kept, no_grad


def _is_abstract(node: cst.BaseExpression) -> bool:
    """``@abstractmethod``."""
    name = node.attr if isinstance(node, cst.Attribute) else node
    return isinstance(name, cst.Name) and name.value == "abstractmethod"


def _may_be_unwritten(rw: Rewriter, info: FunctionInfo) -> bool:
    """Whether Python builds a class that lacks this method: torch's modules are no ABCs, Flax's are."""
    owner = info.owner
    if owner is None or owner.torch_base is None:
        return False
    for one in owner.lineage():
        if one.settled is None and one.node.keywords:
            return False  # metaclass=ABCMeta
        for base in one.bases:
            known = isinstance(base, k.Class) and (
                base.name.startswith("torch.nn.") or base.name in rw.ctx.facts.classes
            )
            if not known:
                return False
    return True


def _params(rw: Rewriter, params: cst.Parameters) -> cst.Parameters:
    def one(param: cst.Param) -> cst.Param:
        changes: dict[str, Any] = {}
        if param.annotation is not None:
            hint = convert_hint(rw, param.annotation.annotation)
            if hint is None:
                changes["annotation"] = None
                if param.default is not None:
                    changes["equal"] = cst.AssignEqual(
                        cst.SimpleWhitespace(""), cst.SimpleWhitespace("")
                    )
            elif hint is not param.annotation.annotation:
                changes["annotation"] = syntax.changed(param.annotation, annotation=hint)
        if param.default is not None:
            rw.ctx.in_defaults, saved = True, rw.ctx.in_defaults
            with rw.ctx.no_hoisting():
                default = rw.visit(param.default)
            rw.ctx.in_defaults = saved
            if default is not param.default:
                changes["default"] = default
        return syntax.changed(param, **changes) if changes else param

    changes: dict[str, Any] = {
        "params": [one(p) for p in params.params],
        "posonly_params": [one(p) for p in params.posonly_params],
        "kwonly_params": [one(p) for p in params.kwonly_params],
    }
    if isinstance(params.star_arg, cst.Param):
        changes["star_arg"] = one(params.star_arg)
    if params.star_kwarg is not None:
        changes["star_kwarg"] = one(params.star_kwarg)
    return syntax.changed(params, **changes)


def with_rngs(params: cst.Parameters) -> cst.Parameters:
    """The parameters with a keyword-only ``rngs: nnx.Rngs`` at the end, layout kept."""
    hint = cst.Annotation(syntax.parse("nnx.Rngs"))
    every = [*params.posonly_params, *params.params, *params.kwonly_params]
    if any(p.name.value == "rngs" for p in every):
        return params
    last = every[-1] if every else None
    comma: Any = cst.MaybeSentinel.DEFAULT
    new = cst.Param(cst.Name("rngs"), annotation=hint)
    changes: dict[str, Any] = {}
    if last is not None and (
        isinstance(last.comma, cst.Comma) or not _flat(last.whitespace_after_param)
    ):
        # one parameter a line: the star and the new one get lines of their own
        comma = every[-2].comma if len(every) > 1 else last.comma
        end = last.comma
        tail = last.whitespace_after_param
        if not isinstance(comma, cst.Comma):
            comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        fixed = syntax.changed(last, comma=comma, whitespace_after_param=cst.SimpleWhitespace(""))
        for group in ("kwonly_params", "params", "posonly_params"):
            items = list(getattr(params, group))
            if items:
                items[-1] = fixed
                changes[group] = items
                break
        new = syntax.changed(new, comma=end, whitespace_after_param=tail)
    if params.star_arg == cst.MaybeSentinel.DEFAULT and not params.kwonly_params:
        star_comma = (
            comma
            if isinstance(comma, cst.Comma)
            else cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        )
        changes["star_arg"] = cst.ParamStar(comma=star_comma)
    kwonly = list(changes.get("kwonly_params", params.kwonly_params))
    changes["kwonly_params"] = [*kwonly, new]
    return syntax.changed(params, **changes)


def _flat(whitespace: cst.BaseParenthesizableWhitespace) -> bool:
    return isinstance(whitespace, cst.SimpleWhitespace)


def _constructor_body(ctx: Context, info: FunctionInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    assert info.owner is not None
    lines = extra_lines(ctx, info.owner)
    statements = list(body.body)
    if len(statements) > 1:
        statements = [s for s in statements if s is not PASS]
    if lines:
        at = 1 if statements and syntax.is_docstring(statements[0]) else 0
        while at < len(statements) and _is_super_init(statements[at]):
            at += 1
        if ctx.plan.stores_first(info.owner):
            at = 1 if syntax.is_docstring(statements[0]) else 0
        statements = [s for s in statements if s is not PASS]
        statements[at:at] = lines
    from migrator.convert.passes.module_walks import notes_order, reads_table
    from migrator.convert.passes.shared_state import second_names

    if notes_order(ctx, info.owner):
        noted = "child_names" if reads_table(ctx, info.owner) else "child_order"
        helper = ctx.helpers.need(module_file("rules.compat.children"), noted)
        statements = [s for s in statements if s is not PASS]
        statements.append(syntax.statement(f"self._child_order = {helper}(self)"))
    if seconds := second_names(ctx, info.owner):
        words = ", ".join(f'"{name}"' for name in seconds)
        heir = len(info.owner.lineage()) > 1
        begun = '*getattr(self, "_second_names", ()), ' if heir else ""
        value = f"({begun}{words}{'' if heir or len(seconds) > 1 else ','})"
        statements.append(syntax.statement(f"self._second_names = {value}"))
    if statements and isinstance(statements[0], cst.SimpleStatementLine):
        # what follows a dropped super().__init__() needs no blank line before it
        first = statements[0]
        kept = [line for line in first.leading_lines if line.comment is not None]
        if len(kept) != len(first.leading_lines):
            statements[0] = syntax.changed(first, leading_lines=kept)
    return syntax.changed(body, body=statements or [PASS])


def _is_super_init(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.SimpleStatementLine)
        and isinstance(node.body[0], cst.Expr)
        and syntax.code(node.body[0].value).startswith("super(")
    )


@converts(cst.Return)
def return_(rw: Rewriter, node: cst.Return) -> Any:
    """Results of a function under ``no_grad`` carry no gradient."""
    frame = rw.ctx.frame
    if node.value is None:
        written = returned_parameters(rw.ctx, frame.info) if frame is not None else None
        return cst.Return(written) if written is not None else node
    value = rw.visit(node.value)
    if frame is not None and (frame.no_grad or rw.ctx.no_grad) and may_hold_tensor(rw, node.value):
        value = stopped(rw, value, node.value)
    elif (
        isinstance(node.value, cst.Call)
        and isinstance(value, cst.Tuple)
        and value.lpar
        and value.elements
    ):
        value = syntax.changed(value, lpar=[], rpar=[])
    elif value is not node.value:
        value = syntax.unparenthesized(value)
    return node if value is node.value else syntax.changed(node, value=value)


def stopped(rw: Rewriter, value: cst.BaseExpression, node: cst.BaseExpression) -> Any:
    """The value without its gradient.

    ``stop_gradient`` takes arrays only: what may hold strings, objects or numbers as well is taken apart, here where
    it is written out and by a helper where it is not.
    """
    ctx = rw.ctx
    if not may_hold_tensor(rw, node) or is_another_name(ctx, node):
        return value
    check_same(ctx, node)
    if ctx.gradient_if and not (ctx.frame and ctx.frame.no_grad):
        name = ctx.helpers.need(module_file("rules.compat.no_grad"), "gradient_if")
        args = [ctx.gradient_if[-1], _in_parens(value)]
        return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(one) for one in args])
    if isinstance(node, cst.IfExp) and isinstance(value, cst.IfExp):
        if is_another_name(ctx, node.body) or is_another_name(ctx, node.orelse):
            body = stopped(rw, value.body, node.body)
            return syntax.changed(value, body=body, orelse=stopped(rw, value.orelse, node.orelse))
    parts = node.elements if isinstance(node, (cst.Tuple, cst.List)) else ()
    arms = [arm for one in parts for arm in _arms(one.value)]
    apart = any(is_another_name(ctx, arm) for arm in arms)
    if _only_arrays(rw.ctx.kind(node)) and not apart:
        rw.ctx.helpers.use("jax")
        return cst.Call(syntax.parse("jax.lax.stop_gradient"), [cst.Arg(_in_parens(value))])
    if isinstance(node, (cst.Tuple, cst.List)) and type(value) is type(node):
        assert isinstance(value, (cst.Tuple, cst.List))
        pairs = list(zip(value.elements, node.elements, strict=False))
        if all(type(e) is cst.Element and type(old) is cst.Element for e, old in pairs):
            elements = [syntax.changed(e, value=stopped(rw, e.value, o.value)) for e, o in pairs]
            return syntax.changed(value, elements=elements)
    if isinstance(node, cst.Dict) and isinstance(value, cst.Dict):
        entries = list(zip(value.elements, node.elements, strict=False))
        if all(type(e) is cst.DictElement for pair in entries for e in pair):
            made = [syntax.changed(e, value=stopped(rw, e.value, o.value)) for e, o in entries]
            return syntax.changed(value, elements=made)
    name = rw.ctx.helpers.need(module_file("rules.compat.no_grad"), "without_gradient")
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(_in_parens(value))])


def _arms(node: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a value may be: both of ``a if c else b``."""
    return [*_arms(node.body), *_arms(node.orelse)] if isinstance(node, cst.IfExp) else [node]


def _only_arrays(kind: k.Kind) -> bool:
    """Whether a value is an array, or a container of nothing else."""
    if isinstance(kind, k.Tuple):
        return bool(kind.items) and all(_only_arrays(item) for item in kind.items)
    if isinstance(kind, k.Sequence):
        return _only_arrays(kind.item)
    if isinstance(kind, k.Optional):
        return _only_arrays(kind.inner)
    return isinstance(kind, k.Tensor)


def _in_parens(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.Tuple) and not value.lpar:
        return syntax.parenthesized(value)  # type: ignore[return-value]
    return value


def may_hold_tensor(rw: Rewriter, node: cst.CSTNode) -> bool:
    """Whether a value may carry a gradient."""
    if rw.ctx.in_init:
        return False
    return not _no_array(rw.ctx.facts.kind(node))


def _no_array(kind: k.Kind) -> bool:
    """Whether a value is certainly no array, and no container of one."""
    if isinstance(kind, k.Optional):
        return _no_array(kind.inner)
    if isinstance(kind, k.Tuple):
        return all(_no_array(item) for item in kind.items)
    if isinstance(kind, k.Sequence):
        return _no_array(kind.item)
    return isinstance(kind, (k.Scalar, k.Const, k.Module, k.Other, k.DType, k.Device))


def _without_dead_devices(
    ctx: Context, node: cst.FunctionDef, body: cst.BaseSuite
) -> cst.BaseSuite:
    """Drop ``device = x.device`` when nothing reads it any more."""
    names = {}
    for item in node.body.body:
        if isinstance(item, cst.SimpleStatementLine) and len(item.body) == 1:
            small = item.body[0]
            if isinstance(small, cst.Assign) and len(small.targets) == 1:
                target = small.targets[0].target
                kind = ctx.facts.kind(small.value)
                if isinstance(target, cst.Name) and isinstance(kind, (k.Device, k.DType)):
                    names[target.value] = small.value
    if not names:
        return body
    reads = syntax.names(cst.Module(list(body.body)))  # type: ignore[arg-type]
    kept = []
    for statement in body.body:
        if isinstance(statement, cst.SimpleStatementLine) and len(statement.body) == 1:
            small = statement.body[0]
            if isinstance(small, cst.Assign) and len(small.targets) == 1:
                target = small.targets[0].target
                if isinstance(target, cst.Name) and target.value in names:
                    if reads.get(target.value, 0) <= 1:
                        continue
        kept.append(statement)
    return syntax.changed(body, body=kept or [PASS])
