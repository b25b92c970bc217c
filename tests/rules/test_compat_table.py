"""Helpers with a counterpart of their own in torch: equal values and gradients under jit, one trace for equal shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from jax import lax

from rules.compat import (
    bessel,
    conv_functional,
    decompositions,
    diagonal,
    fft,
    interpolate,
    joining,
    layer_functions,
    linalg,
    pointwise,
    pooling,
    reduction,
    special,
    windows,
)
from tests.rules.agree import agree, array, traces

Function = Callable[..., Any]
SEEDS = range(2)


@pytest.fixture(autouse=True)
def _forget_programs() -> Iterator[None]:
    yield
    jax.clear_caches()


def positive(*shape: int, seed: int = 0) -> np.ndarray:
    """Values from 0.2 upwards."""
    return np.abs(array(shape, seed)) + np.float32(0.2)


def zeroed(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Values from 0.5 upwards, some of them 0 instead."""
    values = positive(*shape, seed=seed) + np.float32(0.3)
    return np.where(np.arange(values.size).reshape(shape) % 3 < 1 + seed % 2, np.float32(0), values)


def definite(seed: int) -> np.ndarray:
    """A matrix whose lower triangle is that of a positive definite one; the upper one is not read."""
    a = array((4, 4), seed)
    matrix = a @ a.T + 4 * np.eye(4, dtype=np.float32)
    return np.tril(matrix) + np.triu(matrix + 1, 1)


def lu(a: torch.Tensor) -> torch.Tensor:
    return torch.linalg.lu_factor(a)[0]


