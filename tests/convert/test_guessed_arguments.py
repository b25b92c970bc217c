"""Of an argument of ``forward`` nothing may say that it is a tensor: given as a number it works as in torch."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, X, convert, loaded

NET = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, t):
        return {}
"""


def compare(made: str, *given: Any) -> str:
    """What both give for each argument."""
    source = made if "class" in made else NET.format(made)
    theirs, ours, code = loaded(source)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for t in given:
        is_tensor = isinstance(t, torch.Tensor)
        want = model(X, t)
        got = port(jnp.asarray(X.numpy()), jnp.asarray(t.numpy()) if is_tensor else t)
        np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-5, atol=1e-6)
    return code


@pytest.mark.parametrize(
    "made",
    [
        "x * torch.tensor([t])",
        "x * torch.tensor([t, 1.0])[0]",
        "x * x.new_tensor([t])",
        "x * torch.Tensor([[t]])",
        "x * float(t)",
        "x * int(t * 10)",
    ],
)
def test_a_number_or_a_tensor_of_one_element(made: str) -> None:
    compare(made, 0.75, torch.tensor(0.75), torch.tensor([0.75]))


def test_a_number_that_a_gradient_function_keeps() -> None:
    code = compare(
        """class Spike(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, gamma):
        ctx.save_for_backward(x, torch.tensor([gamma]))
        return (x > 0).float()

    @staticmethod
    def backward(ctx, grad):
        x, gamma = ctx.saved_tensors
        return grad * (gamma - x.abs()).clamp(min=0), None

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, t):
        return Spike.apply(x, t)
""",
        2.0,
    )
    assert "Spike.apply" in code


@pytest.mark.parametrize(
    "made",
    [
        "x.max(t)[0]",
        "torch.max(x, t)[0]",
        "torch.min(x, t).values",
        "x.min(t, True)[0]",
        "torch.max(x, t)[1].float()",
    ],
)
def test_an_axis(made: str) -> None:
    compare(made, 0, 1)


def test_a_size_to_split_by() -> None:
    compare("x.split(t, 1)[0]", 1, 2, [1, 3])
    compare("torch.split(x, t, dim=1)[0]", 1, 2, [1, 3])


def test_an_axis_whose_two_results_are_unpacked() -> None:
    source = NET.format("x").replace("return x", "m, i = x.max(t)\n        return m + i")
    compare(source, 0, 1)
    named = "def top(x, d):\n    m, _ = torch.max(x, d)\n    return m\n\n"
    compare(named + NET.format("top(x, 1) * t"), 1.0)


def test_two_tensors_are_compared_element_by_element() -> None:
    compare("torch.max(x, t)", X.flip(0))
    compare("torch.max(x, t.exp())[0]", X.flip(0))
    other = "def forward(self, x: torch.Tensor, t: torch.Tensor)"
    source = NET.format("torch.max(x, t)[0]").replace("def forward(self, x, t)", other)
    compare(source, X.flip(0))


def test_values_written_at_places_may_be_one_number() -> None:
    compare("x.scatter(1, torch.tensor([[0], [1], [2]]), t)", 2.5, torch.full((3, 2), 2.5))


def test_what_is_known_for_a_tensor_is_read_as_one() -> None:
    code = convert(HEADER + NET.format("x * torch.tensor([t.exp().float()])")).code
    assert "jnp.reshape" not in code


@pytest.mark.parametrize(
    ("made", "given"),
    [
        ("F.gelu(x, approximate=t)", ("tanh", "none")),
        ("torch.div(x, 0.3, rounding_mode=t)", ("floor", "trunc", None)),
        ("torch.linalg.qr(x, t)[1].abs()", ("r", "reduced")),
        ("x.scatter(1, torch.zeros(3, 1, dtype=torch.long), x + 1, reduce=t)", ("add", "multiply")),
        ("x.scatter(1, torch.zeros(3, 1, dtype=torch.long), 2.0, reduce=t)", ("multiply", "add")),
        ("torch.searchsorted(x[0], x[0], side=t) * x", ("left", "right")),
        ("F.mse_loss(x, x + 1, reduction=t) * x", ("sum", "mean", "none")),
        ("F.pad(x[None], (1, 1), t)", ("circular", "replicate", "constant")),
        ("x.norm(t) * x", ("fro", 1)),
        ("x.sort(-1, descending=t)[0]", (True, False)),
    ],
)
def test_an_option_that_is_a_string(made: str, given: tuple[Any, ...]) -> None:
    compare(made, *given)
