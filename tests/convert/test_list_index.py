"""A list that stands alone as an index: torch reads it as a tuple unless it holds numbers only."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import check, compare_gradients, loaded, rules_of, under

LISTED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self, pairs=([0, 1], [1, 2])):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.pairs = list(pairs)

    def forward(self, x):
        y, i = self.l(x), torch.tensor([0, 2])
        i2 = [i, i + 1]
        js = []
        for n in range(2):
            js.append(i + n)
        z = torch.zeros(4, 4)
        {line}
        return r
"""


@pytest.mark.filterwarnings("ignore:Using a non-tuple sequence")
@pytest.mark.parametrize(
    "line",
    [
        "r = y[[i, i]]",
        "r = y[[[0, 1], [1, 2]]]",
        "r = y[[slice(None), 0]]",
        "r = y[[None, 0]]",
        "r = y[[..., 0]]",
        "r = y[[i[0], 1]]",
        "r = y[[i]]",
        "r = y[i2]",
        "r = y[js]",
        "r = y[self.pairs]",
        "r = y[[i + t for t in range(2)]]",
        "r = y[[0, 2]]",
        "r = y[[True, False, True]]",
        "z[[i, i]] = 1.0; r = z[:1] * y",
        "z[i2] += 2.0; r = z[:1] * y",
        "z[[[0, 1], [1, 2]]] = 3.0; r = z[:1] * y",
    ],
)
def test_a_list_as_an_index_is_read_as_torch_reads_it(line: str) -> None:
    check(LISTED.format(line=line))


PICKED = """
import torch
from torch import nn

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.register_buffer("parents", torch.tensor([-1, 0, 0, 1]))

    def forward(self, x):
        y = self.l(x)
        chain = [y[:, 0]]
        for i in range(1, self.parents.shape[0]):
            chain.append(chain[self.parents[i]] * y[:, i])
        return torch.stack(chain, 1)
"""


def test_an_item_of_a_list_whose_place_a_tensor_says() -> None:
    check(PICKED)


@pytest.mark.parametrize(
    ("lines", "refused"),
    [
        ("y[[0, 0, 2]] *= 2", True),
        ("y[:, [1, 1]] = x[:, :2]", True),
        ("i = torch.tensor([0, 0]); y[i] *= x[i]", True),
        ("y[[0, 2]] *= 2", False),
        ("y[[0, 0]] = 1.0", False),
        ("i = torch.tensor([0, 1]); y[i] = x[i] * 2", False),
    ],
)
def test_places_that_are_listed_twice_have_other_gradients(lines: str, refused: bool) -> None:
    body = under("def f(x: torch.Tensor):\n", f"y = x * 1; {lines}; return y")
    assert ("MUT002" in rules_of(body)) is refused
    if not refused:
        compare_gradients(body, torch.linspace(-1, 1, 12).reshape(3, 4))


@pytest.mark.parametrize(
    "line",
    [
        "y[:, i].mul_(2)",
        "y[i].zero_()",
        "y[[0, 1]].copy_(v)",
        "y[(i, 0)].add_(1)",
        "y[..., i].masked_fill_(v > 1, 0)",
        "y[i][0] = 3",
        "y[i][:, 0] *= 2",
        "y[i].view(-1).zero_()",
        "y.data[i].mul_(2)",
        "F.relu_(y[i])",
        "torch.mul(v, 2, out=y[i])",
    ],
)
def test_what_is_written_to_the_copy_that_an_index_gives_is_a_finding(line: str) -> None:
    source = f"def f(x: torch.Tensor, v: torch.Tensor, i: torch.LongTensor):\n    y = x * 1\n    {line}\n    return y\n"
    assert rules_of(source) == ["MUT001"]


@pytest.mark.parametrize(
    "line",
    ["y[n].mul_(2)", "y[:, n:].zero_()", "y[n].view(-1).zero_()", "y[n][i] = 3", "y[i] *= 2"],
)
def test_what_is_written_to_a_view_is_written_to_the_tensor(line: str) -> None:
    source = f"def f(x: torch.Tensor, i: torch.LongTensor, n: int):\n    y = x * 1\n    {line}\n    return y\n"
    theirs, ours, _ = loaded(source)
    x, i = torch.linspace(-1, 1, 9).reshape(3, 3), torch.tensor([0, 2])
    found = ours["f"](jnp.asarray(x.numpy()), jnp.asarray(i.numpy()), 1)
    np.testing.assert_allclose(found, theirs["f"](x, i, 1))


@pytest.mark.parametrize("places", [[0, 2, 1], [0, 1, 0], [2, 2, 2]])
@pytest.mark.parametrize(
    "line", ["y[:, i] *= 2", "y[i] += v", "y[i] /= v", "y[:, i] -= y[:, i] * 0.1", "y[i, 0] **= 2"]
)
def test_what_is_computed_at_places_that_may_be_listed_twice(line: str, places: list[int]) -> None:
    head = "def f(x: torch.Tensor, v: torch.Tensor, i: torch.LongTensor):\n"
    lines = f"y = x * 1; {line}; return (y * torch.arange(1.0, 10.0).reshape(3, 3)).sum()"
    x, v = (torch.linspace(low, 2, 9).reshape(3, 3) for low in (0.5, 1))
    compare_gradients(under(head, lines), x, v, torch.tensor(places))


def test_what_is_computed_at_places_of_which_each_is_another_is_written_plainly() -> None:
    head = "def f(x: torch.Tensor):\n"
    _, _, code = loaded(under(head, "i = torch.argsort(x[0]); x = x * 1; x[:, i] *= 2; return x"))
    assert ".at[:, i].set(x[:, i] * 2)" in code
