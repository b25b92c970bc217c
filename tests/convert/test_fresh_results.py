"""``out=`` of a tensor that is made for the result."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import torch

from tests.convert.tools import check, convert, loaded, rules_of


@pytest.mark.parametrize(
    "made",
    [
        "torch.arange(0, n, out=torch.LongTensor(n))",
        "torch.arange(n, out=torch.LongTensor(n)) * 2",
        "torch.arange(0, len(x), out=torch.LongTensor(x.size(0)))",
        "torch.arange(x.size(0), out=torch.LongTensor())",
    ],
)
def test_counting(made: str) -> None:
    theirs, ours, code = loaded(f"def f(x: torch.Tensor, n):\n    return {made}\n")
    x = torch.ones(5)
    got = jax.jit(lambda x: ours["f"](x, 5))(x.numpy())
    np.testing.assert_array_equal(got, theirs["f"](x, 5).numpy())
    assert "out=" not in code


def test_one_in_a_mask() -> None:
    """As the masks of speech models are made; a length that is itself computed stays a finding."""
    mask = "    ids = torch.arange(0, n, out=torch.LongTensor(n))\n    return (ids < lengths.unsqueeze(1)).bool()\n"
    assert convert("def f(lengths: torch.Tensor, n):\n" + mask).complete
    computed = "    n = torch.max(lengths).item()\n"
    assert not convert("def f(lengths: torch.Tensor):\n" + computed + mask).complete


@pytest.mark.parametrize(
    "made",
    [
        "torch.arange(0., n, 0.5, out=torch.LongTensor(n))",
        "torch.arange(0, n, out=torch.FloatTensor(n))",
        "torch.add(x, 1, out=torch.LongTensor(n))",
        "torch.add(x, 1, out=x)",
        "torch.arange(0, n, out=make(n))",
    ],
)
def test_other_results(made: str) -> None:
    source = f"def f(x: torch.Tensor, n: int, make):\n    return {made} + 1\n"
    assert "MUT002" in rules_of(source)


def test_a_branch_that_never_runs_hands_nothing_on() -> None:
    check(
        """
def halved(x):
    if torch.jit.is_scripting():
        return x
    return x / 2

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = self.fc(x)
        y = halved(x)
        y += 1
        return x * y
"""
    )
