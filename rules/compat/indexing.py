"""Reading and writing along one axis with torch's index shapes."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rules.compat.masks import set_at


def along_axis(index: jax.Array, axis: int) -> tuple[jax.Array, ...]:
    """The subscript of the places ``index`` along ``axis``; elsewhere each place keeps its own position.

    ``x[along_axis(index, axis)]`` has the shape of ``index``, which may be shorter than ``x`` on the other
    axes (``jnp.take_along_axis`` would broadcast a 1 there).
    """
    places = list(jnp.indices(index.shape, sparse=True))
    places[axis] = index
    return tuple(places)


def at_places(src: jax.Array, index: jax.Array) -> jax.Array:
    """The part of ``src`` that the places ``index`` have a use for, the first along each axis; a number for all."""
    return src if jnp.ndim(src) == 0 else src[tuple(map(slice, index.shape))]


def masked_scatter(x: jax.Array, mask: jax.Array, source: jax.Array) -> jax.Array:
    """Puts the elements of ``source``, in order, where ``mask`` is true; all shapes stay static."""
    shape = jnp.broadcast_shapes(x.shape, mask.shape)
    if source.size == 0:
        return jnp.broadcast_to(x, shape)
    mask = jnp.broadcast_to(mask, shape)
    position = jnp.cumsum(mask.reshape(-1)) - 1
    return jnp.where(mask, source.reshape(-1)[position].reshape(shape), x)


def whole(index):
    """An index that stands alone: a list of numbers is one of places, one of anything else stands for a tuple."""
    if not isinstance(index, list):
        return index
    if len(index) >= 32 or all(isinstance(one, (int, np.number)) for one in index):
        return np.asarray(index)
    return tuple(np.asarray(one) if isinstance(one, (list, tuple)) else one for one in index)


def picked(arrays, index: jax.Array):
    """``arrays[index]`` of a list of arrays, which have one shape where the index is only traced."""
    try:
        return arrays[int(np.asarray(index).reshape(()))]
    except jax.errors.TracerArrayConversionError:
        if len({one.dtype for one in arrays}) > 1:
            raise TypeError(
                "arrays of several dtypes, and the place of one is only traced"
            ) from None
        return jnp.stack(arrays)[jnp.reshape(index, ())]


def with_item(input, index, value):
    """``input[index] = value`` for an array, or a list, which is written to; returns what holds the value."""
    if isinstance(input, jax.Array):
        parts = index if isinstance(index, tuple) else (index,)
        parts = tuple(np.asarray(one) if isinstance(one, list) else one for one in parts)
        value = jnp.asarray(value).astype(input.dtype)
        return set_at(input, parts, value) if value.ndim == 0 else input.at[parts].set(value)
    input[index] = value
    return input


def set_within(x: jax.Array, index, value) -> jax.Array:
    """``x[index] = value`` of one number, by integers and slices whose bounds may be traced: ``mask[i, :n] = 1``."""
    index = index if isinstance(index, tuple) else (index,)
    if Ellipsis in index:
        at = index.index(Ellipsis)
        index = (*index[:at], *[slice(None)] * (x.ndim - len(index) + 1), *index[at + 1 :])
    rows = tuple(slice(None) if isinstance(one, slice) else one for one in index)
    part = x[rows]
    here, axes = True, -part.ndim
    for one in index:
        if isinstance(one, slice):
            size = part.shape[axes]
            places = jnp.arange(size).reshape(-1, *[1] * (-axes - 1))
            for bound, sign in ((one.start, 1), (one.stop, -1)):
                if bound is not None:
                    bound = jnp.asarray(bound).astype(int)
                    bound = jnp.where(bound < 0, bound + size, bound)
                    here &= places >= bound if sign > 0 else places < bound
            axes += 1
    value = jnp.where(here, jnp.asarray(value).astype(x.dtype), part)
    return x.at[rows].set(value)


def first_nonzero(x: jax.Array, size: int, fill_value: int = -1) -> jax.Array:
    """The first ``size`` places of nonzero elements, (size, axes of x), the rest ``fill_value``; also of no elements."""
    if x.size == 0:
        return jnp.full((size, x.ndim), fill_value, jnp.int32)
    return jnp.argwhere(x, size=size, fill_value=fill_value)


def item(x, index):
    """``x[index]`` as torch reads it: integers, also arrays without axes, are taken before the arrays beside them."""
    kept = [one is None or one is Ellipsis or isinstance(one, slice) for one in index]
    single = [not k and jnp.ndim(one) == 0 for k, one in zip(kept, index, strict=True)]
    if any(single) and not all(k or s for k, s in zip(kept, single, strict=True)):
        pairs = zip(index, single, strict=True)
        first = [
            one if s or one is Ellipsis else slice(None) for one, s in pairs if one is not None
        ]
        x, index = x[tuple(first)], tuple(i for i, s in zip(index, single, strict=True) if not s)
    return x[index]
