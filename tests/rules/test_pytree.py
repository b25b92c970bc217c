"""Nested containers against torch.utils._pytree."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import pytest
import torch.utils._pytree as theirs

from rules.compat import pytree as ours
from rules.ops import pytree as defined
from tests.convert.tools import check

Pair = namedtuple("Pair", "first second")


class Own(dict):
    """A container of a class of its own, which is a leaf."""


TREES: list[Any] = [
    None,
    3,
    [],
    (1, [2, None], ()),
    {"b": 1, "a": (2, {"z": 3, "c": 4})},
    OrderedDict([("b", [1]), ("a", 2)]),
    Pair([1, 2], {"x": None}),
    [defaultdict(list, {"b": 1, "a": [2]}), deque([1, (2, 3)], maxlen=4)],
    (Own(a=1), {1, 2}, "text"),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_there_and_back(tree: Any) -> None:
    leaves, spec = theirs.tree_flatten(tree)
    found, made = ours.tree_flatten(tree)
    assert found == leaves == defined.tree_leaves(tree)
    assert made.num_leaves == spec.num_leaves
    new = [str(leaf) for leaf in leaves]
    got, want = ours.tree_unflatten(iter(new), made), theirs.tree_unflatten(new, spec)
    assert got == want
    assert type(got) is type(want)
    with pytest.raises(ValueError, match="leaves"):
        ours.tree_unflatten([*new, "more"], made)


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_one_function_for_each_leaf(tree: Any) -> None:
    def pair(*leaves: Any) -> str:
        return str(leaves)

    assert ours.tree_map(pair, tree, tree) == theirs.tree_map(pair, tree, tree)
    leaf = {"is_leaf": lambda part: isinstance(part, (dict, tuple))}
    assert ours.tree_map(pair, tree, **leaf) == theirs.tree_map(pair, tree, **leaf)
    assert ours.tree_flatten(tree, **leaf)[0] == theirs.tree_flatten(tree, **leaf)[0]


@pytest.mark.parametrize(
    ("tree", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "a": 4}),
        ({"a": 1}, OrderedDict(a=2)),
        ([1, 2], [3, [4, 5]]),
        ([1, 2], (3, 4)),
        ([1, 2], [3]),
        ([1, 2], 3),
    ],
)
def test_other_trees_are_as_deep_as_the_first(tree: Any, other: Any) -> None:
    def pair(*leaves: Any) -> Any:
        return leaves

    try:
        want = theirs.tree_map(pair, tree, other)
    except ValueError:
        with pytest.raises(ValueError, match="is no"):
            ours.tree_map(pair, tree, other)
    else:
        assert ours.tree_map(pair, tree, other) == want


def test_a_residual_around_a_branch_with_several_results() -> None:
    check("""
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        a, b = tree_map(self.l, (x, x + 1))
        (out, *rest), spec = tree_flatten((a, {"more": b}))
        return tree_unflatten((out + x, *rest), spec)[0] + rest[0]
""")
