"""What of a library ran, and which findings that meets."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from migrator.findings import Finding
from tests.corpora.used import Used

SOURCE = """
from collections import OrderedDict, deque

LIMIT = 3


class Part:
    def __init__(self, n):
        self.n = n
        if n > LIMIT:
            self.rest = OrderedDict()

    def never(self):
        return deque()


class Other:
    kind = "other"

    def __init__(self):
        self.part = Part(9)


def build(n):
    return [
        Part(
            n
        )
    ]


def unused():
    return Other()
"""


@pytest.fixture
def used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Used:
    package = tmp_path / "watched_library"
    package.mkdir()
    (package / "__init__.py").write_text(SOURCE.lstrip())
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "watched_library", raising=False)
    module = importlib.import_module("watched_library")
    found = Used(package)
    with found.watch():
        module.build(2)
    return found


def finding(used: Used, text: str, nth: int = 0) -> Finding:
    """A finding at a line of the source."""
    lines = SOURCE.lstrip().splitlines()
    at = [number for number, line in enumerate(lines, 1) if text in line][nth]
    return Finding("API001", "", path=str(used.root / "__init__.py"), line=at, blocks=True)


@pytest.mark.parametrize(
    ("text", "nth", "meets", "reaches"),
    [
        ("self.n = n", 0, True, True),
        ("self.rest", 0, True, False),  # the function ran, this statement did not
        ("if n > LIMIT", 0, True, True),
        ("return deque", 0, False, False),
        ("kind = ", 0, False, False),
        ("self.part", 0, False, False),
        ("LIMIT = 3", 0, True, True),
        ("            n", 0, True, True),
        ("return Other", 0, False, False),
    ],
)
def test_a_finding_counts_where_its_code_has_run(
    used: Used, text: str, nth: int, meets: bool, reaches: bool
) -> None:
    one = finding(used, text, nth)
    assert used.meets(one) is meets
    if meets:
        assert used.reaches(one) is reaches


def test_an_import_counts_where_what_it_brings_is_read(used: Used) -> None:
    assert used.meets(finding(used, "from collections"))
    elsewhere = Finding("API001", "", path=str(used.root / "absent.py"), line=1, blocks=True)
    assert not used.meets(elsewhere)
    used.names[str(used.root / "__init__.py")] = {"deque_of_nobody"}
    assert not used.meets(finding(used, "from collections"))


def test_a_class_counts_when_a_module_is_of_it(used: Used) -> None:
    module = sys.modules["watched_library"]
    assert not used.meets(finding(used, "kind = "))
    used.note_classes([module.Other()])
    assert used.meets(finding(used, "kind = "))
