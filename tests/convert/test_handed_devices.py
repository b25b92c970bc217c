"""Devices among the arguments that a class hands on to the layer that it derives from."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert

SOURCE = """\
class Own(nn.{base}):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)


class Heir(Own):
    pass


class M(nn.Module):
    def __init__(self, n: int = 4, device=None, dtype=None):
        factory_kwargs = {{"device": device, "dtype": dtype}}
        super().__init__()
        self.l = {cls}({args}, {given})

    def forward(self, x):
        return self.l(x)
"""
LAYERS = [("Linear", "n, n"), ("LayerNorm", "n"), ("GroupNorm", "2, n"), ("BatchNorm1d", "n")]


@pytest.mark.parametrize(("base", "args"), LAYERS)
@pytest.mark.parametrize(
    "given", ["**factory_kwargs", "device=device", "device=device, dtype=dtype"]
)
@pytest.mark.parametrize("cls", ["Own", "Heir"])
def test_they_are_left_out(base: str, args: str, given: str, cls: str) -> None:
    check(SOURCE.format(base=base, args=args, given=given, cls=cls))


def test_where_none_can_come_nothing_is_left_out() -> None:
    code = convert(SOURCE.format(base="Linear", args="n, n", given="bias=True", cls="Own")).code
    assert "super().__init__(*args, rngs=rngs, **kwargs)" in code
