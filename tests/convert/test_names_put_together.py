"""``getattr(nn, "Conv%dd" % n)``: layers by names that are put together of a text and a number."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of


def _source(written: str, head: str = "self, n") -> str:
    return f"""
class M(nn.Module):
    def __init__({head}):
        super().__init__()
        norm = getattr(nn, {written})
        self.norm = norm(4)

    def forward(self, x):
        return self.norm(x)
"""


@pytest.mark.parametrize(
    "written",
    [
        'f"BatchNorm{n}d"',
        '"BatchNorm%dd" % n',
        '"BatchNorm%sd" % n',
        '"BatchNorm%id" % (n)',
        '"BatchNorm{}d".format(n)',
        '"BatchNorm{0}d".format(n)',
        '"BatchNorm" + str(n) + "d"',
        '"BatchNorm" + f"{n}d"',
        '"Batch" + "Norm%dd" % n',
        '"%s%dd" % ("BatchNorm", n)',
        '"{}{}d".format("BatchNorm", n)',
    ],
)
def test_written_with_one_hole(written: str) -> None:
    code = check(_source(written), 1)
    assert '"BatchNorm2d": ' in code
    assert '"BatchNorm1d": ' in code
    assert "torch" not in code


def test_a_word_in_the_hole() -> None:
    check(_source('"Batch" + kind + "1d"', "self, kind: str"), "Norm")


@pytest.mark.parametrize(
    "written",
    [
        '"BatchNorm{n}d".format(**{"n": n})',
        '"{:s}".format(n)',
        '"Batch%%Norm%dd" % n',
        'n.join(["BatchNorm", "d"])',
        "str(n)",
        '"Nothing%dd" % n',
    ],
)
def test_others_stay_findings(written: str) -> None:
    assert "API001" in rules_of(_source(written))
