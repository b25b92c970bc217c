"""Random models of several sorts: what converts completely gives what torch gives, in each mode and after each call.

Others every day; ``PROGRAMS_SEED`` says which.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.convert.fuzz import classes, compare, expressions, flow, packages, stateful
from tests.convert.fuzz.compare import Program

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
SORTS = [expressions.program, flow.program, stateful.program, classes.program]
Make = Callable[[int], Program]


def run(make: Make, first: int, count: int) -> Counter[str]:
    found = Counter(compare.outcome(make, seed) for seed in range(first, first + count))
    return judged(found)


def run_packages(first: int, count: int, folder: Path) -> Counter[str]:
    found = Counter[str]()
    for seed in range(first, first + count):
        made = packages.package(seed)
        found[compare.outcome_of_package(made.program, made.files, seed, folder / str(seed))] += 1
    return judged(found)


def judged(found: Counter[str]) -> Counter[str]:
    wrong = [one for one in found if one not in ("equal", "finding", "torch")]
    assert not wrong, wrong[0]
    assert found["torch"] <= found.total() / 2  # else the programs are none
    return found


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("make", SORTS)
def test_what_converts_completely_is_equal(make: Make, part: int) -> None:
    found = run(make, 100 * SEED + 5 * part, 5)
    assert found["equal"] >= 1


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
def test_what_converts_completely_in_several_files_is_equal(tmp_path: Path) -> None:
    run_packages(100 * SEED, 10, tmp_path)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("part", range(20))
def test_hundreds_of_packages(part: int, tmp_path: Path) -> None:
    run_packages(20 * part, 20, tmp_path)


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("make", SORTS)
def test_hundreds(make: Make, part: int) -> None:
    run(make, 20 * part, 20)
