"""Blocks that switch gradients off, on, or either: ``torch.no_grad()``, ``set_grad_enabled``, one context or another.

``Context.no_grad`` says that there may be no gradient, ``Context.gradient_if`` on what that depends, if on anything.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.opening import opened
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k
from migrator.infer.switches import assigned, choice, kept

_PLAIN = (cst.Name, cst.Comparison, cst.UnaryOperation, cst.SimpleString, cst.Integer)


@contextmanager
def _scope(rw: Rewriter, off: bool, conditions: list[cst.BaseExpression]) -> Iterator[None]:
    ctx = rw.ctx
    saved = ctx.no_grad, ctx.gradient_if
    ctx.no_grad, ctx.gradient_if = int(off), conditions
    try:
        yield
    finally:
        ctx.no_grad, ctx.gradient_if = saved


def without(rw: Rewriter, node: cst.With) -> Any:
    """``with torch.no_grad():``

    Raises:
      Failure: a generator yields from within what is computed without a gradient.
    """
    yields = next(iter(rw.ctx.facts.tree.within(node.body, cst.Yield)), None)
    if yields is not None and yields.value is not None and _computes(rw, yields.value):
        what = "a generator yields what it computes without a gradient"
        raise Failure(
            yields, "API001", what, "give it a name in the block, and yield that behind it"
        )
    with _scope(rw, True, []):
        return opened(rw, node)


def _computes(rw: Rewriter, value: cst.BaseExpression | cst.From) -> bool:
    """Whether what is yielded is more than a name or a number."""
    plain = (cst.Name, cst.BaseNumber, cst.SimpleString)
    return not isinstance(value, plain) or isinstance(rw.ctx.facts.kind(value), k.Module)


def tracked(rw: Rewriter, node: cst.With) -> Any:
    """``with torch.enable_grad():``, also within a block without gradients."""
    _refuse_in_function(rw, node)
    with _scope(rw, False, []):
        return opened(rw, node)


def as_told(rw: Rewriter, node: cst.With) -> Any:
    """``with torch.set_grad_enabled(phase == "train"):``; None where what it asks may change within."""
    call = node.items[0].item
    if not isinstance(call, cst.Call) or len(call.args) != 1 or call.args[0].star:
        return None
    asked = call.args[0].value
    if syntax.is_true(asked):
        return tracked(rw, node)
    if isinstance(asked, cst.Name) and asked.value == "False":
        return without(rw, node)
    _refuse_in_function(rw, node)
    return _depending(rw, node, asked, rw.visit(asked), [])


def either(rw: Rewriter, node: cst.With) -> Any:
    """``with (torch.no_grad() if frozen else nullcontext()):`` and the like; None for any other context."""
    item = node.items[0].item
    if len(node.items) != 1 or node.items[0].asname is not None:
        return None
    ctx = rw.ctx
    outer = list(ctx.gradient_if)
    surely_off = bool(ctx.no_grad and not outer)
    function = ctx.frame.info.node if ctx.frame is not None else None
    found = assigned(ctx.facts, node, function) if function is not None else None
    if found is not None and function is not None and kept(ctx.facts, found):
        name = found.targets[0].target
        assert isinstance(name, cst.Name)
        if surely_off:
            return without(rw, node)
        return _depending(rw, node, name, name, outer)
    if isinstance(item, cst.Call) and not item.args:
        item = item.func  # (torch.no_grad if frozen else nullcontext)()
    written = choice(ctx.facts, item, called=item is node.items[0].item)
    if written is None:
        return None
    if surely_off:
        return without(rw, node)
    return _depending(rw, node, written.test, enabled(rw, item), outer)


def enabled(rw: Rewriter, node: cst.CSTNode) -> cst.BaseExpression | None:
    """What tells whether there are gradients within either of two contexts; None for any other expression."""
    found = choice(rw.ctx.facts, node, called=isinstance(getattr(node, "body", None), cst.Call))
    if found is None:
        return None
    from migrator.convert.passes.control import condition

    test = condition(rw, found.test)
    if found.off_if_true:
        made = cst.UnaryOperation(cst.Not(), cst.Name("x"))
        return syntax.changed(made, expression=syntax.fitted(made, "expression", test))
    if isinstance(found.test, (cst.Comparison, cst.UnaryOperation)):
        return syntax.unparenthesized(test)
    return cst.Call(cst.Name("bool"), [cst.Arg(syntax.unparenthesized(test))])


def _depending(
    rw: Rewriter,
    node: cst.With,
    asked: cst.CSTNode,
    made: cst.BaseExpression | None,
    outer: list[cst.BaseExpression],
) -> Any:
    """A block with gradients where a condition holds, and one around it if there is any."""
    if made is None:
        return None
    before: list[cst.BaseStatement] = []
    bound = {
        item.target.value
        for item in syntax.walk(node.body)
        if isinstance(item, (cst.AssignTarget, cst.For, cst.AugAssign, cst.NamedExpr))
        and isinstance(item.target, cst.Name)
    }
    reads = (cst.Call, cst.Attribute, cst.Subscript)
    plain = isinstance(asked, _PLAIN) and not any(isinstance(n, reads) for n in syntax.walk(asked))
    if bound & set(syntax.names(asked)) and plain:
        return None
    if not plain:
        name = rw.ctx.unused("tracked")
        target = cst.AssignTarget(cst.Name(name))
        before = [cst.SimpleStatementLine([cst.Assign([target], syntax.unparenthesized(made))])]
        made = cst.Name(name)
    if outer:
        both = cst.BooleanOperation(cst.Name("a"), cst.And(), cst.Name("b"))
        left = syntax.fitted(both, "left", outer[-1])
        made = syntax.changed(both, left=left, right=syntax.fitted(both, "right", made))
    with _scope(rw, True, [made]):
        return [*before, *opened(rw, node)]


def _refuse_in_function(rw: Rewriter, node: cst.With) -> None:
    """What a function under ``@torch.no_grad()`` returns is taken to have no gradient."""
    if rw.ctx.frame is not None and rw.ctx.frame.no_grad:
        raise Failure(
            node.items[0].item,
            "API001",
            "gradients are switched on again in a function that has none",
            "leave out the decorator, and use jax.lax.stop_gradient on what shall have none",
        )
