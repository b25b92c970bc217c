"""Tensors of one element that torch and Python take for a number, whatever their shape."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both, loaded

NUMBERS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        t = torch.tensor([2.0])
        self.scale = {0}

    def forward(self, x):
        return x * self.scale
"""


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor([a, b])",
        "torch.tensor([[a, -b], [0, (a * b)]])",
        "torch.tensor([a, 3, b])",
        "torch.as_tensor((a, b))",
        "torch.Tensor([a, b, 1])",
        "torch.FloatTensor([a[0], b])",
        "torch.tensor([v for v in x.split(1)])",
        "torch.tensor([v.sum() for v in x])",
        "torch.tensor(kept)",
        "torch.tensor([kept, kept])",
        "x.new_tensor([a, b])",
        "torch.tensor(data=[a, b], dtype=torch.float32)",
    ],
)
def test_a_tensor_of_tensors_of_one_element(made: str) -> None:
    source = (
        "def f(x: torch.Tensor):\n    a, b = x[:1], x[1:2].view(1, 1)\n    kept = []\n    for i in range(3):\n"
        f"        kept.append(x[i : i + 1])\n    return {made}\n"
    )
    theirs, ours, _ = loaded(source)
    x = torch.tensor([0.5, -2.0, 3.0])
    want, got = theirs["f"](x), ours["f"](jnp.asarray(x.numpy()))
    assert got.shape == tuple(want.shape)
    np.testing.assert_allclose(got, want)


@pytest.mark.parametrize(
    "made",
    [
        "float(t)",
        "math.sqrt(t)",
        "math.exp(-(t.sum(dim=0, keepdim=True)))",
        "round(float(t), 1)",
        "torch.arange(3.0)[: t.int()].sum()",
        "sum(range(int(t)))",
        "pow(2, float(torch.ones(1, 1)))",
        "float(t.mean())",
        "torch.full((4,), int(t))",
    ],
)
def test_a_number_of_a_tensor_with_axes(made: str) -> None:
    model, port, _ = both("import math\n" + NUMBERS.format(made))
    np.testing.assert_allclose(port.scale, model.scale, rtol=1e-6)


def test_the_power_of_a_tensor_is_none() -> None:
    model, port, _ = both(NUMBERS.format("pow(torch.arange(3.0), 2) + round(float(t), 1)"))
    np.testing.assert_allclose(port.scale, model.scale)


def test_is_tensor_tells_what_a_value_is() -> None:
    source = (
        "def rms(x, eps=1e-7):\n    if torch.is_tensor(x):\n"
        "        return torch.sqrt((x**2.0).sum() / x.numel()).clamp_min(eps)\n"
        "    return torch.sqrt(sum((v**2.0).sum() for v in x) / sum(v.numel() for v in x))\n\n\n"
        "def of_two(x: torch.Tensor):\n    return rms([x, 2 * x])\n"
    )
    theirs, ours, _ = loaded(source)
    x = torch.arange(1.0, 4.0)
    for name in ("rms", "of_two"):
        got = ours[name](jnp.asarray(x.numpy()))
        np.testing.assert_allclose(got, theirs[name](x), rtol=1e-6)


def test_a_tensor_in_a_tensor() -> None:
    source = "def f(x: torch.Tensor):\n    return torch.tensor([torch.tensor([1.0]), x[:1], torch.tensor([[2.0]])])\n"
    theirs, ours, _ = loaded(source)
    got = ours["f"](jnp.ones(3))
    np.testing.assert_array_equal(got, theirs["f"](torch.ones(3)))
    assert got.shape == (3,)
