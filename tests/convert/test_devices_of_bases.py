"""``super().__init__(shape, eps, True, True, device, dtype)`` of a layer: the output takes no device at that place."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, convert

BASES = {
    "LayerNorm": ("shape, eps, True, True, device, dtype", "4, 1e-3", (2, 4)),
    "RMSNorm": ("shape, eps, True, device, dtype", "4, 1e-3", (2, 4)),
    "BatchNorm1d": ("shape, eps, 0.2, True, True, device, dtype", "4, 1e-3", (3, 4)),
    "GroupNorm": ("2, shape, eps, True, device, dtype", "4, 1e-3", (2, 4, 3)),
    "Linear": ("shape, 3, True, device, dtype", "4, 0", (2, 4)),
}
READS = {"Linear": "self.in_features", "GroupNorm": "self.num_groups"}


@pytest.mark.parametrize("name", BASES)
def test_it_goes(name: str) -> None:
    given, made, shape = BASES[name]
    read = READS.get(name, "self.eps")
    source = f"""
class Own(nn.{name}):
    def __init__(self, shape, eps, device=None, dtype=None):
        super().__init__({given})

    def forward(self, x):
        return super().forward(x) * {read}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Own({made})

    def forward(self, x):
        return self.own(x)
"""
    done = convert(source)
    assert done.complete, done.findings
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + source, theirs)
    exec(done.code, ours)
    model, port = theirs["Net"]().eval(), ours["Net"](rngs=nnx.Rngs(0))
    port.eval()
    migrator.load_state_dict(port, model.state_dict())
    x = (
        np.random.default_rng(0).normal(size=shape).astype(np.float32)
        if shape
        else np.array([1, 0])
    )
    want = model(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5, atol=1e-6)
