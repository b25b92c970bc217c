"""Indexing by tensors: gather, scatter, ``index_*``, ``masked_*``, ``take*``, ``put``.

https://docs.pytorch.org/docs/stable/torch.html#indexing-slicing-joining-mutating-ops

An index out of range raises in torch. In JAX ``x[index]`` clamps it, ``jnp.take`` gives NaN (or the smallest
integer), and ``x.at[index]`` drops the update. Of duplicate indices a *set* keeps any one in both, but torch gives the
gradient of the place to each value that is written there (``set_each``), JAX to the one that stays; an *add* counts all
(of booleans: *or*). What selects by a mask or searches for values has a shape that depends on the data and is refused.
"""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.indexing import along_axis, at_places, first_nonzero
from rules.compat.indexing import masked_scatter as put_where
from rules.compat.scatter_reduce import reduce_at
from rules.compat.written import set_each
from rules.registry import is_bool, is_float, op, surely, unsupported


@op("torch.gather", "Tensor.gather", example={"x.gather(1, i)": "x[along_axis(i, 1)]"})
def gather(input, dim, index, *, sparse_grad=False) -> Tensor["same"]:
    """Elements at ``index`` along ``dim``; ``index`` may be shorter than ``input`` on the other axes."""
    if surely(input.ndim == 0):
        return jnp.broadcast_to(input, index.shape)
    if surely(index.size == 0):
        return jnp.zeros(index.shape, input.dtype)
    return input[along_axis(index, dim)]


@op(
    "torch.take_along_dim",
    "Tensor.take_along_dim",
    example={"torch.take_along_dim(x, i, dim=1)": "jnp.take_along_axis(x, i, axis=1)"},
)
def take_along_dim(input, indices, dim=None) -> Tensor:
    """Elements at ``indices`` along ``dim``, broadcast on the other axes."""
    if dim is None:
        return jnp.take(input, indices.reshape(-1))
    return jnp.take_along_axis(input, indices, axis=dim)


@op("torch.take", "Tensor.take", example={"x.take(i)": "jnp.take(x, i)"})
def take(input, index) -> Tensor["same"]:
    """Elements of the flattened tensor."""
    return jnp.take(input, index)


@op(
    "torch.index_select",
    "Tensor.index_select",
    example={"x.index_select(1, i)": "jnp.take(x, jnp.atleast_1d(i), axis=1)"},
)
def index_select(input, dim, index) -> Tensor["same"]:
    """Rows ``index`` of an axis, as a copy; the axis stays for an index without axes."""
    if surely(input.ndim == 0):
        return input
    if surely(index.ndim == 1):
        return jnp.take(input, index, axis=dim)
    return jnp.take(input, jnp.atleast_1d(index), axis=dim)


@op(
    "torch.scatter",
    "Tensor.scatter",
    example={
        "x.scatter(1, i, y)": "set_each(x.at[along_axis(i, 1)], at_places(y, i))",
        "x.scatter(1, i, torch.ones_like(i))": "x.at[along_axis(i, 1)].set(jnp.ones_like(i))",
    },
)
def scatter(
    input, dim, index, src: Tensor, *, reduce=None, fits=False, distinct=False
) -> Tensor["same"]:
    """Writes ``src`` at ``index`` along ``dim``; of duplicate indices any one wins, and each has a gradient.

    ``fits``: it is no larger. ``distinct``: no place is listed twice, or no gradient counts.
    """
    if surely(input.ndim == 0):
        return scatter(input[None], 0, index.reshape(-1), src.reshape(-1), reduce=reduce)[0]
    if not fits:
        src = at_places(src, index)
    if reduce == "add" and not surely(is_bool(input)):
        return input.at[along_axis(index, dim)].add(src)
    if reduce == "multiply" and not surely(is_bool(input)):
        return input.at[along_axis(index, dim)].multiply(src)
    if reduce == "add":
        return input.at[along_axis(index, dim)].max(src)
    if reduce == "multiply":
        return input.at[along_axis(index, dim)].min(src)
    if distinct:
        return input.at[along_axis(index, dim)].set(src)
    return set_each(input.at[along_axis(index, dim)], src)


