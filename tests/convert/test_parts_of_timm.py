"""Small parts of timm that model files import: their ports need no timm."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from rules.compat import timm_layers as ported
from tests.convert.tools import HEADER, convert, rules_of
from tests.migrator import test_packages as packages

TIMM = """
import collections.abc
from itertools import repeat
import torch
from torch import nn


def drop_path(x, drop_prob: float = 0., training: bool = False, scale_by_keep: bool = True):
    if drop_prob == 0. or not training:
        return x
    keep_prob = 1 - drop_prob
    shape = (x.shape[0],) + (1,) * (x.ndim - 1)
    random_tensor = x.new_empty(shape).bernoulli_(keep_prob)
    if keep_prob > 0.0 and scale_by_keep:
        random_tensor.div_(keep_prob)
    return x * random_tensor


class DropPath(nn.Module):
    def __init__(self, drop_prob: float = 0., scale_by_keep: bool = True):
        super().__init__()
        self.drop_prob = drop_prob
        self.scale_by_keep = scale_by_keep

    def forward(self, x):
        return drop_path(x, self.drop_prob, self.training, self.scale_by_keep)


def _ntuple(n):
    def parse(x):
        if isinstance(x, collections.abc.Iterable) and not isinstance(x, str):
            return tuple(x)
        return tuple(repeat(x, n))
    return parse


to_1tuple, to_2tuple, to_3tuple, to_4tuple = map(_ntuple, (1, 2, 3, 4))
to_ntuple = _ntuple


def make_divisible(v, divisor=8, min_value=None, round_limit=.9):
    min_value = min_value or divisor
    new_v = max(min_value, int(v + divisor / 2) // divisor * divisor)
    if new_v < round_limit * v:
        new_v += divisor
    return new_v


def register_model(fn):
    return fn


trunc_normal_ = nn.init.trunc_normal_
IMAGENET_DEFAULT_MEAN = (0.485, 0.456, 0.406)
"""
"""What timm documents of these, as it writes them."""

NET = """
from timm.models.layers import DropPath, to_2tuple, trunc_normal_, make_divisible
from timm.models.layers.helpers import to_ntuple, to_3tuple as three
from timm.models.registry import register_model
from timm.data import IMAGENET_DEFAULT_MEAN as MEAN


class M(nn.Module):
    def __init__(self, size=8, patch=2, dim=4, drop=0.3, scale=True):
        super().__init__()
        size, patch = to_2tuple(size), to_2tuple(patch)
        self.grid = size[0] // patch[0], size[1] // patch[1]
        self.proj = nn.Conv2d(3, dim, kernel_size=patch, stride=patch)
        self.pos = nn.Parameter(torch.zeros(1, dim, *self.grid))
        trunc_normal_(self.pos, std=0.02)
        self.drop_path = DropPath(drop, scale) if drop > 0.0 else nn.Identity()
        self.mean = torch.tensor(MEAN).view(1, 3, 1, 1)
        self.told = [three(2), to_ntuple(5)("ab"), to_2tuple([1, 7]), make_divisible(37.4)]
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Conv2d):
            trunc_normal_(m.weight, std=0.02)
        elif isinstance(m, DropPath):
            m.drop_prob = min(m.drop_prob, 0.5)

    def forward(self, x):
        return self.drop_path(self.proj(x - self.mean) + self.pos)


@register_model
def small(pretrained=False, **kwargs):
    return M(dim=make_divisible(3, 2), **kwargs)
