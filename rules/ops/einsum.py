"""``torch.einsum``: equation and sublist form, operands one by one or as a list."""

from __future__ import annotations

import jax.numpy as jnp

from rules.registry import op


@op(
    "torch.einsum",
    example={
        'torch.einsum("bij,bjk->bik", x, y)': 'jnp.einsum("bij,bjk->bik", x, y)',
        'torch.einsum("ij,jk", [x, y])': 'jnp.einsum("ij,jk", x, y)',
        "torch.einsum(x, [0, 1], y, [1, 2], [0, 2])": "jnp.einsum(x, [0, 1], y, [1, 2], [0, 2])",
    },
)
def einsum(*args) -> Tensor:
    """Sum of products by the Einstein convention."""
    if len(args) == 2 and isinstance(args[1], (tuple, list)):
        return jnp.einsum(args[0], *args[1])
    return jnp.einsum(*args)
