"""Random programs: what converts completely gives what torch gives, in both calls of it."""

from __future__ import annotations

import datetime
import os
from collections import Counter

import pytest

from tests.convert.programs import outcome

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
"""Another hundred programs every day."""


def run(first: int, count: int) -> Counter[str]:
    found = Counter(outcome(seed) for seed in range(first, first + count))
    wrong = [one for one in found if one not in ("equal", "finding", "torch")]
    assert not wrong, wrong[0]
    return found


@pytest.mark.parametrize("part", range(4))
def test_what_converts_completely_is_equal(part: int) -> None:
    found = run(100 * SEED + 25 * part, 25)
    assert found["equal"] >= 3
    assert found["torch"] < 10


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(40))
def test_thousands_of_programs(part: int) -> None:
    run(100 * part, 100)
