"""Parameters of a layer that are replaced in a class derived from it."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

MODEL = """
class Layer({base}):
    def __init__(self, n):
        super().__init__({args})
        {line}

    def forward(self, x):
        return super().forward(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = Layer(4)

    def forward(self, x):
        return self.layer(x)
"""


@pytest.mark.parametrize(
    ("args", "line"),
    [
        ("n, n", "self.weight = nn.Parameter(torch.ones(n, n))"),
        ("n, n", 'del self.weight\n        self.register_buffer("weight", torch.ones(n, n))'),
        ("n, n", 'self.register_parameter("weight", nn.Parameter(torch.ones(n, n)))'),
        ("n, n, bias=False", "self.bias = nn.Parameter(torch.ones(n))"),
    ],
)
def test_another_parameter_is_found(args: str, line: str) -> None:
    found = rules_of(MODEL.format(base="nn.Linear", args=args, line=line))
    assert set(found) == {"API006"}


def test_no_bias() -> None:
    check(MODEL.format(base="nn.Linear", args="n, n", line="self.bias = None"))


@pytest.mark.parametrize("base", ["nn.Conv1d", "nn.BatchNorm1d"])
def test_a_weight_of_the_same_name_may_be_replaced(base: str) -> None:
    args = "3, 3, 1" if base == "nn.Conv1d" else "4"
    shape = "3, 3, 1" if base == "nn.Conv1d" else "4"
    line = f"self.weight = nn.Parameter(torch.full(({shape},), 0.5))"
    check(MODEL.format(base=base, args=args, line=line))


def test_what_is_a_parameter_or_a_plain_tensor_is_not_written() -> None:
    source = """
class M(nn.Module):
    def __init__(self, n, bias=False):
        super().__init__()
        if bias:
            self.bias = nn.Parameter(torch.zeros(n))
        else:
            self.bias = torch.zeros(n)
        self.bias.data.fill_(1)
"""
    assert rules_of(source) == ["MUT002"]
    assert rules_of(source.replace("        self.bias.data.fill_(1)\n", "")) == []
