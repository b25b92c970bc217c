"""Norms and distances whose gradient at zero is zero, as torch's; products over axes of size 1."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp


def l2_norm(
    x: jax.Array, axis: int | Sequence[int] | None = None, keepdims: bool = False
) -> jax.Array:
    """√Σ|x|² over ``axis``, with gradient 0 at a zero vector (``jnp.linalg.norm`` gives NaN there)."""
    axis = tuple(axis) or None if isinstance(axis, (list, tuple)) else axis
    total = jnp.sum(jnp.real(x * jnp.conj(x)), axis, keepdims=keepdims)
    zero = total == 0
    return jnp.where(zero, 0, jnp.sqrt(jnp.where(zero, 1, total)))


def _abs(x: jax.Array) -> jax.Array:
    """|x| with gradient 0 at 0 (``jnp.abs`` gives 1 there)."""
    return jnp.where(x == 0, 0, jnp.abs(jnp.where(x == 0, 1, x)))


def vector_norm(
    x: jax.Array,
    ord: float = 2,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """(Σ|x|^ord)^(1/ord) over ``axis``; gradient 0 where the norm is 0."""
    axis = tuple(axis) or None if isinstance(axis, (list, tuple)) else axis
    if ord == 2:
        return l2_norm(x, axis, keepdims)
    size = _abs(x)
    if ord == math.inf:
        return jnp.max(size, axis, keepdims=keepdims)
    if ord == -math.inf:
        return jnp.min(size, axis, keepdims=keepdims)
    if ord == 0:
        return jnp.sum(x != 0, axis, dtype=size.dtype, keepdims=keepdims)
    if ord == 1:
        return jnp.sum(size, axis, keepdims=keepdims)
    empty = size == 0
    total = jnp.sum(
        jnp.where(empty, 0.0 if ord > 0 else jnp.inf, jnp.where(empty, 1, size) ** ord),
        axis,
        keepdims=keepdims,
    )
    zero = (total == 0) | jnp.isinf(total)
    return jnp.where(zero, 0, jnp.where(zero, 1, total) ** (1 / ord))


def matrix_norm(
    x: jax.Array,
    ord: float | str = "fro",
    axis: tuple[int, int] = (-2, -1),
    keepdims: bool = False,
) -> jax.Array:
    """Norm of the matrices on two axes: fro, nuc, ±inf, ±1, ±2 (``torch.linalg.matrix_norm``)."""
    if ord == "fro":
        return l2_norm(x, axis, keepdims)
    x = jnp.moveaxis(x, axis, (-2, -1))
    if ord in ("nuc", 2, -2):
        values = jnp.linalg.svd(x, compute_uv=False)
        lines = jnp.sum(values, axis=-1) if ord == "nuc" else values
    else:
        lines = jnp.sum(_abs(x), axis=-1 if abs(ord) == math.inf else -2)
    if ord != "nuc":
        low = None if lines.shape[-1] else 0
        lines = jnp.max(lines, axis=-1, initial=low) if ord > 0 else jnp.min(lines, axis=-1)
    return jnp.expand_dims(lines, axis) if keepdims else lines


def norm(
    x: jax.Array,
    ord: float | str | None = None,
    axis: int | Sequence[int] | None = None,
    keepdims: bool = False,
) -> jax.Array:
    """``torch.linalg.norm``: of vectors on one axis, of matrices on two; without ``ord`` of all elements."""
    if ord is None:
        return l2_norm(x, axis, keepdims)
    if axis is None:
        axis = tuple(range(x.ndim))
    if isinstance(axis, int) or len(axis) == 1:
        return vector_norm(x, ord, axis, keepdims)
    return matrix_norm(x, ord, tuple(axis), keepdims)


def cdist(x: jax.Array, y: jax.Array, p: float = 2.0) -> jax.Array:
    """p-norm distance of all pairs of rows: (…, n, d), (…, m, d) → (…, n, m)."""
    return vector_norm(x[..., :, None, :] - y[..., None, :, :], p, -1)


def renorm(x: jax.Array, p: float, axis: int, limit: float) -> jax.Array:
    """Scales the slices of ``axis`` whose p-norm exceeds ``limit`` down to it (``torch.renorm``)."""
    others = tuple(i for i in range(x.ndim) if i != axis % x.ndim)
    size = vector_norm(x, p, others, keepdims=True)
    return jnp.where(size > limit, x * (limit / (size + 1e-7)), x)


def tensordot(a: jax.Array, b: jax.Array, axes: tuple[Sequence[int], Sequence[int]]) -> jax.Array:
    """Σ a·b over pairs of axes, the others of ``a`` before those of ``b``; where one of a pair has size 1 the
    other is summed (``torch.tensordot``)."""
    for i, j in zip(*axes, strict=True):
        if a.shape[i] == 1:
            b = jnp.sum(b, axis=j, keepdims=True)
        elif b.shape[j] == 1:
            a = jnp.sum(a, axis=i, keepdims=True)
    return jnp.tensordot(a, b, axes=axes)
