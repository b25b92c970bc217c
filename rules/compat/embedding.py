"""Embedding layers with torch's extras: padding row, norm limit, frequency-scaled gradients, bags."""

from __future__ import annotations

import jax.numpy as jnp
from flax import nnx
from jax import lax

from rules.compat.embedding_functional import embedding_bag, scaled_by_frequency
from rules.compat.named import Frozen


class Embedding(nnx.Embed):
    """``nnx.Embed`` of N(0, 1) rows; the row ``padding_idx`` starts at zero and gets no gradient.

    Rows that are looked up are first cut to ``max_norm`` in the ``norm_type``-norm, in place.
    """

    def __init__(
        self,
        num_embeddings,
        features,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        *,
        rngs: nnx.Rngs,
        **options,
    ):
        options = {"embedding_init": nnx.initializers.normal(1.0), **options}
        super().__init__(num_embeddings, features, rngs=rngs, **options)
        self.padding_idx, self.max_norm, self.norm_type = padding_idx, max_norm, norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            self.embedding[...] = self.embedding[...].at[padding_idx].set(0)

    def __call__(self, input):
        weight = self.embedding[...]
        if self.max_norm is not None:
            weight = renormalized(weight, input, self.max_norm, self.norm_type)
            self.embedding[...] = weight
        output = weight[input]
        if self.scale_grad_by_freq:
            share = 1 / jnp.zeros(len(weight)).at[input].add(1)[input][..., None]
            output = share * output + lax.stop_gradient((1 - share) * output)
        if self.padding_idx is not None:
            padding = (input == self.padding_idx % len(weight))[..., None]
            output = jnp.where(padding, lax.stop_gradient(output), output)
        return output


class EmbeddingAsTorch(Embedding):
    """``Embedding`` with torch's arguments and attributes, the base of classes that derive from it."""

    def __init__(
        self,
        num_embeddings,
        embedding_dim,
        padding_idx=None,
        max_norm=None,
        norm_type=2.0,
        scale_grad_by_freq=False,
        sparse=False,
        _weight=None,
        *,
        dtype=jnp.float32,
        rngs: nnx.Rngs,
    ):
        if padding_idx is not None and padding_idx < 0:
            padding_idx += num_embeddings
        options = padding_idx, max_norm, norm_type, scale_grad_by_freq
        super().__init__(num_embeddings, embedding_dim, *options, param_dtype=dtype, rngs=rngs)
        self.embedding_dim, self.sparse = embedding_dim, sparse
        if _weight is not None:
            self.embedding.set_value(_weight)


def renormalized(weight, index, max_norm, norm_type=2.0):
    """``weight`` (V, E) with the rows named in ``index`` cut to ``max_norm``; the gradient passes unscaled."""
    norm = jnp.linalg.norm(weight, norm_type, axis=1, keepdims=True)
    used = jnp.zeros((len(weight), 1), bool).at[index.ravel()].set(True)
    cut = jnp.where(used & (norm > max_norm), weight * (max_norm / (norm + 1e-7)), weight)
    return weight + lax.stop_gradient(cut - weight)


def limited_embedding(
    input, weight, padding_idx=None, max_norm=None, norm_type=2.0, scale_grad_by_freq=False
):
    """Rows of a Variable ``weight`` (V, E), which are first cut to ``max_norm`` in place, as ``Embedding`` does it."""
    rows = weight[...]
    if max_norm is not None:
        rows = renormalized(rows, input, max_norm, norm_type)
        weight[...] = rows
    if padding_idx is not None:
        rows = rows.at[padding_idx].set(lax.stop_gradient(rows[padding_idx]))
    return scaled_by_frequency(rows, input) if scale_grad_by_freq else rows[input]


class EmbeddingBag(Embedding):
    """Sum, mean or max of the rows that each bag of ``input`` (B, L), or (n,) with ``offsets``, names."""

    def __init__(
        self,
        num_embeddings,
        features,
        mode="mean",
        include_last_offset=False,
        *,
        rngs: nnx.Rngs,
        **options,
    ):
        super().__init__(num_embeddings, features, rngs=rngs, **options)
        self.mode, self.include_last_offset = mode, include_last_offset

    def __call__(self, input, offsets=None, per_sample_weights=None):
        weight = self.embedding[...]
        if self.max_norm is not None:
            weight = renormalized(weight, input, self.max_norm, self.norm_type)
            self.embedding[...] = weight
        return embedding_bag(
            input,
            weight,
            offsets,
            self.mode,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )


def pretrained_embedding(
    embeddings,
    freeze=True,
    padding_idx=None,
    max_norm=None,
    norm_type=2.0,
    scale_grad_by_freq=False,
    *,
    rngs: nnx.Rngs,
):
    """An ``Embedding`` of the rows (V, E); ``Frozen`` they are not trained."""
    options = padding_idx, max_norm, norm_type, scale_grad_by_freq
    layer = Embedding(*embeddings.shape, *options, rngs=rngs)
    layer.embedding = Frozen(embeddings) if freeze else nnx.Param(embeddings)
    return layer
