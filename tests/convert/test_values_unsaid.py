"""Where Python asks a tensor for its value without saying so: a finding, as jit has no value to give."""

from __future__ import annotations

import pytest

from tests.convert.tools import convert, rules_of

MODEL = """
import logging
import math

import numpy as np

logger = logging.getLogger(__name__)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.sizes = [1.0, 2.0, 3.0]

    def forward(self, x: torch.Tensor):
        BODY
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return x * 2 if all(x[0] > 0) else x", ["DYN002"]),
        ("return x * 2 if any(r.sum() > 0 for r in x) else x", ["DYN002"]),
        ("return x * 2 if any([x.sum() > 0, x.mean() > 1]) else x", ["DYN002"]),
        ("many = all(x[0] > 0)\n        return x, many", ["DYN002"]),
        ("return x * 2 if any(x is None for x in (x, None)) else x", []),
        ("return x * 2 if all(n > 1 for n in x.shape) else x", []),
        ("return x * 2 if 0 in x else x", ["DYN002"]),
        ("return x * 2 if x.sum() in (1, 2) else x", ["DYN002"]),
        ("return x * 2 if x.shape[0] in (1, 2) else x", []),
        ("return x * 2 if 0 < x.sum() < 9 else x", ["DYN002"]),
        ("inside = 0 < x.sum() < 9\n        return x, inside", ["DYN002"]),
        ("return x * 2 if 0 < x.size(0) < 9 else x", []),
        ("return sorted(x[0])[0]", ["DYN002"]),
        ("return x[sorted(range(3), key=lambda i: x[i].sum())]", ["DYN002"]),
        ("return x[sorted(range(3), key=lambda i: -i)]", []),
        (
            "best, place = max((r.sum(), j) for j, r in enumerate(x))\n        return best",
            ["DYN002"],
        ),
        ("return list(filter(lambda r: r.sum() > 0, x))[0]", ["DYN002"]),
        (
            "sums = [x[i].sum() for i in range(3)]\n        sums.sort()\n        return x",
            ["DYN002"],
        ),
        ("return x * math.sqrt(x.sum())", ["DYN004"]),
        ("return x * math.sqrt(x.size(0))", []),
        ("return self.layers[x[0].argmax() % 3](x)", ["DYN004"]),
        ("return x * self.sizes[x.argmax() % 3]", ["DYN004"]),
        ("return x * self.sizes[x.shape[0] % 3]", []),
        ("parts = [x, x + 1]\n        return parts[(x.sum() > 9).long()]", []),
        ('return x, f"{x.sum():.3f}"', ["DYN004"]),
        ('return x, f"{x.sum()}"', []),
        ('return x, f"{x.size(0):3d}"', []),
        ('return x, "%d" % x.sum()', ["DYN004"]),
        ('return x, "%s" % x.sum()', []),
        ('return x, "{:.2f}".format(x.sum())', ["DYN004"]),
        ('return x, "{}".format(x.sum())', []),
        (
            "out = np.zeros(3)\n        out[0] = x.sum()\n        return torch.tensor(out)",
            ["TRC007"],
        ),
        ("return x, np.mean([x.sum(), x.mean()])", ["TRC007"]),
        ("return x, np.stack([row for row in x])", ["TRC007"]),
        ("return x, np.mean([x.size(0), 2])", []),
        ("return x * np.arange(4)[x[0].argmax()]", ["TRC007"]),
        ("return x * np.arange(4)[x.size(0)]", []),
        ("table = {0: 1.0}\n        return x * table.get(x.argmax(), 3.0)", ["DYN004"]),
        ("table = {0: 1.0}\n        return x * table.get(x.size(0), 3.0)", []),
        ("parts = [x, x + 1]\n        return parts.pop(x.argmax() % 2)", ["DYN004"]),
        (
            "seen = [0.0] * 4\n        for i in x.argmax(1):\n            seen[i] += 1\n        return x",
            ["DYN004"],
        ),
        ('return x, "".join(chr(v + 97) for v in x.argmax(1))', ["DYN004"]),
        ('return getattr(self, f"fc{x.argmax()}")(x)', ["DYN004"]),
        (
            'best = {"a": x.sum(), "b": x.mean()}\n        return max(best, key=best.get)',
            ["DYN002"],
        ),
        ("out = np.zeros(3)\n        out[0] = x.size(0)\n        return torch.tensor(out)", []),
    ],
)
def test_what_asks_for_a_value_is_found(body: str, found: list[str]) -> None:
    assert rules_of(MODEL.replace("BODY", body)) == found


@pytest.mark.parametrize(
    "check",
    [
        "assert all(x[0] > 0)",
        "assert 0 < x.sum() < 9",
        'if any(torch.isnan(r).any() for r in x):\n            raise ValueError("nan")',
        'if not 0 <= x.min() <= 9:\n            raise ValueError(f"{x.min():.2f} is out of range")',
    ],
)
def test_a_check_of_values_is_left_out(check: str) -> None:
    result = convert(MODEL.replace("BODY", f"{check}\n        return x"))
    assert result.complete
    assert [finding.rule for finding in result.findings] == ["TRC011"]


def test_a_list_of_layers_takes_no_array_for_a_place_on_the_host() -> None:
    """``for i in torch.randperm(3): self.layers[i](x)`` outside of the forward pass: ``nnx.List`` raises there, too."""
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])\n"
        "        for i in torch.arange(3):\n            nn.init.zeros_(self.layers[i].bias)\n\n"
        "    def forward(self, x):\n        return self.layers[0](x)\n"
    )
    assert rules_of(source) == ["DYN004"]
