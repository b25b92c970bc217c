"""``getattr(nn, activation)(**options)`` where a default says that an activation, or a padding, is meant."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source
from migrator.infer.named import NAMES, PADDINGS
from rules.compat.by_name import activation_layer, padding_layer

SOURCE = """import torch


class M(torch.nn.Module):
    def __init__(self, act="LeakyReLU", act_params={"negative_slope": 0.2}, pad="ReflectionPad1d", pad_params={}):
        super().__init__()
        self.stack = torch.nn.Sequential(
            getattr(torch.nn, act)(**act_params),
            getattr(torch.nn, pad)(2, **pad_params),
            torch.nn.Conv1d(4, 4, 3),
        )
        layers = [getattr(torch.nn, pad)((1, 0), **pad_params)]
        layers.append(getattr(torch.nn, act)(**act_params))
        self.more = torch.nn.Sequential(*layers)

    def forward(self, x):
        return self.more(self.stack(x))
"""


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("Softplus", {"beta": 2}, "ConstantPad1d", {"value": 1.5}),
        ("GELU", {"approximate": "tanh"}, "ReplicationPad1d"),
        ("CELU", {"alpha": 0.5}, "ZeroPad1d"),
        ("ELU", {"alpha": 0.5}, "CircularPad1d"),
        ("Hardtanh", {"min_val": -0.5, "max_val": 0.25}),
        ("Softshrink", {"lambd": 0.25}),
        ("Hardshrink", {"lambd": 0.25}),
        ("Identity", {}),
        ("PReLU", {"num_parameters": 4}),
    ],
)
def test_names_and_options_are_those_of_torch(given: tuple) -> None:
    result = convert_source(SOURCE)
    assert result.complete
    assert [f.rule for f in result.findings].count("API001") == 4, "the port says what it knows"
    theirs: dict = {}
    exec(SOURCE, theirs)
    ours: dict = {}
    exec(result.code, ours)
    original, port = theirs["M"](*given), ours["M"](*given, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    x = np.random.default_rng(0).normal(size=(2, 4, 8)).astype(np.float32)
    want = original(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5, atol=1e-6)


def test_every_padding_of_torch_is_known() -> None:
    x = torch.arange(2.0 * 3 * 4 * 5 * 6).reshape(2, 3, 4, 5, 6)
    for name in sorted(PADDINGS):
        more = {"value": 2.0} if name.startswith("Constant") else {}
        part = {"1": x[0, 0], "2": x[0], "3": x}[name[-2]]
        want = getattr(torch.nn, name)(1, **more)(part)
        np.testing.assert_array_equal(
            padding_layer(name)(1, **more)(jnp.asarray(part.numpy())), want
        )
    with pytest.raises(NotImplementedError, match="'Linear' is no padding layer"):
        padding_layer("Linear")


def test_a_layer_that_works_in_place_raises() -> None:
    for name in sorted(NAMES["torch.nn"]):
        with pytest.raises(NotImplementedError, match="in place"):
            activation_layer(name)(inplace=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('act="LeakyReLU"', "act"),
        ('act="LeakyReLU"', 'act="BatchNorm1d"'),
        ("act)(**act_params)", "act)(4, **act_params)"),
        ('pad="ReflectionPad1d"', 'pad="MaxPool1d"'),
    ],
)
def test_without_such_a_default_it_is_a_finding(old: str, new: str) -> None:
    source = SOURCE.replace(old, new)
    if new == "act":
        source = source.replace('act_params={"negative_slope": 0.2}', "act_params").replace(
            'pad="ReflectionPad1d", pad_params={}', "pad='ReflectionPad1d', pad_params={}"
        )
    assert not convert_source(source).complete


def test_functions_that_find_an_activation() -> None:
    source = """import torch
from torch import nn


def found(activation: str = None):
    if activation is None or activation.lower() == "none":

        def act(x):
            return x
    else:
        act = getattr(torch.nn, activation)()
    return act


def wrapped(fn, activation: str = "Sigmoid"):
    act = found(activation)

    def call(x: torch.Tensor, *args):
        x = act(x)
        return fn(x, *args)

    return call


