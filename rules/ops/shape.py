"""Views and changes of shape. JAX arrays have no strides: what is a view in torch is a new value here."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import lax

from rules.compat.padding import pad_axes
from rules.compat.shape import expand_to, windows
from rules.compat.shape import squeeze as squeeze_axis
from rules.registry import is_tensor, op, sizes, surely, unsupported

# --- reshape ----------------------------------------------------------------------------------------------------


@op("Tensor.view", example={"x.view(torch.int32)": "x.view(jnp.int32)"})
def view_dtype(input, dtype: DType) -> Tensor:
    """The same bits read as another dtype; the last axis changes with the size of the elements."""
    return input.view(dtype)


@op(
    "Tensor.view",
    "Tensor.reshape",
    example={"x.view(n, -1)": "x.reshape(n, -1)", "x.reshape((n, 3))": "x.reshape((n, 3))"},
)
def view(input, *shape) -> Tensor:
    """The elements in row-major order in another shape."""
    return input.reshape(*shape)


@op("Tensor.view", general=True)
def view_as_given(input, *shape) -> Tensor:
    """The elements in another shape, or where a dtype is given the same bits read as that."""
    if isinstance(shape[0], (type, np.dtype)):
        return input.view(shape[0])
    return input.reshape(*shape)


@op("torch.reshape", "torch.view_copy", example={"torch.reshape(x, (n, -1))": "x.reshape((n, -1))"})
def reshape(input, shape) -> Tensor:
    """The elements in row-major order in another shape."""
    return input.reshape(shape)


@op("Tensor.view_as", "Tensor.reshape_as", example={"x.view_as(y)": "x.reshape(y.shape)"})
def view_as(input, other) -> Tensor:
    """Reshaped like another tensor."""
    return input.reshape(other.shape)


@op(
    "torch.flatten",
    "Tensor.flatten",
    example={
        "torch.flatten(x, 1)": "x.reshape(x.shape[0], -1)",
        "x.flatten()": "x.reshape(-1)",
        "x.flatten(2)": "x.reshape(*x.shape[:2], -1)",
        "x.flatten(1, 2)": "x.reshape(x.shape[0], -1, *x.shape[3:])",
        "x.flatten(0, 1)": "x.reshape(-1, *x.shape[2:])",
    },
)
def flatten(input, start_dim=0, end_dim=-1) -> Tensor:
    """The axes from start_dim to end_dim made one."""
    if surely(input.ndim == 0):
        return input.reshape(1)
    if surely(start_dim == 0 and end_dim == -1):
        return input.reshape(-1)
    if surely(start_dim == 0 and end_dim != -1):
        return input.reshape(-1, *input.shape[end_dim + 1 :])
    if surely(start_dim == 1 and end_dim == -1):
        return input.reshape(input.shape[0], -1)
    if surely(start_dim == 1 and end_dim != -1):
        return input.reshape(input.shape[0], -1, *input.shape[end_dim + 1 :])
    if end_dim == -1:
        return input.reshape(*input.shape[:start_dim], -1)
    return input.reshape(*input.shape[:start_dim], -1, *input.shape[end_dim + 1 :])


@op(
    "torch.unflatten",
    "Tensor.unflatten",
    example={
        "x.unflatten(-1, (2, 3))": "x.reshape(*x.shape[:-1], 2, 3)",
        "x.unflatten(1, (2, -1))": "x.reshape(x.shape[0], 2, -1, *x.shape[2:])",
    },
)
def unflatten(input, dim, sizes) -> Tensor:
    """One axis split into several."""
    if dim == -1:
        return input.reshape(*input.shape[:-1], *sizes)
    if surely(dim == 0):
        return input.reshape(*sizes, *input.shape[1:])
    if surely(dim == 1):
        return input.reshape(input.shape[0], *sizes, *input.shape[2:])
    return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1 :])


@op("torch.ravel", "Tensor.ravel", example={"x.ravel()": "x.ravel()"})
def ravel(input) -> Tensor:
    """All elements in one axis."""
    return input.ravel()


@op(
    "torch.squeeze",
    "Tensor.squeeze",
    "torch.squeeze_copy",
    example={"x.squeeze()": "x.squeeze()", "x.squeeze(1)": "squeeze(x, 1)"},
)
def squeeze(input, dim=None) -> Tensor:
    """Axes of size one removed; a given axis of another size is kept."""
    if dim is None:
        return input.squeeze()
    return squeeze_axis(input, dim)


@op(
    "torch.unsqueeze",
    "Tensor.unsqueeze",
    "torch.unsqueeze_copy",
    example={
        "x.unsqueeze(0)": "x[None]",
        "x.unsqueeze(1)": "x[:, None]",
        "x.unsqueeze(-1)": "x[..., None]",
        "x.unsqueeze(-2)": "x[..., None, :]",
        "x.unsqueeze(n)": "jnp.expand_dims(x, n)",
    },
)
def unsqueeze(input, dim) -> Tensor:
    """A new axis of size one."""
    if surely(dim == 0):
        return input[None]
    if surely(dim == 1):
        return input[:, None]
    if surely(dim == 2):
        return input[:, :, None]
    if surely(dim == -1):
        return input[..., None]
    if surely(dim == -2):
        return input[..., None, :]
    return jnp.expand_dims(input, dim)


# --- order of axes ----------------------------------------------------------------------------------------------


@op(
    "Tensor.permute",
    example={
        "x.permute(0, 2, 1)": "x.transpose(0, 2, 1)",
        "x.permute((1, 0))": "x.transpose((1, 0))",
    },
)
def permute_method(input, *dims) -> Tensor["same"]:
    """Axes in another order."""
    return input.transpose(*dims)


@op(
    "torch.permute",
    "torch.permute_copy",
    example={"torch.permute(x, (1, 0))": "x.transpose((1, 0))"},
)
def permute(input, dims) -> Tensor["same"]:
    """Axes in another order."""
    return input.transpose(dims)


@op(
    "torch.transpose",
    "torch.swapaxes",
    "torch.swapdims",
    "torch.transpose_copy",
    "Tensor.transpose",
    "Tensor.swapaxes",
    "Tensor.swapdims",
    example={
        "x.transpose(1, 2)": "x.swapaxes(1, 2)",
        "torch.transpose(x, -2, -1)": "x.swapaxes(-2, -1)",
    },
)
def transpose(input, dim0, dim1) -> Tensor["same"]:
    """Two axes exchanged."""
    if surely(input.ndim == 0):
        return input
    return input.swapaxes(dim0, dim1)


@op(
    "torch.t",
    "torch.t_copy",
    "Tensor.t",
    "Tensor.T",
    example={"x.t()": "x.T", "x.T": "x.T"},
)
def t(input) -> Tensor["same"]:
    """Axes in reverse order."""
    return input.T


@op("Tensor.mT", example={"x.mT": "x.mT"})
def mT(input) -> Tensor["same"]:
    """The last two axes exchanged."""
    return input.mT


@op("torch.adjoint", "Tensor.adjoint", "Tensor.mH", "Tensor.H", example={"x.mH": "x.mT.conj()"})
def mH(input) -> Tensor["same"]:
    """The last two axes exchanged, conjugated."""
    if surely(input.ndim == 0):
        return input
    return input.mT.conj()


@op(
    "torch.movedim",
    "torch.moveaxis",
    "Tensor.movedim",
    "Tensor.moveaxis",
    example={"x.movedim(1, -1)": "jnp.moveaxis(x, 1, -1)"},
)
def movedim(input, source, destination) -> Tensor["same"]:
    """Axes moved, the others in order."""
    return jnp.moveaxis(input, source, destination)


@op(
    "torch.flip",
    "Tensor.flip",
    example={
        "x.flip(1)": "jnp.flip(x, 1)",
        "x.flip([0, 1])": "jnp.flip(x, (0, 1))",
        "x.flip(0, 1)": "jnp.flip(x, (0, 1))",
    },
)
def flip(input, *dims) -> Tensor["same"]:
    """Reversed along axes, one or several; which of them is given, JAX tells as torch does."""
    if surely(input.ndim == 0):
        return input
    axes = sizes(dims, True)
    if surely(len(dims) == 1 and len(axes) == 1 and isinstance(dims[0], int)):
        return jnp.flip(input, dims[0])
    if surely(len(axes) >= 0):
        return jnp.flip(input, tuple(axes))
    return jnp.flip(input, axes)


@op("torch.fliplr", "Tensor.fliplr", example={"x.fliplr()": "jnp.fliplr(x)"})
def fliplr(input) -> Tensor["same"]:
    """Reversed along axis 1."""
    return jnp.fliplr(input)


@op("torch.flipud", "Tensor.flipud", example={"x.flipud()": "jnp.flipud(x)"})
def flipud(input) -> Tensor["same"]:
    """Reversed along axis 0."""
    return jnp.flipud(input)


@op("torch.rot90", "Tensor.rot90", example={"x.rot90()": "jnp.rot90(x)"})
def rot90(input, k=1, dims=(0, 1)) -> Tensor["same"]:
    """Rotated by k quarter turns in a plane."""
    if surely(tuple(dims) == (0, 1)):
        return jnp.rot90(input, k=k)
    return jnp.rot90(input, k=k, axes=tuple(dims))


@op(
    "torch.roll",
    "Tensor.roll",
    example={
        "x.roll(1, 0)": "jnp.roll(x, 1, axis=0)",
        "x.roll((1, 2), (0, 1))": "jnp.roll(x, (1, 2), axis=(0, 1))",
    },
)
def roll(input, shifts, dims=None) -> Tensor["same"]:
    """Shifted with wrap-around; without ``dims`` of the flattened tensor."""
    return jnp.roll(input, shifts, axis=dims if dims or isinstance(dims, int) else None)


@op(
    "torch.Size",
    example={"torch.Size([2, n])": "(2, n)", "torch.Size(n)": "tuple(n)"},
)
def size_of(iterable=()) -> Shape:
    """A shape, which in JAX is a plain tuple."""
    if surely(is_tensor(iterable)):
        return unsupported("a shape from the values of a tensor: they are not known under jit")
    return tuple(iterable)


# --- repetition -------------------------------------------------------------------------------------------------


@op(
    "torch.broadcast_to",
    "torch.expand_copy",
    example={"torch.broadcast_to(x, (2, n))": "jnp.broadcast_to(x, (2, n))"},
)
def broadcast_to(input, size) -> Tensor:
    """Repeated without copying; -1 keeps an axis."""
    if surely(len(size) >= 0):
        rank = len(size)
        shape = [input.shape[i - rank] if surely(s == -1) else s for i, s in enumerate(size)]
        return jnp.broadcast_to(input, tuple(shape))
    shape = [input.shape[i - len(size)] if s == -1 else s for i, s in enumerate(size)]
    return jnp.broadcast_to(input, tuple(shape))


@op(
    "Tensor.expand",
    "Tensor.broadcast_to",
    example={
        "x.broadcast_to(2, n)": "jnp.broadcast_to(x, (2, n))",
        "x.expand(2, n)": "jnp.broadcast_to(x, (2, n))",
        "x.expand(n, -1, -1)": "jnp.broadcast_to(x, (n, *x.shape[-2:]))",
    },
)
def expand(input, *size) -> Tensor:
    """Repeated without copying; -1 keeps an axis."""
    target = sizes(size, True)
    if surely(len(target) >= 0):
        rank = len(target)
        shape = [input.shape[i - rank] if surely(s == -1) else s for i, s in enumerate(target)]
        return jnp.broadcast_to(input, tuple(shape))
    if surely(isinstance(target, (list, tuple))):
        shape = [input.shape[i - len(target)] if s == -1 else s for i, s in enumerate(target)]
        return jnp.broadcast_to(input, tuple(shape))
    return expand_to(input, target)


@op("Tensor.expand_as", example={"x.expand_as(y)": "jnp.broadcast_to(x, y.shape)"})
def expand_as(input, other) -> Tensor:
    """Repeated to the shape of another tensor."""
    return jnp.broadcast_to(input, other.shape)


@op(
    "torch.broadcast_tensors",
    example={"torch.broadcast_tensors(x, y)": "jnp.broadcast_arrays(x, y)"},
)
def broadcast_tensors(*tensors) -> list[Tensor]:
    """All tensors in their common shape."""
    return jnp.broadcast_arrays(*tensors)


@op(
    "torch.broadcast_shapes",
    example={"torch.broadcast_shapes((2, 1), (3,))": "jnp.broadcast_shapes((2, 1), (3,))"},
)
def broadcast_shapes(*shapes) -> Shape:
    """The common shape."""
    return jnp.broadcast_shapes(*shapes)


@op(
    "Tensor.repeat",
    example={"x.repeat(2, 1)": "jnp.tile(x, (2, 1))", "x.repeat((2, 1))": "jnp.tile(x, (2, 1))"},
)
def repeat(input, *repeats) -> Tensor:
    """Copies side by side, new axes in front."""
    return jnp.tile(input, sizes(repeats, True))


@op("Tensor.tile", example={"x.tile(2, 1)": "jnp.tile(x, (2, 1))"})
def tile_method(input, *dims) -> Tensor:
    """Copies side by side."""
    return jnp.tile(input, sizes(dims, True))


@op("torch.tile", example={"torch.tile(x, (2, 1))": "jnp.tile(x, (2, 1))"})
def tile(input, dims) -> Tensor:
    """Copies side by side."""
    return jnp.tile(input, dims)


@op("torch.repeat_interleave", "Tensor.repeat_interleave")
def repeat_interleave_by(input, repeats: Tensor, dim=None, *, output_size=None) -> Tensor:
    """Each element repeated its own number of times; JAX needs the total to be known."""
    if output_size is None:
        unsupported("repeat_interleave by a tensor without output_size: the shape depends on data")
    return jnp.repeat(input, repeats, axis=dim, total_repeat_length=output_size)


@op(
    "torch.repeat_interleave",
    "Tensor.repeat_interleave",
    example={"x.repeat_interleave(2, dim=1)": "jnp.repeat(x, 2, axis=1)"},
)
def repeat_interleave(input, repeats: int, dim=None, *, output_size=None) -> Tensor:
    """Each element repeated."""
    return jnp.repeat(input, repeats, axis=dim)


@op("torch.repeat_interleave", "Tensor.repeat_interleave", general=True)
def repeat_interleave_by_any(input, repeats, dim=None, *, output_size=None) -> Tensor:
    """Each element repeated by a number or, under jit with ``output_size`` only, by its own number."""
    return jnp.repeat(input, repeats, axis=dim, total_repeat_length=output_size)


@op("torch.repeat_interleave")
def repeat_interleave_counts(repeats, *, output_size=None) -> Tensor["int"]:
    """0 repeated repeats[0] times, 1 repeated repeats[1] times …"""
    if output_size is None:
        unsupported("repeat_interleave by a tensor without output_size: the shape depends on data")
    return jnp.repeat(jnp.arange(len(repeats)), repeats, total_repeat_length=output_size)


# --- parts ------------------------------------------------------------------------------------------------------


@op(
    "torch.narrow",
    "torch.narrow_copy",
    "Tensor.narrow",
    "Tensor.narrow_copy",
    example={
        "x.narrow(0, 1, n)": "x[1:1 + n]",
        "x.narrow(1, 0, 2)": "x[:, 0:2]",
        "x.narrow(-1, 0, 2)": "x[..., 0:2]",
        "x.narrow(1, n, 2)": "lax.dynamic_slice_in_dim(x, n, 2, axis=1)",
    },
)
def narrow(input, dim, start, length) -> Tensor["same"]:
    """``length`` elements from ``start`` along an axis; start may be negative or a tensor."""
    if surely(isinstance(start, int) and start >= 0 and dim == 0):
        return input[start : start + length]
    if surely(isinstance(start, int) and start >= 0 and dim == 1):
        return input[:, start : start + length]
    if surely(isinstance(start, int) and start >= 0 and dim == -1):
        return input[..., start : start + length]
    return lax.dynamic_slice_in_dim(input, start, length, axis=dim)


@op(
    "torch.select",
    "Tensor.select",
    "torch.select_copy",
    example={"x.select(1, 0)": "x[:, 0]", "x.select(0, n)": "x[n]", "x.select(-1, 0)": "x[..., 0]"},
)
def select(input, dim, index) -> Tensor:
    """One slice along an axis, which disappears."""
    if surely(dim == 0):
        return input[index]
    if surely(dim == 1):
        return input[:, index]
    if surely(dim == 2):
        return input[:, :, index]
    if surely(dim == -1):
        return input[..., index]
    return lax.index_in_dim(input, index, axis=dim, keepdims=False)


@op("Tensor.unfold", "torch.unfold_copy", example={"x.unfold(1, 3, 2)": "windows(x, 1, 3, 2)"})
def unfold(input, dimension, size, step) -> Tensor:
    """All windows along an axis, their elements on a new last axis."""
    return windows(input, dimension, size, step)


@op(
    "torch.as_strided",
    "Tensor.as_strided",
    "torch.as_strided_copy",
    "torch.as_strided_scatter",
    "Tensor.as_strided_scatter",
)
def as_strided(*args, **kwargs) -> Tensor:
    """A view by strides, which JAX arrays do not have."""
    return unsupported("as_strided: JAX arrays have no strides; index with the positions instead")


@op(
    "torch.atleast_1d",
    example={"torch.atleast_1d(x)": "jnp.atleast_1d(x)"},
)
def atleast_1d(*tensors) -> Tensor:
    """With at least one axis."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return jnp.atleast_1d(*tensors[0])
    return jnp.atleast_1d(*tensors)


