"""Files whose lines end as on Windows, or on old Macs: they are read as Python reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

import migrator
from migrator.project import convert_path

NET = '''import torch
import torch.nn as nn
import torch.nn.functional as F

TEXT = """two
lines"""


class Net(nn.Module):
    """A net.

    Of two layers.
    """

    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)  # the first
        self.norm = nn.BatchNorm1d(dim)

    def forward(self, x):
        x = F.gelu(self.fc(x)) \\
            + len(TEXT)
        return self.norm(x)
'''
LEFT = NET.replace("return self.norm(x)", "return self.norm(x[x > 0])")


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("text", [NET, LEFT])
def test_ends_of_lines_change_nothing(text: str, end: str) -> None:
    plain, other = migrator.convert_source(text), migrator.convert_source(text.replace("\n", end))
    assert other.code == plain.code
    assert other.findings == plain.findings
    assert "\r" not in other.code
    assert other.complete is (text is NET)


def test_mixed_ends() -> None:
    lines = NET.split("\n")
    mixed = "".join(f"{one}\r\n" if i % 2 else f"{one}\n" for i, one in enumerate(lines[:-1]))
    assert migrator.convert_source(mixed).code == migrator.convert_source(NET).code


def test_files(tmp_path: Path) -> None:
    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").write_bytes(b"from .model import Net\r\n")
    (package / "model.py").write_bytes(NET.replace("\n", "\r\n").encode())
    done = convert_path([package], tmp_path / "port", jobs=1)
    assert not [one for one in done.findings if one.blocks]
    for one in (tmp_path / "port").rglob("*.py"):
        text = one.read_bytes()
        assert b"\r" not in text
        assert b"__migrator" not in text
        compile(text, str(one), "exec")
