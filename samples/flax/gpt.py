"""
A GPT-2 style language model: a decoder-only Transformer with a tied output layer.

References:
1) the official GPT-2 TensorFlow implementation released by OpenAI:
https://github.com/openai/gpt-2/blob/master/src/model.py
"""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from jax import lax


@dataclass
class GPTConfig:
    block_size: int = 64
    vocab_size: int = 96
    n_layer: int = 2
    n_head: int = 4
    n_embd: int = 32
    dropout: float = 0.0
    bias: bool = True  # True: bias in Linears and LayerNorms, like GPT-2
    flash: bool = False  # use the fused attention kernel


class CausalSelfAttention(nnx.Module):
    def __init__(self, config: GPTConfig, *, rngs: nnx.Rngs):
        self.deterministic = False
        self.rngs = rngs
        assert config.n_embd % config.n_head == 0
        # key, query, value projections for all heads, but in a batch
        self.c_attn = nnx.Linear(config.n_embd, 3 * config.n_embd, use_bias=config.bias, rngs=rngs)
        # output projection
        self.c_proj = nnx.Linear(config.n_embd, config.n_embd, use_bias=config.bias, rngs=rngs)
        # regularization
        self.attn_dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.resid_dropout = nnx.Dropout(config.dropout, rngs=rngs)
        self.n_head = config.n_head
        self.n_embd = config.n_embd
        self.dropout = config.dropout
        self.flash = config.flash
        # causal mask to ensure that attention is only applied to the left in the input sequence
        self.bias = nnx.Variable(
            jnp.tril(jnp.ones((config.block_size, config.block_size))).reshape(
                1, 1, config.block_size, config.block_size
            )
        )

    def __call__(self, x):
        B, T, C = x.shape  # batch size, sequence length, embedding dimensionality (n_embd)

        # calculate query, key, values for all heads in batch and move head forward to be the batch dim
        h2 = self.c_attn(x)
        q, k, v = jnp.split(h2, np.arange(self.n_embd, h2.shape[2], self.n_embd), axis=2)
        k = k.reshape(B, T, self.n_head, C // self.n_head).swapaxes(1, 2)  # (B, nh, T, hs)
        q = q.reshape(B, T, self.n_head, C // self.n_head).swapaxes(1, 2)  # (B, nh, T, hs)
        v = v.reshape(B, T, self.n_head, C // self.n_head).swapaxes(1, 2)  # (B, nh, T, hs)

        # causal self-attention; Self-attend: (B, nh, T, hs) x (B, nh, hs, T) -> (B, nh, T, T)
        if self.flash:
            wide = jnp.promote_types(q.dtype, jnp.float32)
            scores = jnp.matmul(q, k.mT, preferred_element_type=wide)
            scaled = scores / math.sqrt(q.shape[-1])
            causal = jnp.tril(jnp.ones((q.shape[-2], k.shape[-2]), bool))
            weights = jax.nn.softmax(jnp.where(causal, scaled, -jnp.inf))
            weights = nnx.Dropout(self.dropout if not self.deterministic else 0.0)(
                weights, rngs=self.rngs
            )
            y = weights.astype(q.dtype) @ v
        else:
            # manual implementation of attention
            att = (q @ k.swapaxes(-2, -1)) * (1.0 / math.sqrt(k.shape[-1]))
            att = jnp.where(self.bias[:, :, :T, :T] == 0, float("-inf"), att)
            att = jax.nn.softmax(att)
            att = self.attn_dropout(att)
            y = att @ v  # (B, nh, T, T) x (B, nh, T, hs) -> (B, nh, T, hs)
        # re-assemble all head outputs side by side
        y = y.swapaxes(1, 2).reshape(B, T, C)

        # output projection
        return self.resid_dropout(self.c_proj(y))


class MLP(nnx.Module):
    def __init__(self, config: GPTConfig, *, rngs: nnx.Rngs):
        self.c_fc = nnx.Linear(config.n_embd, 4 * config.n_embd, use_bias=config.bias, rngs=rngs)
        self.gelu = jax.nn.gelu
        self.c_proj = nnx.Linear(4 * config.n_embd, config.n_embd, use_bias=config.bias, rngs=rngs)
        self.dropout = nnx.Dropout(config.dropout, rngs=rngs)

    def __call__(self, x):
        x = self.c_fc(x)
        x = self.gelu(x)
        x = self.c_proj(x)
        x = self.dropout(x)
        return x


class Block(nnx.Module):
    def __init__(self, config: GPTConfig, *, rngs: nnx.Rngs):
        self.ln_1 = nnx.LayerNorm(
            config.n_embd, epsilon=1e-5, use_bias=config.bias, use_fast_variance=False, rngs=rngs
        )
        self.attn = CausalSelfAttention(config, rngs=rngs)
        self.ln_2 = nnx.LayerNorm(
            config.n_embd, epsilon=1e-5, use_bias=config.bias, use_fast_variance=False, rngs=rngs
        )
        self.mlp = MLP(config, rngs=rngs)

    def __call__(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlp(self.ln_2(x))
        return x


class GPT(nnx.Module):
    def __init__(self, config: GPTConfig, *, rngs: nnx.Rngs):
        self.rngs = rngs
        assert config.vocab_size is not None
        assert config.block_size is not None
        self.config = config

        self.transformer = nnx.Dict(
            dict(
                wte=nnx.Embed(config.vocab_size, config.n_embd, rngs=rngs),
                wpe=nnx.Embed(config.block_size, config.n_embd, rngs=rngs),
                drop=nnx.Dropout(config.dropout, rngs=rngs),
                h=nnx.List([Block(config, rngs=rngs) for _ in range(config.n_layer)]),
                ln_f=nnx.LayerNorm(
                    config.n_embd,
                    epsilon=1e-5,
                    use_bias=config.bias,
                    use_fast_variance=False,
                    rngs=rngs,
                ),
            )
        )
        # with weight tying the embedding and the output layer share one matrix
        self.lm_head = self.transformer.wte

        # init all weights
        for _, module in nnx.iter_modules(self):
            self._init_weights(module, rngs=rngs)

    def _init_weights(self, module, *, rngs: nnx.Rngs):
        if isinstance(module, nnx.Linear):
            module.kernel[...] = 0.02 * rngs.params.normal(module.kernel.shape, module.kernel.dtype)
            if module.bias is not None:
                module.bias[...] = jnp.zeros_like(module.bias[...])
        elif isinstance(module, nnx.Embed):
            module.embedding[...] = 0.02 * rngs.params.normal(
                module.embedding.shape, module.embedding.dtype
            )

    def __call__(self, idx, targets=None):
        b, t = idx.shape
        assert t <= self.config.block_size, (
            f"Cannot forward sequence of length {t}, block size is only {self.config.block_size}"
        )
        pos = jnp.arange(0, t, dtype=jnp.int32)  # shape (t)

        # forward the GPT model itself
        tok_emb = self.transformer.wte(idx)  # token embeddings of shape (b, t, n_embd)
        pos_emb = self.transformer.wpe(pos)  # position embeddings of shape (t, n_embd)
        x = self.transformer.drop(tok_emb + pos_emb)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        logits = self.lm_head.attend(x)

        # if we are given some desired targets also calculate the loss
        loss = None
        if targets is not None:
            target = targets.reshape(-1)
            log_p = jax.nn.log_softmax(logits.reshape(-1, logits.shape[-1]))
            nll = -jnp.take_along_axis(log_p, target[:, None], axis=1)
            loss = jnp.mean(nll, where=target[:, None] != -1)

        return logits, loss

    def generate(self, idx, max_new_tokens, temperature=1.0, top_k=None):
        """
        Take a conditioning sequence of indices idx (LongTensor of shape (b,t)) and complete
        the sequence max_new_tokens times, feeding the predictions back into the model each time.
        """
        for _ in range(max_new_tokens):
            # if the sequence context is growing too long we must crop it at block_size
            idx_cond = (
                idx if idx.shape[1] <= self.config.block_size else idx[:, -self.config.block_size :]
            )
            # forward the model to get the logits for the index in the sequence
            logits, _ = self(idx_cond)
            # pluck the logits at the final step and scale by desired temperature
            logits = logits[:, -1, :] / temperature
            # optionally crop the logits to only the top k options
            if top_k is not None:
                v, _ = lax.top_k(logits, min(top_k, logits.shape[-1]))
                logits = jnp.where(logits < v[:, jnp.array([-1])], -float("Inf"), logits)
            # apply softmax to convert logits to (normalized) probabilities
            probs = jax.nn.softmax(logits)
            # sample from the distribution
            idx_next = self.rngs.categorical(jnp.log(probs))[..., None]
            # append sampled index to the running sequence and continue
            idx = jnp.concatenate((idx, idx_next), axis=1)

        return jax.lax.stop_gradient(idx)


def gpt_small(*, rngs: nnx.Rngs, **overrides) -> GPT:
    """The default configuration, small enough for a test."""
    return GPT(GPTConfig(**overrides), rngs=rngs)
