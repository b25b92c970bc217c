"""Multi-head attention."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.attention import MultiheadAttention
from rules.registry import layer


@layer(
    "torch.nn.MultiheadAttention",
    call="tuple[Tensor, Tensor]",
    example={
        "nn.MultiheadAttention(8, 2, batch_first=True)": (
            "MultiheadAttention(8, 2, batch_first=True, rngs=rngs)"
        )
    },
)
def multihead_attention_layer(
    embed_dim,
    num_heads,
    dropout=0.0,
    bias=True,
    add_bias_kv=False,
    add_zero_attn=False,
    kdim=None,
    vdim=None,
    batch_first=False,
    device=None,
    dtype=None,
    *,
    rngs,
) -> MultiheadAttention:
    """A boolean mask is True where attention is blocked; ``nnx.MultiHeadAttention`` means the opposite."""
    return MultiheadAttention(
        embed_dim,
        num_heads,
        dropout=dropout,
        bias=bias,
        add_bias_kv=add_bias_kv,
        add_zero_attn=add_zero_attn,
        kdim=kdim,
        vdim=vdim,
        batch_first=batch_first,
        dtype=dtype or jnp.float32,
        rngs=rngs,
    )
