"""Initial values of layers whose class only a run tells, where the layer is run, and of objects that are no layers."""

from __future__ import annotations

from types import SimpleNamespace

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from rules.compat.initialize import initialize


@pytest.mark.parametrize("name", ["weight", "bias"])
def test_a_parameter_that_a_forward_pass_writes_keeps_its_gradient(name: str) -> None:
    layer = nnx.Linear(3, 2, rngs=nnx.Rngs(0))
    x = jnp.arange(6.0).reshape(2, 3)

    def loss(layer: nnx.Linear, writes: bool) -> jnp.ndarray:
        if writes:
            initialize(layer, name, lambda w: w * 0 + 0.5)
        return (layer(x) ** 2).sum()

    given = nnx.clone(layer)
    initialize(given, name, lambda w: w * 0 + 0.5)
    want = nnx.grad(lambda m: loss(m, False))(given)
    got = nnx.grad(lambda m: loss(m, True))(layer)
    for one, other in ((got.kernel, want.kernel), (got.bias, want.bias)):
        np.testing.assert_allclose(one[...], other[...], rtol=1e-6)


def test_a_tensor_of_an_object_that_is_no_layer_is_written() -> None:
    held = SimpleNamespace(weight=jnp.ones(3))
    initialize(held, "weight", lambda w: w * 2)
    np.testing.assert_array_equal(held.weight, [2, 2, 2])
