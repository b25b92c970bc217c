"""Sizes, which are plain tuples in JAX, and the legacy constructors that tell a size from values."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from rules.compat.data import legacy_tensor
from tests.convert.tools import body, both, function


@pytest.mark.parametrize("size", ["x.shape", "x.size()", "torch.Size(x.shape[:1])", "x[0].shape"])
def test_the_number_of_elements_of_a_size(size: str) -> None:
    text = function(f"return {size}.numel()")
    inner = size.replace("size()", "shape").replace("torch.Size(", "tuple(")
    assert text == f"return math.prod({inner})"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("torch.Tensor(x.size())", "jnp.empty((*x.shape,), jnp.float32)"),
        ("torch.FloatTensor(x.shape)", "jnp.empty((*x.shape,), jnp.float32)"),
        ("torch.Tensor(n, 2)", "jnp.empty((n, 2), jnp.float32)"),
        ("torch.LongTensor(n)", "jnp.empty((n,), jnp.int32)"),
        ("torch.Tensor([n, 2])", "jnp.array([n, 2], jnp.float32)"),
        ("torch.Tensor(x)", "jnp.array(x, jnp.float32)"),
    ],
)
def test_legacy_constructors(call: str, expected: str) -> None:
    assert function(f"return {call}") == f"return {expected}"


def test_legacy_constructors_of_numpy_arrays() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        import numpy as np
        self.register_buffer("a", torch.Tensor(np.arange(3)))
        self.b = torch.LongTensor(np.concatenate([np.arange(2), np.arange(2)]))
        self.pair = np.tril_indices(4)

    def forward(self, x):
        return x[self.pair[0], self.pair[1]].sum() + self.a + self.b[3]
"""
    model, port, _ = both(source)
    x = torch.randn(4, 4)
    found = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x.numpy()))
    np.testing.assert_allclose(np.asarray(found), model(x).numpy(), rtol=1e-5)


def test_a_tensor_of_what_is_not_known_is_told_when_it_runs() -> None:
    assert "return FloatTensor_of_any(z)" in body(
        "def f(z):\n    return torch.Tensor(z)\n", "def f"
    )
    with pytest.raises(TypeError, match="a size or values"):
        legacy_tensor((2, 3), jnp.float32)
