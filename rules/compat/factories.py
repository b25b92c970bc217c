"""Calls of what may or may not make a layer."""

from __future__ import annotations

import functools
import inspect

from flax import nnx


def build(make, *args, rngs, **kwargs):
    """``make(*args, **kwargs)``, with ``rngs`` where ``make`` takes it: a class, a function, a partial of either."""
    target = make
    while isinstance(target, functools.partial):
        target = target.func
    try:
        signature = inspect.signature(target.__init__ if isinstance(target, type) else target)
    except ValueError:  # a builtin
        return make(*args, **kwargs)
    if "rngs" in signature.parameters:
        kwargs["rngs"] = rngs
    return make(*args, **kwargs)


def declared(layer):
    """What is assigned where an attribute may be None: Flax asks that a layer which comes later is declared."""
    return nnx.data(layer) if nnx.is_data(layer) else layer
