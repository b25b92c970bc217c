"""What a module does once, at its first batch: all that the branch changes is the module's state."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source
from tests.convert.tools import loaded, pair, same

SOURCE = """
import torch
import torch.nn as nn


class ActNorm(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.loc = nn.Parameter(torch.zeros(1, n, 1, 1))
        self.scale = nn.Parameter(torch.ones(1, n, 1, 1))
        self.register_buffer("initialized", torch.tensor(0, dtype=torch.uint8))
    def initialize(self, x):
        with torch.no_grad():
            flatten = x.permute(1, 0, 2, 3).contiguous().view(x.shape[1], -1)
            mean = flatten.mean(1).unsqueeze(1).unsqueeze(2).unsqueeze(3).permute(1, 0, 2, 3)
            std = flatten.std(1).unsqueeze(1).unsqueeze(2).unsqueeze(3).permute(1, 0, 2, 3)
            self.loc.data.copy_(-mean)
            self.scale.data.copy_(1 / (std + 1e-6))
    def forward(self, x):
        _, _, h, w = x.shape
        if self.training and self.initialized.item() == 0:
            self.initialize(x)
            self.initialized.fill_(1)
        return self.scale * (x + self.loc), h * w * torch.log(self.scale.abs()).sum()


class ActNorm2(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.register_buffer("initialized", torch.tensor(False, dtype=torch.bool))
        self.log_scale = nn.Parameter(torch.zeros(features))
        self.shift = nn.Parameter(torch.zeros(features))
    @property
    def scale(self):
        return torch.exp(self.log_scale)
    def forward(self, inputs):
        if inputs.dim() not in [2, 4]:
            raise ValueError("Expecting inputs to be a 2D or a 4D tensor.")
        if self.training and not self.initialized:
            self._initialize(inputs)
        return self.scale * inputs + self.shift
    def _initialize(self, inputs):
        with torch.no_grad():
            std = inputs.std(dim=0)
            mu = (inputs / std).mean(dim=0)
            self.log_scale.data = -torch.log(std)
            self.shift.data = -mu
            self.initialized.data = torch.tensor(True, dtype=torch.bool)


class LSQ(nn.Module):
    def __init__(self, bits=4):
        super().__init__()
        self.bits = bits
        self.Qn, self.Qp = -2 ** (bits - 1), 2 ** (bits - 1) - 1
        self.alpha = nn.Parameter(torch.ones(1))
        self.register_buffer("init_state", torch.zeros(1))
    def forward(self, x):
        if self.init_state == 0:
            self.alpha.data.copy_(2 * x.abs().mean() / self.Qp ** 0.5)
            self.init_state.fill_(1)
        g = 1.0 / (x.numel() * self.Qp) ** 0.5
        alpha = (self.alpha - self.alpha * g).detach() + self.alpha * g
        y = (x / alpha).clamp(self.Qn, self.Qp)
        y = (y.round() - y).detach() + y
        return y * alpha


class Warm(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("mean", torch.zeros(4))
        self.lin = nn.Linear(4, 4)

    def forward(self, x):
        start = x * 2
        if self.steps.item() < 2:
            with torch.no_grad():
                m = start.mean(0)
                for i in range(4):
                    self.mean[i] = m[i]
                self.lin.weight.mul_(0.5)
                self.mean += 1
        self.steps += 1
        return self.lin(start) - self.mean


class Observer(nn.Module):
    def __init__(self, every=2, late=3):
        super().__init__()
        self.every, self.late = every, late
        self.register_buffer("steps", torch.zeros((), dtype=torch.long))
        self.register_buffer("largest", torch.tensor(float("-inf")))
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("weights", torch.zeros(2))

    def forward(self, x):
        largest = x.detach().abs().max()
        if torch.isinf(self.largest):
            self.largest.copy_(largest)
        else:
            now = 0.9 * self.largest + 0.1 * largest
            self.largest.copy_(now)
        if (x.shape[0] > 9 or self.training) and self.steps.item() % self.every == 0 and self.late > 1:
            self.mean.lerp_(x.detach().mean(0), 0.5)
        if self.training and self.steps >= self.late - 1 and self.weights.sum() == 0:
            self.weights.fill_(2)
        else:
            self.weights += 1
        self.steps += 1
        return (x - self.mean) / self.largest * self.weights.sum()


class Codes(nn.Module):
    def __init__(self, strict=False):
        super().__init__()
        self.strict = strict
        self.register_buffer("initted", torch.Tensor([False]))
        self.register_buffer("codes", torch.randn(3, 4))
        self.register_buffer("calls", torch.tensor(0))

    def init(self, data, scale=2.0):
        self.calls += 1
        if not self.training or self.initted or scale > 2.0:
            return
        data = data.reshape(-1, 4)
        data = data * scale
        if self.strict:
            raise ValueError("no codes yet")
        self.codes.data.copy_(data[:3])
        self.initted.data.copy_(torch.Tensor([True]))

    def forward(self, x):
        self.init(x)
        near = torch.cdist(x, self.codes).argmin(-1)
        return self.codes[near]
"""
SHAPES = {
    "ActNorm": ("ActNorm(3)", (2, 3, 4, 4)),
    "ActNorm2": ("ActNorm2(4)", (6, 4)),
    "LSQ": ("LSQ()", (6, 4)),
    "Warm": ("Warm()", (6, 4)),
    "Observer": ("Observer()", (6, 4)),
    "Codes": ("Codes()", (6, 4)),
}


@pytest.fixture(scope="module")
def both() -> tuple[dict, dict]:
    return loaded(SOURCE)[:2]


@pytest.mark.parametrize("jit", [True, False])
@pytest.mark.parametrize("name", SHAPES)
def test_it_is_done_once(both: tuple[dict, dict], name: str, jit: bool) -> None:
    built, shape = SHAPES[name]
    original, port = pair(*both, built)
    for seed, training in ((0, False), (1, True), (2, True), (3, True), (4, False)):
        original.train(training)
        (port.train if training else port.eval)()
        x = np.random.default_rng(seed).normal(1, 2, size=shape).astype(np.float32)
        same(original, port, x, jit)
    for key, value in migrator.to_state_dict(port).items():
        kept = original.state_dict()[key].numpy()
        np.testing.assert_allclose(value, kept, rtol=1e-4, atol=1e-5)


def test_the_gradients_go_on(both: tuple[dict, dict]) -> None:
    import jax

    original, port = both[0]["ActNorm"](3), both[1]["ActNorm"](3, rngs=nnx.Rngs(0))
    x = np.random.default_rng(0).normal(1, 2, size=(2, 3, 4, 4)).astype(np.float32)
    leaf = torch.tensor(x, requires_grad=True)
    torch.sin(original(leaf)[0]).sum().backward()
    parts = nnx.split(port)

    def loss(given: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(nnx.merge(*parts, copy=True)(given)[0]))

    np.testing.assert_allclose(jax.grad(loss)(jnp.asarray(x)), leaf.grad, rtol=1e-4, atol=1e-4)


HEAD = """
import torch
import torch.nn as nn


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("done", torch.zeros(()))
        self.register_buffer("mean", torch.zeros(4))
        self.count = 0

    def forward(self, x):
        if self.done == 0:
            {line}
        return x - self.mean
"""


@pytest.mark.parametrize(
    "line",
    [
        "x = x[:2]",
        "return x",
        "x.mul_(2)",
        "self.count = 3",
        "self.other = x.mean(0)",
        "y, x = x, x",
    ],
)
def test_what_does_more_is_a_finding(line: str) -> None:
    found = [f.rule for f in convert_source(HEAD.format(line=line)).findings if f.blocks]
    assert "DYN002" in found


@pytest.mark.parametrize(
    "test",
    [
        "self.done.item() == 0.1",  # float32's 0.1 is not the number that Python compares
        "self.done.item() < self.limit",
        "self.done.item() % 1.5 == 0",
        "self.done == 0 or x.sum() > 0",
        "self.done == x.mean()",
        "self.done == 0 and random.random() < 0.5",  # which Python calls only while the flag is not set
    ],
)
def test_a_test_that_is_not_of_the_state_alone_is_a_finding(test: str) -> None:
    source = "import random\n" + HEAD.format(line="self.mean += 1").replace("self.done == 0", test)
    source = source.replace("self.count = 0", "self.limit = 0.1")
    assert not convert_source(source).complete


@pytest.mark.parametrize(
    ("line", "rest"),
    [
        ("self.mean += 1", "else:\n            x = x * 2"),
        ("self.mean += 1", "else:\n            return x"),
        ("return", "self.count = 1\n        return x"),
        ("return", "x = x + 1\n        return x"),
        ("raise ValueError('late')", "else:\n            self.mean += 1"),
    ],
)
def test_what_its_other_way_does_beside_the_state_is_a_finding(line: str, rest: str) -> None:
    source = HEAD.format(line=f"{line}\n        {rest}")
    assert "DYN002" in [f.rule for f in convert_source(source).findings if f.blocks]


def test_an_error_under_the_condition_is_left_out_and_told() -> None:
    found = convert_source(SOURCE)
    assert found.complete
    assert [f.line for f in found.findings if f.rule == "TRC011"] == [
        1 + SOURCE.splitlines().index('            raise ValueError("no codes yet")')
    ]


@pytest.mark.parametrize(
    "line", ["self.mean.copy_(x.mean(0))", "self.mean = x.mean(0)", "y = x.mean(0); self.mean += y"]
)
def test_what_writes_state_is_none(line: str) -> None:
    assert convert_source(HEAD.format(line=line)).complete
