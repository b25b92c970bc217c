"""An encoder-decoder Transformer in the manner of T5 (Raffel et al., 2019)."""

import math
from dataclasses import dataclass
from typing import Optional

import torch
import torch.nn.functional as F
from torch import nn


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


class T5LayerNorm(nn.Module):
    """Scale only, no mean subtraction and no bias."""

    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.to(torch.float32).pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * hidden_states


class T5FeedForward(nn.Module):
    def __init__(self, config: T5Config):
        super().__init__()
        self.wi = nn.Linear(config.d_model, config.d_ff, bias=False)
        self.wo = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.layer_norm = T5LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, hidden_states):
        forwarded = self.wo(self.dropout(F.relu(self.wi(self.layer_norm(hidden_states)))))
        return hidden_states + self.dropout(forwarded)


class T5Attention(nn.Module):
    def __init__(self, config: T5Config, is_decoder: bool, has_relative_attention_bias=False):
        super().__init__()
        self.is_decoder = is_decoder
        self.has_relative_attention_bias = has_relative_attention_bias
        self.num_buckets = config.relative_attention_num_buckets
        self.max_distance = config.relative_attention_max_distance
        self.n_heads = config.num_heads
        self.d_kv = config.d_kv
        inner_dim = self.n_heads * self.d_kv
        self.q = nn.Linear(config.d_model, inner_dim, bias=False)
        self.k = nn.Linear(config.d_model, inner_dim, bias=False)
        self.v = nn.Linear(config.d_model, inner_dim, bias=False)
        self.o = nn.Linear(inner_dim, config.d_model, bias=False)
        if self.has_relative_attention_bias:
            self.relative_attention_bias = nn.Embedding(self.num_buckets, self.n_heads)

    @staticmethod
    def _relative_position_bucket(
        relative_position, bidirectional=True, num_buckets=32, max_distance=128
    ):
        """Bucket small distances one by one and larger ones by their logarithm."""
        relative_buckets = 0
        if bidirectional:
            num_buckets //= 2
            relative_buckets += (relative_position > 0).to(torch.long) * num_buckets
            relative_position = torch.abs(relative_position)
        else:
            relative_position = -torch.min(relative_position, torch.zeros_like(relative_position))
        # now relative_position is in the range [0, inf)

        # half of the buckets are for exact increments in positions
        max_exact = num_buckets // 2
        is_small = relative_position < max_exact

        # The other half of the buckets are for logarithmically bigger bins in positions
        relative_position_if_large = max_exact + (
            torch.log(relative_position.float() / max_exact)
            / math.log(max_distance / max_exact)
            * (num_buckets - max_exact)
        ).to(torch.long)
        relative_position_if_large = torch.min(
            relative_position_if_large,
            torch.full_like(relative_position_if_large, num_buckets - 1),
        )
        relative_buckets += torch.where(is_small, relative_position, relative_position_if_large)
        return relative_buckets

    def compute_bias(self, query_length: int, key_length: int, device=None):
        """Position bias of shape (1, heads, query_length, key_length)."""
        context_position = torch.arange(query_length, dtype=torch.long, device=device)[:, None]
        memory_position = torch.arange(key_length, dtype=torch.long, device=device)[None, :]
        relative_position = memory_position - context_position
        buckets = self._relative_position_bucket(
            relative_position,
            bidirectional=not self.is_decoder,
            num_buckets=self.num_buckets,
            max_distance=self.max_distance,
        )
        values = self.relative_attention_bias(buckets)  # (query_length, key_length, num_heads)
        return values.permute([2, 0, 1]).unsqueeze(0)

    def forward(self, hidden_states, key_value_states=None, position_bias=None):
        source = hidden_states if key_value_states is None else key_value_states
        batch_size, seq_length = hidden_states.shape[:2]

        def shape(states):
            return states.view(batch_size, -1, self.n_heads, self.d_kv).transpose(1, 2)

        q, k, v = shape(self.q(hidden_states)), shape(self.k(source)), shape(self.v(source))
        # no scaling by sqrt(d): it is folded into the initialisation
        scores = torch.matmul(q, k.transpose(3, 2))
        if position_bias is not None:
            scores += position_bias
        attn_weights = F.softmax(scores.float(), dim=-1).type_as(scores)
        attn_output = torch.matmul(attn_weights, v)
        attn_output = attn_output.transpose(1, 2).reshape(batch_size, seq_length, -1)
        return self.o(attn_output)


class T5Block(nn.Module):
    def __init__(self, config: T5Config, is_decoder: bool, has_relative_attention_bias: bool):
        super().__init__()
        eps = config.layer_norm_epsilon
        self.is_decoder = is_decoder
        self.norm = T5LayerNorm(config.d_model, eps)
        self.self_attention = T5Attention(config, is_decoder, has_relative_attention_bias)
        if is_decoder:
            self.cross_norm = T5LayerNorm(config.d_model, eps)
            self.cross_attention = T5Attention(config, is_decoder)
        self.feed_forward = T5FeedForward(config)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, x, position_bias, encoder_states: Optional[torch.Tensor] = None):
        attended = self.self_attention(self.norm(x), position_bias=position_bias)
        x = x + self.dropout(attended)
        if self.is_decoder and encoder_states is not None:
            attended = self.cross_attention(self.cross_norm(x), encoder_states)
            x = x + self.dropout(attended)
        return self.feed_forward(x)


class T5Stack(nn.Module):
    def __init__(self, config: T5Config, embed_tokens: nn.Embedding, is_decoder: bool):
        super().__init__()
        self.is_decoder = is_decoder
        self.embed_tokens = embed_tokens
        self.block = nn.ModuleList(
            [T5Block(config, is_decoder, bool(i == 0)) for i in range(config.num_layers)]
        )
        self.final_layer_norm = T5LayerNorm(config.d_model, eps=config.layer_norm_epsilon)
        self.dropout = nn.Dropout(config.dropout_rate)

    def forward(self, input_ids, encoder_states=None):
        hidden_states = self.dropout(self.embed_tokens(input_ids))
        length = input_ids.shape[1]
        # the first layer owns the relative positions, all others share them
        bias = self.block[0].self_attention.compute_bias(length, length, device=input_ids.device)
        if self.is_decoder:
            causal = torch.triu(torch.full((length, length), float("-inf")), diagonal=1)
            bias = bias + causal.to(bias.device)
        for i, layer in enumerate(self.block):
            hidden_states = layer(hidden_states, bias, encoder_states)
        return self.dropout(self.final_layer_norm(hidden_states))


class T5(nn.Module):
    """Sequence to sequence: logits over the vocabulary for every target position."""

    def __init__(self, config: T5Config):
        super().__init__()
        self.config = config
        self.shared = nn.Embedding(config.vocab_size, config.d_model)
        self.encoder = T5Stack(config, self.shared, is_decoder=False)
        self.decoder = T5Stack(config, self.shared, is_decoder=True)
        self.shared.weight.data.normal_(mean=0.0, std=1.0)

    def forward(self, input_ids, decoder_input_ids):
        encoder_states = self.encoder(input_ids)
        sequence_output = self.decoder(decoder_input_ids, encoder_states)
        # rescale before projecting onto the vocabulary, since the embedding is tied
        sequence_output = sequence_output * (self.config.d_model**-0.5)
        return F.linear(sequence_output, self.shared.weight)


def t5_small(**overrides) -> T5:
    """The default configuration, small enough for a test."""
    return T5(T5Config(**overrides))
