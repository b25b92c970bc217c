"""Initialisation by way of ``self.state_dict()``, whose values are the module's own parameters and buffers."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from rules.compat.named import state_variables
from tests.convert.tools import both, convert, loaded, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.bn = nn.BatchNorm2d(8)
        self.head = nn.Sequential(nn.Linear(200, 50), nn.LayerNorm(50), nn.Linear(50, 200))
        self.register_buffer("table", torch.ones(5))
        self.register_buffer("scratch", torch.ones(5), persistent=False)
        LINES

    def forward(self, x):
        return self.bn(self.conv(x))
"""
KEYS = """for key in self.state_dict()KEYS:
            if key.split('.')[-1] == 'weight':
                if 'conv' in key:
                    nn.init.constant_(self.state_dict()[key], 0.25)
                elif 'bn' in key:
                    self.state_dict()[key][...] = 3
            elif key.endswith('bias'):
                self.state_dict()[key].zero_()
            elif 'running_mean' in key:
                self.state_dict()[key].data.fill_(2)
        self.state_dict()['table'].mul_(4)"""
ITEMS = """for key, value in self.state_dict().items():
            if 'bias' in key or key.startswith('head.1'):
                value.fill_(0.5)
            elif 'table' in key:
                nn.init.zeros_(value)
            elif key == 'bn.weight':
                value[...] = 7"""


def _first(lines: str) -> tuple[dict[str, torch.Tensor], dict[str, np.ndarray]]:
    """The first values on both sides."""
    theirs, ours, _ = loaded(SOURCE.replace("LINES", lines))
    return theirs["M"]().state_dict(), migrator.to_state_dict(ours["M"](rngs=nnx.Rngs(0)))


@pytest.mark.parametrize(
    "lines", [KEYS.replace("KEYS", ""), KEYS.replace("KEYS", ".keys()"), ITEMS]
)
def test_first_values(lines: str) -> None:
    want, got = _first(lines)
    assert list(want) == list(got) or set(want) == set(got)
    for name, value in want.items():
        if float(value.float().std(unbiased=False)) == 0:
            np.testing.assert_array_equal(got[name], value.numpy(), err_msg=name)
    both(SOURCE.replace("LINES", lines))


def test_a_linear_by_its_rows() -> None:
    """A Linear's kernel is transposed in Flax: its fan is torch's all the same."""
    lines = """for key in self.state_dict():
            if key.startswith('head') and self.state_dict()[key].dim() == 2:
                nn.init.kaiming_normal_(self.state_dict()[key], mode='fan_out')"""
    want, got = _first(lines)
    for name in ("head.0.weight", "head.2.weight"):
        assert abs(got[name].std() / float(want[name].std()) - 1) < 0.1


@pytest.mark.parametrize(
    "lines",
    [
        "kept = self.state_dict()\n        kept['table'].zero_()",
        "self.w = self.state_dict()['head.0.weight']",
        "self.state_dict()['head.0.weight'].copy_(torch.arange(10000.).view(50, 200))",
        "for key in self.state_dict():\n            self.state_dict()[key][0] = 1",
    ],
)
def test_what_is_kept_or_goes_by_axes(lines: str) -> None:
    assert not convert(SOURCE.replace("LINES", lines)).complete


def test_a_forward_pass_that_asks_for_it() -> None:
    source = SOURCE.replace("LINES", "pass").replace(
        "return self.bn", "return self.state_dict()['table'].sum() + self.bn"
    )
    assert "API001" in rules_of(source)


def test_the_names_against_torch() -> None:
    """``state_variables`` against torch's ``state_dict``."""
    module, port, _ = both(SOURCE.replace("LINES", "pass"))
    want, found = module.state_dict(), state_variables(port)
    assert list(found) == list(want)
    np.testing.assert_array_equal(found["table"][...], jnp.ones(5))
