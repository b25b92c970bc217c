"""Multi-head attention with torch's packed projections, masks and outputs."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx

from rules.compat.linear import Linear


class MultiheadAttention(nnx.Module):
    """Attention of queries (L, N, E) to keys (S, N, kdim), batch first on request, N optional.

    Returns the output and, when ``need_weights``, the weights: (N, L, S), or (N, num_heads, L, S) unless
    averaged. A boolean mask is True where attention is *blocked*; any other is added to the scores.
    """

    def __init__(
        self,
        embed_dim,
        num_heads,
        dropout=0.0,
        bias=True,
        add_bias_kv=False,
        add_zero_attn=False,
        kdim=None,
        vdim=None,
        batch_first=False,
        dtype=jnp.float32,
        *,
        rngs: nnx.Rngs,
    ):
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.batch_first, self.add_zero_attn = batch_first, add_zero_attn
        self.dropout = dropout
        self._dropping = nnx.Dropout(dropout, rngs=rngs)
        uniform = nnx.initializers.xavier_uniform(in_axis=1, out_axis=0)
        normal = nnx.initializers.normal(embed_dim**-0.5)
        sizes = {"q": embed_dim, "k": kdim or embed_dim, "v": vdim or embed_dim}
        self.packed = set(sizes.values()) == {embed_dim}
        if self.packed:
            shape = (3 * embed_dim, embed_dim)
            self.in_proj_weight = nnx.Param(uniform(rngs.params(), shape, dtype))
        else:
            for name, size in sizes.items():
                weight = nnx.Param(uniform(rngs.params(), (embed_dim, size), dtype))
                setattr(self, f"{name}_proj_weight", weight)
        self.in_proj_bias = nnx.Param(jnp.zeros(3 * embed_dim, dtype)) if bias else None
        options = {"use_bias": bias, "bias_init": nnx.initializers.zeros, "param_dtype": dtype}
        self.out_proj = Linear(embed_dim, embed_dim, rngs=rngs, **options)
        self.bias_k = self.bias_v = None
        if add_bias_kv:
            bias_k, bias_v = (normal(rngs.params(), (1, 1, embed_dim), dtype) for _ in "kv")
            self.bias_k, self.bias_v = nnx.data(nnx.Param(bias_k)), nnx.data(nnx.Param(bias_v))

    def __call__(
        self,
        query,
        key,
        value,
        key_padding_mask=None,
        need_weights=True,
        attn_mask=None,
        average_attn_weights=True,
        is_causal=False,
    ):
        if query.ndim == 2:
            axis = 0 if self.batch_first else 1
            query, key, value = (jnp.expand_dims(x, axis) for x in (query, key, value))
            mask = None if key_padding_mask is None else key_padding_mask[None]
            output, weights = self(
                query, key, value, mask, need_weights, attn_mask, average_attn_weights, is_causal
            )
            return output.squeeze(axis), None if weights is None else weights[0]
        if not self.batch_first:
            query, key, value = (x.swapaxes(0, 1) for x in (query, key, value))
        q, k, v = self.project(query, key, value)
        if self.bias_k is not None:
            biases = (jnp.tile(b[...], (len(k), 1, 1)) for b in (self.bias_k, self.bias_v))
            k, v = (jnp.append(x, b, axis=1) for x, b in zip((k, v), biases, strict=True))
        if self.add_zero_attn:
            k, v = (jnp.pad(x, ((0, 0), (0, 1), (0, 0))) for x in (k, v))
        q, k, v = (x.reshape(*x.shape[:2], self.num_heads, self.head_dim) for x in (q, k, v))
        scores = jnp.einsum("nlhd,nshd->nhls", q * self.head_dim**-0.5, k)
        if is_causal and key_padding_mask is None and not need_weights:
            attn_mask = ~jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = mask_scores(scores, attn_mask)
        if key_padding_mask is not None:
            scores = mask_scores(scores, key_padding_mask[:, None, None, :])
        # A row that may attend nowhere gives NaN with need_weights and 0 without, as in torch.
        weights = jax.nn.softmax(scores, where=None if need_weights else scores > -jnp.inf)
        weights = self._dropping(weights)
        output = jnp.einsum("nhls,nshd->nlhd", weights, v).reshape(query.shape)
        output = self.out_proj(output)
        if not self.batch_first:
            output = output.swapaxes(0, 1)
        if not need_weights:
            return output, None
        return output, weights.mean(1) if average_attn_weights else weights

    def project(self, query, key, value):
        if self.packed:
            w_q, w_k, w_v = jnp.split(self.in_proj_weight[...], 3)
        else:
            names = ("q_proj_weight", "k_proj_weight", "v_proj_weight")
            w_q, w_k, w_v = (getattr(self, name)[...] for name in names)
        q, k, v = query @ w_q.T, key @ w_k.T, value @ w_v.T
        if self.in_proj_bias is None:
            return q, k, v
        b_q, b_k, b_v = jnp.split(self.in_proj_bias[...], 3)
        return q + b_q, k + b_k, v + b_v


def mask_scores(scores, mask):
    """Apply a mask that covers the first keys of scores (N, H, L, S): (L, S), (N·H, L, S) or 4-D."""
    if mask is None:
        return scores
    mask = mask.reshape(*scores.shape[:2], *mask.shape[1:]) if mask.ndim == 3 else mask
    mask = jnp.where(mask, -jnp.inf, 0) if mask.dtype == bool else mask
    missing = scores.shape[-1] - mask.shape[-1]
    return scores + jnp.pad(mask, [(0, 0)] * (mask.ndim - 1) + [(0, missing)]).astype(scores.dtype)
