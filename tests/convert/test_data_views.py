"""Names for the data of a parameter that is written through them."""

import pytest

from tests.convert.tools import check, convert

FILLED = """
def fill(layer):
    {lines}

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.up = nn.Linear(4, 4, bias=False)
        fill(self.fc)
        w = self.up.weight.data
        w[0] = 0.5
        w[1:] = w[:1] * 2
        w.mul_(0.5)
        assert float(self.up.weight[3, 2]) == 0.5 and float(self.fc.weight[0, 1]) == 2
    def forward(self, x):
        return self.up(self.fc(x))
"""


@pytest.mark.parametrize(
    "lines",
    [
        "w = layer.weight.data; w[0, 1] = 2.0",
        "w = layer.weight.data\n    for i in range(w.size(0)): w[i, 1] = 2.0 + i\n    w[2] = w[0]",
        "w = layer.weight.data; w.fill_(1.0); w[...] += 1",
        "w = layer.weight.data; w[:2].fill_(2.0); layer.bias.data[0] = w[0, 0]",
    ],
)
def test_what_is_written_by_another_name_is_the_parameter(lines: str) -> None:
    code = check(FILLED.format(lines=lines))
    assert " w = " not in code


@pytest.mark.parametrize(
    "lines",
    [
        "w = layer.weight.data; layer.weight = nn.Parameter(torch.ones(4, 4)); w[0, 1] = 2.0",
        "w = layer.weight.data; layer = nn.Linear(2, 2); w[0, 1] = 2.0",
        "w = layer.weight.data; w = w * 2; w[0, 1] = 2.0",
    ],
)
def test_names_of_something_else_stay(lines: str) -> None:
    assert "w = " in convert(FILLED.format(lines=lines)).code
