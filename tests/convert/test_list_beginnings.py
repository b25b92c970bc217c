"""What a list of layers begins with: after pop(), in sums of lists, behind a Dropout that may hand on its input."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SHOWN = """\
def get(activation):
    if activation == "relu":
        return nn.ReLU(inplace=True)
    elif activation == "tanh":
        return nn.Tanh()
    else:
        raise ValueError(activation)


def dense(n, activation, p, bn, linear_first):
    layers = [nn.BatchNorm1d(n)] if bn else []
    if p != 0:
        layers.append(nn.Dropout(p))
    lin = {lin}
    layers = lin + layers if linear_first else layers + lin
    return nn.Sequential(*layers)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.a = dense(4, "relu", 0.1, {bn}, False)

    def forward(self, x):
        x = self.first(x)
        y = self.a(x)
        return x + y
"""


@pytest.mark.parametrize("bn", ["True", "False"])
def test_a_sum_of_lists_begins_with_what_one_of_them_begins_with(bn: str) -> None:
    check(SHOWN.format(lin="[nn.Linear(n, n), get(activation)]", bn=bn))


def test_behind_a_dropout_the_next_layer_may_overwrite_the_input() -> None:
    # evaluated, torch's Dropout gives what it is given
    assert rules_of(SHOWN.format(lin="[get(activation), nn.Linear(n, n)]", bn="False"))


POPPED = """\
class M(nn.Module):
    def __init__(self, last=False):
        super().__init__()
        self.first = nn.Linear(4, 4)
        layers = []
        for i in range(2):
            layers.append({one})
            layers.append({other})
        if not last:
            layers.pop({place})
        self.a = nn.Sequential(*layers)

    def forward(self, x):
        x = self.first(x)
        return torch.cat([self.a(x), x], 1)
"""


@pytest.mark.parametrize("place", ["", "-1"])
def test_what_is_taken_from_the_end_is_not_the_first(place: str) -> None:
    check(POPPED.format(one="nn.Linear(4, 4)", other="nn.ReLU(True)", place=place))


def test_what_is_taken_from_elsewhere_may_be() -> None:
    assert rules_of(POPPED.format(one="nn.Linear(4, 4)", other="nn.ReLU(True)", place="0"))
    assert rules_of(POPPED.format(one="nn.ReLU(True)", other="nn.Linear(4, 4)", place=""))


def test_a_list_that_may_have_no_layers_leaves_the_next_one_first() -> None:
    source = """\
class M(nn.Module):
    def __init__(self, n=0):
        super().__init__()
        self.first = nn.Linear(4, 4)
        layers = []
        layers += [nn.Linear(4, 4) for _ in range(n)]
        layers.append(nn.ReLU(inplace=True))
        self.a = nn.Sequential(*layers)

    def forward(self, x):
        x = self.first(x)
        return self.a(x) + x
"""
    assert rules_of(source)
