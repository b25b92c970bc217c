"""Calls of torch functions and tensor methods by their definitions."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.analyze.not_taken import is_not_taken
from migrator.convert.context import Context, Failure
from migrator.convert.expand import CallArg, Result, call_args, convert_call
from migrator.convert.inline import NoConversion, expand
from migrator.convert.layers_by_name import made_by_name
from migrator.convert.passes.control import NEUTRAL
from migrator.convert.passes.fresh_results import fresh_out
from migrator.convert.passes.makers import unknown_builder
from migrator.convert.passes.places import is_place
from migrator.convert.passes.targets import current
from migrator.convert.reentrant import has_none, is_open
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.surroundings import told
from migrator.convert.untracked import stopped
from migrator.convert.updates import STATISTICS, updated_by
from migrator.findings import UNCLEAR
from migrator.infer import kinds as k
from migrator.infer.distributions import DIVERGENCE, comparable, converted, members, result
from migrator.infer.evidence import keeps, permutes
from migrator.infer.static import asked_name, choices, exists, names_dtype
from migrator.infer.symbols import CASTS, symbol, tensor_attribute
from migrator.source import dotted
from rules import definitions
from rules.definitions import module_file
from rules.elsewhere import advice_for
from rules.flags._autocast import Use, use

_DIFFERENT = frozenset(
    "max min std var sort repeat transpose take put nonzero argsort flatten clip view".split()
)
"""Methods that numpy or JAX arrays have too, with another meaning: the receiver must be known."""


def torch_call(rw: Rewriter, node: cst.Call, only: int | None = None) -> Result | None:
    """The conversion of a call of a torch function or tensor method; None when it is neither."""
    name = rw.ctx.facts.callee(node) or ""
    if name.endswith("()"):
        return None
    if not name.startswith(("Tensor.", "torch.")) and name != "timm_layers.drop_path":
        return None
    kind = rw.ctx.facts.kind(node.func)
    if result(name) is not None:
        rw.ctx.effect(node)
        return None  # a method of a distribution, whose class has it in the output too
    if not isinstance(kind, k.Function):
        if isinstance(kind, k.Class) and definitions.ops(name):
            return convert_call(
                rw, node, name, definitions.ops(name), call_args(rw, node.args), only
            )
        return None
    rules = definitions.ops(name)
    if not rules:
        raise Failure(node, "API001", f"{name} has no conversion", advice_for(name))
    given = [a for a in node.args if not (_is_out(a) and syntax.code(a.value) == "None")]
    if len(given) < len(node.args):  # the default, written down
        node = syntax.changed(node, args=given)
    fresh = fresh_out(rw.ctx, node)
    if fresh is not None:  # nobody else has it: what it gets is the result
        node = syntax.changed(node, args=[a for a in node.args if a is not fresh])
    if any(map(_is_out, node.args)):
        raise Failure(
            node,
            "MUT002",
            "out= in the middle of an expression",
            "give the call a statement of its own",
        )
    args = _arguments(rw, node, name, kind)
    if name == DIVERGENCE and not comparable(*(item.kind for item in args[:2])):
        raise Failure(
            node,
            "API001",
            "this divergence has no conversion",
            "write it with the parameters of the two distributions",
        )
    args += told(rw.ctx, node, args, rules)
    if any(rule.draws for rule in rules):
        rw.ctx.effect(node)
    return convert_call(rw, node, name, rules, args, only)


def _is_out(item: cst.Arg) -> bool:
    return item.keyword is not None and item.keyword.value == "out"


def _arguments(rw: Rewriter, node: cst.Call, name: str, kind: k.Function) -> list[CallArg]:
    args = []
    if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
        receiver = node.func.value
        if kind.bound is not None or not isinstance(rw.ctx.kind(receiver), k.Class):
            args.append(CallArg(None, receiver, current(rw, receiver), kind.bound or k.TENSOR))
    return [*args, *call_args(rw, node.args)]


def expands_to_components(rw: Rewriter, node: cst.Call) -> bool:
    """Whether a call's definition spells its tuple result out, component by component."""
    name = rw.ctx.facts.callee(node) or ""
    kind = rw.ctx.facts.kind(node.func)
    bound = kind.bound if isinstance(kind, k.Function) else None
    args = (
        [CallArg(None, node.func, node.func, bound or k.TENSOR)]
        if name.startswith("Tensor.")
        else []
    )
    for item in node.args:
        keyword = item.star or (item.keyword.value if item.keyword else None)
        args.append(CallArg(keyword, item.value, item.value, rw.ctx.facts.kind(item.value)))
    try:
        expansion = expand(name, definitions.ops(name), args)
    except NoConversion:
        return False
    return expansion.template is not None and expansion.template.is_tuple


