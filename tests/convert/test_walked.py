"""Loops over lists of parameters: what they write, the parameters get."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from migrator.convert import convert_source
from tests.convert.tools import HEADER, rules_of

INIT = """
class M(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.u = nn.Parameter(torch.zeros(2, n))
        self.v = nn.Parameter(torch.zeros(2, n))
        self.fc, self.fd = nn.Linear(n, n), nn.Linear(n, n)
{lines}

    def forward(self, x):
        weights = [self.u, self.v]
        for w in weights:
            x = x + w[0] * w.shape[0] + torch.cat([w, w]).sum()
        return x
"""


@pytest.mark.parametrize(
    "lines",
    [
        "for w in [self.u, self.v]:\n    nn.init.constant_(w, 2.0)",
        "for w in (self.u, self.v):\n    for i in range(2):\n        nn.init.constant_(w[i], i)",
        "both = [self.u, self.v]\nfor w in both:\n    nn.init.ones_(w)",
        "for b in (self.fc.bias, self.fd.bias):\n    nn.init.ones_(b)",
    ],
)
def test_a_loop_writes_to_the_parameters(lines: str) -> None:
    source = INIT.format(lines="\n".join(" " * 8 + line for line in lines.split("\n")))
    result = convert_source(HEADER + source)
    assert result.complete, result.findings
    theirs: dict = {}
    exec(HEADER + source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(port.u[...], model.u.detach().numpy())
    np.testing.assert_array_equal(port.v[...], model.v.detach().numpy())
    if "bias" in lines:
        np.testing.assert_array_equal(port.fd.bias[...], model.fd.bias.detach().numpy())
    x = torch.randn(2, 3)
    expected = model(x).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        "for w in [self.fc.weight, self.fd.weight]:\n    nn.init.ones_(w)",
        "for w, s in zip([self.u, self.v], [1.0, 2.0]):\n    nn.init.constant_(w, s)",
        "both = [self.u, self.v]\nfor w in both:\n    nn.init.ones_(w)\nself.n = len(both)",
    ],
)
def test_arrays_in_a_list_are_not_written(lines: str) -> None:
    source = INIT.format(lines="\n".join(" " * 8 + line for line in lines.split("\n")))
    assert set(rules_of(source)) == {"MUT001"}


@pytest.mark.parametrize(
    "lines",
    [
        "ws = [m.weight for m in self.children()]\nfor w in ws:\n    nn.init.normal_(w, 0, w.shape[0] ** -0.5)",
        "for b in (m.bias for m in [self.fc, self.fd]):\n    b.data.mul_(2)",
        "for w, b in [(m.weight, m.bias) for m in [self.fc, self.fd]]:\n    b.data.zero_()",
        "ws = {n: m.bias for n, m in self.named_children()}\nfor n, w in ws.items():\n    nn.init.ones_(w)",
    ],
)
def test_nor_are_those_that_a_comprehension_takes_from_layers(lines: str) -> None:
    source = INIT.format(lines="\n".join(" " * 8 + line for line in lines.split("\n")))
    assert set(rules_of(source)) == {"MUT001"}
