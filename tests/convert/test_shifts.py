"""``x[..., 1:] = x[..., :-1].clone()`` is right under jit, whatever ``x`` comes out of."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import convert, loaded

WRITES = {
    "y[1:] = y[:-1].clone()": "jnp.concatenate([y[:1], y[:-1]])",
    "y[..., 2:] = y[..., :-2].clone()": "jnp.concatenate([y[..., :2], y[..., :-2]], axis=-1)",
    "y[:, 1:] = y[:, :-1].clone()": "jnp.concatenate([y[:, :1], y[:, :-1]], axis=1)",
    "y[:, :-1] = y[:, 1:].clone()": "jnp.concatenate([y[:, 1:], y[:, -1:]], axis=1)",
    "y[:-1, ...] = y[1:, ...].clone()": "jnp.concatenate([y[1:, ...], y[-1:, ...]])",
    "y[:, 1:] = y[:, 1:].clone() + 1": "y.at[:, 1:].set(y[:, 1:] + 1)",
    "y[1:, 0] = y[:-1, 0].clone()": "y.at[1:, 0].set(y[:-1, 0])",
}


@pytest.mark.parametrize("write", WRITES)
def test_a_tensor_is_moved_within_itself(write: str) -> None:
    source = f"def f(x: torch.Tensor):\n    y = x.cumsum(-1)\n    {write}\n    return y\n"
    assert WRITES[write] in convert(source).code
    theirs, ours, _ = loaded(source)
    x = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    for port in (ours["f"], jax.jit(ours["f"])):
        np.testing.assert_allclose(port(jnp.asarray(x.numpy())), theirs["f"](x), rtol=1e-5)


def test_under_no_grad_what_is_moved_has_no_gradient() -> None:
    theirs, ours, _ = loaded("""
def f(x: torch.Tensor):
    y = x * 2
    with torch.no_grad():
        z = y * y
        z[1:] = z[:-1].clone()
    return y * z
""")
    x = torch.randn(4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    theirs["f"](x).sum().backward()
    got = jax.grad(lambda v: ours["f"](v).sum())(jnp.asarray(x.detach().numpy()))
    np.testing.assert_allclose(got, x.grad, rtol=1e-5)
