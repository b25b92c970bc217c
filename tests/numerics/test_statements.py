"""The statement inside a submodule that differs, with its place and values on both sides."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from numerics.spec import Array, InputSpec
from numerics.statements import Statement, statistics
from numerics.verify import Settings, verify
from tests.numerics.models import Carrier


class TorchScores(torch.nn.Module):
    """Several statements, one of them in place, one in a method."""

    def forward(self, x: torch.Tensor) -> Any:
        y = x * 2
        y += 1
        first, second = y.chunk(2, -1)
        y = self.mixed(first, second)
        return {"y": y, "n": 3}

    def mixed(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        scaled = a.exp()
        return scaled + b


class FlaxScores(nnx.Module):
    """Its port, with places to go wrong."""

    def __init__(self, wrong: str) -> None:
        self.wrong = wrong

    def __call__(self, x: jax.Array) -> Any:
        y = x * 2
        y += 2 if self.wrong == "in place" else 1
        first, second = jnp.split(y, 2, axis=-1)[:: -1 if self.wrong == "order" else 1]
        y = self.mixed(first, second)
        return {"y": y * (1.5 if self.wrong == "result" else 1), "n": 3}

    def mixed(self, a: jax.Array, b: jax.Array) -> jax.Array:
        scaled = jnp.exp2(a) if self.wrong == "method" else jnp.exp(a)
        return scaled + b


def statement(wrong: str) -> Statement | None:
    spec = InputSpec((Array(("B", 4)),), {"B": range(2, 5)})
    carrier, settings = Carrier({}), Settings(examples=2, shapes=1, shrink_seconds=0)
    report = verify(
        TorchScores(),
        FlaxScores(wrong),
        spec,
        load=carrier.load,
        dump=carrier.dump,
        settings=settings,
    )
    assert report.failure is not None
    assert report.first_divergence == ""
    return report.failure.statement


@pytest.mark.parametrize(
    ("wrong", "variable", "torch_source", "port_source"),
    [
        ("in place", "y", "y += 1", 'y += 2 if self.wrong == "in place" else 1'),
        ("order", "first", "first, second = y.chunk(2, -1)", "first, second = jnp.split("),
        ("method", "mixed.scaled", "scaled = a.exp()", "scaled = jnp.exp2(a)"),
        ("result", "result[0]", 'return {"y": y, "n": 3}', 'return {"y": y * (1.5'),
    ],
)
def test_the_first_statement_that_differs(
    wrong: str, variable: str, torch_source: str, port_source: str
) -> None:
    found = statement(wrong)
    assert found is not None
    assert found.variable.removesuffix("[0]") == variable.removesuffix("[0]")
    assert found.torch.source == torch_source
    assert found.port.source.startswith(port_source)
    assert found.torch.file == found.port.file == "test_statements.py"
    assert f"test_statements.py:{found.torch.line}: {torch_source}" in str(found)


def test_statistics_say_what_values_look_like() -> None:
    assert statistics(np.array([[1.0, 3.0]])) == "(1, 2), mean 2, deviation 1, from 1 to 3"
    assert statistics(np.array([np.inf, 1.0])).endswith("from 1 to 1, 1 not finite")
    assert statistics(np.array([np.nan])) == "(1,), nothing finite"
    assert statistics(np.array([True])) == "(1,) of bool"
