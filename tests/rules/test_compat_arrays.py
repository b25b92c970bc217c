"""Helpers on arrays against torch: random shapes and values, under jit, compiled once for equal shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from rules.compat import (
    decompositions,
    diagonal,
    fft,
    indexing,
    linalg,
    ranges,
    scatter_reduce,
    sorting,
    statistics,
)

SEEDS = range(3)


def agree(
    ours: Callable[..., Any], theirs: Callable[..., Any], *inputs: np.ndarray, rtol: float = 1e-4
) -> None:
    """Compare results and input gradients, ours under jit, and see that it traces once."""
    traces = []

    def traced(*arrays: jax.Array) -> Any:
        traces.append(None)
        return ours(*arrays)

    compiled = jax.jit(traced)
    got = compiled(*inputs)
    jax.block_until_ready(compiled(*inputs))
    assert len(traces) == 1
    moved = [i for i, a in enumerate(inputs) if a.dtype == np.float32]
    tensors = [torch.from_numpy(a.copy()).requires_grad_(i in moved) for i, a in enumerate(inputs)]
    want = theirs(*tensors)
    np.testing.assert_allclose(np.asarray(got), want.detach().numpy(), rtol=rtol, atol=1e-5)
    if not want.requires_grad:
        return
    gradients = torch.autograd.grad(
        want.real.sum(), [tensors[i] for i in moved], allow_unused=True, materialize_grads=True
    )
    arrays = map(jnp.asarray, inputs)
    ours_too = jax.grad(lambda *a: jnp.real(ours(*a)).sum(), argnums=tuple(moved))(*arrays)
    for a, b in zip(ours_too, gradients, strict=True):
        np.testing.assert_allclose(np.asarray(a), b.numpy(), rtol=10 * rtol, atol=1e-4)


def floats(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Normal numbers, a third of them rounded so that equal values and zeros occur."""
    values = rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.3, np.round(values), values).astype(np.float32)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_reading_along_an_axis(seed: int, axis: int) -> None:
    rng = np.random.default_rng(seed)
    x = floats(rng, 4, 5, 3)
    shape = list(rng.integers(1, np.array(x.shape) + 1))
    index = rng.integers(0, x.shape[axis], shape)
    agree(
        lambda x, i: x[indexing.along_axis(i, axis)],
        lambda x, i: torch.gather(x, axis, i),
        x,
        index,
    )


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
def test_reducing_into_indexed_places(reduce: str, include_self: bool) -> None:
    rng = np.random.default_rng(7)
    x, src, index = floats(rng, 6), floats(rng, 9), rng.integers(0, 6, 9)
    agree(
        lambda x, s, i: scatter_reduce.reduce_at(x, i, s, reduce, include_self),
        lambda x, s, i: x.scatter_reduce(0, i, s, reduce, include_self=include_self),
        x,
        src,
        index,
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_masked_scatter(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, source, mask = floats(rng, 3, 4), floats(rng, 12), rng.random((3, 4)) < 0.5
    agree(indexing.masked_scatter, lambda x, m, s: x.masked_scatter(m, s), x, mask, source)


@pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3, float("inf"), -float("inf")])
def test_norms_and_their_gradient_at_zero(p: float) -> None:
    rng = np.random.default_rng(3)
    x = floats(rng, 4, 5)
    x[0] = 0
    agree(
        lambda x: linalg.vector_norm(x, p, -1),
        lambda x: torch.linalg.vector_norm(x, p, -1),
        x if p >= 1 or p == 0 else np.abs(x) + 0.1,
    )


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_pairwise_distances(p: float) -> None:
    rng = np.random.default_rng(4)
    x, y = floats(rng, 2, 4, 3), floats(rng, 2, 5, 3)
    x[0, 0] = y[0, 0]
    agree(lambda x, y: linalg.cdist(x, y, p), lambda x, y: torch.cdist(x, y, p), x, y)


@pytest.mark.parametrize("side", ["left", "right"])
def test_search_in_rows(side: str) -> None:
    rng = np.random.default_rng(5)
    rows = np.sort(floats(rng, 3, 6), axis=-1)
    agree(
        lambda r, v: sorting.searchsorted(r, v, side),
        lambda r, v: torch.searchsorted(r.detach(), v.detach(), side=side),
        rows,
        floats(rng, 3, 4),
    )


