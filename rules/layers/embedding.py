"""Embeddings: torch.nn.Embedding, EmbeddingBag."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx

from rules.compat.embedding import Embedding, EmbeddingBag, pretrained_embedding
from rules.registry import layer, unsupported


@layer(
    "torch.nn.Embedding",
    weights={"weight": "embedding"},
    example={
        "nn.Embedding(10, 4)": "nnx.Embed(10, 4, embedding_init=nnx.initializers.normal(1.0), rngs=rngs)",
        "nn.Embedding(10, 4, padding_idx=0)": "Embedding(10, 4, padding_idx=0, rngs=rngs)",
    },
)
def embedding_layer(
    num_embeddings,
    embedding_dim,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
    _weight=None,
    _freeze=False,
    device=None,
    dtype=None,
    *,
    rngs,
) -> nnx.Embed:
    """Rows from N(0, 1); an index out of range gives NaN where torch raises."""
    if _weight is not None or _freeze:
        unsupported("the private arguments _weight and _freeze")
    if padding_idx is None and max_norm is None and not scale_grad_by_freq:
        return nnx.Embed(
            num_embeddings,
            embedding_dim,
            param_dtype=dtype or jnp.float32,
            embedding_init=nnx.initializers.normal(1.0),
            rngs=rngs,
        )
    return Embedding(
        num_embeddings,
        embedding_dim,
        padding_idx=padding_idx,
        max_norm=max_norm,
        norm_type=norm_type,
        scale_grad_by_freq=scale_grad_by_freq,
        param_dtype=dtype or jnp.float32,
        rngs=rngs,
    )


@layer("torch.nn.EmbeddingBag", weights={"weight": "embedding"})
def embedding_bag_layer(
    num_embeddings,
    embedding_dim,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    mode="mean",
    sparse=False,
    _weight=None,
    include_last_offset=False,
    padding_idx=None,
    device=None,
    dtype=None,
    *,
    rngs,
) -> EmbeddingBag:
    """Bags are rows of the input, or begin at ``offsets``."""
    if _weight is not None:
        unsupported("the private argument _weight")
    if scale_grad_by_freq:
        unsupported("scale_grad_by_freq of bags")
    return EmbeddingBag(
        num_embeddings,
        embedding_dim,
        mode=mode,
        include_last_offset=include_last_offset,
        padding_idx=padding_idx,
        max_norm=max_norm,
        norm_type=norm_type,
        param_dtype=dtype or jnp.float32,
        rngs=rngs,
    )


@layer("torch.nn.Embedding.from_pretrained", weights={"weight": "embedding"})
def pretrained_embedding_layer(
    embeddings,
    freeze=True,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    sparse=False,
    *,
    rngs,
) -> Embedding:
    """Given rows; frozen they are no ``nnx.Param``, so that nothing trains them."""
    return pretrained_embedding(
        embeddings,
        freeze=freeze,
        padding_idx=padding_idx,
        max_norm=max_norm,
        norm_type=norm_type,
        scale_grad_by_freq=scale_grad_by_freq,
        rngs=rngs,
    )
