"""What one file does to the tensors and lists of another: in-place updates, lists that lose their layers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.migrator.test_packages import blocking, code, convert

STACK = """
from torch import nn


class Stack(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4)])

    def forward(self, x):
        h = x
        for layer in self.layers:
            h = layer(h)
        h += 1
        return x + h
"""


@pytest.mark.parametrize(
    "line",
    [
        "net.layers.pop(0)",
        "del net.layers[0]",
        "net.layers = nn.ModuleList()",
        "layers = net.layers\n    layers.clear()",
    ],
)
def test_layers_that_another_file_takes_out(tmp_path: Path, line: str) -> None:
    user = f"from torch import nn\nfrom .stack import Stack\n\n\ndef make():\n    net = Stack()\n    {line}\n"
    found = convert(tmp_path, {"stack.py": STACK, "user.py": user + "    return net\n"})
    assert any("MUT001" in one for one in blocking(found))
    kept = user.replace(line, "net.eval()") + "    return net\n"
    assert blocking(convert(tmp_path / "kept", {"stack.py": STACK, "user.py": kept})) == []


COUNTER = """
import torch
from torch import nn


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return x * 2
"""
NET = """
from torch import nn
from .counter import Counter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Counter()

    def forward(self, x):
        n = self.sub.count
        y = self.sub(x)
        return y * n
"""


def test_state_that_a_module_of_another_file_updates(tmp_path: Path) -> None:
    found = convert(tmp_path, {"counter.py": COUNTER, "net.py": NET})
    assert ["MUT001" in one for one in blocking(found)] == [True]


PART = """
import torch
from torch import nn


class Part(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = w

    def forward(self, x):
        return x * self.w
"""
TYING = """
import torch
from torch import nn
from .part import Part


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))
        self.part = Part(GIVEN)

    def forward(self, x):
        return self.part(x) + self.w
"""


def test_a_parameter_that_a_constructor_of_another_file_keeps(tmp_path: Path) -> None:
    found = convert(tmp_path, {"part.py": PART, "net.py": TYING.replace("GIVEN", "self.w")})
    assert ["MUT001" in one for one in blocking(found)] == [True]
    other = {"part.py": PART, "net.py": TYING.replace("GIVEN", "torch.ones(4)")}
    assert blocking(convert(tmp_path / "other", other)) == []


def test_parameters_of_a_module_with_a_part_of_another_file(tmp_path: Path) -> None:
    walking = """
import torch
from torch import nn
from .counter import Counter


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = Counter()

    def forward(self, x):
        for p in self.parameters():
            x = x + p[0].sum()
        return x
"""
    found = convert(tmp_path, {"counter.py": COUNTER, "net.py": walking})
    assert len(blocking(found)) == 1, "which parameters there are is not known"


UP = """
import torch.nn as nn
import torch.nn.functional as F


class Up(nn.Module):
    def forward(self, x, size=None):
        out_size = tuple(2 * s for s in x.shape[2:]) if size is None else size
        return F.interpolate(x, size=out_size, mode="bilinear")


class Half(nn.Module):
    def forward(self, x, where=None):
        return F.adaptive_avg_pool2d(x, where or 2)
"""
USER = """
from torch import nn
from .up import Half, Up


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.half = Up(), Half()

    def forward(self, x):
        return self.up(x, size=x.shape[2:]) + self.half(x, (4, 4)).mean()
"""


def test_an_option_of_a_forward_in_another_file(tmp_path: Path) -> None:
    """What is handed to a torch function as a size is no tensor."""
    found = convert(tmp_path, {"up.py": UP, "user.py": USER})
    assert blocking(found) == []


SIZES = """
import numpy as np
from torch import nn


class Base(nn.Module):
    def __init__(self, shape=(2, 2)):
        super().__init__()
        self.n = np.prod(shape)
        self.grid = np.arange(4)

    def where(self, i):
        return np.searchsorted(self.grid, i)
"""
SIZED = """
import torch
from torch import nn
from .base import Base


class Net(Base):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(int(self.n), 4)

    def forward(self, x: torch.Tensor):
        total = 0
        for i in range(self.n):
            total = total + x[:, i : i + 1]
        return self.fc(x) + total * self.grid[1]