@pytest.mark.parametrize("limits", [(0.0, 0.0), (-1.0, 1.0)])
def test_histogram(limits: tuple[float, float]) -> None:
    x = floats(np.random.default_rng(6), 40)
    agree(lambda x: sorting.histc(x, 5, *limits), lambda x: torch.histc(x.detach(), 5, *limits), x)


@pytest.mark.parametrize("offset", [-2, 0, 1])
def test_diagonals(offset: int) -> None:
    rng = np.random.default_rng(8)
    agree(
        lambda x: diagonal.diag_embed(x, offset, 0, -1),
        lambda x: torch.diag_embed(x, offset, 0, -1),
        floats(rng, 2, 3),
    )
    x = floats(rng, 4, 5)
    agree(
        lambda x, s: diagonal.diagonal_scatter(x, s, offset),
        lambda x, s: torch.diagonal_scatter(x, s, offset),
        x,
        floats(rng, np.diagonal(x, offset).shape[0]),
    )


@pytest.mark.parametrize("center", [True, False])
def test_short_time_fourier_there_and_back(center: bool) -> None:
    rng = np.random.default_rng(9)
    x, window = floats(rng, 2, 64), np.hanning(16).astype(np.float32) + 0.1
    agree(
        lambda x, w: fft.stft(x, 16, 4, window=w, center=center),
        lambda x, w: torch.stft(x, 16, 4, window=w, center=center, return_complex=True),
        x,
        window,
    )
    back = fft.istft(fft.stft(x, 16, 4, window=window), 16, 4, window=window)
    np.testing.assert_allclose(np.asarray(back), x, atol=1e-5)


@pytest.mark.parametrize("left", [True, False])
def test_solvers(left: bool) -> None:
    rng = np.random.default_rng(10)
    a = floats(rng, 2, 3, 3) + 4 * np.eye(3, dtype=np.float32)
    b = floats(rng, 3, 3)
    agree(
        lambda a, b: decompositions.solve(a, b, left),
        lambda a, b: torch.linalg.solve(a, b.expand(2, 3, 3), left=left),
        a,
        b,
    )
    agree(
        lambda a, b: decompositions.solve_triangular(a, b, True, left),
        lambda a, b: torch.linalg.solve_triangular(a, b, upper=True, left=left),
        a,
        b,
    )


@pytest.mark.parametrize("order", [1, 2])
def test_finite_differences(order: int) -> None:
    x, place = floats(np.random.default_rng(11), 6, 4), np.array([0, 1, 3, 4, 7, 8], np.float32)
    agree(
        lambda x: statistics.gradient(x, (place,), 0, order)[0],
        lambda x: torch.gradient(x, spacing=(torch.from_numpy(place),), dim=0, edge_order=order)[0],
        x,
    )


def test_equal_elements_of_a_descending_sort_have_their_own_gradients() -> None:
    x = np.array([[1.0, 2.0, 1.0, 2.0], [3.0, 3.0, 3.0, 0.0]], np.float32)
    weight = np.arange(4.0, dtype=np.float32)
    agree(
        lambda x: sorting.sort_descending(x, axis=1) * weight,
        lambda x: torch.sort(x, dim=1, descending=True)[0] * torch.tensor(weight),
        x,
    )


@pytest.mark.parametrize("start", [0, 1, -7, 40, 2.5, -3.5])
@pytest.mark.parametrize("end", [0, 9, -14, 99, 999, 7.9])
def test_a_linspace_of_whole_numbers(start: float, end: float) -> None:
    for steps in (0, 1, 2, 3, 5, 50, 83, 123, 184, 245):
        want = torch.linspace(start, end, steps, dtype=torch.long)
        np.testing.assert_array_equal(ranges.whole_linspace(start, end, steps), want.numpy())


@pytest.mark.parametrize("start", [0, 1, -7, 2.5, 0.1])
@pytest.mark.parametrize("end", [0, 9, -14, 99, 133, 999, 7.9])
def test_a_linspace_that_is_rounded_as_torch_rounds(start: float, end: float) -> None:
    for steps in (0, 1, 2, 3, 5, 43, 50, 83, 123, 184, 245, 1000):
        want = torch.linspace(start, end, steps)
        np.testing.assert_array_equal(ranges.exact_linspace(start, end, steps), want.numpy())
