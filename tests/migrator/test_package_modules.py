"""Modules of a package that stand on another file: a function that builds them, a class they derive from."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.project import convert_path
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, convert


def compare(tmp_path: Path, files: dict[str, str]) -> None:
    """``Net`` of net.py and of its port give the same."""
    assert not blocking(convert(tmp_path, files, name="flaxed"))
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py").Net().eval()
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py").Net(rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.randn(5, 4)
    with torch.no_grad():
        np.testing.assert_allclose(ours(x.numpy()), theirs(x).numpy(), rtol=1e-5, atol=1e-6)


TOOLS = """
def make(fn, *a, **kw):
    return fn(*a, **kw)


def named(fn, *a):
    print(fn.__name__)
    return fn(*a)
"""
USER = """
from torch import nn

from .tools import make, named


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = make(nn.Linear, 4, out_features=3)
        self.b = {}

    def forward(self, x):
        return self.b(self.a(x))
"""


def test_a_class_that_a_function_of_another_file_builds(tmp_path: Path) -> None:
    compare(tmp_path, {"tools.py": TOOLS, "net.py": USER.format("make(nn.PReLU)")})


def test_a_class_of_which_another_file_wants_more_than_a_call(tmp_path: Path) -> None:
    found = convert(tmp_path, {"tools.py": TOOLS, "net.py": USER.format("named(nn.Linear, 3, 3)")})
    assert blocking(found)


MIXIN = """
import torch.nn.functional as F


class Mixin:
    def forward(self, x):
        y = F.linear(x, self.fc.weight, self.fc.bias)
        return self.act(y) * self.scale
"""
HEIR = """
import torch
from torch import nn

from .mixin import Mixin


class Net(Mixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.act = nn.Tanh()
        self.scale = nn.Parameter(torch.full((3,), 2.0))
"""


def test_a_forward_that_a_module_of_another_file_inherits(tmp_path: Path) -> None:
    compare(tmp_path, {"mixin.py": MIXIN, "net.py": HEIR})


READS = """
class Reads:
    def read(self, x):
        return self.head(x)
"""
TIES = """
from torch import nn

from .reads import Reads


class Net(Reads, nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4)
        self.head = nn.Linear(4, 5, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.read(x)
"""


def test_a_base_of_another_file_that_calls_a_tied_head(tmp_path: Path) -> None:
    found = convert(tmp_path, {"reads.py": READS, "net.py": TIES})
    assert any("API009" in one for one in blocking(found))
    own = TIES.replace("self.read(x)", "self.head(x)")
    compare(tmp_path / "own", {"reads.py": READS.replace("head", "other"), "net.py": own})


ROOT = """
from torch import nn


class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.make()
"""
LEFT = """
from torch import nn

from .root import Root


class Net(Root):
    def make(self):
        self.first = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)
        self.pair = (self.first, self.other)

    def forward(self, x):
        return self.pair[0](x) + self.pair[1](x)
"""


def test_parts_made_in_a_method_that_a_base_of_another_file_calls(tmp_path: Path) -> None:
    compare(tmp_path, {"root.py": ROOT, "net.py": LEFT})


MAKES = """
from torch import nn


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.make()

    def make(self):
        self.fc = nn.Linear(4, 4)
"""
OVERRIDES = """
from torch import nn

from .root import Base


class Net(Base):
    def make(self):
        super().make()
        self.more = nn.Linear(4, 4)

    def forward(self, x):
        return self.more(self.fc(x))
"""


def test_a_method_that_overrides_and_runs_one_of_another_file(tmp_path: Path) -> None:
    compare(tmp_path, {"root.py": MAKES, "net.py": OVERRIDES})


TABLE = """
from torch import nn

REGISTRY = {}


def register(cls):
    REGISTRY[cls.__name__] = cls
    return cls


@register
class Half(nn.Linear):
    def forward(self, x):
        return super().forward(x) / 2


class Steps:
    def forward(self, x):
        return self.after(self.pair[0](x))

    def after(self, x):
        return self.second(x)
"""
TAKES = """
from torch import nn

from .table import REGISTRY, Steps


class Net(Steps, nn.Module):
    def __init__(self):
        super().__init__()
        self.first = REGISTRY["Half"](4, 4)
        self.second = nn.Linear(4, 3)
        self.pair = (self.first, self.second)
"""


def test_a_forward_pass_beside_a_table_of_classes_makes_no_layers(tmp_path: Path) -> None:
    compare(tmp_path, {"table.py": TABLE, "net.py": TAKES})


BANK = """
from torch import nn


class Bank(nn.ModuleList):
    def __init__(self):
        super().__init__([nn.Linear(4, 4) for _ in range(3)])


def clones():
    return nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
"""
EDITS = """
from torch import nn

from .bank import Bank, clones


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.bank = MADE
        self.bank.pop(1)

    def forward(self, x):
        for layer in self.bank:
            x = layer(x)
        return x
"""


def test_layers_taken_out_of_a_list_of_a_class_of_another_file(tmp_path: Path) -> None:
    compare(tmp_path, {"bank.py": BANK, "net.py": EDITS.replace("MADE", "Bank()")})


@pytest.mark.parametrize("line", ["pop(1)", "insert(0, nn.Tanh())", "__delitem__(0)"])
def test_layers_taken_out_of_a_list_that_another_file_makes(tmp_path: Path, line: str) -> None:
    edits = EDITS.replace("pop(1)", line)
    found = convert(tmp_path, {"bank.py": BANK, "net.py": edits.replace("MADE", "clones()")})
    assert any("API007" in one for one in blocking(found))
    own = edits.replace("MADE", "nn.ModuleList([*clones()])")
    compare(tmp_path / "own", {"bank.py": BANK, "net.py": own})


ASKED = """
import torch


def is_class(value):
    return isinstance(value, type)
"""
ASKER = """
from torch import nn

from .tools import is_class


class Net(nn.Module):
    def __init__(self, act=nn.GELU, other=None):
        super().__init__()
        self.act = act() if is_class(act) else act
        self.l = nn.Linear(4, 3)

    def forward(self, x):
        return self.act(self.l(x))
"""


def test_a_file_asks_whether_what_another_one_hands_over_is_a_class(tmp_path: Path) -> None:
    compare(tmp_path, {"tools.py": ASKED, "net.py": ASKER})
    assert "layer_class" not in (tmp_path / "out/flaxed/net.py").read_text()
    assert "@layer_class" in (tmp_path / "out/flaxed/_torch_compat.py").read_text()


BASE = """
import torch
from torch import nn

if False:
    from . import derived


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.seen = torch.zeros(4)

    def forward(self, x):
        y = self.l(x)
        if x.shape[0] > 1:
            self.seen = y.mean(0)
        return y + self.seen
"""
DERIVED = """
from .net import Net


class Loud(Net):
    def forward(self, x):
        self.seen = {}
        return self.l(x)
"""


def test_a_class_in_a_file_of_the_same_circle_keeps_something_else_there(tmp_path: Path) -> None:
    found = convert(tmp_path, {"net.py": BASE, "derived.py": DERIVED})
    assert not [one for one in blocking(found) if "INT001" in one]


ROTARY = """
import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.register_buffer("freqs", 1.0 / (torch.arange(dim).float() + 1))

    def forward(self, n, m, device):
        seq = torch.arange(n, device=device)
        steps = torch.linspace(-1.0, 1.0, steps=m, device=device)
        freqs = self.freqs.to(device)
        return (seq[:, None] * freqs).sin() + steps.sum()
"""
ROTATED = """
from torch import nn

from .rotary import Rotary


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 3)
        self.rotary = Rotary(3)

    def forward(self, x):
        n, _, device = *x.shape, x.device
        return self.l(x) + self.rotary(n, n + 1, device=device)
