"""Passes are asked in one order, whatever was imported before them."""

from __future__ import annotations

import subprocess
import sys

import pytest

SHOWN = """
{}
from migrator.convert import load
from migrator.convert.rewriter import HANDLERS
load()
for kind in sorted(HANDLERS, key=lambda kind: kind.__name__):
    print(kind.__name__, *(f"{{h.__module__}}.{{h.__name__}}" for h in HANDLERS[kind]))
"""


def _shown(first: str) -> str:
    command = [sys.executable, "-c", SHOWN.format(first)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize(
    "first", ["import migrator.analyze", "import migrator.convert.passes.names"]
)
def test_what_is_imported_first_changes_nothing(first: str) -> None:
    plain = _shown("")
    assert "Assign " in plain
    assert _shown(first) == plain
