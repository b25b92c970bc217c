"""Selections by a mask over the leading axes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from rules.compat.written import set_each


def where_leading(mask, value, x):
    """``x`` with ``value`` where a mask over x's leading axes holds, as in torch's ``x[mask] = value``.

    Shapes: mask ``x.shape[:k]``; value what each place gets, ``x.shape[k:]`` or broadcast to it, or one for each,
    of x's shape; result x.shape, dtype of x.
    Errors: ValueError for a row of its own for each place that the mask selects, which only the data place.
    """
    value = jnp.asarray(value, x.dtype)
    rows = value.shape[: max(value.ndim - x.ndim + mask.ndim, 0)]
    if rows != mask.shape and any(n != 1 for n in rows):
        raise ValueError(f"{rows} values for what a mask {mask.shape} selects are placed by data")
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, value, x)


def set_selected(x, index, y):
    """``x`` with y where a mask over the leading axes holds, or at numbers of places: torch's ``x[index] = y[index]``.

    Shapes: y ``x.shape``, or broadcast to it behind the axes of the mask; result x.shape, dtype of x.
    """
    if is_mask(index):
        return where_leading(index.astype(bool), y, x)
    return set_each(x.at[index], y[index])


def set_slice(x, value, start, size: int, axis: int):
    """``x`` with ``value`` from ``start`` on along an axis, torch's ``x[start:start + size] = value``.

    ``start`` may be an array; what would lie past the end of the axis is left out, as torch leaves it out.
    """
    places = (slice(None),) * axis + (start + jnp.arange(size),)
    return x.at[places].set(jnp.asarray(value, x.dtype), mode="drop")


def only_where(mask, x, or_places=False):
    """``x``, which gets a gradient where a mask over its leading axes holds and none elsewhere.

    What is computed of it elsewhere, and left out by a ``jnp.where``, may be infinite: its gradient would be NaN.
    Shapes: mask ``x.shape[:k]``; result x.shape. ``or_places``: it may be numbers of places, which leave x as it is.
    """
    if or_places:
        if not is_mask(mask):
            return x
        mask = mask.astype(bool)
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, x, lax.stop_gradient(x))


def zero_unless(mask, x):
    """``x`` where a mask over its leading axes holds, and 0 elsewhere, whatever x is there.

    Shapes: mask ``x.shape[:k]``; result x.shape, dtype of x.
    """
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, x, jnp.zeros((), x.dtype))


def by_places(mask, rows):
    """A row for each place of a mask, in the shape of the mask. Shapes: rows ``(mask.size, …)``; result ``mask.shape + (…)``."""
    return rows.reshape(mask.shape + rows.shape[1:])


def is_mask(index):
    """Whether an index selects where it holds: bool, or uint8 as in torch; other numbers are places."""
    return index.dtype in (jnp.bool_, jnp.uint8)


def masked_sum(x, mask, or_places=False):
    """Sum of all that a mask over x's leading axes, or numbers of places, select, torch's ``x[mask].sum()``."""
    if or_places:
        if not is_mask(mask):
            return jnp.sum(x[mask])
        mask = mask.astype(bool)
    return jnp.sum(x, where=mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)))


def masked_mean(x, mask, or_places=False):
    """Mean of all that a mask over x's leading axes, or numbers of places, select, torch's ``x[mask].mean()``.

    NaN if that is nothing.
    """
    if or_places:
        if not is_mask(mask):
            return jnp.mean(x[mask])
        mask = mask.astype(bool)
    return jnp.mean(x, where=mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim)))


def _bound(dtype, least):
    """The least, or the largest, number of a dtype."""
    if dtype == jnp.bool_:
        return not least
    if jnp.issubdtype(dtype, jnp.inexact):
        return -jnp.inf if least else jnp.inf
    info = jnp.iinfo(dtype)
    return info.min if least else info.max


def masked_max(x, mask, or_places=False):
    """Largest of all that a mask over x's leading axes, or numbers of places, select, torch's ``x[mask].max()``.

    torch's raises for nothing.
    """
    if or_places:
        if not is_mask(mask):
            return x[mask].max()
        mask = mask.astype(bool)
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, x, _bound(x.dtype, True)).max()


def masked_min(x, mask, or_places=False):
    """Least of all that a mask over x's leading axes, or numbers of places, select, torch's ``x[mask].min()``.

    torch's raises for nothing.
    """
    if or_places:
        if not is_mask(mask):
            return x[mask].min()
        mask = mask.astype(bool)
    mask = mask.reshape(mask.shape + (1,) * (x.ndim - mask.ndim))
    return jnp.where(mask, x, _bound(x.dtype, False)).min()


def masked_loss(loss, input, target, mask, reduction="mean", or_places=False):
    """Mean or sum of a loss of each element over what a mask over the leading axes selects: NaN as the mean of nothing.

    torch's ``loss(input[mask], target[mask])``; what is not selected is 0 in both, so that no slope is lost to it.
    ``or_places``: the mask may be numbers of places.
    """
    if or_places:
        if not is_mask(mask):
            return loss(input[mask], target[mask], reduction=reduction)
        mask = mask.astype(bool)

    def rows(x):
        x = x.reshape(mask.size, *x.shape[mask.ndim :])
        return jnp.where(mask.reshape(-1, *(1,) * (x.ndim - 1)), x, 0)

    each = loss(rows(input), rows(target), reduction="none")
    reduced = jnp.mean if reduction == "mean" else jnp.sum
    return reduced(each, where=mask.reshape(-1, *(1,) * (each.ndim - 1)))


def masked_class_loss(loss, input, target, mask, ignore_index=-100, or_places=False, **options):
    """A loss of class numbers, or of their probabilities, over what a mask over the leading axes selects.

    torch's ``loss(input[mask], target[mask])``; what is not selected is 0 in the input, and ignored as a target.
    ``or_places``: the mask may be numbers of places.
    Shapes: input ``mask.shape + (C, …)``; target ``mask.shape + (…)`` of class numbers, or as input.
    Errors: ValueError for a mask over the classes, of which only the data know the number.
    """
    if or_places:
        if not is_mask(mask):
            return loss(input[mask], target[mask], ignore_index=ignore_index, **options)
        mask = mask.astype(bool)
    if input.ndim <= mask.ndim:
        raise ValueError(f"a mask {mask.shape} selects among the classes of {input.shape}")

    def rows(x, fill):
        x = x.reshape(mask.size, *x.shape[mask.ndim :])
        return jnp.where(mask.reshape(-1, *(1,) * (x.ndim - 1)), x, fill)

    if jnp.issubdtype(target.dtype, jnp.floating):
        each = loss(rows(input, 0), rows(target, 0), **{**options, "reduction": "none"})
        reduced = jnp.sum if options.get("reduction") == "sum" else jnp.mean
        return reduced(each, where=mask.reshape(-1, *(1,) * (each.ndim - 1)))
    target = rows(target, ignore_index)
    return loss(rows(input, 0), target, ignore_index=ignore_index, **options)


def selected_mean(x, mask):
    """Mean of all that a mask selects, torch's ``masked_select(x, mask).mean()``: NaN if that is nothing."""
    x, mask = jnp.broadcast_arrays(x, mask)
    return jnp.mean(x, where=mask)


