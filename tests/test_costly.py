"""Costly tests take turns: none is left out for good, and all others run each day."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests import costly

ROOT = Path(__file__).parent.parent
COSTLY = {"tests/test_a.py": ["test_slow"]}


def test_each_case_has_its_day() -> None:
    cases = [f"tests/test_a.py::test_slow[{i}]" for i in range(60)]
    days = [{c for c in cases if costly.runs(c, COSTLY, day)} for day in (7, 8, 9)]
    assert set.union(*days) == set(cases)
    assert sum(map(len, days)) == len(cases)
    assert min(map(len, days)) > 10


@pytest.mark.parametrize("other", ["test_a.py::test_slower", "test_b.py::test_slow[1]"])
def test_all_others_run_each_day(other: str) -> None:
    assert all(costly.runs(f"tests/{other}", COSTLY, day) for day in range(3))


def test_the_list_names_tests_that_are_there() -> None:
    for file, tests in costly.listed().items():
        tree = ast.parse((ROOT / file).read_text())
        there = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert set(tests) <= there, file


def test_costs_are_those_of_a_report(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        '<testsuites><testsuite name="pytest">'
        '<testcase classname="tests.convert.test_a" name="test_slow[1]" time="0.5"/>'
        '<testcase classname="tests.convert.test_a" name="test_slow[2]" time="2.5"/>'
        '<testcase classname="tests.convert.test_a" name="test_quick" time="0.9"/>'
        "</testsuite></testsuites>"
    )
    assert costly.costs(report) == {"tests/convert/test_a.py": ["test_slow"]}


@pytest.mark.parametrize(("said", "meant"), [("all", None), ("12", 12)])
def test_the_seed_may_be_given(monkeypatch: pytest.MonkeyPatch, said: str, meant: object) -> None:
    monkeypatch.setenv("COSTLY_SEED", said)
    assert costly.seed() == meant
