"""Random constructors: what converts completely computes what torch does, after a state_dict is loaded, and keeps it."""

from __future__ import annotations

import datetime
import os
from collections import Counter

import pytest

from tests.convert.constructions import outcome

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
"""Another fifty modules every day."""


def run(first: int, count: int) -> Counter[str]:
    found = Counter(outcome(seed) for seed in range(first, first + count))
    wrong = [one for one in found if one not in ("equal", "finding", "torch")]
    assert not wrong, wrong[0]
    return found


@pytest.mark.parametrize("part", range(2))
def test_what_converts_completely_is_equal(part: int) -> None:
    found = run(100 * SEED + 25 * part, 25)
    assert found["equal"] >= 3
    assert found["torch"] < 13


@pytest.mark.sweep
@pytest.mark.parametrize("part", range(40))
def test_thousands_of_modules(part: int) -> None:
    run(100 * part, 100)
