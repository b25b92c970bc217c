"""The walks over Python's own trees meet every node that those of ``ast`` meet, but operators and contexts."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrator.python_tree import children, walk

OTHERS = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
EVERYTHING = """
import a.b as c
from . import d
async def f(x: int = 1, /, *y, z=2, **w) -> str:
    global g
    async with h as i, j:
        await k
    match x:
        case {"a": 1, **rest} | [1, *others] | P(q=2) | None:
            return f"{x!r:>{w}}" if not x else {**y, "b": [*z]}
    try:
        del x[1:2:3], y.z
    except* (A, B) as error:
        raise C from error
    return (lambda *a, b=1: a)(*x, **y), {u for u in v if u}, (t := (yield))
"""


@pytest.mark.parametrize("text", [EVERYTHING, Path(__file__).read_text()])
def test_every_node_is_met(text: str) -> None:
    tree = ast.parse(text)
    expected = [node for node in ast.walk(tree) if not isinstance(node, OTHERS)]
    assert list(map(id, walk(tree))) == list(map(id, expected))
    for node in expected:
        below = [one for one in ast.iter_child_nodes(node) if not isinstance(one, OTHERS)]
        assert children(node) == below
