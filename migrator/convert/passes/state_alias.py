"""``k = self.cache`` and then ``k[:, i] = v``: a local name for a buffer, through which the buffer is written."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import root_name
from migrator.convert.context import Context
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def named_state(ctx: Context, name: cst.Name) -> cst.Attribute | None:
    """``self.cache`` for a name that stands for the whole of that buffer all through a method, else None."""
    frame = ctx.frame
    if frame is None or frame.owner is None or ctx.in_init:
        return None
    bound = _binding(ctx, frame.info, name.value)
    if bound is None or not ctx.is_self(bound.value):
        return None
    known = frame.owner.attribute(bound.attr.value)
    if not isinstance(known, k.Tensor) or known.role != "buffer":
        return None
    attribute = bound.attr.value
    if _written_itself(ctx, frame.info, attribute):
        return None
    others = {c for c in frame.info.calls if isinstance(c, FunctionInfo)} - {frame.info}
    return None if any(_mentions(ctx, other, attribute) for other in others) else bound


def _binding(ctx: Context, info: FunctionInfo, name: str) -> cst.Attribute | None:
    """The attribute that a statement of the method's first level gives a name, if nothing else binds it."""
    if name in info.params:
        return None
    found: list[cst.BaseExpression] = []
    for node in ctx.facts.tree.within(info.node.body, *_BINDING):
        for target in _targets(node):
            if name in syntax.names(target) and root_name(target) is None:
                return None
            if isinstance(target, cst.Name) and target.value == name:
                if not isinstance(node, cst.Assign) or len(node.targets) != 1:
                    return None
                found.append(node.value)
    if len(found) != 1 or not isinstance(found[0], cst.Attribute):
        return None
    lines = [s for s in info.node.body.body if isinstance(s, cst.SimpleStatementLine)]
    first_level = any(
        isinstance(small, cst.Assign) and small.value is found[0]
        for line in lines
        for small in line.body
    )
    return found[0] if first_level else None


def _targets(node: Any) -> Iterator[cst.CSTNode]:
    """What a node binds: an augmented assignment writes to what its target stands for already."""
    kind = type(node)
    if kind is cst.Assign:
        yield from (one.target for one in node.targets)
    elif kind is cst.AsName:
        yield node.name
    elif kind in _BINDING:
        yield node.target


_BINDING = (cst.Assign, cst.For, cst.CompFor, cst.AnnAssign, cst.NamedExpr, cst.AsName)


def _written_itself(ctx: Context, info: FunctionInfo, attribute: str) -> bool:
    """Whether a method writes to ``self.attribute`` under that name."""
    for node in ctx.facts.tree.within(info.node.body, *_BINDING, cst.AugAssign, cst.Call):
        written = [*_targets(node), *([node.target] if isinstance(node, cst.AugAssign) else [])]
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            if node.func.attr.value.endswith("_"):
                written.append(node.func.value)
        for target in written:
            if any(
                isinstance(n, cst.Attribute) and n.attr.value == attribute
                for n in syntax.walk(target)
            ):
                return True
    return False


def _mentions(ctx: Context, info: FunctionInfo, attribute: str) -> bool:
    return any(
        n.attr.value == attribute for n in ctx.facts.tree.within(info.node.body, cst.Attribute)
    )


def with_state(
    rw: Rewriter, target: cst.CSTNode, made: list[cst.BaseSmallStatement]
) -> list[cst.BaseSmallStatement]:
    """The converted write, and the buffer's new value where the written name stands for one."""
    name = root_name(target)
    state = named_state(rw.ctx, name) if name is not None else None
    if state is None or name is None:
        return made
    reference, _ = targets.variable_reference(rw, state)
    new = cst.Assign([cst.AssignTarget(targets.dereferenced(reference))], cst.Name(name.value))
    return [*made, new]
