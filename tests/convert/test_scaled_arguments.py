"""``x *= by`` of an argument that nothing describes, in a function that others may call with a tensor."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.convert.tools import rules_of
from tests.migrator.test_packages import blocking, convert

FUNCTION = """
import functools
import torch
from torch import nn


def scale(x, by=2.0):
    x *= by
    return x


"""
NET = """
class M(nn.Module):
    def __init__(self, width=3):
        super().__init__()
        self.fc = nn.Linear(width, width)

    def forward(self, x):
        x = x - 1
        y = CALL
        return self.fc(x) + y
"""


@pytest.mark.parametrize(
    ("made", "call"),
    [
        ("FS = [scale, torch.tanh]\n", "FS[0](x)"),
        ("FS = [functools.partial(scale, by=3.0), torch.tanh]\n", "FS[0](x)"),
        ("BY3 = functools.partial(scale, by=3.0)\n", "BY3(x)"),
        ("", "functools.partial(scale, by=3.0)(x)"),
    ],
)
def test_a_function_that_is_a_value(made: str, call: str) -> None:
    source = FUNCTION + made + "\n" + NET.replace("CALL", call)
    assert rules_of(source) == ["MUT003"]
    assert rules_of(source.replace("x *= by", "x = x * by")) == []


@pytest.mark.parametrize(
    ("imported", "call", "file"),
    [
        ("from .fns import scale", "scale(x)", "net.py"),
        ("from . import fns", "fns.scale(x, 3.0)", "net.py"),
        ("from .fns import BY3", "BY3(x)", "fns.py"),
        ("from .fns import get", "get(3.0)(x)", "fns.py"),
    ],
)
def test_a_function_of_another_file(tmp_path: Path, imported: str, call: str, file: str) -> None:
    fns = FUNCTION
    if "BY3" in call:
        fns += "BY3 = functools.partial(scale, by=3.0)\n"
    if "get" in call:
        fns += "def get(by):\n    return functools.partial(scale, by=by)\n"
    net = f"from torch import nn\n{imported}\n\n" + NET.replace("CALL", call)
    found = convert(tmp_path, {"fns.py": fns, "net.py": net})
    assert {one[: len(file) + 8] for one in blocking(found)} == {f"{file}: MUT003"}
    free = fns.replace("x *= by", "x = x * by")
    assert blocking(convert(tmp_path / "free", {"fns.py": free, "net.py": net})) == []


def test_a_width_of_a_model_is_no_tensor(tmp_path: Path) -> None:
    net = """
    from torch import nn
    from .fns import scale

    class Net(nn.Module):
        def __init__(self, cfg, width):
            super().__init__()
            self.cfg = cfg
            self.width = width
            self.wide = scale(width)
            self.deep = scale(self.cfg.depth)

        def forward(self, x):
            return x * self.width + self.wide + self.cfg.depth
    """
    assert blocking(convert(tmp_path, {"fns.py": FUNCTION, "net.py": net})) == []
