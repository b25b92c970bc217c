"""The layers of ``einops.layers.torch``: patterns as layers, and EinMix with its weights."""

from __future__ import annotations

import functools

import einops

from rules.compat.einmix import EinMix as EinMixLayer
from rules.registry import layer


@layer("einops.layers.torch.Rearrange")
def Rearrange(pattern, *, rngs=None, **axes_lengths) -> Callable:
    """``einops.rearrange`` by one pattern."""
    return functools.partial(einops.rearrange, pattern=pattern, **axes_lengths)


@layer("einops.layers.torch.Reduce")
def Reduce(pattern, reduction, *, rngs=None, **axes_lengths) -> Callable:
    """``einops.reduce`` by one pattern."""
    return functools.partial(einops.reduce, pattern=pattern, reduction=reduction, **axes_lengths)


@layer("einops.layers.torch.EinMix")
def EinMix(pattern, weight_shape, bias_shape=None, *, rngs, **axes_lengths) -> EinMixLayer:
    """An einsum with a weight, rearranged before and after as the pattern's parentheses say."""
    return EinMixLayer(pattern, weight_shape, bias_shape, rngs=rngs, **axes_lengths)
