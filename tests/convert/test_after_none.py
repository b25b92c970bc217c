"""Classes derived from torch's layers that give a weight to what the layer's constructor left None."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import check, loaded

LOSS = """
class M({base}):
    def __init__(self, w=None):
        super().__init__()
        {line}
"""


@pytest.mark.parametrize(
    ("base", "line"),
    [
        ("nn.BCEWithLogitsLoss", "self.pos_weight = torch.tensor([1.0, 2.0, 3.0])"),
        ("nn.BCEWithLogitsLoss", "self.weight = torch.tensor([1.0, 2.0, 3.0]) * 2"),
        ("nn.BCEWithLogitsLoss", "self.register_buffer('pos_weight', torch.ones(3) * 2)"),
        ("nn.BCEWithLogitsLoss", "self.pos_weight = w"),
        ("nn.CrossEntropyLoss", "self.weight = torch.tensor([1.0, 2.0, 3.0])"),
        ("nn.CrossEntropyLoss", "self.weight = w"),
    ],
)
def test_weights_of_losses(base: str, line: str) -> None:
    theirs, ours, _ = loaded(LOSS.format(base=base, line=line))
    rng = np.random.default_rng(0)
    x, y, w = (rng.random(shape, dtype=np.float32) for shape in ((2, 3), (2, 3), (3,)))
    for given in (None, w):
        model = theirs["M"](None if given is None else torch.tensor(given))
        port = ours["M"](None if given is None else jnp.asarray(given), rngs=nnx.Rngs(0))
        state = migrator.to_state_dict(port)
        assert set(state) == set(model.state_dict())
        migrator.load_state_dict(port, model.state_dict())
        got = nnx.jit(lambda m, x, y: m(x, y))(port, jnp.asarray(x), jnp.asarray(y))
        np.testing.assert_allclose(got, model(torch.tensor(x), torch.tensor(y)), rtol=1e-5)


LAYER = """
class Layer({base}):
    def __init__(self, *args, **options):
        super().__init__({args})
        {line}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = Layer(3, 3, 1, bias=False)

    def forward(self, x):
        return self.l(x[None])
"""


@pytest.mark.parametrize(
    ("base", "args", "line"),
    [
        ("nn.Conv1d", "3, 4, 1, bias=False", "self.bias = nn.Parameter(torch.rand(4))"),
        ("nn.Conv1d", "3, 4, 1", "self.bias = nn.Parameter(torch.rand(4))"),
        ("nn.Conv1d", "*args, **options", "self.bias = nn.Parameter(torch.rand(3))"),
        ("nn.ConvTranspose1d", "3, 4, 1, bias=False", "self.bias = nn.Parameter(torch.rand(4))"),
        ("nn.BatchNorm1d", "3, affine=False", "self.weight = nn.Parameter(torch.rand(3))"),
        ("nn.GroupNorm", "1, 3, affine=False", "self.weight = nn.Parameter(torch.rand(3))"),
    ],
)
def test_weights_of_layers(base: str, args: str, line: str) -> None:
    if "Norm" in base:
        line += "; self.bias = nn.Parameter(torch.rand(3))"
    check(LAYER.format(base=base, args=args, line=line))
