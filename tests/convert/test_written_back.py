"""Biases that are written through a view, of which the parameter is then made anew: YOLO's heads."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both, rules_of

SOURCE = """
import math


class Detect(nn.Module):
    def __init__(self):
        super().__init__()
        self.na = 2
        self.m = nn.ModuleList(nn.Conv2d(n, 8, 1) for n in (3, 3))

    def forward(self, x):
        return self.m[0](x) + self.m[1](x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.detect = Detect()
        self.start()

    def start(self, cf=None):
        m = self.detect
        for mi, s in zip(m.m, [8, 16]):
            b = VIEW
            BODY

    def forward(self, x):
        return self.detect(x)
"""
BACK = "mi.bias = torch.nn.Parameter(b.view(-1), requires_grad=True)"


def source(body: str, view: str = "mi.bias.view(m.na, -1)") -> str:
    return SOURCE.replace("VIEW", view).replace("BODY", body.replace("\n", "\n            "))


@pytest.mark.parametrize(
    ("view", "body"),
    [
        (
            "mi.bias.view(m.na, -1)",
            f"b.data[:, 1] += math.log(8 / (640 / s) ** 2)\nb.data[:, 2:] += 0.5 if cf is None else torch.log(cf / cf.sum())\n{BACK}",
        ),
        ("mi.bias.data.view(m.na, -1)", f"b[:, 1] = 0.25\n{BACK}"),
        ("mi.bias.detach().reshape(m.na, -1)", f"if s > 8:\n    b[:, 1] -= 1.5\n{BACK}"),
        ("mi.bias", f"with torch.no_grad():\n    b.mul_(0.5)\n{BACK}"),
    ],
)
def test_the_parameter_is_given_its_memory_back(view: str, body: str) -> None:
    model, port, _ = both(source(body, view))
    x = torch.linspace(-1, 1, 24).reshape(2, 3, 2, 2)
    want = model(x).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("first", [1.0, -2.0])
def test_what_is_written_is_the_new_value(first: float) -> None:
    _, port, _ = both(source(f"b.data[:, 1] = {first}\n{BACK}"))
    for layer in port.detect.m:
        np.testing.assert_allclose(layer.bias[...].reshape(2, -1)[:, 1], first)


@pytest.mark.parametrize(
    ("view", "body"),
    [
        ("mi.bias.view(m.na, -1)", "b.data[:, 1] += 1"),
        ("mi.bias.view(m.na, -1)", f"b.data[:, 1] += 1\nself.kept = mi.bias.sum()\n{BACK}"),
        (
            "mi.bias.view(m.na, -1)",
            f"b.data[:, 1] += 1\nself.kept = self(torch.ones(1, 3, 1, 1))\n{BACK}",
        ),
        (
            "mi.bias.view(m.na, -1)",
            f"b.data[:, 1] += 1\nself.kept = mi(torch.ones(1, 3, 1, 1)).sum()\n{BACK}",
        ),
        (
            "mi.bias.view(m.na, -1)",
            f"b.data[:, 1] += 1\nself.kept = nn.Sequential(mi)(torch.ones(1, 3, 1, 1))\n{BACK}",
        ),
        ("mi.bias.view(m.na, -1)", f"b.data[:, 1] += 1\nif s > 8:\n    continue\n{BACK}"),
        ("mi.bias.view(m.na, -1)", f"b.data[:, 1] += 1\nif s > 8:\n    {BACK}"),
        ("mi.bias.view(m.na, -1)", f"b.data[:, 1] += 1\nmi = m.m[0]\n{BACK}"),
        (
            "mi.bias.view(m.na, -1)",
            "b.data[:, 1] += 1\nmi.bias = torch.nn.Parameter(b.view(-1) * 2)",
        ),
        ("mi.bias.view(m.na, -1)[:, 1:]", "b.data[:, 1] += 1\nmi.bias = torch.nn.Parameter(b)"),
        ("m.m[0].bias.view(m.na, -1)", f"b.data[:, 1] += 1\n{BACK}"),
    ],
)
def test_what_is_seen_before_or_never_given_back(view: str, body: str) -> None:
    assert "MUT001" in rules_of(source(body, view))
