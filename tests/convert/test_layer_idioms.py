"""Layers that are chosen, called by their forward pass, filled by scipy and padded by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.convert.tools import both, check, rules_of, same

CHOSEN = """
class M(nn.Module):
    def __init__(self, shortcut=nn.Sequential()):
        super().__init__()
        self.a = nn.Sequential()
        self.b = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
        self.c = self.a or self.b
        self.d = shortcut or nn.Linear(4, 4)
        self.e = self.b and self.d

    def forward(self, x):
        return self.c(x) + self.d(x) + self.e(x)
"""


def test_the_choice_between_a_sequential_and_something_else() -> None:
    assert "self.c = self.a if self.a.layers else self.b" in check(CHOSEN)


CALLED_BY_FORWARD = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Linear(4, 4)
        self.bn = nn.BatchNorm1d(4)

    def forward(self, x):
        b = self.conv.forward(x)
        b += 1
        b = F.relu(self.bn.forward(b), inplace=True)
        return F.relu_(self.conv.forward(b)) + b + x
"""


def test_what_a_layer_gives_when_its_forward_is_called_is_new() -> None:
    assert rules_of(CALLED_BY_FORWARD) == []
    check(CALLED_BY_FORWARD.replace("self.bn.forward(b)", "b.exp()"))


TAKEN_APART = """
import numpy as np
import pytest
from scipy import linalg as la

class M(nn.Module):
    def __init__(self):
        super().__init__()
        w_p, w_l, w_u = la.lu(np.random.randn(4, 4).astype(np.float32))
        self.register_buffer("w_p", torch.from_numpy(w_p))
        self.w_l = nn.Parameter(torch.from_numpy(w_l))
        self.w_u = nn.Parameter(torch.from_numpy(w_u))

    def forward(self, x):
        return x @ (self.w_p @ self.w_l @ self.w_u)
"""


def test_each_of_several_arrays_that_scipy_gives_has_memory_of_its_own() -> None:
    check(TAKEN_APART)


PADDED = """
class Conv(nn.Conv2d):
    def forward(self, x):
        w = self.weight / self.weight.norm()
        if self.padding_mode != 'zeros':
            return F.conv2d(F.pad(x, self._reversed_padding_repeated_twice, mode=self.padding_mode), w, self.bias, self.stride, (0, 0), self.dilation, self.groups)
        return F.conv2d(x, w, self.bias, self.stride, self.padding, self.dilation, self.groups)
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Conv(3, 4, 3, padding=1)
        self.b = Conv(4, 4, (3, 5), padding="same", dilation=2, padding_mode="circular")
        self.c = Conv(4, 4, 3, padding=(1, 2), padding_mode="reflect")
    def forward(self, x):
        return self.c(self.b(self.a(x)))
"""


def test_the_padding_that_a_convolution_of_ones_own_reads() -> None:
    model, port, _ = both(PADDED)
    same(model, port, np.random.default_rng(0).normal(size=(2, 3, 9, 9)).astype(np.float32))


PAIRS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.relu = nn.ReLU(inplace=True)
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)

    def forward(self, z):
        x, p = self.a(z), self.b(z)
        LINES
        return x - 2 * p
"""


@pytest.mark.parametrize(
    "lines",
    [
        "x, p = self.relu(x), self.relu(p)",
        "x, p = self.relu(p), self.relu(x)",
        "for _ in range(2):\n            x, p = self.relu(x), self.relu(p)\n            x, p = p - 1, x - 1",
    ],
)
def test_names_that_are_bound_anew_together(lines: str) -> None:
    check(PAIRS.replace("LINES", lines))


@pytest.mark.parametrize(
    "lines",
    [
        "x, q = self.relu(p), x; x = x + q",
        "x, q = self.relu(p), p + x",
        "x, q = p + x, self.relu(p); x = x + q",
        "q = p; x, p = self.relu(p), x; x = x + q",
        "q = p; x, p = p * 2, self.relu(x); x = x + q",
    ],
)
def test_names_that_are_read_as_they_were(lines: str) -> None:
    source = PAIRS.replace("LINES", "\n        ".join(one.strip() for one in lines.split(";")))
    if not rules_of(source):
        check(source)
