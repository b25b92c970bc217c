"""What is read of a tensor after memory it shares was written: its sizes alone, another value, or by a function."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

FORWARD = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.0)

    def forward(self, x):
{}
"""


def forward(lines: str) -> str:
    return FORWARD.format("\n".join(" " * 8 + line for line in lines.strip("\n").split("\n")))


SIZES = (
    "e = self.drop(x * 1)\ny = e\nfor _ in range(2):\n    y += e.shape[1] + e.size(0)\nreturn y.type_as(e.data)",
    "e = x * 2\ny = e.view(-1)\ny += 1\nreturn y.view(e.size()) + torch.zeros_like(e) + e.new_ones(4)",
    "e = x * 2\ny = e.t()\ny.mul_(3)\nreturn y.reshape_as(e) * e.dim() + len(e)",
    "e = x.new_zeros(2, 6)\ny = e.view(12)\ny[3:] = 2.0\ne = y.view(3, 4)\nreturn e * x",
    "for i in range(3):\n    e = x * i\n    y = e.view(-1)\n    y += 1\n    e = y.view(3, 4) * 2\nreturn e",
)


@pytest.mark.parametrize("lines", SIZES)
def test_sizes_and_new_values_are_no_reads(lines: str) -> None:
    check(forward(lines))


SEEN = (
    "e = x * 2\ny = e\ny.unsqueeze_(0)\nreturn y * e.dim()",  # torch changes its sizes as well
    "e = x * 2\ny = e\ny += 1\nreturn y * e.shape[0] + e",
    "e = x * 2\nfor i in range(3):\n    y = e\n    y += 1\n    if i == 1:\n        break\n    e = y * 2\nreturn e",
    "e = x * 2\ny = e\nif x.shape[0] > 2:\n    y += 1\ne = e + 1\nreturn e + y",
    "e = x * 2\ny = e\ny += 1\nz = e.type_as(x)\ne = y * 2\nreturn e + z",
    "e = x * 1\nf = lambda: e * 2\ny = e\ny += 1\nreturn f() + y",
    "e = x * 1\nfs = [lambda z: e * z]\ny = e.view(-1)\ny.mul_(3)\nreturn fs[0](x).view(-1) + y",
    "y = x * 1\ndef f():\n    return e * 2\ne = y\ny.add_(1)\nreturn f()",
    "y = x * 1\nf = lambda: g() * 2\ng = lambda: e\ne = y\ny.add_(1)\nreturn f() + 1",
    "e = x * 1\nf = lambda: e * 2\ny = e\ny += 1\nz = f()\ne = y * 2\nreturn z + y + e",
)


@pytest.mark.parametrize("lines", SEEN)
def test_what_sees_the_write_is_a_finding(lines: str) -> None:
    assert "MUT001" in rules_of(forward(lines))


def test_a_lambda_that_reads_what_is_not_shared() -> None:
    code = check(forward("s = x.sum()\nf = lambda z: z * s\ny = x * 1\ny += 1\nreturn f(y)"))
    assert "y = y + 1" in code or "y += 1" in code


@pytest.mark.parametrize(
    "line",
    [
        "y[:, 0] = y[:, 0].masked_fill_(x[:, 1] > 0, 0)",
        "y[0] = y[0].clamp_(0.2) * 2",
        "y[1:, :2] = y[1:, :2].add_(1).mul_(x[1:, :2])",
        "y.data[:, 0] = y.data[:, 0].zero_()",
    ],
)
def test_a_part_that_is_changed_in_the_value_it_gets(line: str) -> None:
    check(forward(f"y = x * 1\n{line}\nreturn y"))


def test_another_part_that_is_changed_in_a_value() -> None:
    assert "MUT002" in rules_of(forward("y = x * 1\ny[:, 0] = y[:, 1].mul_(2)\nreturn y"))
    assert "MUT002" in rules_of(forward("y = x * 1\ny[0] = y[0].mul_(2) + y.sum()\nreturn y"))
