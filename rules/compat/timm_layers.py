"""The small parts of timm that model files import: stochastic depth, tuples, and the settings of a checkpoint."""

from __future__ import annotations

from collections.abc import Iterable

import jax.numpy as jnp
from flax import nnx


def drop_path(x, drop_prob=0.0, training=False, scale_by_keep=True, *, rngs=None):
    """Stochastic depth (Huang et al., 2016): in training, zero whole samples of (N, …) with ``drop_prob``."""
    if not training or drop_prob == 0:
        return x
    keep = 1 - drop_prob
    kept = rngs.dropout.bernoulli(keep, (x.shape[0],) + (1,) * (x.ndim - 1))
    return jnp.where(kept, x / keep if keep > 0 and scale_by_keep else x, 0 * x)


class DropPath(nnx.Module):
    """Stochastic depth (Huang et al., 2016): in training, zeroes whole samples of (N, …) with ``drop_prob``."""

    def __init__(self, drop_prob=0.0, scale_by_keep=True, *, rngs: nnx.Rngs):
        self.drop_prob = drop_prob
        self.scale_by_keep = scale_by_keep
        self.deterministic = False
        self.rngs = rngs.dropout.fork()

    def __call__(self, x):
        if self.deterministic or self.drop_prob == 0:
            return x
        keep = 1 - self.drop_prob
        kept = self.rngs.bernoulli(keep, (x.shape[0],) + (1,) * (x.ndim - 1))
        return jnp.where(kept, x / keep if keep > 0 and self.scale_by_keep else x, 0 * x)


def to_ntuple(n):
    """A function that gives tuples: of what can be iterated over, else of n times the value."""

    def parse(x):
        if isinstance(x, Iterable) and not isinstance(x, str):
            return tuple(x)
        return (x,) * n

    return parse


def to_1tuple(x):
    """A tuple of what can be iterated over, else of the value."""
    return tuple(x) if isinstance(x, Iterable) and not isinstance(x, str) else (x,)


def to_2tuple(x):
    """A tuple of what can be iterated over, else of two times the value."""
    return tuple(x) if isinstance(x, Iterable) and not isinstance(x, str) else (x, x)


def to_3tuple(x):
    """A tuple of what can be iterated over, else of three times the value."""
    return tuple(x) if isinstance(x, Iterable) and not isinstance(x, str) else (x, x, x)


def to_4tuple(x):
    """A tuple of what can be iterated over, else of four times the value."""
    return tuple(x) if isinstance(x, Iterable) and not isinstance(x, str) else (x, x, x, x)


def make_divisible(v, divisor=8, min_value=None, round_limit=0.9):
    """The multiple of ``divisor`` nearest to v, not below ``round_limit`` times v."""
    new_v = max(min_value or divisor, int(v + divisor / 2) // divisor * divisor)
    return new_v + divisor if new_v < round_limit * v else new_v


def _cfg(url="", **kwargs):
    """What timm notes beside a vision transformer of where its weights are and what they were trained on."""
    return {
        "url": url,
        "num_classes": 1000,
        "input_size": (3, 224, 224),
        "pool_size": None,
        "crop_pct": 0.9,
        "interpolation": "bicubic",
        "fixed_input_size": True,
        "mean": (0.5, 0.5, 0.5),
        "std": (0.5, 0.5, 0.5),
        "first_conv": "patch_embed.proj",
        "classifier": "head",
        "license": "apache-2.0",
        **kwargs,
    }
