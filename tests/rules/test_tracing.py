"""What makes ``jit`` trace a second time is seen; no layer of a converted file does it."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.rules.tracing import layer_traced_again, traced_again

X = np.ones((2, 3), np.float32)


class Counting(nnx.Module):
    """A layer that changes itself as it is told."""

    def __init__(self, change: str):
        self.change, self.calls = change, 0
        self.mean = nnx.BatchStat(jnp.zeros(3))

    def __call__(self, x: Any) -> Any:
        if self.change == "a number":
            self.calls += 1
        elif self.change == "a dtype":
            self.mean.set_value(self.mean[...].astype(jnp.bfloat16))
        elif self.change == "a shape":
            self.mean.set_value(x)
        elif self.change == "a variable":
            self.last = nnx.BatchStat(x)
        elif self.change == "a weak type":
            self.mean.set_value(jnp.asarray(1.0))
        else:
            self.mean[...] = 0.9 * self.mean[...] + 0.1 * x.mean(axis=0)
        return x if self.change != "a weak result" else jnp.asarray(1.0)


@pytest.mark.parametrize(
    "change", ["a number", "a dtype", "a shape", "a variable", "a weak type", "a weak result"]
)
def test_a_layer_that_is_traced_again(change: str) -> None:
    assert layer_traced_again(Counting(change), [X]) is not None


def test_a_layer_whose_values_change() -> None:
    layer = Counting("values")
    assert layer_traced_again(layer, [X]) is None
    assert not layer.mean[...].any()


def test_a_function_that_is_traced_again() -> None:
    assert traced_again(lambda given: given[0] + 1, [X]) is None
    assert traced_again(lambda given: given[0].shape[0], [X]) is None
    assert "weak" in str(traced_again(lambda given: jnp.where(given[0] > 0, 1.0, 0.0), [X]))
