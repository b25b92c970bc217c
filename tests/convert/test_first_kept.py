"""What a forward pass keeps under an attribute that no constructor makes: a jitted port is called again."""

from __future__ import annotations

from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both
from tests.migrator.test_packages import blocking, code, convert

MODEL = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def begin(self, m):
        self.state = torch.zeros(m.size(0), 4)
        self.memory = self.l(m)

    def step(self, x):
        self.state = self.l(x + self.state)
        return self.state + self.memory

    def forward(self, x):
        y = self.l(x)
        LINES
        return y
"""
FORMS = {
    "an array": "self.scores = y",
    "what is handed in": "self.last = x",
    "a list": "self.every = [y, y * 2]",
    "a tuple": "self.every = (y, y * 2)",
    "a list that grows": "self.every = []\n        self.every.append(y)\n        y = y + self.every[0]",
    "one or none": "self.scores = None if self.training else y",
    "several": "self.a, self.b = y.chunk(2, dim=-1)\n        y = y + self.a.sum()",
    "two names": "self.a = b = y * 2\n        y = y + b",
    "of a layer": "self.l.seen = y",
    "by name": 'setattr(self, "scores", y)',
    "written by items": "self.scores = torch.zeros(3, 4)\n        self.scores[0] = y[0]\n        y = y + self.scores",
    "a number": "self.rows = y.shape[0]\n        y = y.reshape(self.rows, 4)",
    "steps": "self.begin(x)\n        y = self.step(x)\n        y = y + self.step(x)",
    "unknown": "self.given = self.rest(y)",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_jitted_port_runs_again_and_keeps_the_same(form: str) -> None:
    source = MODEL.replace("LINES", FORMS[form])
    source = source.replace(
        "    def begin", "    def rest(self, *a):\n        return a[0] + 1\n\n    def begin"
    )
    model, port, _ = both(source)
    run = nnx.jit(lambda m, x: m(x))
    for seed in range(3):
        x = torch.randn(3, 4, generator=torch.Generator().manual_seed(seed))
        getattr(model, "train" if seed == 2 else "eval")()
        getattr(port, "train" if seed == 2 else "eval")()
        np.testing.assert_allclose(
            run(port, jnp.asarray(x.numpy())), model(x).detach(), rtol=1e-5, atol=1e-6
        )
    for name in ("scores", "last", "a", "b", "state", "given"):
        if isinstance(getattr(model, name, None), torch.Tensor):
            np.testing.assert_allclose(
                getattr(port, name), getattr(model, name).detach(), rtol=1e-5, atol=1e-6
            )


BASE = """import torch
from torch import nn

class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.old = None
        self.mask = torch.ones(3)

    def keep(self, y):
        self.kept = y
"""
DERIVED = """from .base import Base

class M(Base):
    def forward(self, x):
        y = x * 2
        self.old = y
        self.mask = y
        self.keep(y)
        return y
"""


def test_what_a_class_of_another_file_has_declared(tmp_path: Path) -> None:
    found = convert(tmp_path, {"base.py": BASE, "model.py": DERIVED})
    assert not blocking(found)
    assert "self.kept = kept(y)" in code(found, "base.py")
    text = code(found, "model.py")
    assert "self.old = nnx.data(y)" in text
    assert "self.mask = nnx.data" not in text
