"""What a program keeps of a constructor's arguments: the random generator is none of them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import X, loaded, rules_of

WRAPPERS = """
import functools


def capture_init(init):
    @functools.wraps(init)
    def __init__(self, *args, **kwargs):
        self.kept = (args, kwargs)
        init(self, *args, **kwargs)

    return __init__


def store(*, extra={}):
    def inner(cls):
        old = cls.__init__

        @functools.wraps(old)
        def new_init(self, **kwargs):
            self.kept = {**extra, **kwargs}
            old(self, **kwargs)

        cls.__init__ = new_init
        return cls

    return inner

"""
FORWARD = "\n\n    def forward(self, x):\n        return self.l(x)\n"
NETS = {
    "a decorator of the constructor": (
        "class M(nn.Module):\n    @capture_init\n    def __init__(self, *, d=4):\n        super().__init__()\n"
        "        self.l = nn.Linear(d, d)"
    ),
    "a decorator of the class": (
        "@store(extra={'a': 1})\nclass M(nn.Module):\n    def __init__(self, *, d=4):\n        super().__init__()\n"
        "        self.l = nn.Linear(d, d)"
    ),
    "its names, once torch is told": (
        "class M(nn.Module):\n    def __init__(self, *, d=4):\n        super().__init__()\n"
        "        self.kept = {k: v for k, v in locals().items() if k not in ('self', '__class__')}\n"
        "        self.l = nn.Linear(d, d)"
    ),
    "its names, by vars()": (
        "class M(nn.Module):\n    def __init__(self, *, d=4):\n        super().__init__()\n"
        "        self.kept = {k: v for k, v in vars().items() if k not in ('self', '__class__')}\n"
        "        self.l = nn.Linear(d, d)"
    ),
    "its names, at once": (
        "class M(nn.Module):\n    def __init__(self, *, d=4):\n        names = locals()\n        del names['self']\n"
        "        del names['__class__']\n        super().__init__()\n        self.kept = names\n"
        "        self.l = nn.Linear(d, d)"
    ),
}


@pytest.mark.parametrize("name", list(NETS))
def test_what_is_kept(name: str) -> None:
    theirs, ours, _ = loaded(WRAPPERS + NETS[name] + FORWARD)
    model, port = theirs["M"](d=4), ours["M"](d=4, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    assert port.kept == model.kept
    out = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(X.numpy()))
    np.testing.assert_allclose(out, model(torch.as_tensor(X)).detach(), rtol=1e-5, atol=1e-6)


DETOURS = {
    "kept = kwargs; old(self, **kwargs); self.kept = kept": True,
    "kwargs.pop('e', 0); self.kept = dict(kwargs); old(self, **kwargs)": True,
    "self.kept = dict(a=1, **kwargs); old(self, **kwargs)": True,
    "self.kept = {k: v for k, v in kwargs.items()}; old(self, **kwargs)": True,
    "self.kept = kwargs; kwargs['d'] = 4; old(self, **kwargs)": False,
    "self.kept = kwargs; kwargs.pop('e', 0); old(self, **kwargs)": False,
}


@pytest.mark.parametrize("lines", list(DETOURS))
def test_what_a_wrapper_keeps_by_a_detour(lines: str) -> None:
    body = "".join(f"        {line.strip()}\n" for line in lines.split(";"))
    source = f"""
def store(cls):
    old = cls.__init__

    def new_init(self, **kwargs):
{body}
    cls.__init__ = new_init
    return cls


@store
class M(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.l = nn.Linear(d, d)
{FORWARD}"""
    assert ("TRC003" in rules_of(source)) != DETOURS[lines]
    if DETOURS[lines]:
        theirs, ours, _ = loaded(source)
        assert ours["M"](d=4, rngs=nnx.Rngs(0)).kept == theirs["M"](d=4).kept


def test_a_function_that_takes_a_model_keeps_its_keywords() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return self.l(x)


def told(model, **kwargs):
    model.told = kwargs
    return model
"""
    _, ours, code = loaded(source)
    assert "    model.told = kwargs\n" in code
    assert ours["told"](ours["M"](rngs=nnx.Rngs(0)), a=1).told == {"a": 1}
