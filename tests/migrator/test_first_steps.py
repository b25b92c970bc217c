"""What people meet first: names that are misspelt, files that are none, methods that a call does not run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli import main

MODEL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        print("building")
        self.fc = nn.Linear(d, d)

    def encode(self, x):
        return self.fc(x)

    def forward(self, x):
        return getattr(self, "act")(self.encode(x))

    def act(self, x):
        return x.relu()

    def sample(self, n):
        return torch.zeros(n, 4)

    @torch.no_grad()
    def score(self, x):
        return self.sample(2) + x

    def _private(self):
        return 1
"""
TRAINING = "\n\ndef train(net):\n    opt = torch.optim.AdamW(net.parameters())\n    opt.step()\n"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL, encoding="utf-8")
    return tmp_path


def test_methods_that_a_call_does_not_run_are_named(here: Path) -> None:
    """And what the user's code prints is no part of the JSON."""
    options = ["net.py:Net", "--input", "B,4", "--examples", "2", "--format", "json"]
    command = [sys.executable, "-m", "migrator", "verify", *options]
    found = subprocess.run(command, capture_output=True, text=True)
    report = json.loads(found.stdout)["cases"][0]
    assert report["verdict"] == "equal"
    told = [note for note in report["notes"] if "a call of the model does not run it" in note]
    assert [note.rpartition(": ")[2] for note in told] == ["sample, score"]
    assert "building" in found.stderr


def test_a_misspelt_class_of_a_file_that_does_not_convert_whole(here: Path) -> None:
    (here / "net.py").write_text(MODEL + TRAINING, encoding="utf-8")
    found = run("verify", "net.py:Nett", "--input", "B,4")
    assert found.exit_code == 2
    assert "has no 'Nett'; it has Net" in found.stderr


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("B,-4", "a size is a number from 0"),
        ("B,4:int64", "such as B,4:int64:0:100"),
    ],
)
def test_inputs_that_say_too_little(here: Path, given: str, told: str) -> None:
    found = run("verify", "net.py:Net", "--input", given)
    assert (found.exit_code, told in found.stderr) == (2, True), found.stderr


def test_what_is_no_python(here: Path) -> None:
    (here / "READ.md").write_text("hello\n", encoding="utf-8")
    found = run("convert", "READ.md", "-o", "out")
    assert (found.exit_code, "READ.md: no Python file" in found.stderr) == (2, True)
    assert not (here / "out").exists()
    found = run("convert", ".", "--include", "nothing/", "-o", "out")
    assert (found.exit_code, "--include and --exclude" in found.stderr) == (2, True)


def test_the_output_that_the_project_names(here: Path) -> None:
    assert run("convert", "net.py").exit_code == 2
    (here / "pyproject.toml").write_text('[tool.migrate]\noutput = "port"\n', encoding="utf-8")
    assert run("convert", "net.py").exit_code == 0
    assert "nnx.Module" in (here / "port/net.py").read_text(encoding="utf-8")
