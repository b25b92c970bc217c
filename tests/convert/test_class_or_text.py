"""``if isinstance(act, str): … elif issubclass(act, nn.Module): act()``: a name of a layer, or its class."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

PROGRAM = """class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return x * self.w


def layer(act):
    if isinstance(act, str):
        made = nn.ReLU() if act == "relu" else nn.Sigmoid()
    elif issubclass(act, nn.Module):
        made = act()
    else:
        raise NotImplementedError
    return made


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = layer(GIVEN)

    def forward(self, x):
        return self.act(self.fc(x))
"""


@pytest.mark.parametrize(
    "given", ["'relu'", "nn.ReLU", "nn.PReLU", "nn.Tanh", "nn.Identity", "Own"]
)
def test_a_text_or_a_class(given: str) -> None:
    check(PROGRAM.replace("GIVEN", given))


@pytest.mark.parametrize(
    ("old", "new"),
    [("raise NotImplementedError", "made = None"), ("isinstance(act, str)", "act is None")],
)
def test_where_another_class_goes_on(old: str, new: str) -> None:
    assert "API011" in rules_of(PROGRAM.replace(old, new).replace("GIVEN", "'relu'"))
