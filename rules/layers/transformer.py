"""torch.nn.Transformer, its stacks and their layers."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.transformer import (
    Transformer,
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from rules.registry import layer


@layer(
    "torch.nn.TransformerEncoderLayer",
    example={
        "nn.TransformerEncoderLayer(8, 2, batch_first=True)": "TransformerEncoderLayer(8, 2, batch_first=True, rngs=rngs)"
    },
)
def transformer_encoder_layer_layer(
    d_model,
    nhead,
    dim_feedforward=2048,
    dropout=0.1,
    activation="relu",
    layer_norm_eps=1e-5,
    batch_first=False,
    norm_first=False,
    bias=True,
    device=None,
    dtype=None,
    *,
    rngs,
) -> TransformerEncoderLayer:
    """Self-attention and a feed-forward network."""
    return TransformerEncoderLayer(
        d_model,
        nhead,
        dim_feedforward=dim_feedforward,
        dropout=dropout,
        activation=activation,
        layer_norm_eps=layer_norm_eps,
        batch_first=batch_first,
        norm_first=norm_first,
        bias=bias,
        dtype=dtype or jnp.float32,
        rngs=rngs,
    )


@layer("torch.nn.TransformerDecoderLayer")
def transformer_decoder_layer_layer(
    d_model,
    nhead,
    dim_feedforward=2048,
    dropout=0.1,
    activation="relu",
    layer_norm_eps=1e-5,
    batch_first=False,
    norm_first=False,
    bias=True,
    device=None,
    dtype=None,
    *,
    rngs,
) -> TransformerDecoderLayer:
    """Self-attention, attention to the encoder, a feed-forward network."""
    return TransformerDecoderLayer(
        d_model,
        nhead,
        dim_feedforward=dim_feedforward,
        dropout=dropout,
        activation=activation,
        layer_norm_eps=layer_norm_eps,
        batch_first=batch_first,
        norm_first=norm_first,
        bias=bias,
        dtype=dtype or jnp.float32,
        rngs=rngs,
    )


@layer("torch.nn.TransformerEncoder")
def transformer_encoder_layer(
    encoder_layer, num_layers, norm=None, enable_nested_tensor=True, mask_check=True, *, rngs
) -> TransformerEncoder:
    """Copies of one layer, which start with the same parameters."""
    return TransformerEncoder(encoder_layer, num_layers, norm=norm, rngs=rngs)


@layer("torch.nn.TransformerDecoder")
def transformer_decoder_layer(decoder_layer, num_layers, norm=None, *, rngs) -> TransformerDecoder:
    """Copies of one layer, which start with the same parameters."""
    return TransformerDecoder(decoder_layer, num_layers, norm=norm, rngs=rngs)


@layer("torch.nn.Transformer")
def transformer_layer(
    d_model=512,
    nhead=8,
    num_encoder_layers=6,
    num_decoder_layers=6,
    dim_feedforward=2048,
    dropout=0.1,
    activation="relu",
    custom_encoder=None,
    custom_decoder=None,
    layer_norm_eps=1e-5,
    batch_first=False,
    norm_first=False,
    bias=True,
    device=None,
    dtype=None,
    *,
    rngs,
) -> Transformer:
    """Encoder and decoder stacks."""
    return Transformer(
        d_model=d_model,
        nhead=nhead,
        num_encoder_layers=num_encoder_layers,
        num_decoder_layers=num_decoder_layers,
        dim_feedforward=dim_feedforward,
        dropout=dropout,
        activation=activation,
        custom_encoder=custom_encoder,
        custom_decoder=custom_decoder,
        layer_norm_eps=layer_norm_eps,
        batch_first=batch_first,
        norm_first=norm_first,
        bias=bias,
        dtype=dtype or jnp.float32,
        rngs=rngs,
    )
