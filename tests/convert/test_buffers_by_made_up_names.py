"""Buffers registered under names that are made up, ``f"state_{i}"``: what is written to them is not lost."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import both, rules_of, same

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(2):
            self.register_buffer(f"state_{{i}}", torch.ones(4))
        self.names = ["state_0", "state_1"]
        self.seen = None

    def put(self, i, value):
        s = getattr(self, f"state_{{i}}")
        return s + value

    def forward(self, x):
        y = x * self.state_0
        {lines}
        return y + self.state_1
"""
EACH = "for i in range(2):\n            s = getattr(self, f'state_{i}')\n            "


@pytest.mark.parametrize(
    "lines",
    [
        EACH + "y = y + s\n            s += 1",
        EACH + "y = y + s\n            s.add_(1)",
        "for n in self.names:\n            b = getattr(self, n)\n            b *= 0.5",
    ],
)
def test_what_is_written_in_place_is_a_finding(lines: str) -> None:
    assert rules_of(SOURCE.format(lines=lines)) == ["MUT001"]


def test_so_it_is_in_a_method_that_somebody_calls() -> None:
    source = SOURCE.format(lines="pass").replace("return s + value", "s += value")
    assert rules_of(source) == ["MUT001"]


@pytest.mark.parametrize(
    "lines", ["self.state_0 = y[0]", "self.state_0 -= 1", EACH + "s[0] = 1", EACH + "s.data += 1"]
)
def test_what_would_take_its_place_is_a_finding(lines: str) -> None:
    assert rules_of(SOURCE.format(lines=lines)) == ["MUT001"]


NAMED = """self.register_buffer("state_0", torch.ones(4))
        self.register_buffer("state_1", torch.ones(4))"""
MADE_UP = """for i in range(2):
            self.register_buffer(f"state_{i}", torch.ones(4))"""


@pytest.mark.parametrize("registered", [MADE_UP, NAMED])
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    "lines",
    [
        EACH + "setattr(self, f'state_{i}', s + y[0])",
        "for n in self.names:\n            setattr(self, n, getattr(self, n) * 2)",
        "self.seen = 3",
    ],
)
def test_what_is_put_there_by_name_stays_a_buffer(lines: str, jit: bool, registered: str) -> None:
    source = SOURCE.format(lines=lines)
    assert MADE_UP in source
    model, port, _ = both(source.replace(MADE_UP, registered))
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    for _ in range(2):
        same(model, port, x, jit)
    state = migrator.to_state_dict(port)
    assert set(state) == set(model.state_dict())
    for name, value in model.state_dict().items():
        np.testing.assert_allclose(state[name], torch.as_tensor(value).numpy(), rtol=1e-5)
