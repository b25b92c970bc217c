"""What is asked of a value that is a layer of torch's or something else: the arguments that the layer may not keep."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
ACTS = {{"relu": F.relu, "leaky": nn.LeakyReLU(0.3)}}


def make(leaky):
    if leaky:
        return nn.LeakyReLU(0.3)
    return torch.tanh


class M(nn.Module):
    def __init__(self, leaky=True):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.leaky = leaky
        self.act = torch.tanh
        {given}

    def forward(self, x: torch.Tensor):
        return self.act(self.fc(x)) * {asked}
"""
GIVEN = [
    "self.act = nn.LeakyReLU(0.3) if leaky else torch.tanh",
    "if leaky: self.act = nn.LeakyReLU(0.3)",
    "self.act = leaky or nn.LeakyReLU(0.3)",
    "self.act = make(leaky)",
    "self.act = ACTS['leaky' if leaky else 'relu']",
    "act = make(leaky); self.act = act",
    "self.act = {'a': nn.ReLU(), 'b': nn.LeakyReLU(0.3)}['b']",
]


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize(
    "asked",
    [
        "(self.act.negative_slope if self.leaky else 1)",
        "getattr(self.act, 'negative_slope', 2)",
        "(2 if hasattr(self.act, 'negative_slope') else 3)",
    ],
)
def test_an_argument_that_the_layer_does_not_keep_is_a_finding(given: str, asked: str) -> None:
    assert rules_of(SOURCE.format(given=given, asked=asked)) == ["API001"]


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ("self.act = nn.Linear(4, 4) if leaky else torch.tanh", "self.act.out_features"),
        ("self.p = 3", "getattr(self, 'p', 2) * self.p"),
    ],
)
def test_what_is_kept_is_read(given: str, asked: str) -> None:
    check(SOURCE.format(given=given, asked=asked))
