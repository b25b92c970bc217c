"""Splitting and combining that JAX lacks."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np


def chunk(x: jax.Array, chunks: int, axis: int = 0) -> list[jax.Array]:
    """At most ``chunks`` pieces of ⌈n / chunks⌉ elements along ``axis``, the last one maybe smaller."""
    size = max(-(-x.shape[axis] // chunks), 1)
    return jnp.split(x, np.arange(size, x.shape[axis], size), axis=axis)


def concatenate_chunks(arrays: Sequence[jax.Array], axis: int, chunks: int) -> jax.Array:
    """(…, n, …) each, padded to ``chunks`` equal pieces along ``axis``, pieces flattened: (…, chunks, total)."""
    axis = axis % min(a.ndim for a in arrays)
    lines = []
    for a in arrays:
        missing = -a.shape[axis] % chunks
        padded = jnp.pad(a, [(0, missing if i == axis else 0) for i in range(a.ndim)])
        lines.append(padded.reshape(*a.shape[:axis], chunks, -1))
    return jnp.concatenate(lines, axis=-1)


def cartesian_product(*arrays: jax.Array) -> jax.Array:
    """All combinations of elements of k 1-d arrays as rows of an (n, k) array; (n,) if there is one."""
    if len(arrays) == 1:
        return arrays[0]
    return jnp.stack([g.reshape(-1) for g in jnp.meshgrid(*arrays, indexing="ij")], axis=-1)


def combine(x: jax.Array, r: int = 2, with_replacement: bool = False) -> jax.Array:
    """All combinations of ``r`` elements of a 1-d array as rows, in lexicographic order of position."""
    pick = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    index = np.array(list(pick(range(len(x)), r)), int).reshape(-1, r)
    return x[index] if r else jnp.zeros((0,), x.dtype)


def joined(tensors, axis=0):
    """``concatenate`` as in torch, where an empty vector joins anything and only counts for the dtype."""
    parts = [one for one in tensors if one.shape != (0,)]
    made = jnp.concatenate(parts, axis=axis) if parts else tensors[0]
    return made.astype(jnp.result_type(*(one.dtype for one in tensors)))