@op(
    "torch.scatter",
    "Tensor.scatter",
    example={"x.scatter(1, i, 1.0)": "x.at[along_axis(i, 1)].set(1.0)"},
)
def scatter_value(input, dim, index, value, *, reduce=None) -> Tensor["same"]:
    """Writes one number at ``index`` along ``dim``."""
    if surely(input.ndim == 0):
        return scatter_value(input[None], 0, index.reshape(-1), value, reduce=reduce)[0]
    if reduce == "add" and surely(is_float(input)):
        return input.at[along_axis(index, dim)].add(value)
    if reduce == "multiply" and surely(is_float(input)):
        return input.at[along_axis(index, dim)].multiply(value)
    if reduce == "add" and surely(is_bool(input)):
        return input.at[along_axis(index, dim)].max(jnp.asarray(value, input.dtype))
    if reduce == "multiply" and surely(is_bool(input)):
        return input.at[along_axis(index, dim)].min(jnp.asarray(value, input.dtype))
    if reduce == "add":  # the number is made one of the input's dtype first
        return input.at[along_axis(index, dim)].add(jnp.asarray(value, input.dtype))
    if reduce == "multiply":
        return input.at[along_axis(index, dim)].multiply(jnp.asarray(value, input.dtype))
    return input.at[along_axis(index, dim)].set(value)


@op("torch.scatter", "Tensor.scatter", general=True)
def scatter_any(input, dim, index, src, *, reduce=None) -> Tensor["same"]:
    """Writes a number, or what an array has at each place of ``index``, whichever it is."""
    if jnp.ndim(src):
        src = at_places(src, index)
    places = input.at[along_axis(index, dim)]
    return {"add": places.add, "multiply": places.multiply}.get(reduce, places.set)(src)


@op(
    "torch.scatter_add",
    "Tensor.scatter_add",
    example={
        "x.scatter_add(0, i, y)": "x.at[along_axis(i, 0)].add(at_places(y, i))",
        "x.scatter_add(0, i.expand_as(y), y)": "x.at[along_axis(jnp.broadcast_to(i, y.shape), 0)].add(y)",
    },
)
def scatter_add(input, dim, index, src, *, fits=False) -> Tensor["same"]:
    """Adds ``src`` at ``index`` along ``dim``; duplicate indices add up."""
    if surely(input.ndim == 0):
        return scatter_add(input[None], 0, index.reshape(-1), src.reshape(-1))[0]
    if not fits:
        src = at_places(src, index)
    if surely(is_bool(input)):
        return input.at[along_axis(index, dim)].max(src)
    return input.at[along_axis(index, dim)].add(src)


@op(
    "torch.scatter_reduce",
    "Tensor.scatter_reduce",
    example={
        'x.scatter_reduce(0, i, y, reduce="sum")': "x.at[along_axis(i, 0)].add(at_places(y, i))",
        'x.scatter_reduce(0, i, y, reduce="amax")': 'reduce_at(x, along_axis(i, 0), at_places(y, i), "amax")',
    },
)
def scatter_reduce(
    input, dim, index, src, reduce, *, include_self=True, fits=False
) -> Tensor["same"]:
    """Reduces ``src`` into the places ``index`` along ``dim``."""
    if surely(input.ndim == 0):
        index, src = index.reshape(-1), src.reshape(-1)
        return scatter_reduce(input[None], 0, index, src, reduce, include_self=include_self)[0]
    if not fits:
        src = at_places(src, index)
    if reduce == "sum" and include_self and not surely(is_bool(input)):
        return input.at[along_axis(index, dim)].add(src)
    return reduce_at(input, along_axis(index, dim), src, reduce, include_self=include_self)


@op(
    "torch.index_add",
    "Tensor.index_add",
    example={
        "x.index_add(0, i, y)": "x.at[i].add(y)",
        "x.index_add(1, i, y, alpha=2)": "x.at[:, i].add(2 * y)",
        "x.index_add(-1, i, y)": "x.at[..., i].add(y)",
    },
)
def index_add(input, dim, index, source, *, alpha=1) -> Tensor["same"]:
    """Adds the rows of ``source`` to the rows ``index``; duplicate indices add up."""
    if alpha != 1:
        source = alpha * source
    if surely(is_bool(input)) and surely(input.ndim == 0):
        return input | source.any()
    if surely(is_bool(input)):
        return reduce_at(input.swapaxes(0, dim), index, source.swapaxes(0, dim), "sum").swapaxes(
            0, dim
        )
    if surely(input.ndim == 0):
        return input + source.sum()
    if dim >= 0:
        return input.at[(slice(None),) * dim + (index,)].add(source)
    return input.at[(..., index) + (slice(None),) * (-dim - 1)].add(source)


