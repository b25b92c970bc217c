"""Functions that belong to torch.nn.Transformer."""

from __future__ import annotations

import jax.numpy as jnp

from rules.registry import op


@op(
    "torch.nn.Transformer.generate_square_subsequent_mask",
    example={
        "torch.nn.Transformer.generate_square_subsequent_mask(4)": (
            "jnp.triu(jnp.full((4, 4), -jnp.inf), 1)"
        )
    },
)
def generate_square_subsequent_mask(sz, device=None, dtype=None) -> Tensor["float"]:
    """0 on and below the diagonal, -inf above."""
    return jnp.triu(jnp.full((sz, sz), -jnp.inf, dtype=dtype), 1)
