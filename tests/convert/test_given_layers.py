"""Layers of what a constructor is given, with nothing known of it: Flax goes over no Sequential, torch does."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import convert, loaded

SOURCE = """
class Other(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)


class {kind}(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = {made}

    def forward(self, x):
        return x


class M(nn.Module):
    def __init__(self, other=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {line}

    def forward(self, x):
        return self.fc(x)
"""
USES = {
    "copied from": "for m in other.net:\n            if isinstance(m, nn.Linear):\n"
    "                self.fc.weight.data.copy_(m.weight)\n                self.fc.bias.data.copy_(m.bias)",
    "side by side": "for a, b in zip([self.fc], other.net):\n"
    "            if isinstance(a, nn.Linear) and isinstance(b, nn.Linear):\n"
    "                a.weight.data.copy_(b.weight)\n                a.bias.data.copy_(b.bias)",
    "counted": "for i, m in enumerate(other.net):\n            if i == 0:\n                self.width = m.out_features",
    "kept one by one": "self.all = nn.ModuleList()\n        for m in other.net:\n            self.all.append(m)",
    "kept together": "self.all = nn.ModuleList([m for m in other.net])",
    "kept in part": "self.all = nn.Sequential(*list(other.net)[:1])",
}


@pytest.mark.parametrize(
    "made", ["nn.Sequential(nn.Linear(4, 4), nn.ReLU())", "nn.ModuleList([nn.Linear(4, 4)])"]
)
@pytest.mark.parametrize("use", USES)
def test_gone_over_as_in_torch(use: str, made: str) -> None:
    theirs, ours, _ = loaded(SOURCE.format(kind="Given", made=made, line=USES[use]))
    given, port = theirs["Given"](), ours["Given"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, given.state_dict())
    model, mine = theirs["M"](given), ours["M"](port, rngs=nnx.Rngs(1))
    want, got = model.state_dict(), migrator.to_state_dict(mine)
    assert getattr(model, "width", 0) == getattr(mine, "width", 0)
    assert {n for n in want if not n.startswith("other.")} == {
        n for n in got if not n.startswith("other.")
    }
    kept = [
        n for n in want if n.startswith("all.") or (n.startswith("fc.") and "copy_" in USES[use])
    ]
    for name in kept:
        np.testing.assert_allclose(got[name], want[name].numpy(), err_msg=name)


@pytest.mark.parametrize(
    "line",
    [
        "for c in other.widths:\n            self.n = c + 1",
        "self.n = [c * 2 for c in other.widths]",
    ],
)
def test_numbers_are_gone_over_as_they_are(line: str) -> None:
    assert (
        "items_of" not in convert(SOURCE.format(kind="Given", made="nn.Identity()", line=line)).code
    )
