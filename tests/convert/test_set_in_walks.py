"""Walks over modules in the forward pass that set something of each for itself: in what order says nothing."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import X, both, rules_of

MODEL = """
class Cell(nn.Module):
    def __init__(self, leak=0.5):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.leak = leak
        self.state = None
        self.rounds = 0

    def reset(self):
        \"\"\"Begin anew.\"\"\"
        self.state = None
        self.rounds = 0

    def begin(self, others):
        others.append(self)

    def forward(self, x):
        if self.state is None:
            self.state = torch.zeros_like(x)
        self.state = self.leak * self.state + self.fc(x)
        return self.state


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.b = Cell()
        self.a = nn.Sequential(Cell(0.25), nn.ReLU(), Cell(0.75))

    def clear(self):
        seen = []
        i = 0
        WALK

    def forward(self, x):
        self.clear()
        out = 0
        for _ in range(2):
            out = out + self.a(self.b(x))
        return out
"""


@pytest.mark.parametrize(
    "walk",
    [
        "for m in self.modules():\n            if isinstance(m, Cell):\n                m.state = None",
        "for m in self.modules():\n            if isinstance(m, Cell):\n                m.reset()",
        "for m in self.modules():\n            if hasattr(m, 'reset'):\n                m.reset()",
        "for name, m in self.named_modules():\n            if isinstance(m, Cell) and m is not None:\n"
        "                m.state = None".replace(" and m is not None", ""),
        "for m in self.modules():\n            if not isinstance(m, Cell):\n                continue\n"
        "            m.state = None",
    ],
)
def test_what_is_set_of_each(walk: str) -> None:
    source = MODEL.replace("WALK", walk)
    assert not rules_of(source)
    model, port, _ = both(source)
    run = nnx.jit(lambda m, x: m(x))
    for scale in (1, 2):  # the second call begins with what the first has left
        want = model(X * scale).detach().numpy()
        np.testing.assert_allclose(run(port, jnp.asarray(X.numpy() * scale)), want, atol=1e-5)
    with torch.no_grad():
        want = model(X).numpy()
    np.testing.assert_allclose(port(jnp.asarray(X.numpy())), want, atol=1e-5)


@pytest.mark.parametrize(
    "lines",
    [
        "m.state = i * torch.ones(3, 4); i = i + 1",
        "m.begin(seen)",
        "m.state = seen[-1].state if seen else None; seen.append(m)",
        "m.fc = self.b.fc",
    ],
)
def test_what_may_go_by_the_order(lines: str) -> None:
    body = "\n                ".join(one.strip() for one in lines.split(";"))
    walk = f"for m in self.modules():\n            if isinstance(m, Cell):\n                {body}"
    assert rules_of(MODEL.replace("WALK", walk))


def test_a_reset_that_runs_those_of_others() -> None:
    source = MODEL.replace("self.rounds = 0\n\n    def begin", "NEXT.state = 1\n\n    def begin")
    walk = (
        "for m in self.modules():\n            if hasattr(m, 'reset'):\n                m.reset()"
    )
    assert rules_of(source.replace("WALK", walk).replace("NEXT", "self.fc"))
