"""A program that goes by its dtype is held against torch's float32: float64 is none of what it computes."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from flax import nnx

import migrator
from numerics.spec import Array, InputSpec


def test_digits_that_are_lost_are_no_branch() -> None:
    """The variance of large numbers by their squares, of which float32 keeps nothing."""

    class Variance(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return ((x + 1e4) ** 2).mean() - (x + 1e4).mean() ** 2

    class VariancePort(nnx.Module):
        def __call__(self, x: Any) -> Any:
            return ((x + 1e4) ** 2).mean() - (x + 1e4).mean() ** 2

    report = migrator.verify(Variance(), VariancePort(), inputs=InputSpec((Array((2, 3)),)))
    assert report.verdict in ("equal", "ill-conditioned")
    assert not any("goes by its dtype" in note for note in report.notes)


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
