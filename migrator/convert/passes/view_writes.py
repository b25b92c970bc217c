"""Writes to a view of a tensor: the tensor gets what the view's new value makes of it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from migrator import syntax, views
from migrator.convert.alias import check_mutation, check_temporary, innermost, reads_in
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases
from migrator.convert.passes import targets
from migrator.convert.passing import makes_new
from migrator.convert.rewriter import Rewriter
from migrator.convert.sharing import VIEWS
from migrator.infer import kinds as k
from rules.definitions import module_file


def base_value(
    rw: Rewriter, view: cst.BaseExpression, value: cst.BaseExpression
) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The tensor that a view shows, and its new value once ``value`` was written to the view; None for other views.

    Only views that torch never makes a copy of: what is written to a ``reshape`` or a ``flatten`` may be lost.
    """
    base = views.viewed(view)
    if base is None or not isinstance(view, cst.Call) or not isinstance(view.func, cst.Attribute):
        return None
    name = rw.ctx.facts.callee(view) or ""
    if not isinstance(rw.ctx.kind(base), k.Tensor) or not name.startswith(("Tensor.", "torch.")):
        return None
    args = list(view.args if name.startswith("Tensor.") else view.args[1:])
    if any(isinstance(n, cst.Call) and not _asks(rw, n) for a in args for n in syntax.walk(a)):
        return None  # it would run twice
    written = _written(rw, name.rpartition(".")[2], base, args, value)
    return None if written is None else (base, written)


def _asks(rw: Rewriter, call: cst.Call) -> bool:
    """Whether a call only asks for a size or a number."""
    name = rw.ctx.facts.callee(call) or ""
    return name in ("Tensor.size", "Tensor.dim", "builtins.len", "builtins.int", "builtins.max")


def _written(
    rw: Rewriter,
    name: str,
    base: cst.BaseExpression,
    args: Sequence[cst.Arg],
    value: cst.BaseExpression,
) -> cst.BaseExpression | None:
    new = _atom(value)
    if any(a.keyword is not None or a.star == "**" for a in args):
        return None
    if name in ("view", "view_as", "unsqueeze", "squeeze"):
        if name == "view" and any(isinstance(rw.ctx.kind(a.value), k.DType) for a in args):
            return None  # the same bits, read as another type
        shape = cst.Attribute(_atom(rw.visit(base)), cst.Name("shape"))
        return _method(new, "reshape", [cst.Arg(shape)])
    if name in ("transpose", "swapaxes", "swapdims") and len(args) == 2:
        return _method(new, "swapaxes", [_arg(rw, a) for a in args])
    if name == "t" and not args:
        return cst.Attribute(new, cst.Name("T"))
    if name in ("movedim", "moveaxis") and len(args) == 2:
        source, target = (_arg(rw, a) for a in args)
        func = syntax.parse("jnp.moveaxis")
        return syntax.with_args(cst.Call(func), [cst.Arg(value), target, source])
    if name == "permute":
        order = _order(args)
        if order is None:
            return None
        back = [cst.Arg(cst.Integer(str(order.index(i)))) for i in range(len(order))]
        return _method(new, "transpose", back)
    return _part(rw, name, base, args, value)