COMPILERS = frozenset("torch.compile torch.jit.script torch.jit.export torch.jit.ignore".split())


@converts(cst.Attribute, of=(k.Other,))
def of_distribution(rw: Rewriter, node: cst.Attribute) -> None:
    """Raise a Failure for what torch's distributions have and the converted ones do not."""
    name = converted(rw.ctx.kind(node.value))
    if name and node.attr.value not in members(name):
        raise Failure(
            node,
            "API001",
            f"`{node.attr.value}` of a {name} has no conversion",
            "write it with the parameters of the distribution",
        )


@converts(cst.Call, called=("torch.utils.checkpoint.checkpoint",))
def checkpointed(rw: Rewriter, node: cst.Call) -> Any:
    """``checkpoint(block, x)`` → ``nnx.remat`` of the call of a module; of a plain function, the call itself."""
    if rw.ctx.facts.callee(node) != "torch.utils.checkpoint.checkpoint":
        return None
    function, *rest = node.args
    kept = [a for a in rest if a.keyword is None or a.keyword.value not in _CHECKPOINT_OPTIONS]
    run = function.value
    if isinstance(run, cst.Lambda):
        run = syntax.parenthesized(run)  # type: ignore[assignment]
        rw.ctx.facts.kinds[run] = rw.ctx.facts.kind(function.value)
    call = cst.Call(run, [a.with_changes(comma=cst.MaybeSentinel.DEFAULT) for a in kept])
    rw.ctx.facts.kinds[call] = rw.ctx.facts.kind(node)
    owner = _owner(rw, function.value)
    _updated_again(rw, node, call)
    made: cst.Call = rw.visit(call)
    cut = _has_no_gradient(rw, node, made)
    if owner is not None and isinstance(made, cst.Call):
        whole = _rematerialised(rw, owner, call, made)
        return stopped(rw, whole) if cut else whole
    _left_out(rw, node)
    result = syntax.with_args(made, list(made.args)) if isinstance(made, cst.Call) else made
    return stopped(rw, result) if cut else result


def _has_no_gradient(rw: Rewriter, node: cst.Call, made: cst.BaseExpression) -> bool:
    """Whether torch leaves the parameters of a checkpointed call without a gradient.

    Raises:
      Failure: it does so on some ways to the call and not on others.
    """
    none = has_none(rw.ctx, node, made, rw.ctx.frame.info if rw.ctx.frame is not None else None)
    if none is None:
        raise _some_ways(node)
    return none


def _some_ways(node: cst.Call) -> Failure:
    what = "this reentrant checkpoint gives its parameters no gradient on some ways that lead to it"
    return Failure(node, "API002", what, "write use_reentrant=False, or detach what it returns")


def _updated_again(rw: Rewriter, node: cst.Call, call: cst.Call) -> None:
    """Say where torch, which runs a function again for its gradient, updates running statistics twice."""
    ctx, names = rw.ctx, updated_by(rw.ctx, call)
    normalises = ctx.facts.linked is not None or re.search("[bB]atch_?[nN]orm", ctx.source.text)
    if (names if normalises else names - STATISTICS) and not ctx.no_grad:
        what = (
            "torch runs this again for its gradient, and updates running statistics and the like a"
            " second time; the port does not"
        )
        advice = (
            "keep what is updated out of the checkpoint where torch's own statistics are to be met"
        )
        if not _is_optional(rw, node):
            raise Failure(node, "TRC010", what, advice)
        ctx.report(node, "TRC010", what, advice, severity="warning", blocks=False)


def _is_optional(rw: Rewriter, node: cst.Call) -> bool:
    """Whether a call stands under a condition other than training, ``if self.use_checkpoint:``, or perhaps a caller does."""
    around = rw.ctx.facts.tree.around(node)
    inner = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    if inner is None or inner.name.value != "forward":
        return True
    below = around[around.index(inner) :]
    tests = [n.test for n in below if isinstance(n, (cst.If, cst.IfExp))]
    return any(
        syntax.code(one) not in ("self.training", "torch.is_grad_enabled()") for one in tests
    )