ONE: list[tuple[str, Function, Function, Callable[[int], list[np.ndarray]]]] = [
    (
        "concatenate_chunks",
        lambda x, y: torch._chunk_cat([x, y], 1, 3),
        lambda x, y: joining.concatenate_chunks([x, y], 1, 3),
        lambda s: [array((2, 4, 3), s), array((2, 7), s + 1)],
    ),
    ("bessel_j0", torch.special.bessel_j0, bessel.bessel_j0, lambda s: [4 * array((9,), s)]),
    ("bessel_j1", torch.special.bessel_j1, bessel.bessel_j1, lambda s: [4 * array((9,), s)]),
    ("bessel_y0", torch.special.bessel_y0, bessel.bessel_y0, lambda s: [positive(9, seed=s)]),
    ("bessel_y1", torch.special.bessel_y1, bessel.bessel_y1, lambda s: [positive(9, seed=s)]),
    (
        "bessel_k0",
        torch.special.modified_bessel_k0,
        bessel.bessel_k0,
        lambda s: [positive(9, seed=s)],
    ),
    (
        "bessel_k1",
        torch.special.modified_bessel_k1,
        bessel.bessel_k1,
        lambda s: [positive(9, seed=s)],
    ),
    ("airy_ai", torch.special.airy_ai, bessel.airy_ai, lambda s: [2 * array((9,), s)]),
    (
        "zeta",
        torch.special.zeta,
        special.zeta,
        lambda s: [positive(9, seed=s) + 1.5, positive(9, seed=s + 5)],
    ),
    ("erfcx", torch.special.erfcx, special.erfcx, lambda s: [array((9,), s)]),
]
GRADIENT: list[tuple[str, Function, Function, Callable[[int], list[np.ndarray]]]] = [
    (
        "lower_cholesky",
        torch.linalg.cholesky,
        decompositions.lower_cholesky,
        lambda s: [definite(s)],
    ),
    ("lu_factor", lu, lambda a: decompositions.lu_factor(a)[0], lambda s: [array((4, 4), s)]),
    ("pinv", torch.linalg.pinv, decompositions.pinv, lambda s: [array((4, 3), s)]),
    (
        "full_svd",
        torch.linalg.svdvals,
        lambda a: decompositions.full_svd(a)[1],
        lambda s: [array((4, 4), s)],
    ),
    (
        "vander",
        lambda x: torch.linalg.vander(x, N=4),
        lambda x: decompositions.vander(x, 4),
        lambda s: [array((5,), s)],
    ),
    (
        "slice_scatter",
        lambda x, y: torch.slice_scatter(x, y, 1, 1, 5, 2),
        lambda x, y: diagonal.slice_scatter(x, y, 1, 1, 5, 2),
        lambda s: [array((3, 6), s), array((3, 2), s + 1)],
    ),
    (
        "chunk",
        lambda x: torch.cat([p * i for i, p in enumerate(torch.chunk(x, 4, 1))], 1),
        lambda x: jax.numpy.concatenate([p * i for i, p in enumerate(joining.chunk(x, 4, 1))], 1),
        lambda s: [array((2, 7), s)],
    ),
    (
        "cartesian_product",
        torch.cartesian_prod,
        joining.cartesian_product,
        lambda s: [array((3,), s), array((2,), s)],
    ),
    ("combine", torch.combinations, joining.combine, lambda s: [array((5,), s)]),
    (
        "tensordot",
        lambda x, y: torch.tensordot(x, y, ([0, 2], [1, 0])),
        lambda x, y: linalg.tensordot(x, y, ([0, 2], [1, 0])),
        lambda s: [array((3, 2, 1), s), array((4, 3, 2), s + 1)],
    ),
    (
        "apply_reflections",
        lambda a, t, x: torch.ormqr(a, t, x, left=False, transpose=True),
        lambda a, t, x: decompositions.apply_reflections(a, t, x, left=False, adjoint=True),
        lambda s: [array((4, 3), s), array((3,), s + 1), array((2, 4), s + 2)],
    ),
    (
        "least_squares",
        lambda a, b: torch.linalg.lstsq(a, b).solution,
        lambda a, b: decompositions.least_squares(a, b)[0],
        lambda s: [array((5, 3), s), array((5, 2), s + 1)],
    ),
    ("tanhshrink", F.tanhshrink, layer_functions.tanhshrink, lambda s: [array((3, 4), s)]),
    (
        "renorm",
        lambda x: torch.renorm(x, 2, 0, 1.5),
        lambda x: linalg.renorm(x, 2, 0, 1.5),
        lambda s: [array((3, 4), s)],
    ),
    (
        "l2_norm",
        lambda x: torch.norm(x, dim=1),
        lambda x: linalg.l2_norm(x, 1),
        lambda s: [array((3, 4), s)],
    ),
    ("matrix_norm", torch.linalg.matrix_norm, linalg.matrix_norm, lambda s: [array((2, 3, 4), s)]),
    ("absolute", torch.abs, pointwise.absolute, lambda s: [array((4, 4), s, 0.5)]),
    ("angle", torch.angle, pointwise.angle, lambda s: [np.append(array((9,), s, 0.5), -0.0)]),
    (
        "angle of complex numbers",
        lambda x: torch.angle(torch.view_as_complex(x)),
        lambda x: pointwise.angle(lax.complex(x[..., 0], x[..., 1])),
        lambda s: [np.vstack([array((9, 2), s, 0.5), np.zeros((1, 2), np.float32)])],
    ),
    (
        "copysign",
        torch.copysign,
        pointwise.copysign,
        lambda s: [array((9,), s, 0.5), array((9,), s + 1)],
    ),
    ("power", torch.pow, pointwise.power, lambda s: [zeroed((9,), s), zeroed((9,), s + 1)]),
    (
        "power of a number",
        lambda x: x**0.0,
        lambda x: pointwise.power(x, 0.0),
        lambda s: [zeroed((9,), s)],
    ),
    ("i0", torch.special.i0, special.i0, lambda s: [array((9,), s, 0.5)]),
    ("atan2", torch.atan2, pointwise.atan2, lambda s: [array((9,), s), array((9,), s + 1)]),
    (
        "clamp",
        lambda x: torch.clamp(x, -0.5, 0.5),
        lambda x: pointwise.clamp(x, -0.5, 0.5),
        lambda s: [array((4, 4), s, 0.5)],
    ),
    (
        "max_along",
        lambda x: x.max(1)[0],
        lambda x: reduction.max_along(x, 1),
        lambda s: [array((4, 5), s)],
    ),
    (
        "min_along",
        lambda x: x.min(1)[0],
        lambda x: reduction.min_along(x, 1),
        lambda s: [array((4, 5), s)],
    ),
    (
        "lower_median",
        lambda x: x.median(1)[0],
        lambda x: reduction.lower_median(x, 1)[0],
        lambda s: [array((4, 6), s)],
    ),
    (
        "most_frequent",
        lambda x: x.mode(1)[0],
        lambda x: reduction.most_frequent(x, 1)[0],
        lambda s: [array((4, 6), s, 1.0)],
    ),
    (
        "hfftn",
        lambda x: torch.fft.hfftn(x, dim=(0, 1)),
        lambda x: fft.hfftn(x, axes=(0, 1)),
        lambda s: [array((4, 5), s)],
    ),
    (
        "conv1d",
        F.conv1d,
        conv_functional.conv1d,
        lambda s: [array((2, 3, 7), s), array((4, 3, 3), s)],
    ),
    (
        "conv3d",
        F.conv3d,
        conv_functional.conv3d,
        lambda s: [array((1, 2, 4, 4, 4), s), array((3, 2, 2, 2, 2), s)],
    ),
    (
        "conv_transpose1d",
        F.conv_transpose1d,
        conv_functional.conv_transpose1d,
        lambda s: [array((2, 3, 5), s), array((3, 4, 3), s)],
    ),
    (
        "max_pool1d",
        lambda x: F.max_pool1d(x, 2),
        lambda x: pooling.max_pool1d(x, 2),
        lambda s: [array((2, 3, 8), s)],
    ),
    (
        "max_pool3d",
        lambda x: F.max_pool3d(x, 2),
        lambda x: pooling.max_pool3d(x, 2),
        lambda s: [array((1, 2, 4, 4, 4), s)],
    ),
    (
        "avg_pool1d",
        lambda x: F.avg_pool1d(x, 3, 2, 1),
        lambda x: pooling.avg_pool1d(x, 3, 2, 1),
        lambda s: [array((2, 3, 8), s)],
    ),
    (
        "avg_pool3d",
        lambda x: F.avg_pool3d(x, 2),
        lambda x: pooling.avg_pool3d(x, 2),
        lambda s: [array((1, 2, 4, 4, 4), s)],
    ),
    (
        "adaptive_avg_pool1d",
        lambda x: F.adaptive_avg_pool1d(x, 3),
        lambda x: pooling.adaptive_avg_pool1d(x, 3),
        lambda s: [array((2, 3, 8), s)],
    ),
    (
        "adaptive_max_pool1d",
        lambda x: F.adaptive_max_pool1d(x, 3),
        lambda x: pooling.adaptive_max_pool1d(x, 3),
        lambda s: [array((2, 3, 8), s)],
    ),
]
for _mode in ("nearest", "bilinear", "bicubic", "area"):
    GRADIENT.append(
        (
            f"interpolate {_mode}",
            functools.partial(F.interpolate, size=(5, 7), mode=_mode),
            functools.partial(interpolate.interpolate, size=(5, 7), mode=_mode),
            lambda s: [array((1, 2, 4, 6), s)],
        )
    )


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("theirs", "ours", "inputs"), [r[1:] for r in GRADIENT], ids=[r[0] for r in GRADIENT]
)
def test_values_and_gradients(
    theirs: Function, ours: Function, inputs: Function, seed: int
) -> None:
    agree(theirs, ours, *inputs(seed))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(
    ("theirs", "ours", "inputs"), [r[1:] for r in ONE], ids=[r[0] for r in ONE]
)
def test_values(theirs: Function, ours: Function, inputs: Function, seed: int) -> None:
    agree(theirs, ours, *inputs(seed), gradients=False)


