"""What has a value before a statement of a function, and what is read elsewhere than in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


@dataclass
class Before:
    """What is bound before a statement: surely, or perhaps."""

    names: set[str] = field(default_factory=set)
    kinds: dict[str, k.Kind] = field(default_factory=dict)
    unclear: set[str] = field(default_factory=set)


def bound_before(ctx: Context, node: cst.CSTNode, info: FunctionInfo) -> Before:
    """The names that statements above have surely given a value; a name that something else binds is unclear."""
    tree, found = ctx.facts.tree, Before()
    for inner, outer in pairwise([node, *reversed(tree.around(node))]):
        if outer is info.node:
            break
        for line in outer.body if isinstance(outer, cst.IndentedBlock) else ():
            if line is inner:
                break
            match line:
                case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)]):
                    several = isinstance(target, cst.Tuple | cst.List)
                    for one in [e.value for e in target.elements] if several else [target]:  # type: ignore[attr-defined]
                        if isinstance(one, cst.Name):
                            found.names.add(one.value)
                            found.kinds[one.value] = ctx.facts.kind(one if several else value)
    for declared in tree.within(info.node.body, cst.Global, cst.Nonlocal):
        found.unclear |= {item.name.value for item in declared.names}
    for inside in tree.within(info.node.body, cst.FunctionDef, cst.Lambda):
        found.unclear |= {
            n.value for n in tree.within(inside, cst.Name)
        }  # they must keep their names
    return found


def read_outside(ctx: Context, node: cst.CSTNode, info: FunctionInfo) -> set[str]:
    """The names that a function reads elsewhere than in a statement."""
    tree = ctx.facts.tree
    inside = {id(n) for n in tree.within(node, cst.Name)}
    found = set()
    for name in tree.within(info.node, cst.Name):
        parent = tree.around(name)[-1]
        bound = isinstance(parent, cst.Param) and parent.name is name
        bound |= isinstance(parent, cst.AssignTarget) and parent.target is name
        if not bound and id(name) not in inside:
            found.add(name.value)
    return found


def writes_own(
    ctx: Context, info: FunctionInfo, before: Before, assigned: Sequence[tuple[str, cst.CSTNode]]
) -> bool:
    """Whether ``x += y`` is of tensors that a function has made: it keeps their shape and type, or raises in torch."""
    own = {p.name.value for p in info.node.params.params}
    return all(
        name not in own
        and isinstance(before.kinds.get(name), k.Tensor)
        and isinstance(ctx.facts.kind(value.target), k.Tensor)
        and not _is_of_module(ctx, info, name, value)
        for name, value in assigned
        if isinstance(value, cst.AugAssign)
    )


def _is_of_module(ctx: Context, info: FunctionInfo, name: str, write: cst.AugAssign) -> bool:
    """Whether a name may stand for memory that a module keeps, which a branch cannot write to."""
    from migrator.convert.memory import aliases

    state = aliases(ctx, info).before
    around = reversed(ctx.facts.tree.around(write))
    memory = next((state[one].get(name, ()) for one in (write, *around) if one in state), None)
    return memory is None or any(one.startswith("attr:") for one in memory)
