"""Embedding functions of torch.nn.functional beyond indexing."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax


def scaled_by_frequency(weight, input):
    """``weight[input]`` whose gradient to each row is divided by how often the row occurs."""
    count = jnp.zeros(len(weight), weight.dtype).at[input].add(1)[input][..., None]
    output = weight[input]
    return output / count + lax.stop_gradient(output - output / count)


def embedding_bag(
    input,
    weight,
    offsets=None,
    mode="mean",
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
):
    """Reduce the rows of ``weight`` (V, D) that each bag of ``input`` names → (bags, D).

    Bags are the rows of input (B, L), or start at ``offsets`` (B,) of input (n,). Rows of
    ``padding_idx`` do not count; an empty bag gives 0.
    """
    if offsets is None:
        bags, bag = input.shape[0], jnp.arange(input.shape[0]).repeat(input.shape[1])
        input = input.reshape(-1)
    else:
        bags = offsets.shape[0] - include_last_offset
        bag = jnp.searchsorted(offsets[:bags], jnp.arange(input.shape[0]), side="right") - 1
    if padding_idx is not None:
        bag = jnp.where(input == padding_idx % weight.shape[0], bags, bag)
    rows = weight[input]
    if per_sample_weights is not None:
        rows = rows * per_sample_weights.reshape(-1, 1)
    count = jax.ops.segment_sum(jnp.ones_like(bag), bag, bags)[:, None]
    if mode == "max":
        return jnp.where(count > 0, jax.ops.segment_max(rows, bag, bags), 0)
    total = jax.ops.segment_sum(rows, bag, bags)
    return total / jnp.maximum(count, 1) if mode == "mean" else total
