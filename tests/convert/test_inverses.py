"""``z, det = flow.backward(z)``: what goes back through a module is no backward() of a tensor."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

NET = """
import torch
from torch import nn


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4) * 2)

    def forward(self, x):
        return x * self.scale

    def backward(self, z):
        return z / self.scale


class Pair(Flow):
    def backward(self, z):
        return z / self.scale, self.scale.sum()


class Chain(nn.Module):
    def __init__(self, flows):
        super().__init__()
        self.flows = nn.ModuleList(flows)

    def forward(self, x):
{lines}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.chain = Chain([{cls}(), {cls}()])

    def forward(self, x):
        return self.chain(x)
"""


def _net(lines: str, cls: str = "Flow") -> str:
    body = "\n".join(" " * 8 + line for line in lines.splitlines())
    return NET.format(lines=body, cls=cls)


@pytest.mark.parametrize(
    "lines",
    [
        "for flow in self.flows[::-1]:\n    x = flow.backward(x)\nreturn x",
        "for flow in reversed(self.flows):\n    x = flow.backward(x)\nreturn x",
        "for flow in self.flows:\n    x = flow.backward(x)\nreturn x",
        "return self.flows[0].backward(self.flows[-1](x))",
        "return sum(flow.backward(x) for flow in self.flows)",
    ],
)
def test_what_stands_in_a_list_of_modules(lines: str) -> None:
    check(_net(lines))


def test_two_results() -> None:
    lines = "det = 0\nfor flow in self.flows:\n    flow = flow\n    x, one = flow.backward(x)\n    det = det + one\nreturn x + det"
    check(_net(lines, "Pair"))


@pytest.mark.parametrize(
    "lines",
    [
        "back = [flow.inverse for flow in self.flows[::-1]]\nx, one = back[0](x, None)\nfor go in back[1:]:\n    x, b = go(x, None)\n    one = one + b\nreturn x + one",
        "for flow in self.flows:\n    go = flow.inverse\n    x, one = go(x, None)\nreturn x + one",
        "one = 0\nfor go in (flow.inverse for flow in self.flows):\n    x, b = go(x, None)\n    one = one + b\nreturn x + one",
        "back = [flow.inverse for flow in self.flows]\nones = [flow.inverse(x, x)[1] for flow in self.flows]\nreturn back[1](x, None)[0] + sum(ones)",
    ],
)
def test_methods_kept_of_children(lines: str) -> None:
    """``inverse`` is a method of tensors, too, which takes nothing."""
    source = _net(lines).replace("def backward(self, z)", "def inverse(self, z, context)")
    source = source.replace("return z / self.scale\n", "return z / self.scale, self.scale.mean()\n")
    check(source)


@pytest.mark.parametrize(
    "lines",
    [
        "loss = self.make(x)\nloss.backward()\nreturn x",
        "for flow in self.flows:\n    flow = self.make(flow)\n    flow.backward(x)\nreturn x",
        "for flow in self.make(x):\n    flow.backward(x)\nreturn x",
    ],
)
def test_what_may_be_a_tensor(lines: str) -> None:
    """Of a tensor it differentiates, which is told."""
    assert "API002" in rules_of(_net(lines))
