"""Dropout layers that nnx lacks: whole channels, and those that keep SELU's statistics."""

from __future__ import annotations

import math

import jax.numpy as jnp
from flax import nnx


class FeatureDropout(nnx.Module):
    """Zeroes whole channels of (N, C, …) with probability ``p``; of (C, …) where the rank is not ``batched``."""

    batched: int | None = None

    def __init__(self, p=0.5, *, rngs: nnx.Rngs):
        self.p = p
        self.deterministic = False
        self.rngs = rngs.dropout.fork()

    def __call__(self, input):
        if self.deterministic or self.p == 0:
            return input
        channels = input.shape[: 2 if self.batched in (None, input.ndim) else 1]
        keep = self.rngs.bernoulli(1 - self.p, channels + (1,) * (input.ndim - len(channels)))
        return jnp.where(keep, input / (1 - self.p) if self.p < 1 else 0 * input, 0)


class Dropout1d(FeatureDropout):
    """Zeroes whole channels of (N, C, L) or (C, L)."""

    batched = 3


class Dropout2d(FeatureDropout):
    """Zeroes whole channels of (N, C, H, W); of (N, C, L) and (N, C), too, as torch does."""


class Dropout3d(FeatureDropout):
    """Zeroes whole channels of (N, C, D, H, W) or (C, D, H, W)."""

    batched = 5


class AlphaDropout(nnx.Module):
    """Dropout that keeps the mean and variance of SELU's output (Klambauer et al., 2017)."""

    channels = False

    def __init__(self, p=0.5, *, rngs: nnx.Rngs):
        self.p = p
        self.deterministic = False
        self.rngs = rngs.dropout.fork()

    def __call__(self, input):
        if self.deterministic or self.p == 0:
            return input
        if self.p == 1:
            return 0 * input
        limit = 1.7580993408473766  # SELU's scale times its alpha
        shape = input.shape[:2] + (1,) * (input.ndim - 2) if self.channels else input.shape
        a = 1 / math.sqrt((limit**2 * self.p + 1) * (1 - self.p))
        keep = self.rngs.bernoulli(1 - self.p, shape)
        return jnp.where(keep, input * a, -limit * a) + limit * a * self.p


class FeatureAlphaDropout(AlphaDropout):
    """``AlphaDropout`` of whole channels of (N, C, *spatial)."""

    channels = True
