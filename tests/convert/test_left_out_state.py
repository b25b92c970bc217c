"""State that may be None, and parameters that are moved as they are made."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from tests.convert.tools import X, check, convert, loaded

LOSS = """
class M(nn.Module):
    def __init__(self, weight=None, pos_weight=None):
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, x, t):
        return F.binary_cross_entropy_with_logits(x, t, self.weight, pos_weight=self.pos_weight)
"""


def test_a_buffer_of_an_argument_that_is_left_out() -> None:
    theirs, ours, _ = loaded(LOSS)
    t = (X > 0).float()
    for weight in (None, torch.rand(X.shape[-1])):
        theirs_out = theirs["M"](weight)(X, t)
        given = None if weight is None else jnp.asarray(weight.numpy())
        ours_out = ours["M"](given, rngs=nnx.Rngs(0))(
            jnp.asarray(X.numpy()), jnp.asarray(t.numpy())
        )
        np.testing.assert_allclose(ours_out, theirs_out.numpy(), rtol=1e-5)


def test_a_buffer_of_an_argument_that_is_made_where_it_is_left_out() -> None:
    code = check(
        """
class M(nn.Module):
    def __init__(self, scale=None):
        super().__init__()
        if scale is None:
            scale = torch.ones(1)
        self.register_buffer("scale", scale)

    def forward(self, x):
        return x * self.scale
"""
    )
    assert "is not None" not in code.partition("def __call__")[2]


def test_a_parameter_that_is_moved_as_it_is_made() -> None:
    check(
        """
class M(nn.Module):
    def __init__(self, device="cpu"):
        super().__init__()
        self.device = device
        self.trans = nn.Parameter(torch.randn(4)).to(self.device)
        self.trans.data[1] = -3

    def forward(self, x):
        return x + self.trans
"""
    )


def test_hints_of_shapes() -> None:
    result = convert(
        """
from jaxtyping import Float, Int

def f(x: Float[torch.Tensor, "*batch n"], i: Int[torch.Tensor, "n"]):
    return x.unsqueeze(-1) + i.unsqueeze(-1)
"""
    )
    assert result.complete
    assert "return x[..., None] + i[..., None]" in result.code
