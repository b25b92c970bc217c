"""The few words of the rule language that a copied definition may still need."""

from __future__ import annotations

import jax.numpy as jnp


def sizes(args, scalar=False):
    """The one sequence meant by ``f(2, 3)`` and by ``f((2, 3))``."""
    if len(args) == 1 and not hasattr(args[0], "__index__"):
        return args[0]
    return tuple(args)


def axes(dim, x):
    """A reduction's ``dim`` as an axis: a tuple for a list, None (all axes) for an empty one."""
    if isinstance(dim, (tuple, list)):
        return tuple(dim) if dim and x.ndim else None
    return dim if x.ndim else None


def as_axes(dim):
    """The ``dim`` of a reduction as an axis: torch takes ``()`` for all axes, and lists, too."""
    return tuple(dim) or None if isinstance(dim, (tuple, list)) else dim


def surely(test):
    """The truth of a test."""
    return bool(test)


def is_tensor(value):
    """Whether a value is an array, not a Python number."""
    return hasattr(value, "dtype") and hasattr(value, "ndim")


def is_float(value):
    """Whether an array or number is real floating point."""
    return jnp.issubdtype(jnp.result_type(value), jnp.floating)


def is_integer(value):
    """Whether an array or number is an integer."""
    return jnp.issubdtype(jnp.result_type(value), jnp.integer)


def is_bool(value):
    """Whether an array or value is boolean."""
    return jnp.result_type(value) == jnp.bool_


def is_complex(value):
    """Whether an array or number is complex."""
    return jnp.issubdtype(jnp.result_type(value), jnp.complexfloating)
