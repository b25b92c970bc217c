"""What the commands that do not compute must not load, and how long they may take to start."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

HEAVY = ("torch", "jax", "flax", "hypothesis", "numpy")
MODEL = "import torch.nn as nn\n\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x.relu()\n"

PROGRAM = """
import json, sys
from migrator.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print()
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def modules_after(*arguments: str) -> set[str]:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "net.py"
    path.write_text(MODEL)
    return path


@pytest.mark.parametrize("command", ["--help", "analyze --help", "convert --help", "verify --help"])
def test_help_loads_neither_libraries_nor_libcst(command: str) -> None:
    assert not modules_after(*command.split()) & {*HEAVY, "libcst", "rich"}


def test_analyze_loads_no_library(model: Path) -> None:
    assert not modules_after("analyze", str(model)) & set(HEAVY)


def test_convert_loads_no_library(model: Path, tmp_path: Path) -> None:
    assert not modules_after("convert", str(model), "-o", str(tmp_path / "out")) & set(HEAVY)
    assert (tmp_path / "out" / "net.py").exists()


def test_observing_loads_no_library_here(model: Path, tmp_path: Path) -> None:
    """The run of the original is another process."""
    inputs = "import torch\n\n\ndef get_inputs():\n    return [torch.ones(2)]\n"
    model.write_text(model.read_text() + inputs)
    run = ("convert", str(model), "-o", str(tmp_path / "out"), "--observe", str(model))
    assert not modules_after(*run) & set(HEAVY)
    assert (tmp_path / "out" / "net.py").exists()


def test_importing_the_package_loads_nothing() -> None:
    run = subprocess.run(
        [sys.executable, "-c", "import sys, migrator; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {name.partition(".")[0] for name in run.stdout.split()}
    assert not loaded & {*HEAVY, "libcst", "click"}


def fastest(*arguments: str) -> float:
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return min(times)


def test_start_up_is_at_most_three_times_that_of_click() -> None:
    assert fastest("-m", "migrator", "--help") <= 3 * fastest("-c", "import click")
