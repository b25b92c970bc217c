"""Classes that are looked up by name across files: whoever calls what a table gives hands the generator on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator.usercode import UserCode
from tests.migrator.test_packages import blocking, code, convert

BUILD = """
import inspect


def build_from_cfg(cfg, registry):
    args = cfg.copy()
    kind = args.pop("type")
    if isinstance(kind, str):
        cls = registry.get(kind)
        if cls is None:
            raise KeyError(kind)
    elif inspect.isclass(kind):
        cls = kind
    try:
        return cls(**args)
    except ValueError as error:
        raise type(error)(f"{cls.__name__}: {error}")


class Registry:
    def __init__(self, name, build_func=None):
        self.name = name
        self.kept = {}
        self.build_func = build_from_cfg if build_func is None else build_func

    def get(self, key):
        return self.kept.get(key)

    def build(self, *args, **kwargs):
        return self.build_func(*args, **kwargs, registry=self)

    def register_module(self, name=None):
        def register(cls):
            self.kept[name or cls.__name__] = cls
            return cls

        return register


MODELS = Registry("models")


def build_backbone(cfg):
    return MODELS.build(cfg)


def made_by(cfg):
    return MODELS.get(cfg["type"])(cfg["dim"])
"""
BY_CONFIG = """
from torch import nn
from .build import MODELS, build_backbone, made_by


