"""Attention with torch's conventions: (…, L, E), bool mask True = attend, causal from the top left."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp

from rules.compat.attention import mask_scores
from rules.compat.dropout import dropout


def scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
    *,
    rngs=None,
):
    """softmax(q kᵀ · scale + mask) v, as torch.nn.functional.scaled_dot_product_attention.

    Shapes: query (…, L, E), key (…, S, E), value (…, S, Ev) → (…, L, Ev); a boolean mask (…, L, S)
    is True where attention is allowed, any other is added. A row that may attend nowhere gives 0.
    """
    if enable_gqa:
        key = jnp.repeat(key, query.shape[-3] // key.shape[-3], axis=-3)
        value = jnp.repeat(value, query.shape[-3] // value.shape[-3], axis=-3)
    scores = jnp.einsum(
        "...le,...se->...ls",
        query,
        key,
        preferred_element_type=jnp.promote_types(query.dtype, jnp.float32),
    )
    scores = scores * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        attn_mask = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    if attn_mask is not None and attn_mask.dtype == bool:
        scores = jnp.where(attn_mask, scores, -jnp.inf)
    elif attn_mask is not None:
        scores = scores + attn_mask
    if attn_mask is not None:
        blocked = jnp.max(scores, axis=-1, keepdims=True) == -jnp.inf
        weights = jnp.where(blocked, 0, jax.nn.softmax(jnp.where(blocked, 0, scores)))
    else:
        weights = jax.nn.softmax(scores)
    if dropout_p > 0:
        weights = dropout(weights, dropout_p, rngs=rngs)
    return weights.astype(query.dtype) @ value


def multi_head_attention_forward(
    query,
    key,
    value,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    separate_weights=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
    *,
    rngs=None,
):
    """Multi-head attention of (L, N, E) to (S, N, ·), N optional, as the torch function of this name.

    Masks are True (or -inf) where attention is blocked: key_padding_mask (N, S), attn_mask (L, S) or
    (N·H, L, S). Returns (L, N, E) and the weights (N, L, S), (N, H, L, S) unless averaged, or None.
    ``separate_weights`` are those of query, key and value where they are not packed in one.
    """
    batched = query.ndim == 3
    if not batched:
        query, key, value = (x[:, None] for x in (query, key, value))
        key_padding_mask = None if key_padding_mask is None else key_padding_mask[None]
    length, batch, width = query.shape
    weights = separate_weights or jnp.split(in_proj_weight, 3)
    q, k, v = (x @ w.T for x, w in zip((query, key, value), weights, strict=True))
    if in_proj_bias is not None:
        q, k, v = (x + b for x, b in zip((q, k, v), jnp.split(in_proj_bias, 3), strict=True))
    if bias_k is not None:
        k, v = (jnp.append(x, jnp.tile(b, (1, batch, 1)), 0) for x, b in ((k, bias_k), (v, bias_v)))
    q, k, v = (x.reshape(len(x), batch, num_heads, -1).transpose(1, 2, 0, 3) for x in (q, k, v))
    k = k if static_k is None else static_k.reshape(batch, num_heads, *static_k.shape[1:])
    v = v if static_v is None else static_v.reshape(batch, num_heads, *static_v.shape[1:])
    if add_zero_attn:
        k, v = (jnp.pad(x, ((0, 0), (0, 0), (0, 1), (0, 0))) for x in (k, v))
    scores = (q * math.sqrt(1 / q.shape[-1])) @ k.mT
    if is_causal and key_padding_mask is None and not need_weights:
        attn_mask = ~jnp.tril(jnp.ones(scores.shape[-2:], bool))
    scores = mask_scores(scores, attn_mask)
    if key_padding_mask is not None:
        scores = mask_scores(scores, key_padding_mask[:, None, None, :])
    # A row that may attend nowhere gives nan with need_weights and 0 without, as in torch.
    weights = jax.nn.softmax(scores, where=None if need_weights else scores > -jnp.inf)
    weights = dropout(weights, dropout_p, training, rngs=rngs)
    output = (weights @ v).transpose(2, 0, 1, 3).reshape(length, batch, width) @ out_proj_weight.T
    output = output if out_proj_bias is None else output + out_proj_bias
    weights = weights.mean(1) if average_attn_weights else weights
    if not batched:
        output, weights = output[:, 0], weights[0]
    return output, weights if need_weights else None
