"""Nested containers against torch.utils._pytree."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch.utils._pytree as theirs

from rules.compat import pytree as ours
from rules.ops import pytree as defined
from tests.convert.tools import check, convert

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


class Box:
    """An object with parts and something besides."""

    def __init__(self, parts: list[Any], name: list[str]) -> None:
        self.parts, self.name = parts, name


def test_a_class_that_is_registered() -> None:
    def taken(box: Box) -> tuple[list[Any], Any]:
        return box.parts, box.name

    def made(parts: Any, name: Any) -> Box:
        assert isinstance(parts, list)
        return Box(parts, name)

    theirs.register_pytree_node(Box, taken, made)
    defined.register_pytree_node(Box, taken, made, serialized_type_name="Box")
    tree = {"a": Box([1, Box([2.0, None], ["in"])], ["out"]), "b": 3}
    assert ours.tree_flatten(tree)[0] == theirs.tree_flatten(tree)[0] == [1, 2.0, None, 3]
    got, want = ours.tree_map(str, tree), theirs.tree_map(str, tree)
    for one in (got, want):
        assert one["a"].parts[1].parts == ["2.0", "None"]
        assert (one["a"].name, one["a"].parts[1].name) == (["out"], ["in"])
    numbers = jax.jit(lambda tree: jax.tree.map(lambda x: x + 1, tree))(tree)
    assert numbers["a"].parts[1].parts[0] == 3.0
    assert numbers["a"].parts[1].parts[1] is None
    assert jax.tree.structure(tree) == jax.tree.structure({**tree, "b": 4})
    assert jax.tree.structure(tree) != jax.tree.structure({"a": Box([1, 2], ["no"]), "b": 3})


class Crate(Box):
    """Another."""


def test_a_container_by_its_functions_alone() -> None:
    ours.register_container(
        Crate, lambda crate: (crate.parts, crate.name), lambda parts, name: Crate(parts, name)
    )
    tree = Crate([1, [2]], ["a"])
    assert ours.tree_flatten(tree)[0] == jax.tree.leaves(tree) == [1, 2]
    assert ours.tree_map(lambda x: x + 1, tree).parts == [2, [3]]


def test_conversion_of_a_registration() -> None:
    source = """
from torch.utils._pytree import register_pytree_node, tree_map

class Pair:
    def __init__(self, a, b):
        self.a, self.b = a, b

register_pytree_node(Pair, lambda p: ([p.a, p.b], None), lambda parts, _: Pair(*parts))

def f(x):
    pair = tree_map(lambda t: t * 2, Pair(x, x + 1))
    return pair.a, pair.b
"""
    done = convert(source)
    assert done.complete, done.findings
    mine: dict = {}
    exec(done.code, mine)
    out = jax.jit(lambda x: mine["Pair"](x, x * 2))(jnp.ones(2))
    np.testing.assert_array_equal(out.b, np.full(2, 2.0))
    np.testing.assert_array_equal(mine["f"](jnp.ones(2))[1], np.full(2, 4.0))
