"""An encoder-decoder Transformer in the manner of T5 (Raffel et al., 2019)."""

import math
from dataclasses import dataclass
from typing import Optional

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax


class Linear(nnx.Linear):
    """``nnx.Linear`` with torch's initialisation: U(±1/√in_features) for kernel and bias."""

    def __init__(self, in_features, out_features, *, rngs: nnx.Rngs, **options):
        bound = max(in_features, 1) ** -0.5
        init = jax.tree_util.Partial(jax.random.uniform, minval=-bound, maxval=bound)
        options = {"kernel_init": init, "bias_init": init, **options}
        super().__init__(in_features, out_features, rngs=rngs, **options)


def absolute(x: jax.Array) -> jax.Array:
    """|x|; its gradient at 0 is 0, in jnp.abs it is 1."""
    return jnp.where(x == 0, 0, jnp.abs(jnp.where(x == 0, 1, x)))


@dataclass
class T5Config:
    vocab_size: int = 96
    d_model: int = 32
    d_kv: int = 8
    d_ff: int = 64
    num_layers: int = 2
    num_heads: int = 4
    relative_attention_num_buckets: int = 32
    relative_attention_max_distance: int = 128
    dropout_rate: float = 0.0
    layer_norm_epsilon: float = 1e-6


class T5LayerNorm(nnx.Module):
    """Scale only, no mean subtraction and no bias."""

    def __init__(self, hidden_size, eps=1e-6, *, rngs: nnx.Rngs):
        self.weight = nnx.Param(jnp.ones((hidden_size,)))
        self.variance_epsilon = eps

    def __call__(self, hidden_states):
        variance = (hidden_states.astype(jnp.float32) ** 2).mean(axis=-1, keepdims=True)
        hidden_states = hidden_states * lax.rsqrt(variance + self.variance_epsilon)
        return self.weight[...] * hidden_states


class T5FeedForward(nnx.Module):
    def __init__(self, config: T5Config, *, rngs: nnx.Rngs):
        self.wi = Linear(config.d_model, config.d_ff, use_bias=False, rngs=rngs)
        self.wo = Linear(config.d_ff, config.d_model, use_bias=False, rngs=rngs)
        self.layer_norm = T5LayerNorm(config.d_model, eps=config.layer_norm_epsilon, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout_rate, rngs=rngs)

    def __call__(self, hidden_states):
        forwarded = self.wo(self.dropout(jax.nn.relu(self.wi(self.layer_norm(hidden_states)))))
        return hidden_states + self.dropout(forwarded)


class T5Attention(nnx.Module):
    def __init__(
        self,
        config: T5Config,
        is_decoder: bool,
        has_relative_attention_bias=False,
        *,
        rngs: nnx.Rngs,
    ):
        self.is_decoder = is_decoder
        self.has_relative_attention_bias = has_relative_attention_bias
        self.num_buckets = config.relative_attention_num_buckets
        self.max_distance = config.relative_attention_max_distance
        self.n_heads = config.num_heads
        self.d_kv = config.d_kv
        inner_dim = self.n_heads * self.d_kv
        self.q = Linear(config.d_model, inner_dim, use_bias=False, rngs=rngs)
        self.k = Linear(config.d_model, inner_dim, use_bias=False, rngs=rngs)
        self.v = Linear(config.d_model, inner_dim, use_bias=False, rngs=rngs)
        self.o = Linear(inner_dim, config.d_model, use_bias=False, rngs=rngs)
        if self.has_relative_attention_bias:
            self.relative_attention_bias = nnx.Embed(
                self.num_buckets,
                self.n_heads,
                embedding_init=nnx.initializers.normal(1.0),
                rngs=rngs,
            )

    @staticmethod
    def _relative_position_bucket(
        relative_position, bidirectional=True, num_buckets=32, max_distance=128
    ):
        """Bucket small distances one by one and larger ones by their logarithm."""
        relative_buckets = 0
        if bidirectional:
            num_buckets //= 2
            relative_buckets += (relative_position > 0).astype(jnp.int32) * num_buckets
            relative_position = absolute(relative_position)
        else:
            relative_position = -jnp.minimum(relative_position, jnp.zeros_like(relative_position))
        # now relative_position is in the range [0, inf)

        # half of the buckets are for exact increments in positions
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact

        # The other half of the buckets are for logarithmically bigger bins in positions
        relative_position_if_large = max_exact + (
            jnp.log(relative_position.astype(jnp.float32) / max_exact)
            / math.log(max_distance / max_exact)
            * (num_buckets - max_exact)
        ).astype(jnp.int32)
        relative_position_if_large = jnp.minimum(
            relative_position_if_large, jnp.full_like(relative_position_if_large, num_buckets - 1)
        )
        relative_buckets += jnp.where(is_small, relative_position, relative_position_if_large)
        return relative_buckets

    def compute_bias(self, query_length: int, key_length: int, device=None):
        """Position bias of shape (1, heads, query_length, key_length)."""
        context_position = jnp.arange(query_length, dtype=jnp.int32)[:, None]
        memory_position = jnp.arange(key_length, dtype=jnp.int32)[None, :]
        relative_position = memory_position - context_position
        buckets = self._relative_position_bucket(
            relative_position,
            bidirectional=not self.is_decoder,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
        )
        values = self.relative_attention_bias(buckets)  # (query_length, key_length, num_heads)
        return values.transpose([2, 0, 1])[None]

    def __call__(self, hidden_states, key_value_states=None, position_bias=None):
        source = hidden_states if key_value_states is None else key_value_states
        batch_size, seq_length = hidden_states.shape[:2]

        def shape(states):
            return states.reshape(batch_size, -1, self.n_heads, self.d_kv).swapaxes(1, 2)

        q, k, v = shape(self.q(hidden_states)), shape(self.k(source)), shape(self.v(source))
        # no scaling by sqrt(d): it is folded into the initialisation
        scores = q @ k.swapaxes(3, 2)
        if position_bias is not None:
            scores += position_bias
        attn_weights = jax.nn.softmax(scores.astype(jnp.float32)).astype(scores.dtype)
        attn_output = attn_weights @ v
        attn_output = attn_output.swapaxes(1, 2).reshape(batch_size, seq_length, -1)
        return self.o(attn_output)


