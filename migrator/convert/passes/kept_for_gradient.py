"""``if x.requires_grad: ctx.save_for_backward(x)`` in a torch.autograd.Function: what backward() needs is kept anyway."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts


@converts(cst.If, when=lambda ctx: {"requires_grad", "Function"} <= ctx.words)
def kept_for_gradient(rw: Rewriter, node: cst.If) -> Any:
    """``if x.requires_grad: ctx.save_for_backward(x)`` in a torch.autograd.Function: nothing but backward() reads it."""
    frame = rw.ctx.frame
    if frame is None or frame.owner is None or not frame.owner.gradient or node.orelse is not None:
        return None
    function = frame.info.node
    names = [one.name.value for one in function.params.params]
    if function.name.value != "forward" or len(names) < 2:
        return None
    asked = _asked(node.test)
    lines = node.body.body if isinstance(node.body, cst.IndentedBlock) else ()
    if not asked or not lines or not all(_only_keeps(one, names[0]) for one in lines):
        return None
    bound = {n.value for n in _targets(function.body)}
    if not asked <= set(names[1:]) - bound:
        return None
    return rw.body(lines)


def _asked(test: cst.BaseExpression) -> set[str]:
    """The names in ``x.requires_grad or y.requires_grad``; none where it asks for something else."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        left, right = _asked(test.left), _asked(test.right)
        return left | right if left and right else set()
    if isinstance(test, cst.Attribute) and isinstance(test.value, cst.Name):
        return {test.value.value} if test.attr.value == "requires_grad" else set()
    return set()


def _only_keeps(line: cst.CSTNode, ctx: str) -> bool:
    """Whether a line says what backward() needs, ``ctx.save_for_backward(x)`` or ``ctx.alpha = alpha``, of names."""
    if not isinstance(line, cst.SimpleStatementLine):
        return False
    for one in line.body:
        if isinstance(one, cst.Expr) and isinstance(one.value, cst.Call):
            call = one.value
            if syntax.code(call.func) != f"{ctx}.save_for_backward":
                return False
            values = [a.value for a in call.args]
        elif isinstance(one, cst.Assign) and len(one.targets) == 1:
            target = one.targets[0].target
            if not isinstance(target, cst.Attribute) or syntax.code(target.value) != ctx:
                return False
            values = [one.value]
        else:
            return False
        if any(isinstance(n, cst.Call) for value in values for n in syntax.walk(value)):
            return False
    return True


def _targets(body: cst.BaseSuite) -> Iterator[cst.Name]:
    """What a function binds anew."""
    for node in syntax.walk(body):
        if isinstance(
            node, (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.NamedExpr, cst.For)
        ):
            yield from (n for n in syntax.walk(node.target) if isinstance(n, cst.Name))