def _left_out(rw: Rewriter, node: cst.Call) -> None:
    rw.ctx.report(
        node,
        "TRC010",
        "activation checkpointing is left out",
        "wrap the call in nnx.remat to keep it",
        severity="info",
        blocks=False,
    )


@converts(cst.Call, called=("functools.partial",))
def partial_of_torch(rw: Rewriter, node: cst.Call) -> Any:
    """``partial(checkpoint, block)`` → ``block``; ``partial(autocast, enabled=False)``, a context that does nothing."""
    if rw.ctx.facts.callee(node) != "functools.partial" or not node.args:
        return None
    name = rw.ctx.facts.qualified_name(node.args[0].value)
    neutral = name in NEUTRAL or use(syntax.with_args(node, list(node.args[1:])), name) is Use.OFF
    if neutral:
        rw.ctx.helpers.use("contextlib")
        return syntax.parse("contextlib.nullcontext")
    if name != "torch.utils.checkpoint.checkpoint" or len(node.args) < 2 or node.args[1].keyword:
        return None
    if is_open(rw.ctx, node, rw.ctx.frame.info if rw.ctx.frame is not None else None):
        raise _some_ways(node)
    _left_out(rw, node)
    rest = [
        a for a in node.args[1:] if a.keyword is None or a.keyword.value not in _CHECKPOINT_OPTIONS
    ]
    if len(rest) == 1 and not rest[0].star:
        return rw.visit(rest[0].value)
    return syntax.with_args(node, [rw.visit(a) for a in rest])


def _owner(rw: Rewriter, function: cst.BaseExpression) -> cst.BaseExpression | None:
    """The module whose state a checkpointed call works on: the module called, or the one of a method."""
    kind = rw.ctx.facts.kind(function)
    if isinstance(kind, k.Module) and syntax.is_cheap(function):
        return function
    own = isinstance(kind, k.Function) and kind.name in rw.ctx.facts.names
    if own and isinstance(function, cst.Attribute) and isinstance(function.value, cst.Name):
        return function.value if isinstance(rw.ctx.kind(function.value), k.Module) else None
    return None


def _rematerialised(
    rw: Rewriter, owner: cst.BaseExpression, call: cst.Call, made: cst.Call
) -> cst.BaseExpression:
    """``nnx.remat(lambda block, x: block(x))(block, x)``: what is no tensor stays inside the lambda."""
    names = [
        a.value
        for a in call.args
        if a.keyword is None
        and not a.star
        and isinstance(a.value, cst.Name)
        and isinstance(rw.ctx.kind(a.value), k.Tensor)
    ]
    distinct = list({n.value: n for n in names}.values())
    if isinstance(owner, cst.Name):
        inner = owner.value
    else:
        inner = next(n for n in ("block", "layer", "module") if n not in syntax.names(made))
        old, new = syntax.code(rw.visit(owner)), cst.Name(inner)
        if syntax.code(made.func) != old:
            return made
        made = made.with_changes(func=new)
    params = [cst.Param(cst.Name(n)) for n in (inner, *(n.value for n in distinct))]
    rw.ctx.helpers.use("nnx")
    function = cst.Lambda(cst.Parameters(params), made)
    wrapped = cst.Call(syntax.parse("nnx.remat"), [cst.Arg(function)])
    given = [cst.Arg(rw.visit(owner)), *(cst.Arg(cst.Name(n.value)) for n in distinct)]
    return syntax.with_args(cst.Call(wrapped), given)


_CHECKPOINT_OPTIONS = frozenset(
    "use_reentrant preserve_rng_state context_fn determinism_check debug".split()
)


