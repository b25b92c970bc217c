"""What each name of a function may stand for at one point of it, and what becomes of that where ways meet."""

from __future__ import annotations

import libcst as cst

from migrator.convert.parts import rejoined
from migrator.tree import Tree

State = dict[str, frozenset[str]]
"""The memory each name may stand for: ``param:x``, ``attr:self.x``, ``new:3`` of tensors, ``box:4`` of a container."""


def all_memory(state: State) -> frozenset[str]:
    """The memory that any name stands for."""
    return frozenset().union(*state.values())


def merged(a: State, b: State) -> State:
    """What names stand for behind two ways that meet."""
    return {n: a.get(n, frozenset()) | b.get(n, frozenset()) for n in {**a, **b}}


def going_on(tree: Tree, branch: cst.BaseSuite, state: State) -> State:
    """What names stand for behind a branch of an ``if``: nothing where it leaves the function, and no ``finally`` comes."""
    last = branch.body[-1] if branch.body else None
    line = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else last
    if not isinstance(line, (cst.Return, cst.Raise)) or not tree.has(line):
        return state
    if any(isinstance(one, (cst.Try, cst.With)) for one in tree.around(line)):
        return state
    return {}


def rejoin(state: State, number: int) -> None:
    """Forget which pieces a tensor was taken apart into, where that happens again."""
    for name, theirs in state.items():
        state[name] = rejoined(theirs, number)


def stands(node: cst.CSTNode, line: cst.CSTNode) -> bool:
    """Whether a statement is a line, or stands alone in one that was made of a suite: ``def forward(self, x): return x``."""
    return node is line or (isinstance(line, cst.SimpleStatementLine) and node is line.body[0])
