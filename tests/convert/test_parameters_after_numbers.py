"""Parameters under the name of a number that a constructor keeps first, and may keep."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
class Base(nn.Module):
    def __init__(self, names=()):
        super().__init__()
        self.names = names
        self.learn()

    def learn(self):
        for name in self.names:
            value = getattr(self, name)
            setattr(self, name, self.made(value))

    def made(self, value):
        return nn.Parameter(torch.ones(4) * value)


class M(Base):
    def __init__(self, beta, learn):
        super().__init__()
        self.beta = beta
        {lines}

    def forward(self, x):
        return {result}
"""


@pytest.mark.parametrize("learn", [True, False])
@pytest.mark.parametrize("result", ["x * self.beta", "torch.exp(self.beta * x) + self.beta"])
@pytest.mark.parametrize(
    "lines",
    [
        "if learn:\n            self.beta = nn.Parameter(torch.ones(4) * self.beta)",
        "if learn:\n            self.beta = nn.Parameter(torch.tensor(beta))",
        "self.beta = nn.Parameter(torch.ones(4) * self.beta)",
        'self.names = ["beta"] if learn else []\n        self.learn()',
        'for name in ["beta"] if learn else []:\n'
        "            setattr(self, name, nn.Parameter(torch.ones(4) * getattr(self, name)))",
    ],
)
def test_what_was_assigned_last_is_read(lines: str, result: str, learn: bool) -> None:
    check(SOURCE.format(lines=lines, result=result), 0.5, learn)
