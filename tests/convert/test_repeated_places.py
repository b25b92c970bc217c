"""Writes by an index that may list a place twice: torch hands the gradient of the place to each value."""

from __future__ import annotations

import pytest
import torch

from tests.convert.tools import compare_gradients, convert, rules_of

X = torch.linspace(-2, 2, 12).reshape(3, 4)
TWICE = torch.tensor([0, 2, 2])
HEAD = "def f(x: torch.Tensor, i: torch.LongTensor):\n    y = torch.zeros(3, 5)\n"


@pytest.mark.parametrize(
    "lines",
    [
        "    y[:, i] = x[:, :3]\n    return y * 2\n",
        "    y[i, :4] = x.exp()\n    return y.sin()\n",
        "    y[1, i] = x[0, 1:]\n    return y\n",
        "    return y.index_copy(1, i, x[:, :3])\n",
        "    y.index_copy_(-1, i, x[:, 1:])\n    return y\n",
        "    return y.scatter(1, i.expand(3, 3), x[:, :3])\n",
        "    y.scatter_(1, i.expand(3, 3), x[:, 1:])\n    return y\n",
        "    return y.index_put((i, i), x[0, :3])\n",
        "    y.index_put_((i,), x[:, :1] * torch.ones(5))\n    return y\n",
        "    return y.put(i, x[1, :3])\n",
    ],
)
def test_each_value_has_the_gradient_of_its_place(lines: str) -> None:
    compare_gradients(HEAD + lines, X, TWICE)


@pytest.mark.parametrize(
    "lines",
    [
        "    v, j = x.topk(2)\n    return y.scatter(1, j, v * 2)\n",
        "    j = x.argsort(dim=1)[:, :2]\n    return y.scatter(1, j, x[:, 2:])\n",
        "    a, b = x.argsort(1)[:, :2], i\n    y[torch.arange(3)[:, None], a] = x[:, :2]\n    return y\n",
        "    j = torch.arange(3)\n    y[j, :4] = x\n    return y\n",
        "    j = torch.randperm(3)\n    return y.index_copy(0, j, x.repeat(1, 2)[:, :5])\n",
        "    y[:, i] = 1.0\n    return y + x.sum()\n",
        "    return y.scatter(1, i.expand(3, 3), 1.0) * x.sum()\n",
        "    n = y.long()\n    n[:, i] = i\n    return n * x.sum()\n",
        "    with torch.no_grad():\n        y[:, i] = x[:, :3]\n    return y\n",
    ],
)
def test_places_that_are_listed_once(lines: str) -> None:
    result = convert(HEAD + lines)
    assert result.complete, result.findings
    assert "set_each" not in result.code


@pytest.mark.parametrize(
    "lines",
    [
        "    y[torch.arange(3)[:, None], x.argsort(0)] = x\n    return y\n",
        "    y[:, x.argsort(1).view(-1)] = x.repeat(1, 3)\n    return y\n",
        "    v, j = y.view(3, 5, 1).repeat(1, 1, 2).topk(2)\n    return x.view(3, 2, 2).repeat(1, 3, 1)[:, :5].scatter(1, j, v)\n",
    ],
)
def test_what_sorts_along_another_axis_may_list_a_place_twice(lines: str) -> None:
    result = convert(HEAD + lines)
    assert result.complete, result.findings
    assert "set_each" in result.code


@pytest.mark.parametrize("index", ["u", ":, u", "u, 0"])
def test_what_an_unknown_index_gives_may_be_a_copy(index: str) -> None:
    head = "def f(x: torch.Tensor, u):\n    y = x * 2\n"
    assert "MUT001" in rules_of(head + f"    y[{index}].mul_(2)\n    return y\n")
    number = head.replace("u)", "u: int)")
    assert not rules_of(number + f"    y[{index}].mul_(2)\n    return y\n")


@pytest.mark.parametrize("index", ["i", ":, i", "i + 1"])
def test_what_a_loop_goes_through_are_numbers(index: str) -> None:
    source = f"def f(x: torch.Tensor, order):\n    for i in order:\n        x[{index}].mul_(2)\n    return x\n"
    assert not rules_of(source)


@pytest.mark.parametrize(
    "line",
    [
        "y = y.index_put((i > 0,), x[:1, :3])",
        "y.index_put_((i > 0,), torch.tensor(2.0), accumulate=True)",
        "y.index_put_((i > 0, i), x[0, :3])",
        "y = y.index_put((y > 0,), torch.tensor(2.0))",
    ],
)
def test_values_that_a_mask_places(line: str) -> None:
    assert rules_of(HEAD + f"    {line}\n    return y\n") == ["DYN001"]


@pytest.mark.parametrize("index", ["m.padding_idx", "config.pad_token_id"])
def test_the_row_of_padding_is_one(index: str) -> None:
    head = "def start(m, config):\n    if isinstance(m, nn.Embedding):\n"
    assert not rules_of(head + f"        m.weight.data[{index}].zero_()\n")
