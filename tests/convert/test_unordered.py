"""Walks over parameters in the forward pass, where Flax goes by names and torch by registration."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import X, both, rules_of

MODEL = """
import copy


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)
        self.twin = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        self.kept = [p.clone() for p in self.parameters()]

    def forward(self, x):
        WALK
        return x
"""


@pytest.mark.parametrize(
    ("walk", "found"),
    [
        ("x = x + sum(p.pow(2).sum() for p in self.parameters())", []),
        ("for p in self.parameters(): x = x + p.mean()", []),
        ("for p in self.parameters(): x += p.mean()", []),
        ("x = x + torch.cat([p.view(-1) for p in self.parameters()])[0]", ["API007"]),
        ("ps = []\n        for p in self.parameters(): ps.append(p.sum())", ["API007"]),
        ("ps = []\n        for p in self.parameters(): ps += [p.sum()]", ["API007"]),
        ("i = 0\n        for p in self.parameters(): x = x + i * p.sum(); i += 1", ["API007"]),
        ("for i, p in enumerate(self.parameters()): x = x + i * p.sum()", ["API007"]),
        ("for p, s in zip(self.parameters(), self.kept): s.add_(p.data)", ["API007", "MUT001"]),
        (
            "for p, q in zip(self.net.parameters(), self.norm.parameters()): x += p.mean() * q.mean()",
            ["API007"],
        ),
        (
            "for p, q in zip(self.net.parameters(), self.twin.parameters()): x += p.mean() * q.mean()",
            [],
        ),
        ("ps = list(self.parameters())\n        x = x * ps[0].sum()", ["API007"]),
        (
            "for p, q in zip(self.net.parameters(), self.twin.parameters()):"
            " old, new = p.data, q.data; p.data = old * 0.5 + new * 0.5",
            [],
        ),
        (
            "last = 0\n        for p in self.parameters():"
            " d = last - p.sum(); last = p.sum(); x = x + d * d",
            ["API007"],
        ),
        (
            "last = 0\n        for p in self.parameters():"
            " prev, cur = last, p.sum(); x = x + prev * cur; last = cur",
            ["API007"],
        ),
        (
            "d = 0\n        for p in self.parameters():\n            if p.ndim > 1: d = p.sum()\n"
            "            x = x + d",
            ["API007"],
        ),
        ("for p in self.parameters(): d = p.sum(); x = x + d * d", []),
        ("last = 0\n        for p in self.parameters(): x, last = x + last, p.sum()", ["API007"]),
        (
            "last = 0\n        for p in self.parameters(): x, last = x + p.sum(), x.sum()",
            ["API007"],
        ),
    ],
)
def test_the_order_of_parameters_does_not_decide_what_a_model_computes(
    walk: str, found: list[str]
) -> None:
    assert rules_of(MODEL.replace("WALK", walk)) == found


def test_a_copy_is_walked_in_the_order_of_its_original() -> None:
    source = """
import copy


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = nn.ModuleDict({"z": nn.Linear(4, 4), "a": nn.LayerNorm(4)})
        self.ema = copy.deepcopy(self.own)
        for p, q in zip(self.own.parameters(), self.ema.parameters()):
            q.data.copy_(p.data * 2)
            q.requires_grad = False

    def update(self):
        for p, q in zip(self.own.parameters(), self.ema.parameters()):
            q.data.mul_(0.5).add_(p.data, alpha=0.5)

    def forward(self, x):
        if self.training:
            self.update()
        return self.ema["a"](self.ema["z"](x))
"""
    module, port, _ = both(source)
    np.testing.assert_allclose(port(X.numpy()), module(X).detach(), rtol=1e-5, atol=1e-6)
    ours = migrator.to_state_dict(port)
    for name, value in module.state_dict().items():
        np.testing.assert_allclose(ours[name], value, rtol=1e-6, atol=1e-6, err_msg=name)
    assert not torch.equal(module.own["z"].weight, module.ema["z"].weight)
