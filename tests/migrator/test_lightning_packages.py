"""Classes that derive from Lightning's module by way of one in another file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.migrator.test_packages import blocking, code, convert

BASE = """
import torch
import torch.nn as nn
from pytorch_lightning import LightningModule


class Base(LightningModule):
    def __init__(self, lr=0.1):
        super().__init__()
        self.lr = lr

    def loss(self, a, b):
        self.log("loss", 1.0)
        return ((a - b) ** 2).mean()
"""
NET = """
import torch
import torch.nn as nn
from .base import Base


class Net(Base):
    def __init__(self, d=4):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x: torch.Tensor):
        return self.fc(x)

    def training_step(self, batch, i):
        x, y = batch
        loss = self.loss(self(x), y)
        {line}
        return loss
"""
OTHER = """
from pytorch_lightning import LightningModule


class Other(LightningModule):
    def forward(self, x):
        return x * 2
"""


def test_logging_of_a_derived_class_is_left_out(tmp_path: Path) -> None:
    files = {"base.py": BASE, "net.py": NET.format(line='self.log("x", loss)'), "other.py": OTHER}
    found = convert(tmp_path, files)
    assert not blocking(found), "two files that import the same of Lightning do not ask each other"
    assert "self.log" not in code(found, "net.py") + code(found, "base.py")


@pytest.mark.parametrize("line", ["print(self.trainer)", "x = self.hparams.d"])
def test_what_lightning_gives_a_derived_class_is_a_finding(tmp_path: Path, line: str) -> None:
    saved = NET.format(line=line).replace(
        "super().__init__()", "super().__init__()\n        self.save_hyperparameters()"
    )
    found = convert(tmp_path, {"base.py": BASE, "net.py": saved})
    assert any(one.startswith("net.py: API004") for one in blocking(found))
