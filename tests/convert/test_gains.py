"""Modules that are keys of a dict, and ``apply`` of what is not known to be a module."""

import pytest

from tests.convert.tools import check, convert

SOURCE = """
from functools import partial


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
        self.b = nn.Linear(8, 4)
        {lines}

    @staticmethod
    def init_weights(module: nn.Module, gain: float = 1) -> None:
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.weight, gain)
            module.bias.data.fill_(0.0)

    def forward(self, x):
        return self.b(self.a(x))
"""


@pytest.mark.parametrize(
    "lines",
    [
        """gains = {self.a: 2.0, self.b: 0.5}
        for module, gain in gains.items():
            module.apply(partial(self.init_weights, gain=gain))""",
        """for module in {self.a: 1, self.b: 2}:
            module.apply(self.init_weights)""",
    ],
)
def test_modules_as_keys(lines: str) -> None:
    check(SOURCE.format(lines=lines))


def test_apply_of_something_unknown_is_a_modules_where_it_is_handed_what_returns_nothing() -> None:
    head = "def init(m):\n    if isinstance(m, nn.Linear):\n        nn.init.zeros_(m.weight)\n\n\n"
    code = convert(head + "def reset(nets):\n    for net in nets:\n        net.apply(init)\n").code
    assert "in nnx.iter_modules(net)" in code
    other = "def double(x: int):\n    return 2 * x\n\n\ndef both(table):\n    return table.apply(double)\n"
    assert "return table.apply(double)" in convert(other).code


def test_keys_that_are_numbers() -> None:
    source = "def pads(x: torch.Tensor):\n    for size, name in {2: 'a', 3: 'b'}.items():\n        x = x.max(size)[0] + 1\n    return x\n"
    assert "max_along(x, size)" in convert(source).code  # a text would be a name of an axis
