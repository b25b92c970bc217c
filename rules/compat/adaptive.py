"""Adaptive softmax (Grave et al., 2017) in static shapes."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from flax import nnx

from rules.compat.linear import Linear


class AdaptiveLogSoftmaxOutput(NamedTuple):
    """Log-probability of each target (N,) and their negative mean."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(nnx.Module):
    """Frequent classes in the head, the others in clusters with ever smaller projections.

    Shapes: input (N, in_features), target (N,), N optional. Every cluster is computed for every row.
    """

    def __init__(
        self,
        in_features,
        n_classes,
        cutoffs,
        div_value=4.0,
        head_bias=False,
        dtype=jnp.float32,
        *,
        rngs: nnx.Rngs,
    ):
        def linear(din, dout, bias=False):
            return Linear(din, dout, use_bias=bias, param_dtype=dtype, rngs=rngs)

        self.in_features, self.n_classes = in_features, n_classes
        self.cutoffs = (*cutoffs, n_classes)
        self.head = linear(in_features, cutoffs[0] + len(cutoffs), head_bias)
        self.tail = nnx.List()
        for i, low in enumerate(cutoffs):
            hidden = int(in_features // (div_value ** (i + 1)))
            projection = linear(in_features, hidden), linear(hidden, self.cutoffs[i + 1] - low)
            self.tail.append(nnx.List(projection))

    def __call__(self, input, target):
        if target.ndim == 0:
            output, loss = self(input[None], target[None])
            return AdaptiveLogSoftmaxOutput(output[0], loss)
        log_p = self.log_prob(input)
        output = jnp.take_along_axis(log_p, target[:, None], axis=1).squeeze(1)
        return AdaptiveLogSoftmaxOutput(output, -output.mean())

    def log_prob(self, input):
        """Log-probabilities of all classes: (N, in_features) → (N, n_classes)."""
        head = jax.nn.log_softmax(self.head(input))
        parts = [head[:, : self.cutoffs[0]]]
        for i, (project, classify) in enumerate(self.tail):
            cluster = head[:, self.cutoffs[0] + i, None]
            parts.append(cluster + jax.nn.log_softmax(classify(project(input))))
        return jnp.concatenate(parts, axis=1)

    def predict(self, input):
        """The likeliest class; a cluster's classes count where the cluster wins in the head."""
        best = jnp.argmax(self.head(input), axis=1)
        return jnp.where(best < self.cutoffs[0], best, jnp.argmax(self.log_prob(input), axis=1))