@op(
    "torch.index_copy",
    "Tensor.index_copy",
    example={
        "x.index_copy(0, i, y)": "set_each(x.at[i], y)",
        "x.index_copy(0, torch.arange(2), y)": "x.at[jnp.arange(2)].set(y)",
    },
)
def index_copy(input, dim, index, source, *, distinct=False) -> Tensor["same"]:
    """Replaces the rows ``index`` by those of ``source``, each of which has a gradient. ``distinct``: as of scatter."""
    if surely(input.ndim == 0):
        return source.reshape(())
    if not distinct and dim >= 0:
        return set_each(input.at[(slice(None),) * dim + (index,)], source)
    if not distinct:
        return set_each(input.at[(..., index) + (slice(None),) * (-dim - 1)], source)
    if dim >= 0:
        return input.at[(slice(None),) * dim + (index,)].set(source)
    return input.at[(..., index) + (slice(None),) * (-dim - 1)].set(source)


@op(
    "torch.index_fill",
    "Tensor.index_fill",
    example={"x.index_fill(1, i, 0.0)": "x.at[:, i].set(0.0)"},
)
def index_fill(input, dim, index, value) -> Tensor["same"]:
    """Fills the rows ``index`` with one number."""
    if surely(input.ndim == 0):
        return input.at[...].set(value)
    if dim >= 0:
        return input.at[(slice(None),) * dim + (index,)].set(value)
    return input.at[(..., index) + (slice(None),) * (-dim - 1)].set(value)


@op(
    "torch.index_reduce",
    "Tensor.index_reduce",
    example={'x.index_reduce(0, i, y, "amax")': 'reduce_at(x, i, y, "amax")'},
)
def index_reduce(input, dim, index, source, reduce, *, include_self=True) -> Tensor["same"]:
    """Reduces the rows of ``source`` into the rows ``index``."""
    if surely(input.ndim == 0):
        source = source.reshape(-1)
        return index_reduce(input[None], 0, index, source, reduce, include_self=include_self)[0]
    if dim == 0:
        return reduce_at(input, index, source, reduce, include_self=include_self)
    rows, source = input.swapaxes(0, dim), source.swapaxes(0, dim)
    return reduce_at(rows, index, source, reduce, include_self=include_self).swapaxes(0, dim)


@op(
    "torch.index_put",
    "Tensor.index_put",
    example={
        "x.index_put((i,), y)": "set_each(x.at[i], y)",
        "x.index_put((i, j), y, accumulate=True)": "x.at[i, j].add(y)",
    },
)
def index_put(input, indices, values, accumulate=False, *, distinct=False) -> Tensor["same"]:
    """``input[indices] = values`` (or ``+=``, counting duplicates) as a new tensor. ``distinct``: as of scatter."""
    if accumulate and surely(is_bool(input)):
        return input.at[tuple(indices)].max(values)
    if accumulate:
        return input.at[tuple(indices)].add(values)
    if distinct:
        return input.at[tuple(indices)].set(values)
    return set_each(input.at[tuple(indices)], values)


@op(
    "torch.put",
    "Tensor.put",
    example={"x.put(i, y)": "set_each(x.reshape(-1).at[i], y).reshape(x.shape)"},
)
def put(input, index, source, accumulate=False, *, distinct=False) -> Tensor["same"]:
    """Writes into the flattened tensor. ``distinct``: as of scatter."""
    if surely(source.shape != index.shape):
        source = source.reshape(index.shape)
    if accumulate and surely(is_bool(input)):
        return input.reshape(-1).at[index].max(source).reshape(input.shape)
    if accumulate:
        return input.reshape(-1).at[index].add(source).reshape(input.shape)
    if distinct:
        return input.reshape(-1).at[index].set(source).reshape(input.shape)
    return set_each(input.reshape(-1).at[index], source).reshape(input.shape)


