"""Random programs and constructors: what converts completely gives what torch gives, each time it is called."""

from __future__ import annotations

import datetime
import os
from collections import Counter
from collections.abc import Callable

import pytest

from tests.convert import constructions, programs

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
"""Others every day."""
Outcome = Callable[[int], str]


def run(outcome: Outcome, first: int, count: int) -> Counter[str]:
    found = Counter(outcome(seed) for seed in range(first, first + count))
    wrong = [one for one in found if one not in ("equal", "finding", "torch")]
    assert not wrong, wrong[0]
    return found


@pytest.mark.parametrize("part", range(4))
def test_what_converts_completely_is_equal(part: int) -> None:
    found = run(programs.outcome, 100 * SEED + 25 * part, 25)
    assert found["equal"] >= 3
    assert found["torch"] < 10


@pytest.mark.parametrize("part", range(2))
def test_what_modules_keep_and_share(part: int) -> None:
    found = run(constructions.outcome, 100 * SEED + 25 * part, 25)
    assert found["equal"] >= 3
    assert found["torch"] < 13


@pytest.mark.sweep
@pytest.mark.parametrize("outcome", [programs.outcome, constructions.outcome])
@pytest.mark.parametrize("part", range(40))
def test_thousands(part: int, outcome: Outcome) -> None:
    run(outcome, 100 * part, 100)