@MODELS.register_module()
class Small(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(4, dim)

    def forward(self, x):
        return self.fc(x)


@MODELS.register_module(name="Wide")
class Net(nn.Module):
    def __init__(self, sub):
        super().__init__()
        self.a = build_backbone(sub)
        self.b = made_by(sub)

    def forward(self, x):
        return self.a(x) * self.b(x)


def make():
    return build_backbone(dict(type="Wide", sub=dict(type="Small", dim=3)))
"""
TABLES = """
MODELS, ARCHITECTURES = {}, {}


def register_model(name):
    def register(cls):
        MODELS[name] = cls
        return cls

    return register


def architecture(model, name):
    def register(function):
        ARCHITECTURES[name] = MODELS[model], function
        return function

    return register


def from_args(args):
    cls, fill = ARCHITECTURES[args["arch"]]
    fill(args)
    return MODELS[args["model"]].build_model(args)
"""
BY_NAME = """
from torch import nn
from .build import architecture, from_args, register_model


@register_model("net")
class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(4, dim)

    @classmethod
    def build_model(cls, args):
        return cls(args["dim"])

    def forward(self, x):
        return self.fc(x)


@architecture("net", "small")
def small(args):
    args["dim"] = 3


def make():
    return from_args({"arch": "small", "model": "net"})
"""
DOTTED = """
import importlib


def instantiate_from_config(config):
    return get_obj_from_str(config["target"])(**config.get("params", dict()))


def get_obj_from_str(string):
    module, cls = string.rsplit(".", 1)
    return getattr(importlib.import_module(module, package=None), cls)
"""
BY_PATH = """
from torch import nn
from .build import instantiate_from_config


class Small(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(4, dim)

    def forward(self, x):
        return self.fc(x)


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.model = instantiate_from_config(config)

    def forward(self, x):
        return self.model(x)


def make():
    return Net({"target": "pkg.net.Small", "params": {"dim": 3}})
"""


@pytest.mark.parametrize(
    ("build", "net"),
    [(BUILD, BY_CONFIG), (TABLES, BY_NAME), (DOTTED, BY_PATH)],
    ids=["a registry", "a table that decorators fill", "a dotted name"],
)
def test_a_model_is_built_by_name(tmp_path: Path, build: str, net: str) -> None:
    found = convert(tmp_path, {"build.py": build, "net.py": net}, name="pkg")
    assert blocking(found) == []
    theirs, ours = (UserCode(tmp_path / one) for one in ("src", "out"))
    with theirs.active():
        module = theirs.load(tmp_path / "src/pkg/net.py").make()
    with ours.active():
        port = ours.load(tmp_path / "out/pkg/net.py").make(rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, module.state_dict())
    x = np.random.default_rng(0).normal(size=(2, 4)).astype(np.float32)
    assert abs(module(torch.from_numpy(x)).detach().numpy() - np.asarray(port(x))).max() < 1e-5


USER = """
class Items:
    def __init__(self, table):
        self.table = table

    def __getitem__(self, i):
        return self.table[i](i)


def activated(x: torch.Tensor, name):
    return TABLE[name](x)


def itself(function):
    return functools.lru_cache(function)(2)
"""


def test_what_python_calls_and_what_is_called_with_tensors_asks_for_no_generator(
    tmp_path: Path,
) -> None:
    user = "import functools\n\nimport torch\nfrom .build import MODELS as TABLE\n" + USER
    found = convert(tmp_path, {"build.py": TABLES, "net.py": BY_NAME, "user.py": user})
    assert blocking(found) == []
    assert "rngs" not in code(found, "user.py")


WRAP = """
import functools


def configurable(init):
    @functools.wraps(init)
    def wrapped(self, *args, **kwargs):
        if args and isinstance(args[0], dict):
            init(self, **args[0]{handed})
        else:
            init(self, *args, **kwargs)

    return wrapped
"""
WRAPPED = """
from torch import nn
from .wrap import configurable


class Net(nn.Module):
    @configurable
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(4, dim)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.mark.parametrize("together", [True, False], ids=["one file", "two files"])
def test_a_decorator_that_does_not_hand_the_generator_to_a_constructor(
    tmp_path: Path, together: bool
) -> None:
    def found(handed: str) -> list[str]:
        wrap, place = WRAP.format(handed=handed), tmp_path / (handed or "lost")
        if together:
            body = WRAPPED.replace("from .wrap import configurable\n", "")
            return blocking(convert(place, {"net.py": wrap + body}))
        return blocking(convert(place, {"wrap.py": wrap, "net.py": WRAPPED}))

    assert ["configurable does not hand on" in one for one in found("")] == [True]
    assert found(", **kwargs") == []


MIXIN = """
from torch import nn


class EncoderMixin:
    def set_in_channels(self, n):
        if n != 4:
            self.stem = nn.Linear(n, 3)


class Encoder(nn.Module, EncoderMixin):
    def __init__(self, dim):
        super().__init__()
        self.stem = nn.Linear(4, 3)
        self.fc = nn.Linear(3, dim)

    def forward(self, x):
        return self.fc(self.stem(x))


encoders = {"small": {"encoder": Encoder, "params": {"dim": 2}}}
"""
OF_A_TABLE = """
from .build import encoders as small

encoders = {}
encoders.update(small)


def get_encoder(name, n):
    cls = encoders[name]["encoder"]
    encoder = cls(**encoders[name]["params"])
    encoder.set_in_channels(n)
    return encoder


def make():
    return get_encoder("small", 4)
"""


def test_a_method_of_what_a_table_of_tables_gives(tmp_path: Path) -> None:
    found = convert(tmp_path, {"build.py": MIXIN, "net.py": OF_A_TABLE})
    assert blocking(found) == []
    ours = UserCode(tmp_path / "out").load(tmp_path / "out/pkg/net.py")
    assert ours.make(rngs=nnx.Rngs(0)).fc.kernel.shape == (3, 2)
    assert ours.get_encoder("small", 7, rngs=nnx.Rngs(0)).stem.kernel.shape == (7, 3)


def test_a_class_of_a_module_that_the_file_imports_by_its_name(tmp_path: Path) -> None:
    small = BY_PATH.partition("class Net")[0].replace(
        "from .build import instantiate_from_config\n", ""
    )
    user = 'import importlib\n\nMODELS = importlib.import_module("pkg.small")\n\n\ndef make():\n    return MODELS.{}(3)\n'
    upper, lower = user.format("Small"), user.format("get_model")
    small += "\n\ndef get_model(dim):\n    return Small(dim)\n"
    found = convert(tmp_path, {"small.py": small, "upper.py": upper, "lower.py": lower})
    assert blocking(found) == []
    for name in ("upper", "lower"):
        ours = UserCode(tmp_path / "out").load(tmp_path / f"out/pkg/{name}.py")
        assert ours.make(rngs=nnx.Rngs(0)).fc.kernel.shape == (4, 3)
