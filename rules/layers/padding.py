"""Padding layers: a ``functools.partial`` of ``pad`` stands for the layer."""

from __future__ import annotations

import functools

from rules.compat.layer_functions import pad_sides
from rules.registry import layer


@layer("torch.nn.ZeroPad1d")
def ZeroPad1d(padding, *, rngs=None) -> Callable:
    """Zeros before and after each of the last 1 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=1, padding=padding)


@layer("torch.nn.ZeroPad2d")
def ZeroPad2d(padding, *, rngs=None) -> Callable:
    """Zeros before and after each of the last 2 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=2, padding=padding)


@layer("torch.nn.ZeroPad3d")
def ZeroPad3d(padding, *, rngs=None) -> Callable:
    """Zeros before and after each of the last 3 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=3, padding=padding)


@layer("torch.nn.ConstantPad1d")
def ConstantPad1d(padding, value, *, rngs=None) -> Callable:
    """A constant before and after each of the last 1 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=1, padding=padding, value=value)


@layer("torch.nn.ConstantPad2d")
def ConstantPad2d(padding, value, *, rngs=None) -> Callable:
    """A constant before and after each of the last 2 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=2, padding=padding, value=value)


@layer("torch.nn.ConstantPad3d")
def ConstantPad3d(padding, value, *, rngs=None) -> Callable:
    """A constant before and after each of the last 3 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=3, padding=padding, value=value)


@layer("torch.nn.ReflectionPad1d")
def ReflectionPad1d(padding, *, rngs=None) -> Callable:
    """The input mirrored before and after each of the last 1 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=1, padding=padding, mode="reflect")


@layer(
    "torch.nn.ReflectionPad2d",
    example={
        "nn.ReflectionPad2d(1)": 'functools.partial(pad_sides, rank=2, padding=1, mode="reflect")'
    },
)
def ReflectionPad2d(padding, *, rngs=None) -> Callable:
    """The input mirrored before and after each of the last 2 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=2, padding=padding, mode="reflect")


@layer("torch.nn.ReflectionPad3d")
def ReflectionPad3d(padding, *, rngs=None) -> Callable:
    """The input mirrored before and after each of the last 3 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=3, padding=padding, mode="reflect")


@layer("torch.nn.ReplicationPad1d")
def ReplicationPad1d(padding, *, rngs=None) -> Callable:
    """The edge repeated before and after each of the last 1 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=1, padding=padding, mode="replicate")


@layer("torch.nn.ReplicationPad2d")
def ReplicationPad2d(padding, *, rngs=None) -> Callable:
    """The edge repeated before and after each of the last 2 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=2, padding=padding, mode="replicate")


@layer("torch.nn.ReplicationPad3d")
def ReplicationPad3d(padding, *, rngs=None) -> Callable:
    """The edge repeated before and after each of the last 3 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=3, padding=padding, mode="replicate")


@layer("torch.nn.CircularPad1d")
def CircularPad1d(padding, *, rngs=None) -> Callable:
    """The input wrapped around before and after each of the last 1 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=1, padding=padding, mode="circular")


@layer("torch.nn.CircularPad2d")
def CircularPad2d(padding, *, rngs=None) -> Callable:
    """The input wrapped around before and after each of the last 2 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=2, padding=padding, mode="circular")


@layer("torch.nn.CircularPad3d")
def CircularPad3d(padding, *, rngs=None) -> Callable:
    """The input wrapped around before and after each of the last 3 axes; a tuple starts with the last axis."""
    return functools.partial(pad_sides, rank=3, padding=padding, mode="circular")