def _part(
    rw: Rewriter,
    name: str,
    base: cst.BaseExpression,
    args: Sequence[cst.Arg],
    value: cst.BaseExpression,
) -> cst.BaseExpression | None:
    """A tensor with new values on a diagonal, or in a part along one axis."""
    read = _atom(rw.visit(base))
    if name == "diagonal" and len(args) < 2:
        helper = rw.ctx.helpers.need(module_file("rules.compat.data"), "with_diagonal")
        given = [cst.Arg(rw.visit(base)), cst.Arg(value), *(_arg(rw, a) for a in args)]
        return syntax.with_args(cst.Call(cst.Name(helper)), given)
    axis = _literal(args[0].value) if args else None
    if not isinstance(axis, int) or axis < 0:
        return None
    before = ":, " * axis
    if name == "select" and len(args) == 2:
        index = syntax.code(rw.visit(args[1].value))
    elif name == "narrow" and len(args) == 3:
        begin, count = (_literal(a.value) for a in args[1:])
        start, length = (syntax.code(_atom(rw.visit(a.value))) for a in args[1:])
        index = f"{start} : {start} + {length}"
        if (
            isinstance(begin, int) and begin < 0
        ):  # from the end, which is no place for a slice to stop
            if not isinstance(count, int):
                return None
            index = f"{begin} : {begin + count}" if begin + count < 0 else f"{begin} :"
    else:
        return None
    place = syntax.parse(f"_.at[{before}{index}]")
    assert isinstance(place, cst.Subscript)
    place = syntax.changed(place, value=cst.Attribute(read, cst.Name("at")))
    return _method(place, "set", [cst.Arg(value)])


def _order(args: Sequence[cst.Arg]) -> list[int] | None:
    """The axes of ``permute(0, 2, 1)``, counted from the front; None where they are not written down."""
    values = [_literal(a.value) for a in args]
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = list(values[0])
    if not values or not all(isinstance(one, int) for one in values):
        return None
    order = [one % len(values) for one in values if isinstance(one, int)]
    return order if sorted(order) == list(range(len(order))) else None


def _literal(node: cst.BaseExpression) -> object:
    try:
        found: object = ast.literal_eval(syntax.code(node).strip())
    except (ValueError, SyntaxError):
        return None
    return found


def _arg(rw: Rewriter, item: cst.Arg) -> cst.Arg:
    return cst.Arg(rw.visit(item.value), star=item.star)


def _method(node: cst.BaseExpression, name: str, args: Sequence[cst.Arg]) -> cst.BaseExpression:
    made: cst.BaseExpression = syntax.with_args(
        cst.Call(cst.Attribute(node, cst.Name(name))), list(args)
    )
    return made


def _atom(node: cst.BaseExpression) -> cst.BaseExpression:
    if syntax.precedence(node) < syntax.ATOM:
        return syntax.parenthesized(node)  # type: ignore[return-value]
    return node


def used_view(
    rw: Rewriter, node: cst.Call, target: cst.Call, value: Callable[[], Any]
) -> cst.BaseExpression:
    """A view that is written and used: ``x = x.view(-1).clamp_(0)``, ``torch.diagonal(c).add_(-1).sum()``."""
    ctx = rw.ctx
    seen = Failure(node, "MUT001", "a view is written in place", "write to its base")
    statement = ctx.statements[-1] if ctx.statements else None
    base: cst.CSTNode = target
    while isinstance(base, cst.Call) and isinstance(base.func, cst.Attribute) and is_view(rw, base):
        base = base.func.value
    if statement is None:
        raise seen
    if isinstance(base, cst.Name) and statement.target == base.value:
        if read_elsewhere(statement.node, node, base) or targets.is_variable(ctx, base):
            raise seen
        check_mutation(ctx, node, base)
        return value()  # nobody has the name of the old tensor any more
    try:
        check_temporary(ctx, node, target)
    except Failure:
        pass
    else:
        return value()
    named = isinstance(base, cst.Name) and isinstance(ctx.kind(base), k.Tensor)
    named = named and not targets.is_variable(ctx, base)
    if named and not _is_read_again(ctx, statement.node, node, base):  # type: ignore[arg-type]
        check_mutation(ctx, node, base)
        return value()  # nobody reads what the tensor would hold
    root = views.written_base(target)
    if not isinstance(root, cst.Name) or read_elsewhere(statement.node, node, root):
        raise seen
    check_mutation(ctx, node, target)
    name = ctx.hoist(node, value())
    if name is None:
        raise seen
    for line in targets.assign(rw, target, name):
        statement.before.append(cst.SimpleStatementLine([line]))
    return name


_ASKED = frozenset("shape dtype device ndim size dim".split())
"""What tells nothing of the values of a tensor."""
_AS = frozenset("type_as expand_as view_as reshape_as".split())
"""Methods that ask their argument for nothing else."""


