"""``requires_grad`` of parameters: one that is not trained is a Variable of another class than ``nnx.Param``."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passing import makes_new
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.reached import of_forward
from rules.definitions import module_file

_NAMES = ("requires_grad", "require_grad")
"""torch's attribute, and the misspelling of it that many sources carry and that has no effect."""


@converts(cst.Assign, named=_NAMES, targets=(cst.Attribute,))
def assignment(rw: Rewriter, node: cst.Assign) -> Any:
    """``p.requires_grad = False``."""
    if len(node.targets) != 1 or type(node.targets[0].target) is not cst.Attribute:
        return None
    target = node.targets[0].target
    if target.attr.value not in _NAMES:
        return None
    if isinstance(rw.ctx.kind(target.value), k.Module):
        return _of_module(rw, node, target.value)
    return _set(rw, node, target.value, target.attr.value, node.value)


@converts(cst.Expr, named=("setattr", "requires_grad_"), values=(cst.Call,))
def statement(rw: Rewriter, node: cst.Expr) -> Any:
    """``p.requires_grad_(False)``, ``setattr(p, "requires_grad", False)`` and those of whole modules."""
    call = node.value
    if not isinstance(call, cst.Call):
        return None
    if isinstance(call.func, cst.Name) and call.func.value == "setattr" and len(call.args) == 3:
        name = rw.ctx.facts.kind(call.args[1].value)
        if isinstance(name, k.Const) and name.value in _NAMES:
            if isinstance(rw.ctx.kind(call.args[0].value), k.Module):
                return _of_module(rw, node, call.args[0].value)
            return _set(rw, node, call.args[0].value, name.value, call.args[2].value)
        return None
    if not _is_method(call):
        return None
    assert isinstance(call.func, cst.Attribute)
    return _set(rw, node, call.func.value, "requires_grad", _flag(call))


@converts(cst.Call, named=("requires_grad_",))
def expression(rw: Rewriter, node: cst.Call) -> Any:
    """``Encoder().requires_grad_(False)`` as a part of an expression."""
    if not _is_method(node):
        return None
    assert isinstance(node.func, cst.Attribute)
    receiver = node.func.value
    kind = rw.ctx.kind(receiver)
    if isinstance(kind, k.Tensor) and kind.role != "param":
        if _no_effect(rw, receiver, _flag(node)):
            return None  # the tensor itself, by its definition; no optimiser is given a buffer
    made = _trainable(rw, node, receiver, _flag(node))
    if made is None:
        raise Failure(node, "API005", "it is not known what requires_grad_ is asked of", "")
    return made


@converts(cst.Attribute, named=("requires_grad",))
def read(rw: Rewriter, node: cst.Attribute) -> Any:
    """``p.requires_grad`` of a parameter: whether it is an ``nnx.Param``."""
    if node.attr.value != "requires_grad" or not targets.is_variable(rw.ctx, node.value):
        return None
    reference = _reference(rw, node.value)
    if reference is None:
        return None
    rw.ctx.helpers.use("nnx")
    args = [cst.Arg(reference), cst.Arg(syntax.parse("nnx.Param"))]
    return syntax.with_args(cst.Call(cst.Name("isinstance")), args)


def _of_module(rw: Rewriter, node: cst.Assign | cst.Expr, module: cst.BaseExpression) -> Any:
    """``layer.requires_grad = False`` of a module, which torch takes for any other attribute: nothing is frozen."""
    ctx = rw.ctx
    own = ctx.class_of(ctx.kind(module))
    if own is not None and (own.settled is not None or own.method("requires_grad") is not None):
        return None  # a property, or what another file may ask for
    read = ctx.source.index.reading(ctx.source.tree, "requires_grad")
    if any(isinstance(ctx.kind(n.value), k.Module) and not _is_target(ctx, n) for n in read):
        return None  # an option that the program asks for
    texts = ctx.source.index.of_type(cst.SimpleString)
    if sum(one.evaluated_value == "requires_grad" for one in texts) > _is_setattr(node):
        return None
    what = (
        f"`{syntax.code(module)}.requires_grad` of a module means nothing to torch: it is left out"
    )
    advice = "its parameters are trained; requires_grad_(False) would freeze them"
    rw.ctx.report(node, "API015", what, advice, severity="warning", blocks=False)
    return []


def _is_setattr(node: cst.Assign | cst.Expr) -> bool:
    """``setattr(layer, "requires_grad", False)``, which has the name as a text."""
    return isinstance(node, cst.Expr)


def _is_target(ctx: Context, node: cst.Attribute) -> bool:
    return isinstance(ctx.facts.tree.parent(node), cst.AssignTarget)


