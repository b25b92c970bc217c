"""A name of torch that the file, or another one, binds to something else: ``Linear = partial(Linear, bias=False)``."""

from __future__ import annotations

import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.project import convert_path
from migrator.usercode import UserCode

HEAD = """
import torch
import torch.nn.functional as F
from functools import partial
from torch import nn
"""

PARTS = (
    HEAD
    + """
LinearNoBias = partial(nn.Linear, bias=False)
act = partial(F.leaky_relu, negative_slope=0.5)
Norm = partial(nn.LayerNorm, eps=0.1)
Conv = nn.Conv2d
DTYPE = torch.float32


class Part(nn.Module):
    norm = partial(nn.LayerNorm, eps=0.5)
"""
)

BODY = """
    def forward(self, x):
        return act(self.b(self.a(x)))
"""


def compare(root: Path, file: str, size: int = 4, name: str = "Net") -> None:
    """``Net(size)`` of a file below ``src``, and of its conversion below ``out``, on the same weights and input."""
    theirs = getattr(UserCode(root / "src").load(root / "src" / file), name)(size).eval()
    ours = getattr(UserCode(root / "out").load(root / "out" / file), name)(size, rngs=nnx.Rngs(0))
    migrator.load_state_dict(ours, theirs.state_dict())
    x = torch.linspace(-1, 1, 2 * size).reshape(2, size)
    with torch.no_grad():
        expected = theirs(x).numpy()
    np.testing.assert_allclose(ours(x.numpy()), expected, rtol=1e-5, atol=1e-6)


def check(root: Path, files: dict[str, str], file: str = "pkg/net.py") -> str:
    """Convert a package, compare ``Net`` and return the code of its file."""
    for name, text in files.items():
        path = root / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text).lstrip("\n"))
        (path.parent / "__init__.py").touch()
    found = convert_path([root / "src/pkg"], root / "out/pkg")
    assert not [f for f in found.findings if f.blocks]
    compare(root, file)
    return (root / "out" / file).read_text()


@pytest.mark.parametrize(
    "importer",
    [
        "from .parts import LinearNoBias, Norm, act",
        "from .parts import *",
        "from pkg.parts import LinearNoBias as LinearNoBias, act, Norm",
        "from . import parts\nLinearNoBias, act, Norm = parts.LinearNoBias, parts.act, parts.Norm",
        "from .again import LinearNoBias, Norm, act",
    ],
)
def test_a_layer_with_options_of_another_file_keeps_them(tmp_path: Path, importer: str) -> None:
    net = f"""{HEAD}
{importer}


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = LinearNoBias(d, d)
        self.b = Norm(d)
{BODY}"""
    again = "from .parts import LinearNoBias, Norm, act\n"
    check(tmp_path, {"pkg/parts.py": PARTS, "pkg/again.py": again, "pkg/net.py": net})


def test_handed_on_by_its_name_through_a_module_and_a_class(tmp_path: Path) -> None:
    net = f"""{HEAD}
from . import parts as P
from .parts import Conv, DTYPE, LinearNoBias as Lin, Part, act


class Net(nn.Module):
    def __init__(self, d, layer=Lin, norm=P.Norm):
        super().__init__()
        self.a = layer(d, d)
        self.b = nn.Sequential(norm(d), P.LinearNoBias(d, d), Part.norm(d), P.nn.Linear(d, d))
        self.c = Conv(1, 1, 1)

    def forward(self, x):
        x = self.c(self.b(self.a(x))[None])[0]
        return act(x.to(DTYPE))
"""
    text = check(tmp_path, {"pkg/parts.py": PARTS, "pkg/net.py": net})
    assert "from .parts import Conv, DTYPE, LinearNoBias as Lin, Part, act" in text
    assert "P.LinearNoBias(d, d, rngs=rngs)" in text
    assert "Linear(d, d, rngs=rngs)" in text, "what a file hands on of torch is spelled out"


@pytest.mark.parametrize(
    ("top", "layers"),
    [
        pytest.param(
            "from torch.nn import Linear\nLinear = partial(Linear, bias=False)",
            ("Linear(d, d)", "nn.Linear(d, d)"),
            id="partial of itself",
        ),
        pytest.param(
            "from torch.nn import GELU\nclass GELU(GELU):\n"
            "    def forward(self, x):\n        return super().forward(x) + 1",
            ("GELU()", "nn.GELU()"),
            id="derived from itself",
        ),
        pytest.param(
            "from torch.nn import Linear\nmake = lambda Linear, d: Linear(d, d)",
            ("make(partial(Linear, bias=False), d)", "Linear(d, d)"),
            id="parameter of a lambda",
        ),
        pytest.param(
            "from torch.nn import Linear\n"
            "def make(d):\n"
            "    return [Linear(d, d) for Linear in (nn.Linear, partial(nn.Linear, bias=False))]",
            ("nn.Sequential(*make(d))", "Linear(d, d)"),
            id="variable of a comprehension",
        ),
        pytest.param(
            "try:\n    from torch.nn import LayerNorm as Norm\n"
            "except ImportError:\n    class Norm(nn.Module):\n        pass",
            ("Norm(d)", "nn.Identity()"),
            id="class for an import that fails",
        ),
        pytest.param(
            "if hasattr(nn, 'LayerNorm'):\n    from torch.nn import LayerNorm as Norm\n"
            "else:\n    Norm = partial(nn.GroupNorm, 1)",
            ("Norm(d)", "nn.Identity()"),
            id="branch that is not taken",
        ),
    ],
)
def test_an_imported_name_that_is_bound_anew(
    tmp_path: Path, top: str, layers: tuple[str, str]
) -> None:
    net = f"""{HEAD}
{top}


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = {layers[0]}
        self.b = {layers[1]}

    def forward(self, x):
        return self.b(self.a(x))
"""
    check(tmp_path, {"pkg/net.py": net})


