"""What has a value before a statement of a function, and what is read elsewhere than in it."""

from __future__ import annotations

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


def read_outside(ctx: Context, node: cst.If, info: FunctionInfo) -> set[str]:
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