class T5Block(nnx.Module):
    def __init__(
        self,
        config: T5Config,
        is_decoder: bool,
        has_relative_attention_bias: bool,
        *,
        rngs: nnx.Rngs,
    ):
        eps = config.layer_norm_epsilon
        self.is_decoder = is_decoder
        self.norm = T5LayerNorm(config.d_model, eps, rngs=rngs)
        self.self_attention = T5Attention(
            config, is_decoder, has_relative_attention_bias, rngs=rngs
        )
        if is_decoder:
            self.cross_norm = T5LayerNorm(config.d_model, eps, rngs=rngs)
            self.cross_attention = T5Attention(config, is_decoder, rngs=rngs)
        self.feed_forward = T5FeedForward(config, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout_rate, rngs=rngs)

    def __call__(self, x, position_bias, encoder_states: Optional[jax.Array] = None):
        attended = self.self_attention(self.norm(x), position_bias=position_bias)
        x = x + self.dropout(attended)
        if self.is_decoder and encoder_states is not None:
            attended = self.cross_attention(self.cross_norm(x), encoder_states)
            x = x + self.dropout(attended)
        return self.feed_forward(x)


class T5Stack(nnx.Module):
    def __init__(
        self, config: T5Config, embed_tokens: nnx.Embed, is_decoder: bool, *, rngs: nnx.Rngs
    ):
        self.is_decoder = is_decoder
        self.embed_tokens = embed_tokens
        self.block = nnx.List(
            [T5Block(config, is_decoder, bool(i == 0), rngs=rngs) for i in range(config.num_layers)]
        )
        self.final_layer_norm = T5LayerNorm(
            config.d_model, eps=config.layer_norm_epsilon, rngs=rngs
        )
        self.dropout = nnx.Dropout(config.dropout_rate, rngs=rngs)

    def __call__(self, input_ids, encoder_states=None):
        hidden_states = self.dropout(self.embed_tokens(input_ids))
        length = input_ids.shape[1]
        # the first layer owns the relative positions, all others share them
        bias = self.block[0].self_attention.compute_bias(length, length)
        if self.is_decoder:
            causal = jnp.triu(jnp.full((length, length), float("-inf")), k=1)
            bias = bias + causal
        for i, layer in enumerate(self.block):
            hidden_states = layer(hidden_states, bias, encoder_states)
        return self.dropout(self.final_layer_norm(hidden_states))


class T5(nnx.Module):
    """Sequence to sequence: logits over the vocabulary for every target position."""

    def __init__(self, config: T5Config, *, rngs: nnx.Rngs):
        self.config = config
        self.shared = nnx.Embed(
            config.vocab_size,
            config.d_model,
            embedding_init=nnx.initializers.normal(1.0),
            rngs=rngs,
        )
        self.encoder = T5Stack(config, self.shared, is_decoder=False, rngs=rngs)
        self.decoder = T5Stack(config, self.shared, is_decoder=True, rngs=rngs)
        self.shared.embedding[...] = rngs.normal(
            self.shared.embedding.shape, self.shared.embedding.dtype
        )

    def __call__(self, input_ids, decoder_input_ids):
        encoder_states = self.encoder(input_ids)
        sequence_output = self.decoder(decoder_input_ids, encoder_states)
        # rescale before projecting onto the vocabulary, since the embedding is tied
        sequence_output = sequence_output * (self.config.d_model**-0.5)
        return sequence_output @ self.shared.embedding[...].T


def t5_small(*, rngs: nnx.Rngs, **overrides) -> T5:
    """The default configuration, small enough for a test."""
    return T5(T5Config(**overrides), rngs=rngs)