"""


@pytest.fixture
def timm(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("timm")
    exec(TIMM, module.__dict__)
    for name in (
        "",
        ".models",
        ".models.layers",
        ".models.layers.helpers",
        ".models.registry",
        ".data",
    ):
        monkeypatch.setitem(sys.modules, f"timm{name}", module)


def _both(*args: object, built: str = "M") -> tuple[torch.nn.Module, nnx.Module]:
    result = convert(NET)
    assert result.complete, result.findings
    assert "timm" not in result.code.partition("\nclass M(")[2], "nothing of it is left"
    assert "\nclass DropPath(nnx.Module)" in result.code, "by the name that it has in the original"
    theirs: dict = {}
    exec(HEADER + NET, theirs)
    ours: dict = {}
    exec(result.code, ours)
    model, port = theirs[built](*args), ours[built](*args, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    return model, port


@pytest.mark.parametrize(("built", "args"), [("M", ()), ("M", (8, (2, 4), 4, 0.0)), ("small", ())])
def test_a_port_without_timm(timm: None, built: str, args: tuple[object, ...]) -> None:
    model, port = _both(*args, built=built)
    assert port.told == model.told
    x = torch.randn(5, 3, 8, 8)
    port.eval()
    want = model.eval()(x).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), want, atol=1e-5)


@pytest.mark.parametrize("scale", [True, False])
def test_whole_samples_are_dropped(timm: None, scale: bool) -> None:
    model, port = _both(8, 2, 4, 0.3, scale)
    x = torch.randn(400, 3, 8, 8)
    want = model.eval()(x).detach().numpy() / (0.7 if scale else 1)
    got = np.asarray(port(jnp.asarray(x.numpy())))
    dropped = (got == 0).all((1, 2, 3))
    assert 0.2 < dropped.mean() < 0.4
    np.testing.assert_allclose(got[~dropped], want[~dropped], rtol=1e-4, atol=1e-5)


def test_stochastic_depth_as_a_function(timm: None) -> None:
    source = HEADER + (
        "from timm.layers import drop_path\n\n\nclass M(nn.Module):\n    def __init__(self, p=0.25):\n"
        "        super().__init__()\n        self.p = p\n\n    def forward(self, x):\n"
        "        return drop_path(x, self.p, self.training)\n"
    )
    result = migrator.convert_source(source)
    assert result.complete, result.findings
    ours: dict = {}
    exec(result.code, ours)
    port = ours["M"](rngs=nnx.Rngs(0))
    x = jnp.ones((400, 2))
    got = np.asarray(port(x))
    assert set(np.unique(got)) == {0, np.float32(1 / 0.75)}
    assert 0.15 < (got == 0).all(1).mean() < 0.35
    port.eval()
    np.testing.assert_array_equal(port(x), x)


def test_what_is_not_known_of_timm_is_a_finding() -> None:
    assert "API004" in rules_of("from timm.models.layers import DropPath, Mlp\n\nx = Mlp(4)\n")


@pytest.mark.parametrize("given", [3, 2.5, (1, 2), [4, 5, 6], "ab", range(2)])
def test_tuples(given: object) -> None:
    timm: dict = {}
    exec(TIMM, timm)
    assert ported.to_1tuple(given) == timm["to_1tuple"](given)
    assert ported.to_2tuple(given) == timm["to_2tuple"](given)
    assert ported.to_3tuple(given) == timm["to_3tuple"](given)
    assert ported.to_4tuple(given) == timm["to_4tuple"](given)
    assert ported.to_ntuple(5)(given) == timm["to_ntuple"](5)(given)


def test_divisible_numbers() -> None:
    timm: dict = {}
    exec(TIMM, timm)
    for v in [*range(1, 200, 7), 37.4, 0.6 * 96]:
        for rest in [(), (4,), (8, 16), (8, None, 0.95)]:
            assert ported.make_divisible(v, *rest) == timm["make_divisible"](v, *rest)


def test_no_sample_is_dropped_with_probability_zero() -> None:
    x = jnp.ones((3, 2))
    assert ported.drop_path(x, 0.0, True) is x
    assert ported.drop_path(x, 0.5) is x
    assert ported.DropPath(0.0, rngs=nnx.Rngs(0))(x) is x
    assert not ported.DropPath(1.0, rngs=nnx.Rngs(0))(x).any()
    assert ported._cfg("u", num_classes=3)["num_classes"] == 3


def test_names_of_timm_by_way_of_another_file(tmp_path: Path) -> None:
    files = {
        "mods.py": "from timm.models.layers import DropPath, to_2tuple\n\nx = 3\n",
        "net.py": """
from torch import nn
from .mods import DropPath, to_2tuple


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = DropPath(0.1)
        self.size = to_2tuple(3)

    def forward(self, x):
        return self.drop(x) * self.size[0]
""",
    }
    found = packages.convert(tmp_path, files)
    assert not packages.blocking(found)
    port = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py").Net(rngs=nnx.Rngs(0))
    port.eval()
    np.testing.assert_array_equal(port(jnp.ones((2, 2))), 3 * np.ones((2, 2)))


def test_a_program_that_provides_for_its_absence_goes_the_other_way() -> None:
    source = HEADER + (
        "try:\n    from timm.layers import DropPath\nexcept ImportError:\n    DropPath = nn.Identity\n\n\n"
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.drop = DropPath()\n\n    def forward(self, x):\n        return self.drop(x)\n"
    )
    result = migrator.convert_source(source)
    assert result.complete
    ours: dict = {}
    exec(result.code, ours)
    assert ours["M"](rngs=nnx.Rngs(0))(3.0) == 3.0


@pytest.mark.parametrize(
    "lines",
    [
        "from timm.layers import drop_path\nf = drop_path",
        "from timm.models import register_model\nf = register_model(len)",
    ],
)
def test_a_function_of_timm_as_a_value(lines: str) -> None:
    (finding,) = [f for f in convert(lines).findings if f.blocks]
    assert finding.rule == "API001"
    assert finding.message.startswith("timm's ")