class M(nn.Module):
    def __init__(self, act="Tanh"):
        super().__init__()
        self.fn = wrapped(torch.exp, act)
        self.act = getattr(nn, act)()

    def forward(self, x):
        return self.fn(x) + self.act(x)
"""
    result = convert_source(source)
    assert result.complete
    assert "self.act = activation_layer(act)()" in result.code
    theirs: dict = {}
    exec(source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    x = np.linspace(-1, 1, 6, dtype=np.float32)
    for act in ("Tanh", "ReLU"):
        want = theirs["M"](act)(torch.tensor(x))
        np.testing.assert_allclose(
            ours["M"](act, rngs=nnx.Rngs(0))(jnp.asarray(x)), want, rtol=1e-5
        )


CHILDREN = """import torch
from torch import nn


class M(nn.Module):
    def __init__(self, act="LeakyReLU", more=False, pad="ReflectionPad1d", params={}):
        super().__init__()
        self.more = None
        if more:
            self.more = getattr(nn, act)(**params)
        layers = []
        for _ in range(2):
            layers.append(nn.Linear(3, 3))
            layers.append(getattr(nn, act)(**params))
        self.net = nn.Sequential(*layers)
        self.pad = getattr(nn, pad)(1)
        self.last = getattr(nn, act)() if more else nn.Identity()

    def forward(self, x):
        if self.more is not None:
            x = self.more(x)
        for name, module in self.named_children():
            x = x + len(name)
        for module in self.net.children():
            if isinstance(module, nn.GELU):
                x = x * 2
            elif isinstance(module, (nn.LeakyReLU, nn.PReLU)):
                x = x * 3
        return self.last(self.net(self.pad(x)[..., 1:-1]))
"""


@pytest.mark.parametrize(
    "given",
    [
        (),
        ("GELU", True, "ReplicationPad1d", {"approximate": "tanh"}),
        ("PReLU", True),
        ("Tanh", True),
        ("Identity",),
    ],
)
def test_they_are_found_among_the_children(given: tuple) -> None:
    result = convert_source(CHILDREN)
    assert result.complete
    theirs: dict = {}
    exec(CHILDREN, theirs)
    ours: dict = {}
    exec(result.code, ours)
    original, port = theirs["M"](*given), ours["M"](*given, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    x = np.random.default_rng(0).normal(size=(2, 4, 3)).astype(np.float32)
    want = original(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "self.acts = [getattr(nn, act)() for _ in range(2)]",
        "self.acts = {'a': getattr(nn, act)()}",
        "acts = []; acts.append(getattr(nn, act)()); self.acts = acts",
        "one = getattr(nn, act)(); self.acts = [one, one]",
        "acts = [getattr(nn, act)()]; more = acts + []; self.acts = more",
    ],
)
def test_plain_containers_of_modules_by_name_are_a_finding(line: str) -> None:
    source = CHILDREN.replace("self.more = None", line + "\n        self.more = None", 1)
    assert not convert_source(source).complete


CHOSEN = """import torch
from torch import nn


class Snake(nn.Module):
    def __init__(self, alpha=1.0):
        super().__init__()
        self.alpha = nn.Parameter(torch.full((3,), alpha))
        self.fc = nn.Linear(3, 3)

    def forward(self, x):
        return self.fc(x + torch.sin(self.alpha * x) ** 2)


class M(nn.Module):
    def __init__(self, activation: str = "ELU", params: dict = {"alpha": 0.5}):
        super().__init__()
        if activation == "Snake":
            act = Snake
        else:
            act = getattr(nn, activation)
        block = []
        for _ in range(2):
            block += [act(**params), nn.Linear(3, 3)]
        self.net = nn.Sequential(*block)

    def forward(self, x):
        return self.net(x)
"""


@pytest.mark.parametrize("given", [(), ("Snake",), ("PReLU", {}), ("Softplus", {"beta": 2})])
def test_an_own_class_may_be_chosen_beside(given: tuple) -> None:
    result = convert_source(CHOSEN)
    assert result.complete
    theirs: dict = {}
    exec(CHOSEN, theirs)
    ours: dict = {}
    exec(result.code, ours)
    original, port = theirs["M"](*given), ours["M"](*given, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    x = np.random.default_rng(0).normal(size=(2, 3)).astype(np.float32)
    want = original(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5, atol=1e-6)