def _is_method(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value == "requires_grad_"


def _flag(call: cst.Call) -> cst.BaseExpression:
    return call.args[0].value if call.args else cst.Name("True")


def _set(
    rw: Rewriter,
    node: cst.CSTNode,
    owner: cst.BaseExpression,
    name: str,
    value: cst.BaseExpression,
) -> Any:
    """The statement that freezes or thaws; none where torch's has no effect on training."""
    kind = rw.ctx.kind(owner)
    if name != "requires_grad":
        return []
    if isinstance(kind, k.Tensor) and kind.role == "buffer":
        if not _is_false(value):
            raise Failure(node, "API002", "a buffer that is trained", "make it a Parameter")
        return []
    plain = isinstance(kind, k.Tensor) and not kind.role
    plain |= isinstance(kind, k.Unknown) and in_forward(rw.ctx) and is_value(rw, owner)
    if plain and _no_effect(rw, owner, value):
        return []  # what is differentiated is chosen by jax.grad
    made = _trainable(rw, node, owner, value)
    if made is None:
        raise Failure(
            node,
            "API001",
            "freezing what is not known to be a parameter has no conversion",
            "leave it out of the optimiser's filter, or make it a plain nnx.Variable",
        )
    return cst.Expr(made)


def _no_effect(rw: Rewriter, node: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    """Whether setting ``requires_grad`` of a tensor changes nothing that is trained."""
    return (syntax.is_true(value) and not freezes(rw.ctx.source.text)) or is_value(rw, node)


def freezes(text: str) -> bool:
    """Whether a source keeps a parameter from being trained."""
    return _FREEZES.search(text) is not None


_FREEZES = re.compile(
    r"requires_grad *= *(?!True)|requires_grad_\((?! *(True *)?\))|[\"']requires_grad"
)


def is_value(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether a tensor is certainly no parameter: an input of the forward pass, or computed by a torch function."""
    if isinstance(node, cst.Call):
        return _computes(rw, node)
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return True  # an element or the result of an operation is no leaf that is trained
    if isinstance(node, cst.Attribute) and node.attr.value == "data":
        return True
    frame = rw.ctx.frame
    if isinstance(node, cst.Name) and frame is not None:
        if node.value in frame.info.params:
            return _is_input(rw, node.value)
        values = _assigned(frame.info.node, node.value)
        if in_forward(rw.ctx) and values and all(_is_argument(rw, one) for one in values):
            return True
    elif (
        isinstance(node, cst.Attribute) and rw.ctx.is_self(node.value) and rw.ctx.owner is not None
    ):
        values = []
        lineage = rw.ctx.owner.lineage()
        if any(info.settled is not None for info in lineage):
            return False  # what another file gives it is not seen here
        for info in lineage:
            values += _assigned(info.node, node.attr.value, attribute=True)
    else:
        return False
    return bool(values) and all(_computes(rw, v) or _names_new(rw, v) for v in values)


def _names_new(rw: Rewriter, node: cst.CSTNode) -> bool:
    """``self.pe = pe`` of a name that a function gives nothing but what it computes."""
    tree = rw.ctx.facts.tree
    if not isinstance(node, cst.Name) or not tree.has(node):
        return False
    around = [one for one in tree.around(node) if isinstance(one, cst.FunctionDef)]
    if not around or node.value in syntax.parameters(around[-1]):
        return False
    bound = [
        one
        for one in tree.within(around[-1].body, cst.Assign, cst.AnnAssign, cst.For, cst.NamedExpr)
        if any(_last(to) == node.value and isinstance(to, cst.Name) for to in _targets(one))
    ]
    return bool(bound) and all(
        isinstance(one, (cst.Assign, cst.AnnAssign)) and _is_new(rw, one.value) for one in bound
    )


def _is_new(rw: Rewriter, value: cst.BaseExpression | None) -> bool:
    """Whether an operation makes a tensor of its own: ``torch.as_tensor(w)`` and ``w.float()`` may be w."""
    if value is None or not _computes(rw, value):
        return False
    name = rw.ctx.facts.callee(value) if isinstance(value, cst.Call) else None
    return name is None or makes_new(rw.ctx, value, name)  # type: ignore[arg-type]


def _is_argument(rw: Rewriter, node: cst.CSTNode) -> bool:
    """``inputs[6:]``, what a forward pass is given."""
    while isinstance(node, cst.Subscript):
        node = node.value
    frame = rw.ctx.frame
    if not isinstance(node, cst.Name) or frame is None or node.value not in frame.info.params:
        return False
    return _is_input(rw, node.value)


def _is_input(rw: Rewriter, name: str) -> bool:
    """Whether an argument of what the forward pass runs is no parameter: no call of the file hands it one."""
    ctx, frame = rw.ctx, rw.ctx.frame
    if frame is None or not in_forward(ctx):
        return False
    info = frame.info
    if info.short == "forward":
        return True
    calls = [one for one in ctx.source.index.of_type(cst.Call) if _last(one.func) == info.short]
    if not calls or any(item.star for call in calls for item in call.args):
        return False  # what it is handed stands elsewhere
    bound = [pair for call in calls for pair in bound_arguments(call, info)]
    given = [item.value for key, item in bound if key == name]
    return all(
        (isinstance(ctx.facts.kind(one), k.Tensor) and not targets.is_variable(ctx, one))
        or (isinstance(one, cst.Subscript) and isinstance(ctx.facts.kind(one), k.Unknown))
        for one in given
    )


def _computes(rw: Rewriter, node: cst.CSTNode) -> bool:
    """Whether an expression makes a new tensor: an operation, a call of a torch function."""
    if isinstance(node, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
        return isinstance(rw.ctx.kind(node), k.Tensor)
    name = rw.ctx.facts.callee(node) if isinstance(node, cst.Call) else None
    if name is None or not isinstance(rw.ctx.kind(node), k.Tensor):
        return False
    own = name.startswith("Tensor.") and name.endswith("_")
    if own and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        return _computes(rw, node.func.value)  # which it changes and gives back
    return name.startswith(("torch.", "Tensor.")) and not own and "Parameter" not in name


def _assigned(tree: cst.CSTNode, name: str, attribute: bool = False) -> list[cst.CSTNode]:
    """What a name, or an attribute of that name, is given anywhere in a function or class."""
    found: list[cst.CSTNode] = []
    for node in syntax.walk(tree):
        for target in _targets(node):
            if isinstance(target, cst.Attribute) is attribute and _last(target) == name:
                found.append(getattr(node, "value", None) or node)
    return found


def _targets(node: cst.CSTNode) -> list[cst.CSTNode]:
    """The single targets that a statement or clause binds."""
    if isinstance(node, cst.Assign):
        bound: list[cst.CSTNode] = [t.target for t in node.targets]
    elif isinstance(node, (cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor, cst.NamedExpr)):
        bound = [node.target]
    else:
        return []
    found: list[cst.CSTNode] = []
    for target in bound:
        inside = [n for n in syntax.walk(target) if isinstance(n, (cst.Tuple, cst.List))]
        found.extend(syntax.walk(target) if inside else [target])
    return found


def _last(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def _is_false(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "False"


def _trainable(
    rw: Rewriter, node: cst.CSTNode, owner: cst.BaseExpression, value: cst.BaseExpression
) -> cst.Call | None:
    """``set_trainable(owner, value)``; None when the owner is neither a parameter nor a module."""
    reference = _reference(rw, owner)
    if reference is None:
        return None
    if in_forward(rw.ctx):
        raise Failure(
            node,
            "API001",
            "the forward pass changes which parameters are trained",
            "freeze them when the module is built",
        )
    name = rw.ctx.helpers.need(module_file("rules.compat.named"), "set_trainable")
    args = [cst.Arg(reference), cst.Arg(syntax.unparenthesized(rw.visit(value)))]
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def _reference(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The module, or the Variable without ``[...]``, that an expression means in the output."""
    kind = rw.ctx.kind(node)
    found = targets.found_at_run_time(rw.ctx, node)
    if found is not None:
        name = rw.ctx.helpers.need(module_file("rules.compat.named"), "weight_of")
        text = cst.SimpleString(f'"{found.attr.value}"')
        args = [cst.Arg(rw.visit(found.value)), cst.Arg(text)]
        return syntax.with_args(cst.Call(cst.Name(name)), args)
    if isinstance(kind, k.Module):
        made: cst.BaseExpression = rw.visit(node)
        return made
    if not (isinstance(kind, k.Tensor) and kind.role == "param"):
        return None
    made = rw.visit(node)
    if isinstance(node, cst.Call):
        return made
    if isinstance(node, cst.Subscript) and isinstance(rw.ctx.kind(node.value), k.Tuple):
        return made  # ``pair[1]`` of named_parameters()
    if isinstance(made, cst.Attribute) and made.attr.value == "T":
        made = made.value
    full = isinstance(made, cst.Subscript) and syntax.code(made).endswith("[...]")
    return made.value if full and isinstance(made, cst.Subscript) else None


def in_forward(ctx: Context) -> bool:
    """Whether the code runs in the forward pass of a module of the file."""
    return ctx.frame is not None and forward_reaches(ctx, ctx.frame.info)


def forward_reaches(ctx: Context, function: FunctionInfo) -> bool:
    """Whether the forward pass of a module of the file calls a function, itself or through others."""
    return function in forward_pass(ctx) and not ctx.plan.builds_time(function)


def forward_pass(ctx: Context) -> set[FunctionInfo]:
    """The functions that the forward pass of a module of the file calls, itself or through others."""
    if ctx.forward_pass is None:
        ctx.forward_pass = of_forward(ctx.facts)
    return ctx.forward_pass