def _is_read_again(ctx: Context, statement: cst.CSTNode, call: cst.Call, name: cst.Name) -> bool:
    """Whether the values of a tensor are read outside of a call, in its statement or after it."""
    if name.value in aliases(ctx, innermost(ctx)).read_after(statement):
        return True
    count = reads_in(statement, name.value) - syntax.names(call).get(name.value, 0)
    within = set(syntax.walk(call))
    for one in syntax.walk(statement):
        if one in within:
            continue
        if isinstance(one, cst.Attribute) and isinstance(one.value, cst.Name):
            count -= one.value.value == name.value and one.attr.value in _ASKED
        elif isinstance(one, cst.Call) and isinstance(one.func, cst.Attribute) and one.args:
            given = one.args[0].value
            named = isinstance(given, cst.Name) and given.value == name.value
            count -= named and one.func.attr.value in _AS
    return count > 0


def is_view(rw: Rewriter, call: cst.Call) -> bool:
    """Whether a call's result may share memory with what it is called on."""
    name = rw.ctx.facts.callee(call) or ""
    return name.rpartition(".")[2] in VIEWS


def is_new(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether a chain of views hangs on a tensor made in this very expression: ``x.clone().float()``."""
    while isinstance(node, cst.Call):
        name = rw.ctx.facts.callee(node) or ""
        if name.startswith(("Tensor.", "torch.")) and makes_new(rw.ctx, node, name):
            return isinstance(rw.ctx.kind(node), k.Tensor)
        if not name.startswith("Tensor.") or not isinstance(node.func, cst.Attribute):
            return False
        node = node.func.value
    return isinstance(node, cst.BinaryOperation) and isinstance(rw.ctx.kind(node), k.Tensor)


_REDUCING = frozenset(
    f"{owner}.{name}"
    for owner in ("torch", "Tensor")
    for name in "max min sort topk median nanmedian mode kthvalue cummax cummin".split()
)


def is_part_of_new(rw: Rewriter, target: cst.BaseExpression) -> bool:
    """``x.max(-1).values``, ``torch.sort(x)[0]``: a tensor that this very expression makes."""
    inner: cst.BaseExpression | None = None
    if isinstance(target, cst.Attribute) and target.attr.value in ("values", "indices"):
        inner = target.value
    elif isinstance(target, cst.Subscript) and isinstance(rw.ctx.kind(target.value), k.Tuple):
        inner = target.value
    if not isinstance(inner, cst.Call) or (rw.ctx.facts.callee(inner) or "") not in _REDUCING:
        return False
    return not any(a.keyword is not None and a.keyword.value == "out" for a in inner.args)


_OTHER_SHAPE = frozenset("squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_".split())


_OWN_VIEWS = frozenset(
    "view view_as reshape reshape_as transpose swapaxes swapdims permute movedim moveaxis t unsqueeze squeeze detach "
    "expand expand_as broadcast_to narrow select unfold diagonal".split()
)
"""Methods that give a tensor object of their own, also where it has the same numbers: not ``contiguous`` and ``to``."""


def only_reshapes_part(rw: Rewriter, node: cst.BaseExpression, target: cst.BaseExpression) -> bool:
    """``x[t].unsqueeze_(0)``: the part is a tensor object of its own, which alone has another shape then."""
    while node is not target:
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return False
        if node.func.attr.value not in _OTHER_SHAPE:
            return False
        node = views.undressed(node.func.value)
    if isinstance(target, cst.Call):
        return (rw.ctx.facts.callee(target) or "").removeprefix("Tensor.") in _OWN_VIEWS
    return isinstance(target, cst.Subscript) and isinstance(rw.ctx.kind(target.value), k.Tensor)


def read_elsewhere(statement: cst.CSTNode, call: cst.CSTNode, target: cst.Name) -> bool:
    """Whether a statement reads a name outside of one of its calls."""
    return reads_in(statement, target.value) > syntax.names(call).get(target.value, 0)
