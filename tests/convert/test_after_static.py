"""A layer, parameter or array under a name that held something else before: Flax keeps to what it saw first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source
from migrator.project import convert_path
from migrator.usercode import UserCode
from tests.convert.tools import loaded, pair, same

SOURCE = """
from typing import Optional

import torch
import torch.nn as nn


class Chained(nn.Module):
    def __init__(self, a=True):
        super().__init__()
        self.p = self.q = None
        if a:
            self.p = nn.Linear(3, 3)
            self.q = nn.BatchNorm1d(3)
    def forward(self, x):
        if self.p is not None:
            x = self.q(self.p(x))
        return x


class Annotated(nn.Module):
    def __init__(self, a=True):
        super().__init__()
        self.p: Optional[nn.Module] = None
        self.w: Optional[nn.Parameter] = None
        if a:
            self.p = nn.Linear(3, 3)
            self.w = nn.Parameter(torch.ones(3))
    def forward(self, x):
        if self.p is not None:
            x = self.p(x) * self.w
        return x


class ByMethod(nn.Module):
    def __init__(self, a=True):
        super().__init__()
        self.reset()
        if a:
            self.build()
    def reset(self):
        self.p = None
        self.w = None
    def build(self):
        self.p = nn.Linear(3, 3)
        self.w = nn.Parameter(torch.ones(3))
    def forward(self, x):
        if self.p is not None:
            x = self.p(x) * self.w
        return x


class BySetattr(nn.Module):
    def __init__(self, a=True):
        super().__init__()
        for name in ("p", "w"):
            setattr(self, name, None)
        if a:
            self.p = nn.Linear(3, 3)
            self.w = nn.Parameter(torch.ones(3))
    def forward(self, x):
        if self.p is not None:
            x = self.p(x) * self.w
        return x


class Mixin:
    def __init__(self):
        self.p = None
        self.kinds = ()


class Mixed(nn.Module, Mixin):
    def __init__(self, a=True):
        nn.Module.__init__(self)
        Mixin.__init__(self)
        if a:
            self.p = nn.Linear(3, 3)
    def forward(self, x):
        if self.p is not None:
            x = self.p(x)
        return x


class Given(nn.Module):
    def __init__(self, p=None, w=None):
        super().__init__()
        self.p = p
        self.w = w
        if self.p is None:
            self.p = nn.Linear(3, 3)
        if self.w is None:
            self.w = nn.Parameter(torch.ones(3))
    def forward(self, x):
        return self.p(x) * self.w


