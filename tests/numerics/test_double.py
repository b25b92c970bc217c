"""Rounding in another order is told from a difference by float64; formulas that are off, or lose digits, are different."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from numerics.compare import Difference
from numerics.double import is_rounding
from numerics.report import Report
from numerics.verify import Settings, verify

VALUES = np.random.default_rng(0).uniform(1, 2, (2, 30_000)).astype(np.float32)


class TorchMean(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(1)


class TorchVariance(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.var(1)


class Port(nnx.Module):
    def __init__(self, function: Callable[[jax.Array], jax.Array]) -> None:
        self.function = function

    def __call__(self, x: jax.Array) -> jax.Array:
        return self.function(x)


def in_turn(x: jax.Array) -> jax.Array:
    """The mean, one term added after the other."""
    start = jnp.zeros(x.shape[0], x.dtype)
    total, _ = jax.lax.scan(lambda total, term: (total + term, None), start, x.T)
    return total / x.shape[1]


def in_one_pass(x: jax.Array) -> jax.Array:
    """The variance from the mean of squares, which cancels."""
    size = x.shape[1]
    return ((x**2).mean(1) - x.mean(1) ** 2) * size / (size - 1)


def run(
    module: torch.nn.Module, function: Callable[[jax.Array], jax.Array], x: np.ndarray
) -> Report:
    return verify(
        module,
        Port(function),
        [x],
        load=lambda module, state: None,
        dump=lambda module, like=None: {},
        settings=Settings(examples=1, train=False, grad=False),
    )


def test_another_order_of_adding_is_told_and_no_difference() -> None:
    report = run(TorchMean(), in_turn, VALUES)
    assert report.verdict == "equal", str(report)
    assert any("rounded in another order" in note for note in report.notes)


def test_what_is_as_far_off_in_float64_is_a_difference() -> None:
    report = run(TorchMean(), lambda x: x.mean(1) * (1 + 4e-6), VALUES)
    assert report.verdict == "different"
    assert not any("another order" in note for note in report.notes)
    assert run(TorchMean(), lambda x: in_turn(x) * (1 + 1e-6), VALUES).verdict == "different"


def test_what_is_computed_in_single_precision_throughout_is_a_difference() -> None:
    report = run(TorchMean(), lambda x: in_turn(x.astype(jnp.float32)), VALUES)
    assert report.verdict == "different"


def test_a_formula_that_loses_digits_is_a_difference() -> None:
    assert run(TorchVariance(), in_one_pass, VALUES + 100).verdict == "different"


@pytest.mark.parametrize(
    ("single", "exact", "rounding"),
    [(1e-5, 1e-13, True), (1e-5, 1e-9, False), (0.0, 1e-9, False), (1e-5, np.nan, False)],
)
def test_what_shrinks_with_the_precision_is_rounding(
    single: float, exact: float, rounding: bool
) -> None:
    base = np.ones(3)
    found = is_rounding(
        [Difference("x", ratio=3.0)], {"x": base}, {"x": base + single}, {"x": base + exact}
    )
    assert found is rounding
    assert not is_rounding([Difference("y", ratio=3.0)], {"x": base}, {"x": base}, {"x": base})
