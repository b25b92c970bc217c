"""torch.tril, torch.triu: the lower and upper triangle of the last two axes."""

from __future__ import annotations

import jax.numpy as jnp

from rules.registry import op


@op("torch.tril", "Tensor.tril", example={"torch.tril(x)": "jnp.tril(x)"})
def tril(input, diagonal=0) -> Tensor["same"]:
    """The part on and below the diagonal, zeros elsewhere."""
    return jnp.tril(input, k=diagonal)


@op("torch.triu", "Tensor.triu", example={"torch.triu(x, diagonal=1)": "jnp.triu(x, k=1)"})
def triu(input, diagonal=0) -> Tensor["same"]:
    """The part on and above the diagonal, zeros elsewhere."""
    return jnp.triu(input, k=diagonal)
