"""Lambdas and functions within functions that make modules stand where a class may stand, which takes ``rngs``."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from migrator.convert import convert_source
from migrator.usercode import UserCode
from tests.convert.tools import HEADER, check
from tests.migrator.test_packages import blocking, code, convert

MAKERS = {
    "lambda": """
def relu(inplace: bool = True) -> Callable[[], nn.Module]:
    return lambda: nn.ReLU(inplace=inplace)


def norm(n: int) -> Callable[..., nn.Module]:
    return lambda: nn.LayerNorm(n)
""",
    "function": """
def relu(inplace: bool = True) -> Callable[[], nn.Module]:
    def make() -> nn.Module:
        return nn.ReLU(inplace=inplace)

    return make


def norm(n: int) -> Callable[..., nn.Module]:
    def make():
        return nn.LayerNorm(n)

    return make
""",
}
BLOCK = """
class Block(nn.Module):
    def __init__(
        self, n: int, act: Callable[..., nn.Module] | None = relu(), norm: Callable[..., nn.Module] | None = None
    ):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.norm = norm() if norm is not None else nn.Identity()
        if isfunction(act):
            self.act = act()
        else:
            self.act = act

    def forward(self, x):
        return self.act(self.norm(self.fc(x)))
"""
NET = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Block(4)
        self.b = Block(4, relu(), norm(4))
        self.c = Block(4, lambda: nn.PReLU(4), lambda: nn.BatchNorm1d(4))
        self.d = Block(4, nn.Tanh())

    def forward(self, x):
        return self.d(self.c(self.b(self.a(x))))
"""
HEAD = "from inspect import isfunction\nfrom typing import Callable\n\nimport torch\nfrom torch import nn\n"


@pytest.mark.parametrize("maker", MAKERS)
def test_what_makes_a_module_is_called_like_a_class(maker: str) -> None:
    check(
        "from inspect import isfunction\nfrom typing import Callable\n"
        + MAKERS[maker]
        + BLOCK
        + NET
    )


@pytest.mark.parametrize("maker", MAKERS)
def test_it_may_come_from_another_file(tmp_path: Path, maker: str) -> None:
    from flax import nnx

    files = {
        "makers.py": HEAD + MAKERS[maker],
        "block.py": HEAD + "from .makers import relu\n" + BLOCK,
        "net.py": HEAD + "from .block import Block\nfrom .makers import norm, relu\n" + NET,
    }
    found = convert(tmp_path, files, name="flaxed")
    assert not blocking(found)
    assert "lambda rngs=rngs: PReLU(4, rngs=rngs)" in code(found, "net.py")
    net = UserCode(tmp_path / "out").load(tmp_path / "out/flaxed/net.py").M(rngs=nnx.Rngs(0))
    assert net(torch.randn(3, 4).numpy()).shape == (3, 4)


def test_nothing_is_added_where_no_class_is_handed_around() -> None:
    made = check(
        """
ACTS = {"relu": lambda: nn.ReLU(), "tanh": lambda: nn.Tanh()}

class M(nn.Module):
    def __init__(self, act="tanh"):
        super().__init__()
        self.act = ACTS[act]()

    def forward(self, x):
        return self.act(x)
"""
    )
    assert "rngs=" not in made.split("class M")[0].split("ACTS")[1]


DECORATED = """
import functools


class Net(nn.Module):
    def __init__(self, n: int = 4):
        super().__init__()
        self.fc = nn.Linear(n, 4)

    def forward(self, x):
        return self.fc(x)


def handle(**old):
    def outer(builder: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
        @functools.wraps(builder)
        def inner(*args: Any, **kwargs: Any) -> nn.Module:
            for name in old.values():
                kwargs.pop(name, None)
            return builder(*args, **kwargs)

        return inner

    return outer


@handle(weights="pretrained")
def net18(*, progress: bool = True, **kwargs) -> Net:
    return Net(**kwargs)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = net18(progress=False)
        self.b = net18(n=4, pretrained=True)

    def forward(self, x):
        return self.b(self.a(x))
"""


def test_what_hands_all_its_keywords_on_hands_rngs_on_as_well() -> None:
    made = check("from typing import Any, Callable\n" + DECORATED)
    assert "def inner(*args: Any, **kwargs: Any)" in made


@pytest.mark.parametrize(
    "decorator",
    [
        """
def with_norm(builder: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    def make(*args, **kwargs) -> nn.Module:
        return nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4), builder(*args, **kwargs))

    return make
""",
        """
def with_norm(builder: Callable[..., nn.Module]) -> Callable[..., nn.Module]:
    def make(*args):
        return builder(*args)

    return make
""",
    ],
)
def test_a_decorator_that_would_lose_rngs_is_reported(decorator: str) -> None:
    source = f"from typing import Callable\n{decorator}\n\n@with_norm\ndef net(n: int):\n    return nn.Linear(n, 4)\n"
    result = convert_source(HEADER + source)
    assert [one.rule for one in result.findings if one.blocks].count("API005") >= 1
    assert not result.complete
