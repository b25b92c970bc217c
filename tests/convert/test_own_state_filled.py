"""``own = self.state_dict()`` beside ``torch.load(…)``: the method raises where it would read, and says so."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import HEADER, convert, sides

PROGRAM = """class M(nn.Module):
    def __init__(self, pretrained=False):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        if pretrained:
            self.load_weights()

    def load_weights(self):
        LINES

    def forward(self, x):
        return self.fc(x)
"""
LINES = [
    "new = torch.load('w.pth'); own = self.state_dict(); own.update(new); self.load_state_dict(own)",
    "own = self.state_dict(); new = torch.load('w.pth'); own.update(new); self.load_state_dict(own)",
]


@pytest.mark.parametrize("lines", LINES)
def test_a_loader_raises_and_is_no_obstacle(lines: str) -> None:
    text = HEADER + PROGRAM.replace("LINES", lines.replace("; ", "\n        "))
    told, _, ours = sides(text)
    assert not told
    port = ours["M"](rngs=nnx.Rngs(0))
    with pytest.raises(NotImplementedError, match="torch checkpoint"):
        port.load_weights()


def test_a_state_that_is_used_otherwise() -> None:
    lines = "return self.state_dict()"
    found = convert(PROGRAM.replace("LINES", lines)).findings
    assert [one.rule for one in found if one.blocks] == ["API001"]
