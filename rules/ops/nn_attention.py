"""torch.nn.functional, attention functions; a boolean mask means *attend* in one and *blocked* in the other."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx

from rules.compat.attention_functional import (
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from rules.registry import in_steps, op, surely


@op(
    "torch.nn.functional.scaled_dot_product_attention",
    example={
        "F.scaled_dot_product_attention(x, y, z, mask)": (
            "scaled_dot_product_attention(x, y, z, attn_mask=mask)"
        ),
        "F.scaled_dot_product_attention(x, y, z, is_causal=causal)": (
            "scaled_dot_product_attention(x, y, z, is_causal=causal)"
        ),
    },
)
def f_scaled_dot_product_attention(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p: Literal[0.0] = 0.0,
    is_causal=False,
    *,
    scale=None,
    enable_gqa=False,
) -> Tensor["same"]:
    """softmax(q kᵀ · scale + mask) v; a boolean mask is True where attention is allowed.

    Without a mask no row is blocked wholly: the causal one has its diagonal.
    """
    if surely(in_steps() and attn_mask is None and not enable_gqa and not is_causal):
        wide = jnp.promote_types(query.dtype, jnp.float32)
        scores = jnp.matmul(query, key.mT, preferred_element_type=wide)
        scaled = scores / math.sqrt(query.shape[-1]) if scale is None else scores * scale
        weights = jax.nn.softmax(scaled)
        return weights.astype(query.dtype) @ value
    if surely(in_steps() and attn_mask is None and not enable_gqa and is_causal):
        wide = jnp.promote_types(query.dtype, jnp.float32)
        scores = jnp.matmul(query, key.mT, preferred_element_type=wide)
        scaled = scores / math.sqrt(query.shape[-1]) if scale is None else scores * scale
        causal = jnp.tril(jnp.ones((query.shape[-2], key.shape[-2]), bool))
        weights = jax.nn.softmax(jnp.where(causal, scaled, -jnp.inf))
        return weights.astype(query.dtype) @ value
    return scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attn_mask,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
    )


@op(
    "torch.nn.functional.scaled_dot_product_attention",
    example={
        "F.scaled_dot_product_attention(x, y, z, mask, dropout_p=0.1)": (
            "scaled_dot_product_attention(x, y, z, attn_mask=mask, dropout_p=0.1, rngs=rngs)"
        )
    },
)
def f_scaled_dot_product_attention_dropout(
    query,
    key,
    value,
    attn_mask=None,
    dropout_p=0.0,
    is_causal=False,
    scale=None,
    enable_gqa=False,
    *,
    rngs,
) -> Tensor["same"]:
    """With dropout of the weights."""
    if surely(in_steps() and attn_mask is None and not enable_gqa and not is_causal):
        wide = jnp.promote_types(query.dtype, jnp.float32)
        scores = jnp.matmul(query, key.mT, preferred_element_type=wide)
        scaled = scores / math.sqrt(query.shape[-1]) if scale is None else scores * scale
        weights = nnx.Dropout(dropout_p)(jax.nn.softmax(scaled), rngs=rngs)
        return weights.astype(query.dtype) @ value
    if surely(in_steps() and attn_mask is None and not enable_gqa and is_causal):
        wide = jnp.promote_types(query.dtype, jnp.float32)
        scores = jnp.matmul(query, key.mT, preferred_element_type=wide)
        scaled = scores / math.sqrt(query.shape[-1]) if scale is None else scores * scale
        causal = jnp.tril(jnp.ones((query.shape[-2], key.shape[-2]), bool))
        weights = jax.nn.softmax(jnp.where(causal, scaled, -jnp.inf))
        weights = nnx.Dropout(dropout_p)(weights, rngs=rngs)
        return weights.astype(query.dtype) @ value
    return scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attn_mask,
        dropout_p=dropout_p,
        is_causal=is_causal,
        scale=scale,
        enable_gqa=enable_gqa,
        rngs=rngs,
    )


@op(
    "torch.nn.functional.multi_head_attention_forward",
    example={
        "F.multi_head_attention_forward(x, y, z, 8, 2, x, None, None, None, False, 0.0, y, None)": "multi_head_attention_forward(x, y, z, 2, x, None, None, None, False, 0.0, y, None, rngs=rngs)"
    },
)
def f_multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
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
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
    *,
    rngs,
) -> tuple[Tensor, Tensor | None]:
    """What nn.MultiheadAttention computes; a boolean mask is True where attention is blocked."""
    separate = (q_proj_weight, k_proj_weight, v_proj_weight)
    return multi_head_attention_forward(
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
        training=training,
        key_padding_mask=key_padding_mask,
        need_weights=need_weights,
        attn_mask=attn_mask,
        separate_weights=separate if use_separate_proj_weight else None,
        static_k=static_k,
        static_v=static_v,
        average_attn_weights=average_attn_weights,
        is_causal=is_causal,
        rngs=rngs,
    )
