"""The dropout family."""

from __future__ import annotations

from flax import nnx

from rules.compat.dropout_layers import (
    AlphaDropout,
    Dropout1d,
    Dropout2d,
    Dropout3d,
    FeatureAlphaDropout,
)
from rules.registry import layer


@layer("torch.nn.Dropout", example={"nn.Dropout(0.1)": "nnx.Dropout(0.1, rngs=rngs)"})
def Dropout(p=0.5, inplace=False, *, rngs) -> nnx.Dropout:
    """Both scale what is kept by 1 / (1 − p); each layer has its own stream."""
    return nnx.Dropout(p, rngs=rngs)


@layer("torch.nn.Dropout1d")
def dropout1d_layer(p=0.5, inplace=False, *, rngs) -> Dropout1d:
    """Whole channels of (N, C, L)."""
    return Dropout1d(p, rngs=rngs)


@layer("torch.nn.Dropout2d", example={"nn.Dropout2d(0.1)": "Dropout2d(0.1, rngs=rngs)"})
def dropout2d_layer(p=0.5, inplace=False, *, rngs) -> Dropout2d:
    """Whole channels of (N, C, H, W)."""
    return Dropout2d(p, rngs=rngs)


@layer("torch.nn.Dropout3d")
def dropout3d_layer(p=0.5, inplace=False, *, rngs) -> Dropout3d:
    """Whole channels of (N, C, D, H, W)."""
    return Dropout3d(p, rngs=rngs)


@layer("torch.nn.AlphaDropout")
def alpha_dropout_layer(p=0.5, inplace=False, *, rngs) -> AlphaDropout:
    """Keeps the mean and variance of SELU's output."""
    return AlphaDropout(p, rngs=rngs)


@layer("torch.nn.FeatureAlphaDropout")
def feature_alpha_dropout_layer(p=0.5, inplace=False, *, rngs) -> FeatureAlphaDropout:
    """Whole channels, keeping the mean and variance of SELU's output."""
    return FeatureAlphaDropout(p, rngs=rngs)
