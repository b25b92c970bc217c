"""The list of a file's nodes, and that nothing keeps it once the file is converted."""

from __future__ import annotations

import gc
from pathlib import Path

import libcst as cst
import pytest

from migrator import convert_source
from migrator.infer import infer_together
from migrator.source import Source
from migrator.tree import Tree

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.py"))
TYPES = (cst.Call, cst.Name, cst.Lambda)


@pytest.mark.parametrize("types", [TYPES[:1], TYPES])
def test_nodes_of_some_types_below_another(types: tuple[type[cst.CSTNode], ...]) -> None:
    tree = Source(SAMPLES[0].read_text()).index
    for node in tree.of_type(cst.FunctionDef, cst.Call, cst.Name):
        assert tree.within(node, *types) == [n for n in tree.below(node) if type(n) in types]
    made = cst.parse_expression("f(x, lambda: y)")
    assert {type(node) for node in tree.within(made, *types)} == set(types)


def test_what_holds_what() -> None:
    tree = Source("f(g(x), y)\n").index
    outer, inner = tree.of_type(cst.Call)
    assert tree.holds(outer, inner)
    assert tree.holds(inner, inner)
    assert not tree.holds(inner, outer)
    assert not tree.holds(inner, cst.Name("x"))


@pytest.mark.parametrize("path", SAMPLES[:3], ids=lambda path: path.stem)
def test_a_converted_tree_is_freed_at_once(path: Path) -> None:
    text = path.read_text()
    convert_source(text)  # reads the rules
    gc.collect()
    gc.disable()
    try:
        before = sum(type(one) is cst.Module for one in gc.get_objects())
        convert_source(text)
        assert sum(type(one) is cst.Module for one in gc.get_objects()) <= before
    finally:
        gc.enable()


def test_attributes_of_a_name_stand_in_the_order_of_the_source() -> None:
    tree = Tree(cst.parse_module("a.x\ndef f():\n    a.x(b.x, b.y.x)\nb.x\n"))
    (function,) = tree.of_type(cst.FunctionDef)
    found = [cst.Module([]).code_for_node(one) for one in tree.reading(function, "x")]
    assert found == ["a.x", "b.x", "b.y.x"]
    assert len(tree.reading(tree.root, "x")) == 5
    assert tree.reading(function, "z") == []
    other = cst.parse_expression("b.x + c.y")
    assert [one.attr.value for one in tree.reading(other, "x")] == ["x"]


def test_nodes_of_the_files_beside_are_looked_for_once() -> None:
    here = Source("f(x)\n").index
    there = Source("def g(a):\n    h(a.__dict__, lambda: b, key=1)\n    return h(2)\n").index
    (function,) = there.of_type(cst.FunctionDef)
    expected = here.within(function, *TYPES)
    assert not here.beside
    assert not there._asked
    here.beside = [there]
    for _ in range(2):
        found = here.within(function, *TYPES)
        assert found == expected
        found.clear()  # what others are given is their own
    made = cst.parse_expression("h(a)")
    assert len(here.within(made, cst.Call)) == 1
    assert {number for number, _ in there._asked} == {id(function)}
    assert not here._asked


def test_words_that_stand_in_a_node() -> None:
    here = Source("f(x)\n").index
    there = Source("x = 1\ndef g(a):\n    h(a.__dict__, key=1)\n").index
    (function,) = there.of_type(cst.FunctionDef)
    for tree in (there, here):
        assert all(tree.spells(function, {word, "none"}) for word in ("a", "__dict__", "key", "g"))
        assert not tree.spells(function, {"x", "none"})
        here.beside = [there]
    assert here.spells(function, {"key"})
    assert not here.spells(function, {"x"})


def test_files_that_are_done_hold_on_to_no_others() -> None:
    sources = [Source("class A:\n    pass\n", module=name) for name in "ab"]
    every = infer_together(sources)
    assert [facts.tree.beside for facts in every] == [[sources[1].index], [sources[0].index]]
    for facts in every:
        facts.release()
        assert not facts.tree.beside
