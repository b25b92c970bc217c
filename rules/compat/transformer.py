"""torch.nn's Transformer (Vaswani et al., 2017) and its parts, with torch's names, masks and defaults."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from flax import nnx

from rules.compat.attention import MultiheadAttention
from rules.compat.linear import Linear

ACTIVATIONS = {"relu": jax.nn.relu, "gelu": functools.partial(jax.nn.gelu, approximate=False)}


class TransformerEncoderLayer(nnx.Module):
    """Self-attention and a feed-forward network, each with dropout, residual and layer norm.

    Shapes: src (S, N, d_model), batch first on request, N optional; a boolean mask is True where blocked.
    """

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        dtype=jnp.float32,
        *,
        rngs: nnx.Rngs,
    ):
        def linear(din, dout):
            return Linear(din, dout, use_bias=bias, param_dtype=dtype, rngs=rngs)

        def norm():
            options = {"epsilon": layer_norm_eps, "use_bias": bias, "use_fast_variance": False}
            return nnx.LayerNorm(d_model, param_dtype=dtype, rngs=rngs, **options)

        self.norm_first = norm_first
        named = isinstance(activation, str)
        self.activation = ACTIVATIONS[activation] if named else activation
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype, rngs=rngs
        )
        self.linear1, self.linear2 = (
            linear(d_model, dim_feedforward),
            linear(dim_feedforward, d_model),
        )
        self.norm1, self.norm2 = norm(), norm()
        self.dropout, self.dropout1, self.dropout2 = (
            nnx.Dropout(dropout, rngs=rngs) for _ in range(3)
        )

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]
        return self.dropout1(x)

    def _ff_block(self, x):
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout2(x)

    def __call__(self, src, src_mask=None, src_key_padding_mask=None, is_causal=False):
        masks = src_mask, src_key_padding_mask, is_causal
        if self.norm_first:
            x = src + self._sa_block(self.norm1(src), *masks)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(src + self._sa_block(src, *masks))
        return self.norm2(x + self._ff_block(x))


class TransformerDecoderLayer(nnx.Module):
    """Self-attention, attention to ``memory`` and a feed-forward network; shapes as in the encoder layer."""

    def __init__(
        self,
        d_model,
        nhead,
        dim_feedforward=2048,
        dropout=0.1,
        activation="relu",
        layer_norm_eps=1e-5,
        batch_first=False,
        norm_first=False,
        bias=True,
        dtype=jnp.float32,
        *,
        rngs: nnx.Rngs,
    ):
        def attention():
            return MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first, dtype=dtype, rngs=rngs
            )

        def linear(din, dout):
            return Linear(din, dout, use_bias=bias, param_dtype=dtype, rngs=rngs)

        def norm():
            options = {"epsilon": layer_norm_eps, "use_bias": bias, "use_fast_variance": False}
            return nnx.LayerNorm(d_model, param_dtype=dtype, rngs=rngs, **options)

        self.norm_first = norm_first
        named = isinstance(activation, str)
        self.activation = ACTIVATIONS[activation] if named else activation
        self.self_attn, self.multihead_attn = attention(), attention()
        self.linear1, self.linear2 = (
            linear(d_model, dim_feedforward),
            linear(dim_feedforward, d_model),
        )
        self.norm1, self.norm2, self.norm3 = norm(), norm(), norm()
        self.dropout, self.dropout1, self.dropout2, self.dropout3 = (
            nnx.Dropout(dropout, rngs=rngs) for _ in range(4)
        )

    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        x = self.self_attn(x, x, x, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]
        return self.dropout1(x)

    def _mha_block(self, x, mem, attn_mask, key_padding_mask, is_causal=False):
        attend = self.multihead_attn
        x = attend(x, mem, mem, key_padding_mask, False, attn_mask, is_causal=is_causal)[0]
        return self.dropout2(x)

    def _ff_block(self, x):
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return self.dropout3(x)

    def __call__(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=False,
        memory_is_causal=False,
    ):
        masks = tgt_mask, tgt_key_padding_mask, tgt_is_causal
        theirs = memory_mask, memory_key_padding_mask, memory_is_causal
        if self.norm_first:
            x = tgt + self._sa_block(self.norm1(tgt), *masks)
            x = x + self._mha_block(self.norm2(x), memory, *theirs)
            return x + self._ff_block(self.norm3(x))
        x = self.norm1(tgt + self._sa_block(tgt, *masks))
        x = self.norm2(x + self._mha_block(x, memory, *theirs))
        return self.norm3(x + self._ff_block(x))


def copies(layer, number, rngs):
    """Independent copies of a layer with the same parameters, each with its own dropout stream."""
    made = [nnx.clone(layer) for _ in range(number)]
    for _, node in nnx.iter_graph(made):
        if isinstance(node, nnx.RngKey):
            node[...] = rngs.dropout()
    return nnx.List(made)


class TransformerEncoder(nnx.Module):
    """``num_layers`` copies of a layer in a row, then ``norm``."""

    def __init__(self, encoder_layer, num_layers, norm=None, *, rngs: nnx.Rngs):
        self.layers, self.num_layers = copies(encoder_layer, num_layers, rngs), num_layers
        self.norm = norm

    def __call__(self, src, mask=None, src_key_padding_mask=None, is_causal=None):
        causal = {"is_causal": True} if is_causal else {}
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, **causal)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(nnx.Module):
    """``num_layers`` copies of a layer in a row, then ``norm``."""

    def __init__(self, decoder_layer, num_layers, norm=None, *, rngs: nnx.Rngs):
        self.layers, self.num_layers = copies(decoder_layer, num_layers, rngs), num_layers
        self.norm = norm

    def __call__(
        self,
        tgt,
        memory,
        tgt_mask=None,
        memory_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=bool(tgt_is_causal),
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(nnx.Module):
    """Encoder and decoder stacks; matrices start xavier-uniform."""

    def __init__(
        self,
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
        dtype=jnp.float32,
        *,
        rngs: nnx.Rngs,
    ):
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

        def stack(stack_class, layer_class, number):
            layer = layer_class(
                d_model,
                nhead,
                dim_feedforward,
                dropout,
                activation,
                layer_norm_eps,
                batch_first,
                norm_first,
                bias,
                dtype,
                rngs=rngs,
            )
            options = {"epsilon": layer_norm_eps, "use_bias": bias, "use_fast_variance": False}
            norm = nnx.LayerNorm(d_model, param_dtype=dtype, rngs=rngs, **options)
            return stack_class(layer, number, norm, rngs=rngs)

        self.encoder = custom_encoder or stack(
            TransformerEncoder, TransformerEncoderLayer, num_encoder_layers
        )
        self.decoder = custom_decoder or stack(
            TransformerDecoder, TransformerDecoderLayer, num_decoder_layers
        )
        xavier = nnx.initializers.xavier_uniform()
        drawn = jax.tree.map(
            lambda p: xavier(rngs.params(), p.shape, p.dtype) if p.ndim > 1 else p,
            nnx.state(self, nnx.Param),
        )
        nnx.update(self, drawn)

    def __call__(
        self,
        src,
        tgt,
        src_mask=None,
        tgt_mask=None,
        memory_mask=None,
        src_key_padding_mask=None,
        tgt_key_padding_mask=None,
        memory_key_padding_mask=None,
        src_is_causal=None,
        tgt_is_causal=None,
        memory_is_causal=False,
    ):
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz, dtype=jnp.float32):
        """(sz, sz): 0 on and below the diagonal, -inf above."""
        return jnp.triu(jnp.full((sz, sz), -jnp.inf, dtype), 1)
