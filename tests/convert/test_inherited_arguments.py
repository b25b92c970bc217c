"""What a class derived from a layer of torch reads of the arguments of that layer: ``self.affine``."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

MODEL = """
class Layer({base}):
    def forward(self, x):
        y = super().forward(x)
        return y * 2 if {test} else y


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 4, 3, padding=1)
        self.layer = Layer({args})

    def forward(self, x):
        return self.layer(self.conv(x[:, :, None, None].expand(-1, -1, 3, 3)))
"""


@pytest.mark.parametrize(
    ("base", "args", "test"),
    [
        ("nn.BatchNorm2d", "4", "self.affine and self.track_running_stats"),
        ("nn.BatchNorm2d", "4, affine=False", "self.affine"),
        ("nn.GroupNorm", "2, 4", "self.affine"),
        ("nn.InstanceNorm2d", "4", "not self.affine"),
        ("nn.Conv2d", "4, 4, 3", 'self.padding_mode == "zeros"'),
        ("nn.Conv2d", "4, 4, 3", "self.groups == 1 and self.dilation == (1, 1)"),
    ],
)
def test_an_argument_of_the_layer(base: str, args: str, test: str) -> None:
    check(MODEL.format(base=base, args=args, test=test))


def test_of_another_layer() -> None:
    source = MODEL.format(base="nn.BatchNorm2d", args="4", test="self.affine")
    source = source.replace("self.layer(self", "int(self.layer.affine) * self.layer(self")
    check(source)


@pytest.mark.parametrize(
    ("base", "name"),
    [("nn.ConvTranspose2d", "padding_mode"), ("nn.EmbeddingBag", "num_embeddings")],
)
def test_what_is_not_kept_is_found(base: str, name: str) -> None:
    source = f"class M({base}):\n    def f(self):\n        return self.{name}\n"
    assert rules_of(source) == ["API001"]


def test_an_attribute_of_its_own_is_the_class_s_business() -> None:
    source = MODEL.format(base="nn.BatchNorm2d", args="4", test="self.affine")
    source = source.replace(
        "    def forward(self, x):\n        y",
        "    def __init__(self, n):\n        super().__init__(n, affine=True)\n"
        "        self.affine = False\n\n    def forward(self, x):\n        y",
        1,
    )
    check(source)
