"""What model files import of timm: its stochastic depth as a function."""

from __future__ import annotations

from rules.compat.timm_layers import drop_path as compat_drop_path
from rules.registry import op


@op("timm_layers.drop_path")
def drop_path(x, drop_prob=0.0, training=False, scale_by_keep=True, *, rngs) -> Tensor["same"]:
    """Stochastic depth: whole samples are dropped in training."""
    return compat_drop_path(x, drop_prob, training, scale_by_keep, rngs=rngs)
