"""Indices and shifts that are ranges, lists, or numbers taken out of tensors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import loaded, pair, rules_of, same

X = np.arange(20, dtype=np.float32).reshape(4, 5) / 7
PLACES = np.array([3, 1, 0, 2], np.int32)
LINES = {
    "a range": "return x[range(x.size(0)), i]",
    "a range that has a name": "r = range(0, 3, 2); return x[r], x[:, r]",
    "written by a range": "y = x.clone(); y[range(4), i] = 0; y[:, range(2)] += 1; return y",
    "a list of a range": "r = list(range(x.size(0))); return x[r, i]",
    "an int of a tensor": "return x[int(i[0])], x[:, int(i[1]) - 2], x[..., i.argmax().item()]",
    "an int of a float": "return x[int(x.mean())]",
    "written at one": "y = x.clone(); y[0, int(i[1])] = 5; y[int(i[2])] *= 2; return y",
    "rolled": "return torch.roll(x, -int(i[0]), -1), x.roll(shifts=int(i[1]), dims=0)",
}


def _source(lines: str) -> str:
    body = "\n".join(f"    {line.strip()}" for line in lines.split(";"))
    return f"def f(x: torch.Tensor, i: torch.LongTensor):\n{body}\n"


@pytest.mark.parametrize("name", sorted(LINES))
def test_the_same_under_jit(name: str) -> None:
    theirs, ours, _ = loaded(_source(LINES[name]))
    want = theirs["f"](torch.tensor(X), torch.tensor(PLACES, dtype=torch.long))
    got = jax.jit(ours["f"])(jnp.asarray(X), jnp.asarray(PLACES))
    for w, g in zip(*(v if isinstance(v, tuple) else (v,) for v in (want, got)), strict=True):
        np.testing.assert_allclose(g, w.numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        "n = int(i[0]); return x.view(n, -1)",
        "return x[:int(i[0])]",
        "return x[int(i[0]), i]",
        "return [x, x * 2][int(i[0])]",
        "return torch.roll(x, int(i[0]) * len(x), 0)",
    ],
)
def test_a_number_that_has_to_be_known(lines: str) -> None:
    assert set(rules_of(_source(lines))) & {"DYN003", "DYN004"}


CHOSEN = """
class M(nn.Module):
    def __init__(self, learned):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(5, 5) for _ in range(2)])
        if learned:
            self.importance = nn.ParameterList([nn.Parameter(torch.full((5,), 0.5)) for _ in range(2)])
        else:
            self.importance = [2] * len(self.layers)

    def forward(self, x):
        for layer, weight in zip(self.layers, self.importance):
            x = layer(x) * weight
        return x + self.layers[0](x) * self.importance[0]
"""


@pytest.mark.parametrize("learned", [True, False])
def test_numbers_where_a_list_of_parameters_may_be(learned: bool) -> None:
    theirs, ours, _ = loaded(CHOSEN)
    same(*pair(theirs, ours, f"M({learned})"), X, jit=True)


@pytest.mark.parametrize(
    "index", ["None, True", "True, None, 1", "..., None, True", "None, True, :2"]
)
def test_truth_beside_none(index: str) -> None:
    theirs, ours, _ = loaded(f"def f(x: torch.Tensor):\n    return x[{index}]\n")
    np.testing.assert_allclose(ours["f"](jnp.asarray(X)), theirs["f"](torch.tensor(X)))


@pytest.mark.parametrize("index", ["None, False", "None, True, i", "None, x is None"])
def test_truth_beside_what_selects(index: str) -> None:
    assert "API002" in rules_of(_source(f"return x[{index}]"))
