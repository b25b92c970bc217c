"""Moves values between torch and JAX and compares results of the two."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch

DTYPES = {
    torch.float32: jnp.float32,
    torch.float64: jnp.float64,
    torch.float16: jnp.float16,
    torch.bfloat16: jnp.bfloat16,
    torch.complex64: jnp.complex64,
    torch.complex128: jnp.complex128,
    torch.int8: jnp.int8,
    torch.int16: jnp.int16,
    torch.int32: jnp.int32,
    torch.int64: jnp.int64,
    torch.uint8: jnp.uint8,
    torch.uint16: jnp.uint16,
    torch.uint32: jnp.uint32,
    torch.uint64: jnp.uint64,
    torch.bool: jnp.bool_,
    torch.float8_e4m3fn: jnp.float8_e4m3fn,
    torch.float8_e5m2: jnp.float8_e5m2,
}
NARROW = {"int64": "int32", "uint64": "uint32", "float64": "float32", "complex128": "complex64"}


def to_numpy(tensor: torch.Tensor) -> np.ndarray:
    """The values of a tensor of any dtype, copied."""
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu()
    if tensor.dtype == torch.bfloat16:
        return tensor.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16).copy()
    return np.array(tensor.numpy(force=True))


def leaves(value: Any) -> Iterator[Any]:
    """The tensors and arrays in a structure of tuples, lists and dicts, in order."""
    if isinstance(value, (torch.Tensor, jax.Array)):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from leaves(item)
    elif isinstance(value, slice):
        yield from leaves((value.start, value.stop, value.step))
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from leaves(item)


def replace(value: Any, swap: Mapping[int, Any]) -> Any:
    """The structure with tensors exchanged by identity."""
    if isinstance(value, torch.Tensor):
        return swap.get(id(value), value)
    if isinstance(value, dict):
        return {k: replace(v, swap) for k, v in value.items()}
    if isinstance(value, slice):
        return slice(*(replace(v, swap) for v in (value.start, value.stop, value.step)))
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        return type(value)(replace(v, swap) for v in value)
    return value


def to_jax(value: Any, known: Mapping[int, Any] | None = None) -> Any:
    """What the converter would hand to a definition for a torch value: arrays, JAX dtypes, no devices."""
    known = known or {}
    if isinstance(value, torch.Tensor):
        return known[id(value)] if id(value) in known else jnp.array(to_numpy(value))
    if isinstance(value, torch.dtype):
        return DTYPES.get(value, value)
    if isinstance(value, (torch.device, torch.Generator)) or value is torch.strided:
        return None
    if isinstance(value, (torch.layout, torch.memory_format)):
        return str(value)
    if isinstance(value, slice):
        return slice(*(to_jax(v, known) for v in (value.start, value.stop, value.step)))
    if isinstance(value, Mapping):
        return {k: (None if k == "device" else to_jax(v, known)) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        kind = list if isinstance(value, list) else tuple
        return kind(to_jax(v, known) for v in value)
    return value


def compare(
    got: Any, want: Any, precise: Callable[[], Any] | None = None, values: bool = True
) -> str | None:
    """What differs between a JAX result and a torch result, or None.

    Args:
      precise: gives the torch result computed in float64; asked for only where float32 results differ by
        more than rounding, to tell an ill-conditioned sample from a wrong definition.
      values: False compares structure, shapes and dtypes only.
    """
    if isinstance(want, torch.Tensor):
        if not isinstance(got, (jax.Array, np.ndarray)):
            return f"{type(got).__name__} instead of an array"
        return _compare_arrays(got, want, precise, values)
    if isinstance(want, (tuple, list)):
        if not isinstance(got, (tuple, list)):
            return f"{type(got).__name__} instead of a tuple"
        if len(got) != len(want):
            return f"{len(got)} results instead of {len(want)}"
        for i, (g, w) in enumerate(zip(got, want, strict=True)):
            part = None if precise is None else (lambda i=i: precise()[i])
            if problem := compare(g, w, part, values):
                return f"[{i}] {problem}"
        return None
    if isinstance(want, torch.dtype):
        return None if np.dtype(got) == np.dtype(DTYPES[want]) else f"{got} instead of {want}"
    if isinstance(want, torch.device):
        return None
    if isinstance(got, jax.Array) and got.ndim == 0:
        got = got.item()
    if isinstance(want, float) and isinstance(got, float):
        return None if np.allclose(got, want, rtol=1e-5, equal_nan=True) else f"{got}, torch {want}"
    return None if got == want else f"{got!r}, torch {want!r}"


def _same_dtype(got: np.dtype, want: np.dtype) -> bool:
    if got == want:
        return True
    if not jax.config.jax_enable_x64 and NARROW.get(want.name) == got.name:
        return True
    # index results: JAX gives 32 bits where torch gives 64
    return {got.name, want.name} == {"int32", "int64"}


def _compare_arrays(got: Any, want: torch.Tensor, precise: Any, values: bool) -> str | None:
    if want.layout != torch.strided:
        return "torch gives a sparse result"
    if tuple(got.shape) != tuple(want.shape):
        return f"shape {tuple(got.shape)}, torch {tuple(want.shape)}"
    expected = to_numpy(want)
    if not _same_dtype(np.dtype(got.dtype), expected.dtype):
        return f"dtype {got.dtype}, torch {expected.dtype}"
    return _compare_values(np.asarray(got), expected, precise) if values else None


def _compare_values(got: np.ndarray, want: np.ndarray, precise: Any) -> str | None:
    if want.size == 0:
        return None
    if want.dtype.kind in "biu":
        if np.array_equal(got.astype(want.dtype), want):
            return None
        return _difference(got, want)
    low = want.dtype.itemsize == 2
    kind = np.complex128 if want.dtype.kind == "c" else np.float64
    ours, theirs = got.astype(kind), want.astype(kind)
    rtol, atol = (1.6e-2, 1e-2) if low else (2e-6, 1e-5)
    if want.dtype in (np.float64, np.complex128) and jax.config.jax_enable_x64:
        rtol, atol = 1e-7, 1e-7
    if np.allclose(ours, theirs, rtol=rtol, atol=atol, equal_nan=True):
        return None
    if precise is not None:
        return _judge(ours, theirs, precise, low)
    return _difference(ours, theirs)


def _judge(ours: np.ndarray, theirs: np.ndarray, precise: Any, low: bool) -> str | None:
    """Whether our error against float64 is at most ten times torch's own, with a floor of a few ulp."""
    try:
        reference = to_numpy(precise())
    except (RuntimeError, TypeError, ValueError, NotImplementedError):
        return _difference(ours, theirs)
    with np.errstate(all="ignore"):
        finite = np.isfinite(ours) & np.isfinite(theirs) & np.isfinite(reference)
        odd = ~finite & ~((ours == theirs) | (np.isnan(ours) & np.isnan(theirs)))
        if odd.any():
            return _difference(ours, theirs)
        scale = np.abs(reference[finite]).max(initial=0)
        unit = 2.0**-8 if low else 2.0**-23
        own = np.abs(theirs - reference)[finite].max(initial=0)
        error = np.abs(ours - reference)[finite].max(initial=0)
    return None if error <= 10 * own + 16 * unit * scale else _difference(ours, theirs)


def _difference(got: np.ndarray, want: np.ndarray) -> str:
    with np.errstate(all="ignore"):
        same = (got == want) | ((got != got) & (want != want))
        error = np.where(same, 0, np.abs(got.astype(np.complex128) - want))
    error = np.where(np.isnan(error), np.inf, error)
    i = np.unravel_index(np.argmax(error), got.shape)
    place = tuple(int(k) for k in i)
    return f"value at {place}: {got[i]}, torch {want[i]} ({(~same).sum()} of {got.size} differ)"
