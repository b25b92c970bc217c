"""Constructors under a decorator that keeps what they are given: the generator goes through it, and is not kept."""

from __future__ import annotations

from pathlib import Path

import pytest
from flax import nnx

from migrator.project import convert_path
from migrator.usercode import UserCode
from tests.convert.tools import X, convert, loaded, pair, same
from tests.migrator.test_packages import write

CONFIG = """
import functools
import inspect
from collections import OrderedDict


class Frozen(OrderedDict):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for key, value in self.items():
            setattr(self, key, value)


class Configured:
    def register(self, **kwargs):
        self._config = Frozen(kwargs)

    @property
    def config(self):
        return self._config


def registered(init):
    @functools.wraps(init)
    def inner(self, *args, **kwargs):
        given = {k: v for k, v in kwargs.items() if not k.startswith("_")}
        private = {k: v for k, v in kwargs.items() if k.startswith("_")}
        if not isinstance(self, Configured):
            raise RuntimeError(f"{self.__class__.__name__} is not configured")
        names = [name for name in inspect.signature(init).parameters][1:]
        new = dict(zip(names, args))
        defaults = {n: p.default for n, p in inspect.signature(init).parameters.items()}
        new.update({n: given.get(n, defaults[n]) for n in names if n not in new})
        new["_unsaid"] = sorted(set(new) - set(given))
        getattr(self, "register")(**{**private, **new})
        init(self, *args, **given)

    return inner
"""
NET = """
class M(nn.Module, Configured):
    @registered
    def __init__(self, dim: int = 4, hidden: int = 8):
        super().__init__()
        self.a, self.b = nn.Linear(dim, hidden), nn.Linear(hidden, dim)

    def forward(self, x):
        return self.b(self.a(x)) * self.config["hidden"] + self.config.dim
"""


@pytest.mark.parametrize("built", ["M()", "M(4, 6)", "M(4, hidden=5, _name='a')"])
def test_arguments_are_kept_and_the_generator_is_handed_on(built: str) -> None:
    theirs, ours, _ = loaded(CONFIG + NET)
    model, port = pair(theirs, ours, built)
    same(model, port, X.numpy())
    assert dict(model.config) == dict(port.config)


def test_a_decorator_of_another_file(tmp_path: Path) -> None:
    head = "import torch.nn as nn\nfrom .config import Configured, registered\n"
    plain = "class Plain(Configured):\n    @registered\n    def __init__(self, n=4):\n        self.n = n\n"
    files = {"config.py": CONFIG, "net.py": head + NET + "\n\n" + plain}
    conversion = convert_path([write(tmp_path / "src", files)], tmp_path / "out/pkg")
    assert conversion.complete, conversion.findings
    theirs = UserCode(tmp_path / "src").load(tmp_path / "src/pkg/net.py")
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py")
    assert theirs.Plain(3).config == ours.Plain(3).config == {"n": 3, "_unsaid": ["n"]}
    assert theirs.M(4, 6).config == ours.M(4, 6, rngs=nnx.Rngs(0)).config


@pytest.mark.parametrize(
    "given",
    [
        'given = {k: v for k, v in kwargs.items() if not k.startswith("r")}',
        'given = {k: v for k, v in kwargs.items() if k in ("dim", "hidden")}',
        'given = {k: v for k, v in kwargs.items() if k != "rngs"}',
        "given = {k: v for k, v in kwargs.items() if k in names}",
        "given = {k: v for k, v in kwargs.items() if isinstance(v, int)}",
        "given = {k: v for k, v in private.items()}",
        "given = {k + '': v for k, v in kwargs.items()}",
        "given = {k: int(v) for k, v in kwargs.items()}",
        "given = dict(kwargs)\n        given = {n: kwargs[n] for n in names}",
        "kwargs = {n: kwargs[n] for n in names}\n        given = {k: v for k, v in kwargs.items()}",
    ],
)
def test_a_decorator_that_may_keep_the_generator_back_is_a_finding(given: str) -> None:
    source = f"""
def registered(init):
    def inner(self, *args, **kwargs):
        names = ("dim", "hidden")
        private = {{k: v for k, v in kwargs.items() if k.startswith("_")}}
        {given}
        init(self, *args, **given)

    return inner


class Configured:
    pass
"""
    assert "API005" in [f.rule for f in convert(source + NET).findings if f.blocks]


@pytest.mark.parametrize(
    "condition",
    [
        'k not in ("dim", "hidden")',
        'k != "dim" and not k.endswith("_")',
        '(k == "dim" or k.startswith("r"))',
        "k",
    ],
)
def test_what_a_condition_says_of_the_generator(condition: str) -> None:
    source = f"""
def registered(init):
    def inner(self, *args, **kwargs):
        given = {{k: v for k, v in kwargs.items() if {condition}}}
        init(self, *args, **given)

    return inner


class Configured:
    config = {{"hidden": 2}}
"""
    found = convert(source + NET.replace(" + self.config.dim", ""))
    assert found.complete == (condition != "k"), found.findings
