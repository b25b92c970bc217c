"""torch.nn.functional, attention functions; a boolean mask means *attend* in one and *blocked* in the other."""

from __future__ import annotations

from rules.compat.attention_functional import (
    multi_head_attention_forward,
    scaled_dot_product_attention,
)
from rules.registry import op


@op(
    "torch.nn.functional.scaled_dot_product_attention",
    example={
        "F.scaled_dot_product_attention(x, y, z, is_causal=True)": (
            "scaled_dot_product_attention(x, y, z, is_causal=True)"
        )
    },
)
def f_scaled_dot_product_attention(
    query, key, value, attn_mask=None, *, is_causal=False, scale=None, enable_gqa=False
) -> Tensor["same"]:
    """softmax(q kᵀ · scale + mask) v; a boolean mask is True where attention is allowed."""
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
        "F.scaled_dot_product_attention(x, y, z, dropout_p=0.0)": "scaled_dot_product_attention(x, y, z)"
    },
)
def f_scaled_dot_product_attention_no_dropout(
    query,
    key,
    value,
    attn_mask=None,
    *,
    dropout_p: Literal[0.0],
    is_causal=False,
    scale=None,
    enable_gqa=False,
) -> Tensor["same"]:
    """Without dropout nothing is drawn."""
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
        "F.scaled_dot_product_attention(x, y, z, dropout_p=0.1)": (
            "scaled_dot_product_attention(x, y, z, dropout_p=0.1, rngs=rngs)"
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
