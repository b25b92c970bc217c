"""What model files import of timm: its stochastic depth."""

from __future__ import annotations

from rules.compat.timm_layers import DropPath as DropPathLayer
from rules.registry import layer


@layer("timm_layers.DropPath")
def DropPath(drop_prob=0.0, scale_by_keep=True, *, rngs) -> DropPathLayer:
    """Stochastic depth: whole samples are dropped in training."""
    return DropPathLayer(drop_prob, scale_by_keep=scale_by_keep, rngs=rngs)
