"""A program that goes by its dtype is held against torch's float32: float64 is none of what it computes."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from numerics.compare import compare
from numerics.spec import Array, InputSpec


def test_the_reference_is_no_outcome_that_no_run_agrees_with() -> None:
    values = np.linspace(1.0, 2.0, 8)
    own = [2 * values, 2 * values * (1 + 1e-7), 2 * values * (1 - 1e-7)]
    assert compare("output", values, own, 2 * values).ok
    assert not compare("output", values, own, values).ok


def test_a_decision_that_fell_otherwise_in_some_runs_is_one() -> None:
    values = np.linspace(1.0, 2.0, 8)
    own = [values * (1 + 1e-7), 2 * values, values * (1 - 1e-7)]
    assert compare("output", values, own, values).ok
    assert compare("output", values, own, 2 * values).ok


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.fc(x)
        return x * 2 if x.dtype in {torch.float32, torch.float16} else x


class Port(nnx.Module):
    def __init__(self, factor: int) -> None:
        self.fc = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
        self.factor = factor

    def __call__(self, x: object) -> object:
        return self.fc(x) * self.factor


@pytest.mark.parametrize(("factor", "verdict"), [(2, "equal"), (1, "different")])
def test_the_branch_of_float32_is_what_counts(factor: int, verdict: str) -> None:
    inputs = InputSpec((Array((2, 4)),))
    report = migrator.verify(Model(), Port(factor), inputs=inputs)
    assert report.verdict == verdict