"""


def test_a_number_of_positions_is_no_tensor_to_a_module_of_another_file(tmp_path: Path) -> None:
    compare(tmp_path, {"rotary.py": ROTARY, "net.py": ROTATED})


STATE = """
import torch
from torch import nn


class Bank(nn.Module):
    bank: torch.Tensor

    def __init__(self):
        super().__init__()
        self.register_buffer("bank", torch.ones(4, 3))
        self.count: torch.Tensor
        self.register_buffer("count", torch.zeros(1))
"""
STATED = """
from .bank import Bank


class Net(Bank):
    def forward(self, x):
        self.count = self.count + 1
        self.bank = self.bank * 2
        return x @ self.bank + self.count
"""


def test_buffers_that_a_class_of_another_file_declares(tmp_path: Path) -> None:
    compare(tmp_path, {"bank.py": STATE, "net.py": STATED})
    assert "self.bank[...] = " in (tmp_path / "out/flaxed/net.py").read_text()


WRITES = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 3)

    def start(self, x):
        x[0] = 0.0
        return x

    def forward(self, x):
        from .derived import Loud

        return self.l(x) if not isinstance(self, Loud) else self.start(self.l(x))
"""
LOUD = """
from .net import Net


class Loud(Net):
    def twice(self, x):
        y = self.l(x)
        z = [self.start(y) for _ in range(2)]
        w = self.start(y) + y
        return z[0] + y + w
"""


def test_an_argument_is_written_by_a_call_in_a_file_of_the_same_circle(tmp_path: Path) -> None:
    found = blocking(convert(tmp_path, {"net.py": WRITES, "derived.py": LOUD}))
    assert found
    assert not [one for one in found if "INT001" in one]


def test_the_file_beside_is_named_where_it_is_missing(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(
        "from torch import nn\n\n\nclass Part(nn.Module):\n    pass\n"
    )
    net = tmp_path / "net.py"
    net.write_text("from torch import nn\nimport parts\n\nnet = nn.Sequential(parts.Part())\n")
    found = [f for f in convert_path([net], tmp_path / "out").findings if f.blocks]
    assert [f.rule for f in found] == ["API004"]
    assert "name parts.py beside this file" in (found[0].advice or "")
