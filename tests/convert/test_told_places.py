"""Whole numbers that are taken out of tensors to say where, under a name of their own too."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Parameter(torch.arange(12.0).reshape(4, 3))

    def forward(self, x, places: INDEX):
        {lines}
"""


def _source(lines: str, kind: str = "torch.LongTensor") -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        ")).replace("INDEX", kind)


@pytest.mark.parametrize("kind", ["torch.LongTensor", "torch.Tensor"])
@pytest.mark.parametrize(
    "lines",
    [
        "i = places[0].item(); return x[i] + self.table[i, 1:].sum()",
        "i = int(places[1]); return x[:, i] * self.table[i + 1, 0]",
        "i = int(places[0].item()); x = x.clone(); x[i] += 1.0; x[i, 1:] = 2.0; return x",
        "i = places.long()[0].item(); return x[i - 1] * self.table[-i]",
        "out = torch.zeros(2, 3)"
        "\n        for n in range(2):"
        "\n            i = places[n].item()"
        "\n            out[n] += x[n, 0] * self.table[i]"
        "\n        return out",
        "return x[int(places[0].item())]",
        "i = places[0].item(); row = x.clone()[i]; row += 1; return row, x",
    ],
)
def test_an_array_says_where(lines: str, kind: str) -> None:
    module, port, code = both(_source(lines, kind))
    assert ".item()" not in code
    x, places = torch.randn(4, 3, generator=torch.Generator().manual_seed(0)), [2, 1]
    expected = module(x.clone(), torch.tensor(places))
    ours = nnx.jit(lambda m, *given: m(*given))(port, jnp.asarray(x.numpy()), jnp.array(places))
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(_numpy(expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def _numpy(value: object) -> object:
    if isinstance(value, tuple):
        return tuple(map(_numpy, value))
    assert isinstance(value, torch.Tensor)
    return value.detach().numpy()


@pytest.mark.parametrize(
    "lines",
    [
        "i = places[0].item(); return x[i:]",
        "i = places[0].item(); return x[i] * (2 if i > 1 else 3)",
        "i = places[0].item(); i = i + 1; return x[i]",
        "i = places[0].item(); return x[[i, 0]]",
        "i = places[0].item(); return x[i], [1, 2, 3, 4][i]",
        "i = places.float()[0].item(); return x[i]",
        "i = (places > 1)[0].item(); return x[i]",
    ],
)
def test_any_other_use_asks_for_the_number(lines: str) -> None:
    assert {"DYN003", "DYN004"} & set(rules_of(_source(lines)))


def test_a_number_of_eight_bits_would_overflow() -> None:
    assert "DYN004" in rules_of(_source("i = places[0].item(); return x[i - 1]", "torch.Tensor"))