@converts(cst.Call, called=COMPILERS)
def compiled(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.compile(f)``, ``torch.jit.script(f)`` → ``f``: what is compiled is chosen by nnx.jit."""
    if rw.ctx.facts.callee(node) not in COMPILERS or not node.args or node.args[0].keyword:
        return None
    return rw.visit(node.args[0].value)


_TOLD = {"torch.jit.annotate": 2, "torch.jit._unwrap_optional": 1}
"""What torch's compiler is told of a value, the last argument: its type, or that it is not None."""


@converts(cst.Call, called=_TOLD)
def annotated(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.jit.annotate(List[int], [])`` → ``[]``, ``torch.jit._unwrap_optional(x)`` → ``x``."""
    if len(node.args) != _TOLD.get(rw.ctx.facts.callee(node) or ""):
        return None
    if any(one.star or one.keyword is not None for one in node.args):
        return None
    return rw.visit(node.args[-1].value)


@converts(cst.Call)
def plain_value(rw: Rewriter, node: cst.Call) -> Any:
    """``x.item()`` where arrays are concrete; ``Variable(x)``, which is a detached x."""
    name = rw.ctx.facts.callee(node)
    if name in ("Tensor.item", "Tensor.tolist") and (rw.ctx.concrete or _no_call(rw.ctx, node)):
        assert isinstance(node.func, cst.Attribute)
        return syntax.changed(
            node,
            func=syntax.changed(
                node.func, value=syntax.fitted(node.func, "value", rw.visit(node.func.value))
            ),
        )
    if name == "builtins.setattr" and node.args:
        if isinstance(rw.ctx.kind(node.args[0].value), k.Tensor):
            what = "an attribute is set on a tensor, which JAX arrays do not take"
            raise Failure(node, "API001", what, "hand the value on beside the tensor")
        holder = node.args[0].value
        if isinstance(holder, cst.Call) and rw.ctx.facts.callee(holder) == "builtins.getattr":
            helper = rw.ctx.helpers.need(module_file("rules.compat.named"), "set_attribute")
            return syntax.changed(
                node, func=cst.Name(helper), args=[rw.visit(a) for a in node.args]
            )
    if name in ("torch.unique", "Tensor.unique") and rw.ctx.concrete:
        return _unique(rw, node)
    if name == "builtins.hasattr" and len(node.args) == 2:
        return _has_torch_name(rw, node)
    if name == "builtins.getattr" and len(node.args) in (2, 3):
        return _torch_attribute(rw, node)
    if name == "torch.autograd.Variable" and node.args:
        return _variable(rw, node)
    return None


def _no_call(ctx: Context, node: cst.Call) -> bool:
    """Whether no call takes the branch that this is in: whoever does gets JAX's own error where nothing is known."""
    frame, tree = ctx.frame, ctx.source.index
    return frame is not None and tree.has(node) and is_not_taken(ctx.facts, tree, frame.info, node)


_MAKERS = frozenset(
    f"torch.{name}"
    for name in (
        "zeros ones full empty rand randn randint randperm arange linspace eye tensor Tensor FloatTensor DoubleTensor "
        "LongTensor ByteTensor BoolTensor IntTensor from_numpy zeros_like ones_like full_like empty_like "
        "rand_like randn_like"
    ).split()
)
"""Functions whose tensors have no gradient to lose."""
_CASTS = frozenset("float double half long int bool to type type_as cuda cpu contiguous".split())


def _variable(rw: Rewriter, node: cst.Call) -> cst.BaseExpression:
    """``Variable(x)`` and ``Variable(x, requires_grad=True)`` are x without its history, as ``x.detach()`` is."""
    for item in node.args[1:]:
        if item.keyword is None or item.keyword.value not in ("requires_grad", "volatile"):
            raise Failure(node, "API002", "Variable with other arguments", "write `x.detach()`")
    first = node.args[0].value
    value: cst.BaseExpression = rw.visit(first)
    kind, made = rw.ctx.kind(first), first
    while isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute):
        if made.func.attr.value not in _CASTS:
            break
        made = made.func.value
    fresh = isinstance(made, cst.Call) and rw.ctx.facts.callee(made) in _MAKERS
    if fresh or (isinstance(kind, k.Tensor) and kind.dtype in ("int", "bool")):
        return value
    if isinstance(value, cst.Call) and syntax.code(value.func) == "lax.stop_gradient":
        return value
    rw.ctx.helpers.use("lax")
    return cst.Call(syntax.parse("lax.stop_gradient"), [cst.Arg(value)])


def _unique(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``torch.unique(x, return_counts=True)`` where arrays are concrete, so that the number of values is known."""
    given = [a for a in node.args if a.keyword is None and not a.star]
    options = [a for a in node.args if a.keyword is not None]
    names = {a.keyword.value for a in options if a.keyword is not None}
    method = isinstance(node.func, cst.Attribute) and rw.ctx.facts.callee(node) == "Tensor.unique"
    if len(given) != (0 if method else 1) or len(given) + len(options) != len(node.args):
        return None
    if names - {"return_counts", "return_inverse"}:
        return None
    value = node.func.value if method and isinstance(node.func, cst.Attribute) else given[0].value
    rw.ctx.helpers.use("jnp")
    args = [cst.Arg(rw.visit(value)), *(rw.visit(a) for a in options)]
    made = syntax.with_args(cst.Call(syntax.parse("jnp.unique")), args)
    return syntax.add_keyword(
        made, "equal_nan", cst.Name("False")
    )  # each NaN is a value of its own in torch


def _torch_attribute(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``getattr(F, "relu")`` → ``F.relu``; ``getattr(torch, self.dtype)``, the name of a dtype."""
    asked = asked_name(rw.ctx.facts, node)
    if asked is None:
        return _chosen(rw, node) or _named_dtype(rw, node) or made_by_name(rw, node)
    if len(node.args) == 3:
        there = exists(*asked)
        if there is None:
            what = f"whether torch has {asked[0]}.{asked[1]} is not known here"
            raise Failure(node, "API001", what, "write down the one that is meant")
        if not there:
            default: cst.BaseExpression = rw.visit(node.args[2].value)
            return default
    from migrator.convert.passes.names import value_of

    kind = rw.ctx.facts.kind(node)
    if isinstance(kind, (k.Function, k.Class)):
        return value_of(rw, node, kind)
    attribute = cst.Attribute(node.args[0].value, cst.Name(asked[1]))
    rw.ctx.facts.kinds[attribute] = kind
    try:
        made: cst.BaseExpression = rw.visit(attribute)
    except Failure as failure:
        raise Failure(node, failure.rule, failure.message, failure.advice) from failure
    return made


def _chosen(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``getattr(nn, f"Conv{n}d")`` → ``{"Conv1d": …, "Conv2d": …, "Conv3d": …}[f"Conv{n}d"]``."""
    from migrator.convert.passes.names import value_of

    namespace = rw.ctx.facts.kind(node.args[0].value)
    entries = []
    for name in choices(rw.ctx.facts, node):
        kind = symbol(f"{namespace.name}.{name}")  # type: ignore[attr-defined]
        if not isinstance(kind, (k.Function, k.Class)):
            return None
        key = cst.SimpleString(f'"{name}"')
        entries.append(cst.DictElement(key, value_of(rw, node, kind)))
    if not entries:
        return None
    index = cst.Index(syntax.unparenthesized(rw.visit(node.args[1].value)))
    return cst.Subscript(cst.Dict(entries), [cst.SubscriptElement(index)])


def _has_torch_name(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``hasattr(F, "scaled_dot_product_attention")``: a question about torch, answered here."""
    asked = asked_name(rw.ctx.facts, node)
    if asked is None:
        return None
    there = exists(*asked)
    if there is None:
        what = f"whether torch has {asked[0]}.{asked[1]} is not known here"
        raise Failure(node, "API001", what, "write down the branch that is meant")
    return cst.Name(str(there))


def _named_dtype(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``getattr(torch, config.dtype)`` → ``getattr(jnp, config.dtype)``, which raises on what is no dtype."""
    if not names_dtype(rw.ctx.facts, node):
        return None
    rw.ctx.helpers.use("jnp")
    return syntax.with_args(
        cst.Call(cst.Name("getattr")),
        [cst.Arg(cst.Name("jnp")), cst.Arg(rw.visit(node.args[1].value))],
    )


@converts(cst.Call)
def call(rw: Rewriter, node: cst.Call) -> Any:
    """Any other call."""
    result = torch_call(rw, node) or _builtin_of_tensor(rw, node)
    if result is not None:
        return result.node
    ctx = rw.ctx
    kind = ctx.facts.kind(node.func)
    if isinstance(kind, k.Class) and kind.name.startswith("torch."):
        raise Failure(node, "API001", f"{kind.name} has no conversion", advice_for(kind.name))
    _check_table(rw, node)
    if _only_moves(rw, node):
        assert isinstance(node.func, cst.Attribute)
        return rw.visit(node.func.value)
    if isinstance(node.func, cst.Attribute) and isinstance(kind, k.Unknown):
        rw.visit(node.func.value)  # what is wrong further in is the better message
        _check_unknown_receiver(rw, node)
    kind = ctx.kind(node.func)
    if isinstance(kind, (k.Unknown, k.Module)):
        ctx.effect(node)
    if isinstance(kind, k.Unknown) or kind == k.Function(""):
        return unknown_builder(rw, node)
    return None


def _builtin_of_tensor(rw: Rewriter, node: cst.Call) -> Result | None:
    """``abs(x)`` of a tensor is the method, whose gradient at 0 is not that of JAX."""
    if rw.ctx.facts.callee(node) != "builtins.abs" or len(node.args) != 1:
        return None
    if not isinstance(rw.ctx.kind(node.args[0].value), k.Tensor):
        return None
    name = "Tensor.__abs__"
    return convert_call(rw, node, name, definitions.ops(name), call_args(rw, node.args))


def _check_table(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for ``MODELS[name]()`` where some entries are classes and others build one: who takes rngs?"""
    table = node.func.value if isinstance(node.func, cst.Subscript) else None
    if not isinstance(table, cst.Name):
        return
    for line in rw.ctx.source.index.of_type(cst.Assign):
        target = line.targets[0].target
        if not isinstance(line.value, cst.Dict) or not isinstance(target, cst.Name):
            continue
        if target.value != table.value:
            continue
        values = [element.value for element in line.value.elements]
        classes = [v for v in values if _is_class_of_modules(rw, v)]
        if classes and any(isinstance(v, cst.Lambda) for v in values):
            what = f"`{table.value}` holds classes of modules and functions that build them"
            raise Failure(node, "API005", what, "make all entries of one kind")


def _is_class_of_modules(rw: Rewriter, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call) and rw.ctx.facts.callee(node) == "functools.partial":
        return bool(node.args) and _is_class_of_modules(rw, node.args[0].value)
    kind = rw.ctx.kind(node)
    info = rw.ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    return info is not None and info.torch_base is not None


def _only_moves(rw: Rewriter, node: cst.Call) -> bool:
    """``model.to(device)``, ``x.cuda(gpu)`` of something unknown: tensors and modules stay what they are."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in ("to", "cuda", "cpu"):
        return False
    if not isinstance(rw.ctx.kind(func), k.Unknown) or any(item.star for item in node.args):
        return False
    if not isinstance(rw.ctx.kind(func.value), k.Unknown):
        return False
    keywords = {item.keyword.value for item in node.args if item.keyword is not None}
    if not keywords <= {"non_blocking", "device"}:
        return False
    given = [a.value for a in node.args if a.keyword is None or a.keyword.value == "device"]
    if func.attr.value != "to":
        return len(given) < 2
    return bool(given) and is_place(rw, given[0]) and len(given) < 2


@converts(cst.Expr, named=("to", "cuda", "cpu"), values=(cst.Call,))
def moved(rw: Rewriter, node: cst.Expr) -> Any:
    """``model.to(device)`` as a statement goes."""
    if isinstance(node.value, cst.Call) and _only_moves(rw, node.value):
        return []
    return None


def _splits_text(rw: Rewriter, node: cst.Call) -> bool:
    """``path.split(os.path.sep)``, ``line.split(sep=mark)``: a tensor is split by numbers, and by no such keyword."""
    if any(a.keyword is not None and a.keyword.value in ("sep", "maxsplit") for a in node.args):
        return True
    if not node.args or node.args[0].star or node.args[0].keyword is not None:
        return False
    given = node.args[0].value
    if k.scalar_type(rw.ctx.kind(given)) == "str" or isinstance(given, cst.FormattedString):
        return True
    return dotted(given) in ("os.sep", "os.path.sep", "os.linesep", "os.pathsep", "os.extsep")


def _check_unknown_receiver(rw: Rewriter, node: cst.Call) -> None:
    assert isinstance(node.func, cst.Attribute)
    method = node.func.attr.value
    if not isinstance(rw.ctx.kind(node.func.value), k.Unknown) or not tensor_attribute(method):
        return
    if method in CASTS:
        raise Failure(
            node,
            "API005",
            f"it is not known what .{method}() is asked of: arrays and Flax modules have no such method",
            "annotate it (x: torch.Tensor)",
        )
    different = method in _DIFFERENT and not permutes(node)
    ambiguous = different or (method == "split" and not _splits_text(rw, node))
    second = keeps(node)
    if second is not None and rw.ctx.kind(second) != k.NONE:
        numpy = (rw.ctx.facts.qualified_name(second) or "").startswith("numpy.")  # np.float32
        ambiguous = ambiguous or not numpy
    if ambiguous and (node.args or method in ("max", "min", "std", "var", "nonzero")):
        raise Failure(
            node,
            "API005",
            f"`{' '.join(syntax.code(node.func.value).split())[:40]}` may be a tensor or not, and "
            f".{method}() means different things",
            UNCLEAR,
        )
