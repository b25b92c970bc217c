"""``docs/corpora.md`` says what the record says, and the record holds what is claimed of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.corpora.libraries import LIBRARIES, TORCHVISION
from tests.corpora.page import COMPLETE, PAGE, PARTLY, STATES, WRONG, page, record_of, status

GOOD = {"name": "a", "verdict": "equal", "findings": [], "train": "equal"}


def test_the_page_is_up_to_date() -> None:
    """``python -m tests.corpora.page`` writes it anew."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize(
    ("change", "state"),
    [
        ({}, COMPLETE),
        ({"train": "no time"}, COMPLETE),
        ({"train": "different"}, WRONG),
        ({"verdict": "different"}, WRONG),
        ({"verdict": "raises"}, WRONG),
        ({"verdict": "not compared"}, "complete, not compared"),
        ({"verdict": "no time"}, "complete, not compared"),
        ({"findings": ["f.py:1 API001"]}, PARTLY),
        ({"findings": ["f.py:1 API001"], "verdict": "raises"}, "not complete"),
        ({"verdict": "not built"}, "not built"),
    ],
)
def test_what_an_outcome_is_called(change: dict[str, Any], state: str) -> None:
    assert status(GOOD | change) == state
    assert state in STATES


@pytest.mark.parametrize(("library", "least"), [("torchvision", 0.9), ("timm", 0.7)])
def test_the_record_meets_its_bar(library: str, least: float) -> None:
    states = [status(record) for record in record_of(library)]
    assert states.count(WRONG) == 0
    assert states.count(COMPLETE) >= least * len(states) > 0


def test_the_record_is_of_what_is_drawn() -> None:
    names = [one["name"] for one in record_of("torchvision")]
    assert len(names) >= 30
    assert sorted(names) == sorted(set(names) & set(TORCHVISION))
    names = [one["name"] for one in record_of("timm")]
    assert len(set(names)) == len(names) <= LIBRARIES["timm"].count
