"""Tensors that objects of plain classes make and write into: replay buffers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import loaded, rules_of

BUFFER = """
class Buffer:
    def __init__(self, n: int, width: int):
        self.obs = torch.zeros(n, width)
        self.reward = torch.zeros((n,))
        self.pos = 0

    def add(self, obs, reward: float):
        self.obs[self.pos] = obs
        self.reward[self.pos] = reward
        self.pos = (self.pos + 1) % self.obs.shape[0]

    def sample(self, places: torch.LongTensor):
        return self.obs[places], self.reward[places]

    def reset(self):
        self.obs.zero_()
        self.reward += 1

    def mean(self):
        return self.reward[: self.pos].mean(), self.obs[0] * 2, len(self.obs)
"""


def test_values() -> None:
    theirs, ours, code = loaded(BUFFER)
    assert "self.obs = self.obs.at[self.pos].set(obs)" in code
    mine, port = theirs["Buffer"](3, 2), ours["Buffer"](3, 2)
    for step in range(4):
        mine.add(torch.full((2,), float(step)), step * 0.5)
        port.add(jnp.full((2,), float(step)), step * 0.5)
        wanted = [*mine.mean(), *mine.sample(torch.tensor([0, 2]))]
        given = [*port.mean(), *port.sample(jnp.array([0, 2]))]
        for one, other in zip(wanted, given, strict=True):
            np.testing.assert_allclose(other, one)
        if step == 2:
            mine.reset()
            port.reset()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.obs[places], self", "self.obs[0], self"),
        ("self.obs[places], self", "self.obs, self"),
        ("self.obs[places], self", "self.obs[: self.pos], self"),
        ("self.obs[places], self", "self.obs[places[0].item()], self"),
        ("torch.zeros(n, width)", "n"),
        ("torch.zeros(n, width)", "torch.zeros(n, width).t()"),
        ("        self.pos = 0\n", "        self.pos = 0\n        self.last = self.obs\n"),
        ("self.obs[0] * 2", "self.obs[0].relu_()"),
        ("self.obs[0] * 2", "self.obs.view(-1)"),
        ("self.obs[0] * 2", "[row for row in self.obs]"),
        ("self.obs[0] * 2", "getattr(self, 'obs')"),
    ],
)
def test_what_hands_a_tensor_out_is_a_finding(old: str, new: str) -> None:
    source = BUFFER.replace(old.replace("\\\n", "\n"), new.replace("\\\n", "\n"))
    assert source != BUFFER
    assert rules_of(source)


@pytest.mark.parametrize(
    "more",
    [
        "\n\ndef f(n: int):\n    b = Buffer(n, 2)\n    y = b.obs\n    b.add(y[0] + 1, 1.0)\n    return y\n",
        "\n\nclass Deep(Buffer):\n    def rows(self):\n        return self.obs\n",
        "\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.b = Buffer(3, 2)\n"
        "\n    def forward(self, x):\n        self.b.add(x, 1.0)\n        return x\n",
    ],
)
def test_objects_that_others_read_or_modules_keep_are_a_finding(more: str) -> None:
    assert "MUT001" in rules_of(BUFFER + more)


def test_a_buffer_beside_a_module() -> None:
    more = "\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 1)\n"
    more += "\n    def forward(self, x):\n        return self.fc(x)\n"
    _, ours, _ = loaded(BUFFER + more)
    buffer, port = ours["Buffer"](4, 2), ours["M"](rngs=nnx.Rngs(0))
    buffer.add(jnp.ones(2), 1.0)
    assert nnx.jit(lambda m, x: m(x))(port, buffer.sample(jnp.array([0, 1]))[0]).shape == (2, 1)