@op(
    "torch.masked_fill",
    "Tensor.masked_fill",
    example={
        'x.masked_fill(mask, float("-inf"))': 'jnp.where(mask, float("-inf"), x)',
        "i.masked_fill(mask, 1.5)": "jnp.where(mask, jnp.asarray(1.5, i.dtype), i)",
        "x.masked_fill(mask == 0, -1e9)": "jnp.where(mask == 0, jnp.asarray(-1e9, x.dtype), x)",
    },
)
def masked_fill(input, mask, value) -> Tensor["same"]:
    """``value`` where ``mask`` is true; the dtype stays the input's."""
    if surely(isinstance(value, float) and value - value != 0):  # torch refuses inf for integers
        return jnp.where(mask, value, input)
    if surely(is_float(input) and isinstance(value, (int, float))):
        return jnp.where(mask, value, input)
    return jnp.where(mask, jnp.asarray(value, input.dtype), input)


@op(
    "torch.masked_scatter",
    "Tensor.masked_scatter",
    example={"x.masked_scatter(mask, y)": "masked_scatter(x, mask, y)"},
)
def masked_scatter(input, mask, source) -> Tensor["same"]:
    """The elements of ``source``, in order, where ``mask`` is true."""
    return put_where(input, mask, source)


@op(
    "torch.nonzero_static",
    "Tensor.nonzero_static",
    example={"torch.nonzero_static(x, size=4)": "first_nonzero(x, 4, -1)"},
)
def nonzero_static(input, *, size, fill_value=-1) -> Tensor["int"]:
    """The first ``size`` places of nonzero elements; the rest is ``fill_value``."""
    return first_nonzero(input, size, fill_value)


@op("torch.masked_select", "Tensor.masked_select")
def masked_select(input, mask) -> Tensor:
    """Refused: how many elements remain depends on the data."""
    unsupported(
        "masked_select has a shape that depends on the data; keep the shape with jnp.where(mask, x, 0), "
        "or give a bound: x[jnp.nonzero(mask, size=n, fill_value=0)]"
    )


@op("torch.nonzero", "Tensor.nonzero", "torch.argwhere", "Tensor.argwhere")
def nonzero(input, *, as_tuple=False) -> Tensor["int"]:
    """Refused: the number of places depends on the data."""
    unsupported(
        "nonzero has a shape that depends on the data; compute on the mask with jnp.where, or give a bound: "
        "jnp.nonzero(x, size=n, fill_value=-1)"
    )


@op("torch.where")
def where_places(condition) -> tuple[Tensor["int"], ...]:
    """Refused: ``where`` with the condition alone is ``nonzero``."""
    unsupported(
        "where(condition) has a shape that depends on the data; use where(condition, a, b), or give a bound: "
        "jnp.nonzero(condition, size=n, fill_value=-1)"
    )


@op("torch.unique", "Tensor.unique")
def unique(input, sorted=True, return_inverse=False, return_counts=False, dim=None) -> Tensor:
    """Refused: the number of values depends on the data."""
    unsupported(
        "unique has a shape that depends on the data; give a bound: jnp.unique(x, size=n, fill_value=-1)"
    )


@op("torch.unique_consecutive", "Tensor.unique_consecutive")
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None) -> Tensor:
    """Refused: the number of runs depends on the data."""
    unsupported(
        "unique_consecutive has a shape that depends on the data; mark where a run starts instead: "
        "jnp.concatenate([jnp.ones(1, bool), x[1:] != x[:-1]])"
    )


@op(
    "torch._unsafe_masked_index",
    example={"torch._unsafe_masked_index(x, mask, (i,), 0)": "jnp.where(mask, x[i], 0)"},
)
def masked_index(input, mask, indices, fill) -> Tensor["same"]:
    """Elements at the indices under the mask, where alone they need to be in range."""
    return jnp.where(mask, input[tuple(indices)], fill)


@op("torch._unsafe_masked_index_put_accumulate")
def masked_index_add(input, mask, indices, values) -> Tensor["same"]:
    """Values added at the indices under the mask."""
    return input.at[tuple(indices)].add(jnp.where(mask, values, 0))
