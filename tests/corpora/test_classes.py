"""A package's classes, each built of guessed arguments and compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.corpora.classes import built, convert
from tests.corpora.guesses import arguments

ROOT = Path(__file__).parents[2]
NET = """
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, in_channels: int, out_channels: int, kernel_size, act: str):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)
        self.act = {"relu": nn.ReLU(), "gelu": nn.GELU()}[act]

    def forward(self, x):
        return self.act(self.conv(x))


class Loss(nn.Module):
    def forward(self, logits, target):
        return nn.functional.cross_entropy(logits, target)


class Odd(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.fc = nn.Linear(config.dim, 2)

    def forward(self, x):
        return self.fc(x)


class Hidden(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.fc(x)
"""


def test_classes_are_built_and_compared(tmp_path: Path) -> None:
    package = tmp_path / "src/guessed"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(
        "from torch import nn\n\n\nclass Top(nn.ReLU):\n    pass\n"
    )
    (package / "net.py").write_text(NET)
    env = {**os.environ, "PYTHONPATH": f"{tmp_path / 'src'}:{ROOT}"}
    command = [sys.executable, "-m", "tests.corpora.classes", "guessed", "--work", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, env=env, check=True, timeout=600)
    lines = (tmp_path / "guessed.txt").read_text().splitlines()
    found = dict(line.split(" | ", 1) for line in lines)
    names = ("Block", "Hidden", "Loss", "Odd")
    assert list(found) == ["guessed:Top", *(f"guessed.net:{name}" for name in names)]
    assert '"verdict": "equal"' in found["guessed:Top"]
    equal = ['"verdict": "equal"' in found[f"guessed.net:{name}"] for name in names]
    assert equal == [True, True, True, False]
    assert found["guessed.net:Odd"].startswith("left out: AttributeError")


def test_a_name_says_what_an_argument_may_be() -> None:
    class M(torch.nn.Module):
        def __init__(self, num_heads, flag: bool, rate: float, dim: int, depth=12) -> None:
            super().__init__()

    first, *others = arguments(M)
    assert first == {"num_heads": 2, "flag": True, "rate": 0.5, "dim": 8, "depth": 2}
    assert {**first, "dim": [8, 8]} in others


@pytest.mark.parametrize(("layer", "rank"), [(torch.nn.Conv1d, 3), (torch.nn.Conv3d, 5)])
def test_the_first_input_that_torch_takes(layer: type[torch.nn.Module], rank: int) -> None:
    found = built(layer)
    assert not isinstance(found, str)
    assert len(found[1][0][1]) == rank


def test_a_file_is_asked_about_where_all_that_it_reads_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src/read_from"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    files = {
        "ops": "import torch\n\n\ndef made(x):\n    return torch.optim.Adam(x)\n",
        "near": "from read_from.ops import made\n",
        "far": "from .near import made\n\n\ndef f(x):\n    return made(x)\n",
        "layers": "from torch import nn\n\nLAYERS = {'relu': nn.ReLU}\n",
        "text": "from transformers import BertModel\n",
    }
    for name, text in files.items():
        (package / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path / "src"))
    assert convert("read_from", tmp_path) == ["read_from", "read_from.layers", "read_from.text"]
