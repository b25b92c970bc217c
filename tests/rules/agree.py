"""Whether a compat function computes what a torch function computes, gradients included, and compiles once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch

from tests.rules.values import compare, leaves


def array(shape: tuple[int, ...], seed: int = 0, grain: float | None = None) -> np.ndarray:
    """Normal float32 values; ``grain`` rounds them to its multiples, so that some are equal and some zero."""
    values = np.random.default_rng(seed).standard_normal(shape)
    return np.float32(values if grain is None else np.round(values / grain) * grain)


def agree(
    reference: Callable[..., Any],
    function: Callable[..., Any],
    *arrays: np.ndarray,
    gradients: bool = True,
) -> None:
    """Assert equal values, shapes, dtypes and gradients (for fixed cotangents) by every float array."""
    moved = [i for i, a in enumerate(arrays) if a.dtype.kind == "f" and gradients]

    def run(dtype: torch.dtype) -> tuple[Any, list[torch.Tensor]]:
        tensors = [torch.tensor(a) for a in arrays]
        tensors = [t.to(dtype) if t.is_floating_point() else t for t in tensors]
        for i in moved:
            tensors[i].requires_grad_()
        out = reference(*tensors)
        outputs = [o for o in leaves(out) if o.requires_grad]
        weights = [torch.tensor(array(tuple(o.shape), 7)).to(o.dtype) for o in outputs]
        inputs = [tensors[i] for i in moved]
        grads = torch.autograd.grad(outputs, inputs, weights, allow_unused=True) if outputs else []
        none = [torch.zeros_like(t) for t in inputs]
        return out, [z if g is None else g for g, z in zip(grads, none, strict=False)]

    want, wanted_gradients = run(torch.float32)
    given = [jnp.asarray(a) for a in arrays]
    got, found = jax.jit(functools.partial(_with_gradients, function, moved))(given)
    problem = compare(got, to_tuple(want), lambda: to_tuple(run(torch.float64)[0]))
    assert problem is None, problem
    if wanted_gradients:
        exact = lambda: tuple(run(torch.float64)[1])
        problem = compare(tuple(found), tuple(wanted_gradients), exact)
        assert problem is None, f"gradient: {problem}"


def _with_gradients(function: Callable[..., Any], moved: list[int], given: list[Any]) -> Any:
    """The function's result and its gradients by the arrays in ``moved`` for fixed cotangents."""

    def weighted(part: list[Any]) -> Any:
        full = list(given)
        for i, value in zip(moved, part, strict=True):
            full[i] = value
        result = function(*full)
        floats = [o for o in leaves(result) if jnp.issubdtype(o.dtype, jnp.floating)]
        return sum(jnp.sum(o * array(o.shape, 7)) for o in floats), result

    if not moved:
        return function(*given), []
    gradients, result = jax.grad(weighted, has_aux=True)([given[i] for i in moved])
    return result, gradients


def to_tuple(value: Any) -> Any:
    """A tensor, or a plain tuple of them."""
    return tuple(value) if isinstance(value, (tuple, list)) else value


def traces(function: Callable[..., Any], *arrays: np.ndarray) -> int:
    """How often ``jit`` traces the function for two calls with arrays of equal shapes."""
    count = 0

    @jax.jit
    def counted(*args: Any) -> Any:
        nonlocal count
        count += 1
        return function(*args)

    eager, jitted = function(*map(jnp.asarray, arrays)), counted(*map(jnp.asarray, arrays))
    for a, b in zip(leaves(eager), leaves(jitted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    counted(*[jnp.asarray(a) + np.ones((), a.dtype) for a in arrays])
    return count


__all__ = ["agree", "array", "traces"]
