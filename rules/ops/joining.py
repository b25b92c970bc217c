"""Joining and splitting. ``torch.split`` names sizes, ``jnp.split`` names places or a count."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from rules.compat.joining import cartesian_product, chunk, combine, concatenate_chunks, joined
from rules.registry import is_tensor, op, surely, unsupported


@op(
    "torch.cat",
    "torch.concat",
    "torch.concatenate",
    example={
        "torch.cat([x, y])": "jnp.concatenate([x, y])",
        "torch.cat((x, y), dim=1)": "jnp.concatenate((x, y), axis=1)",
    },
)
def cat(tensors, dim=0) -> Tensor:
    """Joined along an axis; torch ignores empty 1-d tensors."""
    if surely(any(t.shape == (0,) for t in tensors)):
        return joined(tensors, dim)
    return jnp.concatenate(tensors, axis=dim)


@op("torch.stack", example={"torch.stack([x, y], dim=1)": "jnp.stack([x, y], axis=1)"})
def stack(tensors, dim=0) -> Tensor:
    """Joined along a new axis."""
    return jnp.stack(tensors, axis=dim)


@op("torch.hstack", example={"torch.hstack([x, y])": "jnp.hstack([x, y])"})
def hstack(tensors) -> Tensor:
    """Joined along axis 1 (0 for 1-d)."""
    return jnp.hstack(tensors)


@op("torch.vstack", "torch.row_stack", example={"torch.vstack([x, y])": "jnp.vstack([x, y])"})
def vstack(tensors) -> Tensor:
    """Joined along axis 0 as rows."""
    return jnp.vstack(tensors)


@op("torch.dstack", example={"torch.dstack([x, y])": "jnp.dstack([x, y])"})
def dstack(tensors) -> Tensor:
    """Joined along axis 2."""
    return jnp.dstack(tensors)


@op("torch.column_stack", example={"torch.column_stack([x, y])": "jnp.column_stack([x, y])"})
def column_stack(tensors) -> Tensor:
    """Joined as columns."""
    return jnp.column_stack(tensors)


@op(
    "torch.split",
    "Tensor.split",
    example={
        "x.split(n, dim=1)": "jnp.split(x, np.arange(n, x.shape[1], n), axis=1)",
        "x.split([2, n], dim=1)": "jnp.split(x, [2], axis=1)",
        "x.split([2, 3, 4])": "jnp.split(x, np.cumsum([2, 3]))",
    },
)
def split(tensor, split_size_or_sections, dim=0) -> list[Tensor["same"]]:
    """Pieces of equal size, the last one maybe smaller; or pieces of the given sizes."""
    size = split_size_or_sections
    if isinstance(size, int):
        return jnp.split(tensor, np.arange(size, tensor.shape[dim], size), axis=dim)
    if surely(len(size) == 2):
        return jnp.split(tensor, [size[0]], axis=dim)
    return jnp.split(tensor, np.cumsum(size[:-1]), axis=dim)


@op("torch.split_with_sizes", "torch.split_with_sizes_copy", "Tensor.split_with_sizes")
def split_with_sizes(input, split_sizes, dim=0) -> list[Tensor["same"]]:
    """Pieces of the given sizes."""
    if surely(len(split_sizes) == 2):
        return jnp.split(input, [split_sizes[0]], axis=dim)
    return jnp.split(input, np.cumsum(split_sizes[:-1]), axis=dim)


@op("torch.unsafe_split", "Tensor.unsafe_split")
def unsafe_split(tensor, split_size: int, dim=0) -> list[Tensor["same"]]:
    """Pieces of equal size, the last one maybe smaller."""
    return jnp.split(tensor, np.arange(split_size, tensor.shape[dim], split_size), axis=dim)


@op(
    "torch.chunk",
    "torch.unsafe_chunk",
    "Tensor.chunk",
    "Tensor.unsafe_chunk",
    example={
        "x.chunk(3, dim=-1)": "chunk(x, 3, axis=-1)",
        "x.chunk(3)": "chunk(x, 3)",
        "x.chunk(n, n)": "chunk(x, n, axis=n)",
        "x.chunk(n, -1)": "chunk(x, n, axis=-1)",
    },
)
def equal_pieces(input, chunks, dim=0, *, unpacked=0) -> list[Tensor["same"]]:
    """Equal pieces; where they do not divide, torch's last pieces are smaller or missing, and JAX's split raises.

    Two with a name each are halves, the first the larger one. More than two are told (``unpacked``) where they divide
    for certain: gates, or queries, keys and values.
    """
    if surely(chunks == 2) and surely(unpacked == 2):
        return jnp.array_split(input, 2, axis=dim)
    if surely(unpacked == chunks) or surely(input.shape[dim] % chunks == 0):
        return jnp.split(input, chunks, axis=dim)
    return chunk(input, chunks, axis=dim)


@op(
    "torch.tensor_split",
    "Tensor.tensor_split",
    example={
        "torch.tensor_split(x, 3)": "jnp.array_split(x, 3)",
        "x.tensor_split((1, 4))": "jnp.array_split(x, (1, 4))",
    },
)
def tensor_split(input, indices_or_sections, dim=0) -> list[Tensor["same"]]:
    """A number of nearly equal pieces, or pieces between places."""
    if surely(is_tensor(indices_or_sections)):
        unsupported("DYN005: the places of a split must be known when the program is compiled")
    return jnp.array_split(input, indices_or_sections, axis=dim)


@op("torch.hsplit", "Tensor.hsplit", example={"x.hsplit(2)": "jnp.hsplit(x, 2)"})
def hsplit(input, indices_or_sections) -> list[Tensor["same"]]:
    """Split along axis 1 (0 for 1-d)."""
    return jnp.hsplit(input, indices_or_sections)


@op("torch.vsplit", "Tensor.vsplit", example={"x.vsplit(2)": "jnp.vsplit(x, 2)"})
def vsplit(input, indices_or_sections) -> list[Tensor["same"]]:
    """Split along axis 0."""
    return jnp.vsplit(input, indices_or_sections)


@op("torch.dsplit", "Tensor.dsplit", example={"x.dsplit(2)": "jnp.dsplit(x, 2)"})
def dsplit(input, indices_or_sections) -> list[Tensor["same"]]:
    """Split along axis 2."""
    return jnp.dsplit(input, indices_or_sections)


@op(
    "torch.unbind",
    "torch.unbind_copy",
    "Tensor.unbind",
    example={"x.unbind(1)": "jnp.unstack(x, axis=1)", "torch.unbind(x)": "jnp.unstack(x)"},
)
def unbind(input, dim=0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    return jnp.unstack(input, axis=dim)


@op("torch.cartesian_prod", example={"torch.cartesian_prod(x, y)": "cartesian_product(x, y)"})
def cartesian_prod(*tensors) -> Tensor:
    """All combinations of elements of 1-d tensors, as rows."""
    return cartesian_product(*tensors)


@op("torch.combinations", example={"torch.combinations(x)": "combine(x)"})
def combinations(input, r=2, with_replacement=False) -> Tensor:
    """All combinations of r elements of a 1-d tensor, as rows."""
    return combine(input, r=r, with_replacement=with_replacement)


@op("torch.block_diag", example={"torch.block_diag(x, y)": "jax.scipy.linalg.block_diag(x, y)"})
def block_diag(*tensors) -> Tensor:
    """Matrices along the diagonal of a larger one."""
    return jax.scipy.linalg.block_diag(*tensors)


@op("torch._chunk_cat")
def chunk_cat(tensors, dim, num_chunks) -> Tensor["same"]:
    """The chunks of all tensors side by side."""
    return concatenate_chunks(tensors, dim, num_chunks)
