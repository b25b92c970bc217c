"""torch's dropout family as functions; each draws from the ``dropout`` stream of ``rngs``."""

from __future__ import annotations

import math

import jax.numpy as jnp


def dropout(input, p=0.5, training=True, *, rngs=None):
    """In training, zero each element with probability ``p`` and scale the others by 1 / (1 - p)."""
    if not training or p == 0:
        return input
    keep = rngs.dropout.bernoulli(1 - p, input.shape)
    return jnp.where(keep, input * (1 / (1 - p) if p < 1 else 0.0), 0)


def feature_dropout(input, p=0.5, training=True, spatial=2, *, rngs=None):
    """In training, zero whole channels, whose elements are the last ``spatial`` axes."""
    if not training or p == 0:
        return input
    shape = input.shape[: input.ndim - spatial] + (1,) * spatial
    keep = rngs.dropout.bernoulli(1 - p, shape)
    return jnp.where(keep, input * (1 / (1 - p) if p < 1 else 0.0), 0)


def alpha_dropout(input, p=0.5, training=False, channels=False, *, rngs=None):
    """Dropout that keeps the mean and variance of SELU's output (Klambauer et al., 2017).

    Dropped elements (with ``channels``, whole channels of (N, C, …)) become SELU's lower limit,
    then all are rescaled: a · x + b.
    """
    if not training or p == 0:
        return input
    if p == 1:
        return input * 0
    limit = 1.7580993408473766  # SELU's scale times its alpha
    shape = input.shape[:2] + (1,) * (input.ndim - 2) if channels else input.shape
    keep = rngs.dropout.bernoulli(1 - p, shape)
    a = 1 / math.sqrt((limit**2 * p + 1) * (1 - p))
    return jnp.where(keep, input * a, -limit * a) + limit * a * p
