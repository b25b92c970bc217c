"""Splitting and combining that JAX lacks."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np


def chunk_unevenly(x: jax.Array, chunks: int, axis: int = 0) -> list[jax.Array]:
    """At most ``chunks`` pieces of ⌈n / chunks⌉ elements along ``axis``, the last one maybe smaller."""
    size = max(-(-x.shape[axis] // chunks), 1)
    return jnp.split(x, np.arange(size, x.shape[axis], size), axis=axis)


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
