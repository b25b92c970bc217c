"""Random models of several sorts: what converts completely gives what torch gives, in each mode and after each call.

Others every day; ``PROGRAMS_SEED`` says which.
"""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.convert.fuzz import compare, expressions, flow, stateful
from tests.convert.fuzz.compare import Program

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
SORTS = [expressions.program, flow.program, stateful.program]
Make = Callable[[int], Program]


def run(make: Make, first: int, count: int) -> Counter[str]:
    found = Counter(compare.outcome(make, seed) for seed in range(first, first + count))
    wrong = [one for one in found if one not in ("equal", "finding", "torch")]
    assert not wrong, wrong[0]
    assert found["torch"] <= count / 2  # else the programs are none
    return found


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("make", SORTS)
def test_what_converts_completely_is_equal(make: Make, part: int) -> None:
    found = run(make, 100 * SEED + 5 * part, 5)
    assert found["equal"] >= 1


@pytest.mark.sweep
@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("part", range(20))
@pytest.mark.parametrize("make", SORTS)
def test_hundreds(make: Make, part: int) -> None:
    run(make, 20 * part, 20)
