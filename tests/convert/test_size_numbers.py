"""Sizes that are made tensors first, and sizes that are the values of tensors."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.n = torch.tensor(4)

    def forward(self, x):
        y = self.l(x)
        {lines}
"""


def _source(lines: str) -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        "))


@pytest.mark.parametrize(
    "lines",
    [
        "n = torch.tensor(4); return y.view(n, -1)",
        "n = torch.prod(torch.tensor(y.shape[1:])); return y.view(-1, n)",
        "n = torch.tensor(y.shape).prod(); return y.reshape(n) + torch.zeros(n)",
        "n = torch.tensor(list(y.size()), dtype=torch.long).prod(); return y.view((n, 1))",
        "return y.view(y.size(0), torch.prod(torch.tensor(y.size()[1:])).item())",
        "n = torch.as_tensor(y.shape[1]) // 2; return y[:, :n] + y.new_ones(3, n)",
        "n = torch.tensor(y.size(1), device=y.device); return y[None].expand(n, -1, -1).repeat(n, 1, 1)",
        "n = torch.tensor(y.shape[0]); m = int(n) + n.item(); return y.new_full((m, 4), 2.0)[:n] + y",
    ],
)
def test_a_number_stands_for_a_tensor_that_is_a_size_again(lines: str) -> None:
    check(_source(lines))


@pytest.mark.parametrize(
    "lines",
    [
        "n = y.argmax(); return y.view(n, -1)",
        "return y.view(self.n, -1)",
        "n = torch.tensor(4); y = y + n.float(); return y.view(n, -1)",
        "n = torch.tensor(4); n += y.argmax(); return y.repeat(n, 1)",
        "return y.new_zeros(y.argmax(), 2)",
        "return y[None].expand((y.argmax(), 3, 4))",
        "return y.repeat(*y.argmax(0)[:2])",
        "return y[None].expand(*torch.stack([y.argmax(), y.argmin(), y.argmax()]))",
        "return torch.zeros(*y.argmax(0)) + y[0, 0]",
    ],
)
def test_the_value_of_a_tensor_is_no_size(lines: str) -> None:
    assert rules_of(_source(lines)) == ["DYN003"]


def test_what_is_no_size_is_not_looked_at() -> None:
    code = check(_source("n = torch.tensor(y.shape[1]); return y / n.sqrt()"))
    assert "n = jnp.array(y.shape[1])" in code
    check(_source("return y.new_full((3, 4), 2.0) + y.expand(3, 4)"))


def test_sizes_that_a_file_hands_to_its_model_as_a_tensor() -> None:
    source = """
class Model(nn.Module):
    def forward(self, x, repeats):
        return x.repeat(*repeats)

def get_inputs():
    return [torch.randn(2, 3), TIMES]
"""
    assert "DYN003" in rules_of(source.replace("TIMES", "torch.tensor([1, 2])"))
    assert "DYN003" not in rules_of(source.replace("TIMES", "[1, 2]"))
