"""A list of layers or a layer, by choice, and what the same choice does next."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

PROGRAM = """class M(nn.Module):
    def __init__(self, many=MANY):
        super().__init__()
        self.many = many
        LINES

    def forward(self, x):
        if self.many:
            return torch.stack([layer(x) for layer in self.lin]).sum(0)
        return self.lin(x)
"""
WEIGHT = "nn.Parameter(0.25 * torch.ones([4, 4]))"
LINES = f"""self.lin = nn.ModuleList() if many else nn.Linear(4, 4)  # one for each channel
        if many:
            for i in range(4):
                self.lin.append(nn.Linear(4, 4))
                self.lin[i].weight = {WEIGHT}
"""


@pytest.mark.parametrize("many", ["True", "False"])
@pytest.mark.parametrize("other", ["", f"        else:\n            self.lin.weight = {WEIGHT}\n"])
def test_what_is_chosen_twice_is_chosen_once(many: str, other: str) -> None:
    check(PROGRAM.replace("MANY", many).replace("LINES", LINES + other))