@op("torch.atleast_2d", example={"torch.atleast_2d(x)": "jnp.atleast_2d(x)"})
def atleast_2d(*tensors) -> Tensor:
    """With at least two axes."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return jnp.atleast_2d(*tensors[0])
    return jnp.atleast_2d(*tensors)


@op("torch.atleast_3d", example={"torch.atleast_3d(x)": "jnp.atleast_3d(x)"})
def atleast_3d(*tensors) -> Tensor:
    """With at least three axes."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        return jnp.atleast_3d(*tensors[0])
    return jnp.atleast_3d(*tensors)


@op(
    "Tensor.sum_to_size",
    example={},
)
def sum_to_size(input, *size) -> Tensor:
    """Summed over broadcast axes down to a shape; to ``()`` always a sum, so integers and booleans become int64."""
    shape = sizes(size)
    lead = input.ndim - len(shape)
    kept = tuple(lead + i for i, n in enumerate(shape) if n == 1 and input.shape[lead + i] != 1)
    if lead == 0 and not kept and shape:
        return input
    return input.sum(axis=tuple(range(lead)) + kept, keepdims=True).reshape(shape)


@op(
    "torch.constant_pad_nd",
    example={"torch.constant_pad_nd(x, (1, 2))": "pad_axes(x, (1, 2), value=0)"},
)
def constant_pad_nd(input, pad, value=0) -> Tensor["same"]:
    """A constant around the last axes, last axis first; negative widths crop."""
    return pad_axes(input, pad, value=value)


@op("Tensor.__getitem__")
def getitem(input, index) -> Tensor:
    """Basic and advanced indexing; a list is an index array, as in numpy."""
    parts = index if isinstance(index, tuple) else (index,)
    return input[tuple(jnp.asarray(p) if isinstance(p, list) else p for p in parts)]
