"""Masks of bytes that a function makes are the booleans that torch takes them for."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

PROGRAM = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        c = self.fc(x)
        out = c * 1.0
        LINES
        return out
"""
LINES = [
    "m = (c > 0).byte(); out[m] = (c - 1)[m]",
    "m = (c > 0).to(torch.uint8); out[m] = (c - 1)[m]; out = out + m",
    "m = (c > 0).byte(); out[1 - m] = (c - 1)[1 - m]",
    "out[(c > 0).byte()] = (c - 1)[(c > 0).byte()]",
    "m = c.detach() * 0.0; m.scatter_(1, m.argmax(1, keepdim=True), 1); m = m.byte(); out[m] = (c - 1)[m]",
    "m = c; m = (m > 0).byte(); out[m] = (c - 1)[m]; m = m.sum()",
]
NOT_KNOWN = [
    "m = c > 0; k = m.byte() if self.training else m; out[k] = (c - 1)[k]",
]


def _program(lines: str) -> str:
    return PROGRAM.replace("LINES", lines.replace("; ", "\n        "))


@pytest.mark.filterwarnings("ignore:indexing with dtype torch.uint8")
@pytest.mark.parametrize("lines", LINES)
def test_what_a_mask_of_bytes_takes(lines: str) -> None:
    check(_program(lines))


@pytest.mark.parametrize("lines", NOT_KNOWN)
def test_what_may_be_bytes_is_refused(lines: str) -> None:
    assert "API002" in rules_of(_program(lines))
