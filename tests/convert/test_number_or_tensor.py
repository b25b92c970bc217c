"""``out = 0`` and ``out = out + layer(x)`` in a loop: a number or a tensor, by the rounds that were taken."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from tests.convert.tools import X, both, rules_of

MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4)])

    def forward(self, x):
        out = 0
        for layer in self.layers:
            out = out + layer(x)
        LINE
"""


def _source(line: str) -> str:
    return MODEL.replace("LINE", line.replace("; ", "\n        "))


CONVERTED = [
    "return out.max(1)[0]",
    "values, places = out.sort(dim=-1, descending=True); return values",
    "return out[:, 1:].std(dim=1)",
    "out /= len(self.layers); return out.mean(-1, True) * x",
    "total = out.sum(); return x * total, float(total)",
    "return -out.view(-1)",
    "scale = 1.0 if len(self.layers) > 5 else out; return scale.min(0)[0] * x",
    "return (out > 0).float() * x",
]


@pytest.mark.parametrize("line", CONVERTED)
def test_a_method_that_no_number_has_is_a_tensors(line: str) -> None:
    module, port, _ = both(_source(line))
    for run in (port, jax.jit(port)):
        pairs = zip(
            jax.tree.leaves(run(X.numpy())),
            _leaves(module(X)),
            strict=True,
        )
        for found, expected in pairs:
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def _leaves(value: object) -> list[object]:
    values = value if isinstance(value, tuple) else (value,)
    return [one.detach().numpy() if hasattr(one, "detach") else one for one in values]


def test_a_number_that_is_only_returned() -> None:
    source = _source("return x, float(out)").replace("layer(x)", "layer(x).sum()")
    module, port, _ = both(source)
    np.testing.assert_allclose(port(X.numpy())[1], module(X)[1], rtol=1e-5)
    np.testing.assert_allclose(jax.jit(port)(X.numpy())[1], module(X)[1], rtol=1e-5)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("if out > 1: x = x * 2; return x", "DYN002"),
        ("return x * 2 if out != 0 else x", "DYN002"),
        ("while out < 3: out = out + 1; return x * out", "DYN002"),
        ("return x * float(out)", "DYN004"),
        ("return x * math.sqrt(out)", "DYN004"),
        ("return x / max(out, 1.0)", "DYN002"),
        ("return x / max(int(out), 1)", "DYN004"),
        ("return x if bool(out) else -x", "DYN002"),
        ("return x if not out else -x", "DYN002"),
        ("return x, f'{out:.3f}'", "DYN004"),
        ("y = (-out + 1) * 2; return x if y > 0 else -x", "DYN002"),
    ],
)
def test_what_asks_a_tensor_for_its_value_may_ask_one_here(line: str, rule: str) -> None:
    source = _source(line).replace("layer(x)", "layer(x).sum()")
    assert rule in rules_of("import math\n" + source)


def test_a_number_is_asked_as_before() -> None:
    module, port, _ = both(
        _source("n = 0; n = n + 1 if x.size(0) > 1 else 2; return x * (n if n > 1 else -1)")
    )
    np.testing.assert_allclose(jax.jit(port)(X.numpy()), module(X), rtol=1e-5)
