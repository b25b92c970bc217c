"""The user's own files, as ``verify`` and ``--observe`` import them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from migrator.usercode import UserCode


def test_a_program_that_reads_its_arguments_finds_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``parser.parse_args()`` at the top of a file takes what the command was started with for its own."""
    path = tmp_path / "program.py"
    lines = "import argparse, sys\n\nparser = argparse.ArgumentParser()\nparser.add_argument('--width', default=8)\n"
    path.write_text(f"{lines}WIDTH, NAME = parser.parse_args().width, sys.argv[0]\n")
    monkeypatch.setattr(sys, "argv", ["migrate", "verify", "program.py"])
    module = UserCode(tmp_path).load(path)
    assert (8, str(path.resolve())) == (module.WIDTH, module.NAME)
    assert sys.argv == ["migrate", "verify", "program.py"]