class Abstract(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = None, None
        self.head = None
        self.blocks = None
        self.scale = 1.0
        self._build()
    def _build(self):
        raise NotImplementedError
    def forward(self, x):
        x = self.decoder(self.encoder(x))
        if self.head is not None:
            x = self.head(x)
        for b in self.blocks:
            x = b(x)
        return x * self.scale


class Concrete(Abstract):
    def _build(self):
        self.encoder = nn.Sequential(nn.Linear(3, 5), nn.ReLU())
        self.decoder = nn.Linear(5, 3)
        self.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.scale = nn.Parameter(torch.ones(1))


class Headed(Concrete):
    def _build(self):
        super()._build()
        self.head = nn.Tanh()


class Later(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = None
        self.body = nn.Linear(3, 4)
    def attach(self, n):
        self.fc = nn.Linear(4, n)
    def forward(self, x):
        x = self.body(x)
        return x if self.fc is None else self.fc(x)


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.m = Later()
        self.m.attach(2)
        self.n = Later()
        self.n.fc = nn.Linear(4, 5)
    def forward(self, x):
        return self.m(x), self.n(x)


class Flag(nn.Module):
    def __init__(self, a=True):
        super().__init__()
        self.norm, self.act = False, False
        self.pool = 0
        if a:
            self.norm = nn.LayerNorm(3)
            self.act = nn.GELU()
            self.pool = nn.Linear(3, 2)
    def forward(self, x):
        if self.norm:
            x = self.act(self.norm(x))
        if self.pool:
            x = self.pool(x)
        return x


class Base(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.c = c
        self.model = None
        self.gain = None
        self.table = None
        self.n = 0
        self.later = None


class Derived(Base):
    def __init__(self, c):
        super().__init__(c)
        self.model = nn.Linear(self.c, 4)
        self.gain = nn.Parameter(torch.ones(4))
        self.register_buffer("off", torch.ones(4))
        self.table = torch.arange(4.0)
        self.n = 3
    def forward(self, x):
        self.later = x * 2
        return self.model(x) * self.gain + self.off + self.table + self.n + self.later.sum()


class Two(nn.Module):
    def __init__(self, a=True, b=False):
        super().__init__()
        self.p, self.q = None, None
        self.r, self.s, self.t = None, 1, "x"
        self.act = nn.ReLU()
        if a:
            self.p = nn.Linear(3, 3)
            self.q = nn.BatchNorm1d(3)
        if b:
            self.r = nn.Linear(3, 3)
    def forward(self, x):
        if self.p is not None:
            x = self.q(self.p(x))
        if self.r is not None:
            x = self.r(x)
        return self.act(x) * self.s


class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.act = nn.ReLU()
        self.norm = nn.Identity()
        self.pool = nn.Sequential()
        self.w = nn.Parameter(torch.ones(3))
        self.register_buffer("b", torch.ones(3))
    def forward(self, x):
        x = self.pool(self.norm(self.act(self.fc(x))))
        return x if self.w is None else x * self.w


class D1(B):
    def __init__(self):
        super().__init__()
        self.fc = nn.Identity()
        self.act = nn.PReLU()
        self.norm = nn.LayerNorm(3)
        self.pool = nn.Linear(3, 2)
        self.w = None


class D2(B):
    def __init__(self):
        super().__init__()
        self.fc = nn.ReLU()
        self.act = nn.Sequential(nn.ReLU(), nn.Linear(3, 3))
        self.norm = nn.BatchNorm1d(3)
        self.pool = nn.Flatten()


class D3(D2):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.act = nn.Dropout(0.0)
        self.norm = nn.Identity()
        self.w = nn.Parameter(torch.zeros(4))


table = nn.Parameter(torch.ones(3), requires_grad=False)


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = table
    def forward(self, x):
        return x * self.table
"""
BUILT = """Chained() Chained(False) Annotated() Annotated(False) ByMethod() BySetattr() Mixed() Given() Concrete() Headed()
Later() Holder() Flag() Flag(False) Derived(3) Two() Two(True,True) Two(False,False) B() D1() D2() D3() Shared()"""


@pytest.fixture(scope="module")
def both() -> tuple[dict, dict]:
    return loaded(SOURCE)[:2]


@pytest.mark.parametrize("built", BUILT.split())
def test_the_port_computes_what_torch_does(both: tuple[dict, dict], built: str) -> None:
    _compare(*pair(*both, built))


def _compare(original: torch.nn.Module, port: nnx.Module) -> None:
    assert set(migrator.to_state_dict(port)) == set(original.state_dict())
    original.eval()
    port.eval()
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    same(original, port, x)


def test_a_base_class_of_another_file(tmp_path: Path) -> None:
    """Neither file knows what the other assigns but by its summary."""
    base = """
import torch.nn as nn


class Backbone(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.width = width
        self.model = None
        self.scale = None
        self.channels = []

    def forward(self, x):
        raise NotImplementedError
"""
    derived = """
import torch
import torch.nn as nn

from .base import Backbone


class Small(Backbone):
    def __init__(self, width):
        super().__init__(width)
        self.model = nn.Sequential(nn.Linear(3, self.width), nn.ReLU())
        self.scale = nn.Parameter(torch.ones(self.width))
        self.channels = [3, width]

    def forward(self, x):
        return self.model(x) * self.scale
"""
    package = tmp_path / "net"
    package.mkdir()
    for name, text in {"__init__.py": "", "base.py": base, "derived.py": derived}.items():
        (package / name).write_text(text)
    done = convert_path([package], tmp_path / "port" / "net", cache=None)
    assert done.complete, done.findings
    original = UserCode(tmp_path).load(package / "derived.py").Small(5)
    port = UserCode(tmp_path / "port").load(tmp_path / "port/net/derived.py")
    small = port.Small(5, rngs=nnx.Rngs(0))
    migrator.load_state_dict(small, original.state_dict())
    _compare(original, small)


def test_one_line_is_not_declared_twice() -> None:
    """Where the constant says what comes, the layer does not."""
    source = """
import torch.nn as nn


class M(nn.Module):
    def __init__(self, deep):
        super().__init__()
        self.norm = None
        if deep:
            self.norm = nn.LayerNorm(3)
        self.head = nn.Linear(3, 3) if deep else None

    def forward(self, x):
        return x
"""
    code = convert_source(source).code
    assert code.count("nnx.data") == 1
    assert "self.norm = nnx.data(None)" in code


def test_a_flag_under_the_name_of_the_layer_that_it_asks_for() -> None:
    """``self.embed = embed`` keeps the arguments, and the layer of that name comes after it, or None."""
    source = """
import torch
import torch.nn as nn


class Net(nn.Module):
    def __init__(self, n, embed, act=True):
        super().__init__()
        self.embed = embed
        self.act = act
        self.embed = nn.Linear(n, n) if embed else None
        self.act = nn.Tanh() if act else None
        self.fc = nn.Linear(n, 2)

    def forward(self, x: torch.Tensor):
        if self.embed is not None:
            x = self.embed(x)
        if self.act is not None:
            x = self.act(x)
        return self.fc(x)
"""
    theirs, ours, code = loaded(source)
    assert code.count("nnx.data") == 1
    for built in ("Net(3, True)", "Net(3, False)", "Net(3, True, False)"):
        model, port = pair(theirs, ours, built)
        same(model, port, np.ones((2, 3), np.float32), jit=True)