"""


def test_numpy_numbers_that_a_base_in_another_file_keeps(tmp_path: Path) -> None:
    import torch
    from flax import nnx

    import migrator
    from migrator.usercode import UserCode

    assert not blocking(convert(tmp_path, {"base.py": SIZES, "net.py": SIZED}, name="flaxed"))
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").Net()
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py").Net(rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(3, 4)
    got = nnx.jit(lambda m, x: m(x))(ours, x.numpy())
    assert abs(theirs(x).detach().numpy() - got).max() < 1e-5


REGISTRY = """
class Registry:
    def __init__(self):
        self._modules = {}

    def register(self, cls):
        self._modules[cls.__name__] = cls
        return cls


LAYERS = Registry()
"""
REGISTERED = """
from torch import nn
from .registry import LAYERS


@LAYERS.register
class Small(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.sub = LAYERS._modules["Small"]()

    def forward(self, x):
        return self.sub(x)
"""


def test_a_table_of_a_registry_of_another_file_is_no_module_s(tmp_path: Path) -> None:
    found = convert(tmp_path, {"registry.py": REGISTRY, "net.py": REGISTERED})
    assert blocking(found) == []
    assert 'LAYERS._modules["Small"]' in code(found, "net.py")


FILTERS = """
import torch


def setup_filter(f, gain=1):
    if f is None:
        f = 1
    f = torch.as_tensor(f, dtype=torch.float32)
    return f * gain / f.sum() ** (f.ndim / 2)
"""
FILTERED = """
from torch import nn
from .filters import setup_filter


class Net(nn.Module):
    def __init__(self, taps=[1, 3, 3, 1]):
        super().__init__()
        self.register_buffer("taps", setup_filter(taps))

    def forward(self, x):
        return x * self.taps
"""


@pytest.mark.parametrize("before", ["", "    f = f.flip(0)\n"], ids=["a list", "a tensor"])
def test_what_a_parameter_is_before_a_tensor_is_made_of_it(tmp_path: Path, before: str) -> None:
    filters = FILTERS.replace("    f = torch.as_", f"{before}    f = torch.as_")
    found = convert(tmp_path, {"filters.py": filters, "net.py": FILTERED})
    assert ["`f` of setup_filter() is a tensor" in one for one in blocking(found)] == [True] * bool(
        before
    )


POOLS = """
from torch import nn


class Pool(nn.Module):
    def __init__(self, kind, size):
        super().__init__()
        if kind == "avg":
            self.layer = nn.AvgPool2d(size)
        else:
            self.layer = nn.MaxPool2d(size)

    def forward(self, x):
        return self.layer(x)
"""
PICKS = """
from .pools import Pool


class Picks(Pool):
    def __init__(self, kind, size):
        super().__init__(kind, size)
        self.layer.return_indices = True

    def forward(self, x):
        values, places = self.layer(x)
        return values, places
"""


def test_an_option_that_no_layer_of_another_file_keeps(tmp_path: Path) -> None:
    found = convert(tmp_path, {"pools.py": POOLS, "picks.py": PICKS})
    assert ["`return_indices` of" in one for one in blocking(found)] == [True]


def test_a_function_that_draws_handed_to_a_class_of_another_file(tmp_path: Path) -> None:
    """Its forward pass would call it without a generator."""
    fns = "import torch\nimport torch.nn.functional as F\n\n\ndef noisy(m, x):\n    return F.dropout(m(x), 0.5)\n\n\n"
    fns += "def plain(m, x):\n    return m(x) * 2\n"
    wrap = "from torch import nn\n\n\nclass Wrap(nn.Module):\n    def __init__(self, m, f):\n        super().__init__()\n"
    wrap += "        self.m = m\n        self.f = f\n\n    def forward(self, x):\n        return self.f(self.m, x)\n"
    net = "from torch import nn\nfrom .fns import noisy, plain\nfrom .wrap import Wrap\n\n\nclass Net(nn.Module):\n"
    net += "    def __init__(self):\n        super().__init__()\n        self.m = Wrap(nn.Linear(4, 4), USED)\n\n"
    net += "    def forward(self, x):\n        return self.m(x)\n"
    for used, told in (("noisy", ["API003"]), ("plain", [])):
        files = {"fns.py": fns, "wrap.py": wrap, "net.py": net.replace("USED", used)}
        found = convert(tmp_path / used, files)
        assert [f.rule for f in found.findings if f.blocks] == told, used
