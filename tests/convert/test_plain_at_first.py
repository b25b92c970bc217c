"""Attributes that begin as a number, a text or an empty list, and become a tensor: torch's results, or refused."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, REFUSED_BY_TORCH, check, sides

X = torch.linspace(-1, 1, 12).reshape(3, 4)
MODEL = """class M{number}(nn.Module):
    def __init__(self, start=0.0):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.start = start
        {begin}

    def both(self, x):
        return self.v * 0.5 + x, x

    def forward(self, x):
        x = self.fc(x)
        {lines}
        return self.v * 1 + x

    def reset(self):
        {begin}


"""
BEGINS = [
    "self.v = 0.0",
    "self.v = None",
    "self.v = 0",
    "self.v = -1.0",
    "self.v: float = 0.0",
    "self.v = 0.0\n        self.v = self.start",
    'self.register_buffer("v", None)',
    'self.register_buffer("v", torch.tensor(0.0))',
    "self.v = torch.tensor(0.0)",
    "self.v = []",
    'self.v = ""',
    "self.v = ()",
    "self.v = False",
]
THEN = ": self.v = torch.full_like(x, 2.0)\n        self.v = self.v * 0.5 + x"
LINES = [
    f"if isinstance(self.v, float){THEN}",
    f"if isinstance(self.v, float) and self.v == 0.0{THEN}",
    f"if isinstance(self.v, (int, float)){THEN}",
    f"if not isinstance(self.v, torch.Tensor){THEN}",
    f"if not torch.is_tensor(self.v){THEN}",
    f"if self.v is None{THEN}",
    f"if type(self.v) is float{THEN}",
    f"if not hasattr(self.v, 'shape'){THEN}",
    f"if not hasattr(self.v, 'detach'){THEN}",
    f"if self.v is None or self.v.shape != x.shape{THEN}",
    "if self.v == 0: self.v = torch.ones_like(x)\n        self.v = x",
    "self.v = self.v * 0.5 + x",
    "self.v += x",
    f"if isinstance(self.v, float){THEN}\n        self.v, x = self.both(x)",
    "if isinstance(self.v, float): x = x * 2\n        self.v += x",
    "if len(self.v) == 0: self.v = torch.ones_like(x)\n        self.v = self.v + x",
    "if not self.v: self.v = torch.ones_like(x)\n        self.v = self.v + x",
    "if self.v is False: self.v = torch.ones_like(x)\n        self.v = self.v + x",
    "if isinstance(self.v, float): self.v = x\n        else: self.v += x",
    "self.v = x if isinstance(self.v, (int, float)) else self.v + x",
    "v = self.v if torch.is_tensor(self.v) else torch.ones_like(x)\n        self.v = v + x",
]
CHANGING = [one for one in LINES if one.startswith(("if self.v == 0", "if not self.v"))]
"""Of a tensor these are branches that a tensor decides, and that leave it in two shapes, which JAX does not take."""
RAISING = {
    **dict.fromkeys(
        ['self.register_buffer("v", torch.tensor(0.0))', "self.v = torch.tensor(0.0)"], CHANGING
    ),
    **dict.fromkeys(["self.v = []", 'self.v = ""', "self.v = ()"], CHANGING[:1]),
    "self.v = 0.0\n        self.v = self.start": CHANGING,
    "self.v = False": [*CHANGING, "self.v += x"],
}


def _agree(model: type, port: type, program: str, jit: bool) -> None:
    torch.manual_seed(0)
    module = model()
    begin = {name: value.clone() for name, value in module.state_dict().items()}
    made: Any = None
    run: Any = nnx.jit(lambda m, x: m(x)) if jit else lambda m, x: m(x)
    for i in range(4):
        try:
            if i == 2:
                module.reset()
                made.reset()
            want = module(X * (i + 1)).detach()
        except REFUSED_BY_TORCH:
            return
        if made is None:
            made = port(rngs=nnx.Rngs(0))
            migrator.load_state_dict(made, begin)
        got = run(made, jnp.asarray(X.numpy() * (i + 1)))
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5, err_msg=program)


@pytest.mark.parametrize("begin", BEGINS)
def test_what_begins_as_a_plain_value(begin: str) -> None:
    text, places = HEADER, []
    chosen = [one for one in LINES if one not in RAISING.get(begin, [])]
    for number, lines in enumerate(chosen):
        first = text.count("\n")
        text += MODEL.format(number=number, begin=begin, lines=lines)
        places.append((first, text.count("\n")))
    told, theirs, ours = sides(text)
    for number, (first, last) in enumerate(places):
        if not any(first < line <= last for line in told):
            name, jit = f"M{number}", number % 3 < 2  # where a number is traced it is one no more
            _agree(theirs[name], ours[name], f"{begin}; {chosen[number]}", jit)


def test_a_spiking_neuron_is_converted() -> None:
    code = check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.v = 0.0

    def forward(self, x):
        if isinstance(self.v, float):
            self.v = torch.full_like(x, self.v)
        self.v = self.v + (self.fc(x) - self.v) / 2.0
        spike = (self.v > 0.1).float()
        self.v = self.v * (1 - spike)
        return spike + self.v
"""
    )
    assert "self.v = nnx.static(0.0)" in code
    assert "self.v = nnx.data(" in code
