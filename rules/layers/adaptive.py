"""Adaptive softmax."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.adaptive import AdaptiveLogSoftmaxWithLoss
from rules.registry import layer


@layer("torch.nn.AdaptiveLogSoftmaxWithLoss", call="tuple[Tensor, Tensor]")
def adaptive_log_softmax_layer(
    in_features,
    n_classes,
    cutoffs,
    div_value=4.0,
    head_bias=False,
    device=None,
    dtype=None,
    *,
    rngs,
) -> AdaptiveLogSoftmaxWithLoss:
    """Computes every cluster for every row, so that shapes are static."""
    return AdaptiveLogSoftmaxWithLoss(
        in_features,
        n_classes,
        cutoffs,
        div_value=div_value,
        head_bias=head_bias,
        dtype=dtype or jnp.float32,
        rngs=rngs,
    )
