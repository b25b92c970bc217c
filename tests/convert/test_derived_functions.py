"""Classes that derive from layers which are plain functions in the output."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
import torch
from torch import nn

class Own(nn.{base}):
    def forward(self, x):
        return super().forward(x) * 2

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        self.own = Own({given})

    def forward(self, x):
        x = self.l(x)
        return self.own(x{shape})
"""


@pytest.mark.parametrize(
    ("base", "given", "shape"),
    [
        ("Tanh", "", ""),
        ("ReLU", "", ""),
        ("SiLU", "", ""),
        ("LeakyReLU", "0.2", ""),
        ("ELU", "alpha=0.5", ""),
        ("Softplus", "beta=2", ""),
        ("PixelShuffle", "2", ".reshape(1, 12, 1, 1).repeat(1, 4, 1, 1)[:, :4]"),
        ("GLU", "", ""),
        ("GLU", "dim=-1", ""),
        ("Hardtanh", "-0.1, 0.2", ""),
        ("Hardtanh", "", ""),
        ("ReLU6", "", ""),
        ("SELU", "", ""),
        ("Mish", "", ""),
        ("Hardsigmoid", "", ""),
        ("Hardswish", "", ""),
        ("CELU", "0.5", ""),
        ("Threshold", "0.1, 0.3", ""),
        ("Hardshrink", "0.2", ""),
        ("Softshrink", "lambd=0.2", ""),
        ("Tanhshrink", "", ""),
        ("Softsign", "", ""),
        ("LogSigmoid", "", ""),
        ("Softmin", "1", ""),
        ("Softmax2d", "", "[None]"),
        ("Unfold", "2, stride=1, padding=1", "[None, None]"),
        ("Fold", "(2, 2), 1", "[None]"),
        ("ChannelShuffle", "2", ".reshape(1, 12, 1)"),
        ("PixelUnshuffle", "2", ".reshape(1, 1, 6, 2)"),
        ("UpsamplingNearest2d", "scale_factor=2", "[None, None]"),
        ("UpsamplingBilinear2d", "(5, 7)", "[None, None]"),
        ("LPPool1d", "2, 2", "[None]"),
        ("LPPool2d", "norm_type=2, kernel_size=(2, 1), ceil_mode=True", "[None, None]"),
        ("MaxPool1d", "2, padding=1", "[None]"),
        ("MaxPool3d", "(1, 1, 2), stride=1", "[None, None, None]"),
    ],
)
def test_a_class_of_ones_own(base: str, given: str, shape: str) -> None:
    code = check(SOURCE.format(base=base, given=given, shape=shape))
    assert f"class Own({base}AsTorch)" in code


@pytest.mark.parametrize(
    ("base", "given"), [("ReLU", ""), ("SELU", ""), ("Threshold", "0.1, 0.2, "), ("ReLU6", "")]
)
def test_one_that_may_write_to_what_it_is_handed_is_a_finding(base: str, given: str) -> None:
    source = SOURCE.format(base=base, given=f"{given}inplace=True", shape="")
    assert "API001" in rules_of(source)


def test_what_such_a_class_keeps() -> None:
    source = SOURCE.format(base="Hardtanh", given="-0.1, 0.2", shape="")
    check(source.replace("* 2", "* self.max_val + self.min_val"))
    source = SOURCE.format(base="LPPool2d", given="2, 2", shape="[None, None]")
    check(source.replace("* 2", "* self.norm_type + self.kernel_size"))
