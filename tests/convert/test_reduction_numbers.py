"""``F._Reduction.get_enum(reduction)``, as the losses of detection frameworks ask for their reduction."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import loaded


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_reductions_by_their_numbers(reduction: str) -> None:
    theirs, ours, _ = loaded(
        """
def f(loss: torch.Tensor, reduction: str):
    number = F._Reduction.get_enum(reduction)
    if number == 0:
        return loss
    return loss.mean() if number == 1 else loss.sum()
"""
    )
    loss = torch.randn(3, 4)
    got = ours["f"](jnp.asarray(loss.numpy()), reduction)
    np.testing.assert_allclose(got, theirs["f"](loss, reduction).numpy(), atol=1e-5)
