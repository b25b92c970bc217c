"""``x ** y`` where both are 0: the gradient is 0 in torch, and NaN in JAX unless the exponent is an integer."""

from __future__ import annotations

import pytest
import torch

from tests.convert.tools import compare_gradients, convert

X = torch.tensor([0.0, 0.5, 0.0, 2.0])


@pytest.mark.parametrize(
    "expression",
    [
        "x ** g",
        "x ** -g",
        "(x * 1) ** (g * 2)",
        "x.pow(g)",
        "torch.pow(x, g)",
        "x ** torch.zeros(4)",
        "x ** torch.linspace(0, 1, 4)",
        "x[:, None] ** torch.arange(3).float()",
        "x[:, None] ** torch.arange(3)",
        "x ** 0.0",
    ],
)
def test_gradient_at_zero(expression: str) -> None:
    compare_gradients(f"def f(x: torch.Tensor, g: float = 0.0):\n    return {expression}\n", X)


@pytest.mark.parametrize(
    "expression", ["x ** 2.0", "x ** n", "x ** (1 / n)", "x ** -0.5", "2 ** x"]
)
def test_no_helper_where_the_exponent_is_not_zero_or_whole(expression: str) -> None:
    code = convert(f"def f(x: torch.Tensor, n: int):\n    return {expression}\n").code
    assert f"return {expression}" in code
