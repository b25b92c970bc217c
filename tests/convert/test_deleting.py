"""``del`` of attributes: a parameter's goes by its name, what has no such name in Flax is a finding."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source

HEAD = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"


def test_parameters_buffers_and_layers_are_deleted_and_made_anew() -> None:
    source = (
        HEAD
        + """        self.w = nn.Parameter(torch.ones(4))
        self.register_buffer("b", torch.zeros(4))
        self.layer = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)
        del self.w, self.b
        del self.other
        self.w = nn.Parameter(torch.full((2, 4), 3.0))

    def forward(self, x):
        return self.layer(x) * self.w
"""
    )
    result = convert_source(source)
    assert result.complete
    theirs: dict = {}
    exec(source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    original, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    assert set(migrator.to_state_dict(port)) == set(original.state_dict())
    migrator.load_state_dict(port, original.state_dict())
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    want = original(torch.tensor(x)).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x)), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["self.training", "self.layer.weight"])
def test_what_has_another_name_in_flax_is_a_finding(name: str) -> None:
    body = f"        self.layer = nn.Linear(4, 4)\n        del {name}\n\n    def forward(self, x):\n        return x\n"
    result = convert_source(HEAD + body)
    assert [f.rule for f in result.findings if f.blocks] == ["API007"]
