"""A Transformer feed-forward layer made of sparsely routed experts (Shazeer et al., 2017).

The routing gathers the tokens of each expert by a boolean mask, so shapes depend on the data.
"""

from typing import NamedTuple

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


def max_along(x: jax.Array, axis: int) -> jax.Array:
    """Largest elements along ``axis``; of equal ones the first has all the gradient."""
    values = jnp.take_along_axis(x, x.argmax(axis=axis, keepdims=True), axis=axis)
    return values.squeeze(axis)


class Routing(NamedTuple):
    """Which experts each token goes to, how much each counts, and the router's probabilities."""

    weights: jax.Array
    experts: jax.Array
    probs: jax.Array


class Expert(nnx.Module):
    """Gated feed-forward network."""

    def __init__(self, dim: int, hidden_dim: int, *, rngs: nnx.Rngs):
        self.w1 = Linear(dim, hidden_dim, use_bias=False, rngs=rngs)
        self.w2 = Linear(hidden_dim, dim, use_bias=False, rngs=rngs)
        self.w3 = Linear(dim, hidden_dim, use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.w2(jax.nn.silu(self.w1(x)) * self.w3(x))


class TopKRouter(nnx.Module):
    """Sends every token to its k most probable experts."""

    def __init__(self, dim: int, num_experts: int, top_k: int, *, rngs: nnx.Rngs):
        self.top_k = top_k
        self.gate = Linear(dim, num_experts, use_bias=False, rngs=rngs)

    def __call__(self, x: jax.Array) -> Routing:
        probs = jax.nn.softmax(self.gate(x))
        weights, experts = lax.top_k(probs, self.top_k)
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return Routing(weights, experts, probs)


class MixtureOfExperts(nnx.Module):
    """
    Args:
        dim: size of a token
        hidden_dim: inner size of an expert
        num_experts: how many experts there are
        top_k: how many experts a token visits
    """

    def __init__(
        self,
        dim: int = 16,
        hidden_dim: int = 32,
        num_experts: int = 4,
        top_k: int = 2,
        *,
        rngs: nnx.Rngs,
    ):
        self.num_experts = num_experts
        self.router = TopKRouter(dim, num_experts, top_k, rngs=rngs)
        self.experts = nnx.List([Expert(dim, hidden_dim, rngs=rngs) for _ in range(num_experts)])

    def __call__(self, x: jax.Array):
        batch, length, dim = x.shape
        x = x.reshape(-1, dim)
        routing = self.router(x)

        out = jnp.zeros_like(x)
        for i, expert in enumerate(self.experts):
            # which tokens chose this expert, and as which of their choices
            mask2 = routing.experts == i
            token_idx, choice = jnp.nonzero(mask2, size=mask2.size)
            found = jnp.arange(mask2.size) < jnp.count_nonzero(mask2)
            weight = routing.weights[token_idx, choice, None]
            out = out.at[jnp.where(found, token_idx, out.shape[0])].add(
                weight * expert(x[token_idx])
            )

        return out.reshape(batch, length, dim), self.load_balancing_loss(routing)

    def load_balancing_loss(self, routing: Routing) -> jax.Array:
        """Product of the share of tokens and the mean probability of each expert, summed."""
        chosen = jax.nn.one_hot(routing.experts, self.num_experts, dtype=jnp.int32).astype(
            jnp.float32
        )
        tokens_per_expert = chosen.sum(axis=1).mean(axis=0)
        prob_per_expert = routing.probs.mean(axis=0)
        return self.num_experts * (tokens_per_expert * prob_per_expert).sum()

    def confident_tokens(self, x: jax.Array, threshold: float = 0.5) -> jax.Array:
        """The tokens whose first expert has more than the given probability."""
        x = x.reshape(-1, *x.shape[2:])
        h = self.router(x).probs
        best = max_along(h, -1)
        mask = best > threshold
        # TODO(migrate): DYN001 indexing by a boolean mask gives a shape that depends on the data; return `x` together with `mask`, or keep the shape with `jnp.where(mask, x, 0)` (`mask` widened to the rank of `x`) and leave the rest out where it is reduced; with a bound n: `x[jnp.nonzero(mask, size=n, fill_value=0)]`
        return x[mask]


class MoEBlock(nnx.Module):
    """Pre-norm residual block around the experts."""

    def __init__(self, dim: int = 16, dropout: float = 0.0, *, rngs: nnx.Rngs, **moe_kwargs):
        self.norm = nnx.LayerNorm(dim, epsilon=1e-5, use_fast_variance=False, rngs=rngs)
        self.moe = MixtureOfExperts(dim, rngs=rngs, **moe_kwargs)
        self.dropout = nnx.Dropout(dropout, rngs=rngs)

    def __call__(self, x: jax.Array):
        hidden, aux_loss = self.moe(self.norm(x))
        return x + self.dropout(hidden), aux_loss