def selected_sum(x, mask):
    """Sum of all that a mask selects, torch's ``masked_select(x, mask).sum()``."""
    x, mask = jnp.broadcast_arrays(x, mask)
    return jnp.sum(x, where=mask)


def set_at(x, index, value):
    """``x[index] = value`` for a value that all places get, where the index may be, or have in it, a boolean mask."""
    return update_at(x, index, lambda part: value)


def update_at(x, index, update):
    """``x[index] = update(x[index])``, element by element, where the index may be, or have in it, a boolean mask.

    Shapes: beside a mask there are slices, whole numbers and ``...`` in front of it; ``update`` gets what they select
    of all that the mask ranges over, and what it gives broadcasts to that. Result x.shape, dtype of x.
    """
    items = index if isinstance(index, tuple) else (index,)
    items = tuple(jnp.asarray(one) if isinstance(one, list) else one for one in items)
    masks = [one for one in items if hasattr(one, "dtype") and one.dtype == bool]
    if not masks:
        return x.at[items].set(update(x[items]))
    place = next(i for i, one in enumerate(items) if one is masks[0])
    mask, before, after = masks[0], items[:place], items[place + 1 :]
    at = (*before, *(slice(None),) * mask.ndim, *after)
    part = x[at]
    kept = [isinstance(one, slice) for one in items]
    behind = sum(kept[place:]) if ... in before else part.ndim - mask.ndim - sum(kept[:place])
    mask = mask.reshape(mask.shape + (1,) * behind)
    new = update(jnp.where(mask, part, lax.stop_gradient(part)))
    return x.at[at].set(jnp.where(mask, new, part))


def masked_select(x, mask, size=None):
    """The ``size`` elements of ``x`` where ``mask`` holds, the two broadcast to one shape, torch's ``masked_select``.

    Shapes: result (size,), dtype of x. A mask of numpy says itself how many there are.
    """
    if size is None:
        shape = np.broadcast_shapes(x.shape, mask.shape)
        return jnp.broadcast_to(x, shape)[np.broadcast_to(mask, shape)]
    x, mask = jnp.broadcast_arrays(x, mask)
    return x[jnp.nonzero(mask, size=size)]