@pytest.mark.parametrize(
    ("ours", "inputs"), [r[2:] for r in GRADIENT + ONE], ids=[r[0] for r in GRADIENT + ONE]
)
def test_one_trace_for_equal_shapes(ours: Function, inputs: Function) -> None:
    assert traces(lambda *a: jax.tree.leaves(ours(*a))[0], *inputs(0)) == 1


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (
            torch.signal.windows.general_cosine(7, a=[0.4, 0.5, 0.1]),
            lambda: windows.general_cosine(7, [0.4, 0.5, 0.1]),
        ),
        (torch.signal.windows.cosine(6), lambda: windows.cosine(6)),
        (torch.signal.windows.exponential(6), lambda: windows.exponential(6)),
        (torch.signal.windows.gaussian(6, std=1.5), lambda: windows.gaussian(6, 1.5)),
        (torch.signal.windows.bartlett(1), lambda: windows.bartlett(1)),
    ],
    ids=["general_cosine", "cosine", "exponential", "gaussian", "bartlett"],
)
def test_windows(theirs: torch.Tensor, ours: Function) -> None:
    np.testing.assert_allclose(jax.jit(ours)(), theirs.numpy(), atol=1e-6)


def test_zeta_at_its_poles() -> None:
    x, q = np.float32([1, 1, 2, 3, 2.5, 0.5, 2]), np.float32([2, -1, -1, 0, -1.5, 2, np.nan])
    expected = torch.special.zeta(torch.tensor(x), torch.tensor(q)).numpy()
    np.testing.assert_array_equal(special.zeta(x, q), expected)
