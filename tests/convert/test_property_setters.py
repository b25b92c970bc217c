"""What is assigned to a property goes through its setter, in the port and in what is inferred of it."""

from __future__ import annotations

from tests.convert.tools import check


def test_a_setter_keeps_what_it_is_given() -> None:
    code = check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    @property
    def shown(self):
        return self._shown

    @shown.setter
    def shown(self, value):
        self._shown = value * 2

    def forward(self, x):
        self.shown = self.lin(x)
        return self.shown + 1
"""
    )
    assert "self._shown = nnx.data(value * 2)" in code
    assert "self.shown = self.lin(x)" in code


def test_numbers_and_objects_of_setters_stay_as_they_are() -> None:
    code = check(
        """class Box:
    def __init__(self):
        self._v = None

    @property
    def v(self):
        return self._v

    @v.setter
    def v(self, new):
        self._v = new


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self._scale = 1.0
        self.lin = nn.Linear(4, 4)
        self.scale = 2.0

    @property
    def scale(self):
        return self._scale

    @scale.setter
    def scale(self, value):
        self._scale = value

    def forward(self, x):
        b = Box()
        b.v = x
        self.scale = 3.0
        return self.lin(b.v) * self.scale
"""
    )
    assert "nnx.data" not in code


def test_what_a_forward_pass_computes_of_unknown_values_is_kept() -> None:
    code = check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)

    def keep(self, values):
        self.last = values[0] * 2
        return self.last

    def forward(self, x):
        return self.keep(dict([(0, self.lin(x))])) + 1
"""
    )
    assert "self.last" in code
