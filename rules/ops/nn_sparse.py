"""torch.nn.functional, sparse functions: embeddings and one-hot codes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from rules.compat.embedding_functional import embedding_bag, scaled_by_frequency
from rules.registry import op, surely, unsupported


@op(
    "torch.nn.functional.embedding",
    example={"F.embedding(i, x)": "x[i]"},
)
def embedding(
    input,
    weight,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
) -> Tensor["float"]:
    """Rows of ``weight``; the row ``padding_idx`` gets no gradient."""
    if max_norm is not None:
        unsupported("max_norm cuts the weight in place; use nn.Embedding")
    if padding_idx is not None:
        weight = weight.at[padding_idx].set(lax.stop_gradient(weight[padding_idx]))
    if scale_grad_by_freq:
        return scaled_by_frequency(weight, input)
    return weight[input]


@op("torch.embedding", example={"torch.embedding(x, i)": "x[i]"})
def torch_embedding(
    weight, indices, padding_idx=-1, scale_grad_by_freq=False, sparse=False
) -> Tensor["float"]:
    """F.embedding with the weight first; a negative ``padding_idx`` means none."""
    if padding_idx >= 0:
        weight = weight.at[padding_idx].set(lax.stop_gradient(weight[padding_idx]))
    if scale_grad_by_freq:
        return scaled_by_frequency(weight, indices)
    return weight[indices]


@op(
    "torch.nn.functional.embedding_bag",
    example={"F.embedding_bag(i, x)": "embedding_bag(i, x)"},
)
def f_embedding_bag(
    input,
    weight,
    offsets=None,
    max_norm=None,
    norm_type=2,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
) -> Tensor["float"]:
    """Sum, mean or max of the rows of each bag."""
    if max_norm is not None:
        unsupported("max_norm cuts the weight in place")
    if scale_grad_by_freq:
        unsupported("scale_grad_by_freq of embedding_bag")
    return embedding_bag(
        input,
        weight,
        offsets=offsets,
        mode=mode,
        per_sample_weights=per_sample_weights,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
    )


@op(
    "torch.nn.functional.one_hot",
    example={"F.one_hot(i, 5)": "jax.nn.one_hot(i, 5, dtype=jnp.int32)"},
)
def one_hot(input, num_classes=-1) -> Tensor["int"]:
    """1 at the class number, 0 elsewhere; an integer array, where JAX makes a float one."""
    if surely(num_classes == -1):
        unsupported("the number of classes depends on the data: give num_classes")
    return jax.nn.one_hot(input, num_classes, dtype=jnp.int32)
