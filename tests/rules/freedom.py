"""What torch leaves open: which of equal elements an index names, the sign of a singular vector."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import torch

AXIS = {"sort": 0, "argsort": 0, "topk": 1, "kthvalue": 1}
"""op_db name → place of ``dim`` among the arguments after the input."""


UP_TO_SIGN = frozenset({"linalg.eigh", "linalg.svd", "svd"})
"""op_db names whose vectors are unique up to sign or phase."""


def hermitian_part(matrix: Any) -> Any:
    """(A + Aᴴ) / 2: all that counts of a gradient by a Hermitian matrix."""
    transposed = matrix.mH if isinstance(matrix, torch.Tensor) else matrix.mT.conj()
    return (matrix + transposed) / 2


def _moduli(name: str, *parts: Any) -> Any:
    """Moduli of the vectors; those of a full basis beyond the singular values are arbitrary."""
    if name == "linalg.eigh":
        return parts[0], abs(parts[1])
    k = parts[1].shape[-1]
    right = parts[2] if name == "svd" else parts[2].mT
    return abs(parts[0][..., :k]), parts[1], abs(right[..., :k])


def settled(name: str, sample: Any, result: Any) -> Any:
    """The result with what is open taken out: elements for indices, moduli for vectors."""
    if name in UP_TO_SIGN:
        return _moduli(name, *result)
    if name not in AXIS or not sample.input.ndim:
        return result
    place = AXIS[name]
    axis = sample.args[place] if len(sample.args) > place else sample.kwargs.get("dim", -1)
    if name == "argsort":
        return _elements(sample.input, result, axis)
    return result[0], _elements(sample.input, result[1], axis)


def _elements(source: torch.Tensor, index: Any, axis: int) -> Any:
    dropped = index.ndim < source.ndim
    if isinstance(index, jax.Array):
        array = jnp.asarray(source.detach().float().numpy())
        return jnp.take_along_axis(
            array, jnp.expand_dims(index, axis) if dropped else index, axis=axis
        )
    index = index.unsqueeze(axis) if dropped else index
    return torch.take_along_dim(source.detach().float(), index, axis)
