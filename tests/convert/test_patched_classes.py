"""Programs that change torch's own classes for all that are made of them."""

from __future__ import annotations

import pytest

from migrator.convert import convert_source
from tests.convert.tools import HEADER

MODEL = """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(x)
"""


@pytest.mark.parametrize(
    "line",
    [
        "nn.ReLU.forward = lambda self, x: x",
        "nn.Module.__call__ = lambda self, x: 0",
        "torch.Tensor.twice = lambda self: self * 2",
        "setattr(nn.Linear, 'extra', 1)",
        "for cls in (nn.ReLU, nn.Tanh):\n    cls.forward = lambda self, x: x",
        "for name in ('forward',):\n    setattr(nn.ReLU, name, lambda self, x: x)",
        "nn.ReLU.forward = nn.Tanh.forward = lambda self, x: x",
    ],
)
def test_what_changes_every_layer_of_a_kind(line: str) -> None:
    result = convert_source(f"{HEADER}{line}\n{MODEL}")
    assert "API001" in [f.rule for f in result.findings if f.blocks]


@pytest.mark.parametrize(
    "line",
    [
        "nn.Linear.reset_parameters = lambda self: None",
        "class Own(nn.Module):\n    pass\n\n\nOwn.scale = 2.0",
    ],
)
def test_what_changes_no_result(line: str) -> None:
    assert convert_source(f"{HEADER}{line}\n{MODEL}").complete