def test_an_imported_function_that_is_defined_anew(tmp_path: Path) -> None:
    net = f"""{HEAD}
from torch.nn.functional import relu


def relu(x):
    return x.clamp(min=0.5)


class Net(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.a = nn.Linear(d, d)

    def forward(self, x):
        return relu(self.a(x))
"""
    check(tmp_path, {"pkg/net.py": net})


HELD = """
from collections import namedtuple
from types import SimpleNamespace

Config = namedtuple("Config", "layer act")
CONFIG = Config(layer=partial(nn.Linear, bias=False), act=nn.Tanh)
SPACE = SimpleNamespace(layer=nn.Linear)
try:
    import a_library_that_is_not_there
    Drop = a_library_that_is_not_there.Dropout
except ImportError:
    Drop = partial(nn.Dropout, p=0.0)
"""
USING = """

class Net(nn.Module):
    def __init__(self, d, config=SPACE):
        super().__init__()
        self.a = CONFIG.layer(d, d)
        self.b = nn.Sequential(CONFIG.act(), config.layer(d, d), Drop())

    def forward(self, x):
        return self.b(self.a(x))
"""


def test_layers_that_an_object_or_a_name_of_several_meanings_holds_take_rngs(
    tmp_path: Path,
) -> None:
    other = {
        "pkg/held.py": HEAD + HELD,
        "pkg/net.py": HEAD + "from .held import CONFIG, SPACE, Drop\n" + USING,
    }
    check(tmp_path / "two", other)
    check(tmp_path / "one", {"pkg/net.py": HEAD + HELD + USING})


def test_what_a_dict_gives_is_not_handed_a_generator() -> None:
    text = f"""{HEAD}

class Net(nn.Module):
    def __init__(self, d, config):
        super().__init__()
        self.act = config.get("act")
        self.a = nn.Linear(d, d)

    def forward(self, x):
        return self.act(self.a(x))
"""
    assert 'self.act = config.get("act")' in migrator.convert_source(text).code


REBOUND = """
import torch
import torch.nn as nn
from torch import float32 as kind
from torch.nn.functional import relu

act = torch.sigmoid
SCALE = 1


class Two(nn.Module):
    def forward(self, x):
        return x * 3


def setup():
    LINES


def run(x: torch.Tensor):
    local = torch.sin

    def choose():
        CHOOSE

    setup()
    choose()
    return nn.functional.relu(relu(x)) + act(x).to(kind) * SCALE + local(x)
"""


@pytest.mark.parametrize(
    ("lines", "choose"),
    [
        ("global relu; relu = torch.tanh", "pass"),
        ("global relu; relu = lambda x: x * 3", "pass"),
        ("global relu; from torch.nn.functional import silu as relu", "pass"),
        ("global relu\n    def relu(x):\n        return x * 3", "pass"),
        ("global act\n    for act in (torch.tanh, torch.sin):\n        pass", "pass"),
        ("global nn; nn = torch", "pass"),
        ("global kind; kind = torch.float64", "pass"),
        ("globals()['relu'] = torch.tanh", "pass"),
        ("globals().update(relu=torch.tanh)", "pass"),
        ("pass", "nonlocal local; local = torch.tanh"),
    ],
)
def test_what_a_function_binds_anew_around_it_is_a_finding(lines: str, choose: str) -> None:
    text = REBOUND.replace("LINES", lines).replace("CHOOSE", choose)
    assert "API005" in {f.rule for f in migrator.convert_source(text).findings if f.blocks}


@pytest.mark.parametrize("lines", ["global SCALE; SCALE = 5", "global relu", "relu = torch.tanh"])
def test_numbers_that_a_function_binds_anew(lines: str) -> None:
    text = REBOUND.replace("LINES", lines).replace("CHOOSE", "nonlocal local")
    result = migrator.convert_source(text)
    assert result.complete, result.findings
    theirs: dict = {}
    exec(text, theirs)
    ours: dict = {}
    exec(result.code, ours)
    x = torch.linspace(-1, 1, 5)
    np.testing.assert_allclose(ours["run"](x.numpy()), theirs["run"](x), atol=1e-6)
