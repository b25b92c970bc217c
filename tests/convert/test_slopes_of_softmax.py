"""The slopes of softmax by their private names, as hand-written backward passes call them."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import loaded


@pytest.mark.parametrize("kind", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, -1])
def test_slopes(kind: str, dim: int) -> None:
    theirs, ours, _ = loaded(
        f"""
def f(g, y):
    return torch._{kind}_backward_data(grad_output=g, output=y, dim={dim}, input_dtype=torch.float32)
"""
    )
    g, y = torch.randn(3, 4), getattr(torch.randn(3, 4), kind)(dim)
    want = theirs["f"](g, y)
    got = ours["f"](jnp.asarray(g.numpy()), jnp.asarray(y.numpy()))
    np.testing.assert_allclose(got, want.numpy(), atol=1e-6)
