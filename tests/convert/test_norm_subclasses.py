"""Classes that derive from a norm and hand on to its constructor what decides which class of Flax it is."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
class Norm(nn.{layer}):
    def __init__(self, {takes}):
        {init}

    def forward(self, x):
        return super().forward(x) * 2


class Net(nn.Module):
    def __init__(self, {takes}):
        super().__init__()
        self.norm = Norm({takes})

    def forward(self, x):
        return self.norm(x)


M = Net
"""


@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("layer", ["LayerNorm", "RMSNorm"])
@pytest.mark.parametrize(
    "init",
    [
        "super().__init__(n, elementwise_affine=a, eps=1e-3)",
        "super(Norm, self).__init__(n, 1e-3, a)",
        "nn.{layer}.__init__(self, n, 1e-3, a)",
        "super().__init__((n,), 1e-3, a)",
        "super().__init__((3, n), eps=1e-3)",
        "super().__init__([3, n], 1e-3, a)",
        "super().__init__(normalized_shape=n, elementwise_affine=False)",
        "super().__init__(n, elementwise_affine=True)",
    ],
)
def test_it_may_have_no_weight(init: str, layer: str, affine: bool) -> None:
    source = SOURCE.format(layer=layer, takes="n, a", init=init.format(layer=layer))
    check(source, 4, affine)


def test_one_axis_with_a_weight_stays_flax_own() -> None:
    source = SOURCE.format(layer="LayerNorm", takes="n", init="super().__init__(n, eps=1e-3)")
    assert "class Norm(nnx.LayerNorm):" in check(source, 4)
