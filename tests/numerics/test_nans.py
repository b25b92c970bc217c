"""The operation that a NaN comes from."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from numerics.nans import origin
from numerics.verify import Settings, verify

X = np.array([0.0, 1.0, 4.0], np.float32)


def masked(x: Any) -> Any:
    root = jnp.sqrt(x - 2)  # NaN below two, and left out again
    return jnp.where(x > 2, root, 0.0) + jnp.log(-x)


def test_the_one_that_reaches_the_result() -> None:
    found = origin(jax.jit(masked), jnp.asarray(X))
    assert found is not None
    assert found.startswith("log at test_nans.py:")
    assert "(masked)" in found
    assert found.endswith("of values from -4 to -0")
    assert origin(jnp.abs, jnp.asarray(X)) is None


def test_a_gradients_belongs_to_the_line_it_is_of() -> None:
    def loss(x: Any) -> Any:
        return jnp.where(x > 0, jnp.sqrt(x), 0.0).sum()

    found = origin(jax.grad(loss), jnp.asarray(X))
    assert found is not None
    assert found.startswith("mul in the gradient at test_nans.py:")
    assert ".loss)" in found
    found = origin(jax.grad(loss), jnp.asarray(X), test=np.isinf)
    assert found is None  # the infinity has become the NaN


class TorchRoot(torch.nn.Module):
    """Has no gradient where it is not used."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.where(x > 0, x.clamp(min=1e-3).sqrt(), torch.zeros_like(x))


class FlaxRoot(nnx.Module):
    """Has one, which is infinite."""

    def __call__(self, x: jax.Array) -> jax.Array:
        return jnp.where(x > 0, jnp.sqrt(x), 0.0)


def test_a_failure_names_it() -> None:
    report = verify(
        TorchRoot(),
        FlaxRoot(),
        [X],
        load=lambda module, state: None,
        dump=lambda module, like=None: {},
        settings=Settings(examples=1, train=False),
    )
    assert report.failure is not None
    assert report.failure.check == "eval gradients"
    assert "(FlaxRoot.__call__)" in (report.failure.origin or "")
