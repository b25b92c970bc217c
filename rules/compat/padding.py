"""torch.nn.functional.pad: pairs from the last axis on, negative amounts crop, four modes."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax


def pad_axes(input, pad, mode="constant", value=None):
    """Pad or crop the last axes by ``pad`` = (before, after) of the last axis, of the one before, …"""
    pairs = [(0, 0)] * (input.ndim - len(pad) // 2)
    pairs += zip(pad[-2::-2], pad[::-2], strict=True)
    if mode == "constant":
        fill = jnp.asarray(value or 0, input.dtype)
        return lax.pad(input, fill, [(before, after, 0) for before, after in pairs])
    crop = [(min(before, 0), min(after, 0), 0) for before, after in pairs]
    grow = [(max(before, 0), max(after, 0)) for before, after in pairs]
    if mode == "circular":
        return jnp.pad(lax.pad(input, jnp.zeros((), input.dtype), crop), grow, mode="wrap")
    grown = jnp.pad(input, grow, mode={"reflect": "reflect", "replicate": "edge"}[mode])
    return lax.pad(grown, jnp.zeros((), input.dtype), crop)
