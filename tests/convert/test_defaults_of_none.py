"""What stands as None where others may put something else says nothing of an argument."""

import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import loaded

HEAD = "from dataclasses import dataclass\nfrom typing import NamedTuple, Optional\n\n"
MODEL = """

class M(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.e = nn.Embedding(5, 3, {asked})
    def forward(self, x):
        return self.e(x)
"""
CONFIGS = {
    "@dataclass\nclass C:\n    pad: Optional[int] = None\nMADE = C(pad=0)": "config.pad",
    "@dataclass\nclass C:\n    pad: int = None\n    def __post_init__(self):\n        self.pad = 0\nMADE = C()": "config.pad",
    "class C(NamedTuple):\n    pad: Optional[int] = None\nMADE = C(0)": "config.pad",
    "class B:\n    pad = None\nclass C(B):\n    pad = 0\nMADE = C()": "config.pad",
    "class C:\n    pad = None\nMADE = C()\nsetattr(MADE, 'pad', 0)": "config.pad",
    "class C:\n    pad = None\n    def __init__(self, **kw):\n        self.__dict__.update(kw)\nMADE = C(pad=0)": "config.pad",
    "CFG = {'pad': None}\ndef make(**kw):\n    c = dict(CFG)\n    c.update(kw)\n    return c\nMADE = make(pad=0)": "config['pad']",
    "PAD = None\ndef set_pad(p):\n    global PAD\n    PAD = p\nset_pad(0)\nMADE = None": "PAD",
    "PADS = [None]\nPADS[0] = 0\nMADE = None": "PADS[0]",
}


@pytest.mark.parametrize("config", CONFIGS)
def test_the_row_of_padding_stays_zero(config: str) -> None:
    theirs, ours, _ = loaded(HEAD + config + MODEL.format(asked=CONFIGS[config]))
    model = theirs["M"](theirs["MADE"])
    port = ours["M"](ours["MADE"], rngs=nnx.Rngs(0))
    assert not model.e.weight[0].any()
    assert not migrator.to_state_dict(port)["e.weight"][0].any()


def test_a_scale_out_of_a_config() -> None:
    theirs, ours, _ = loaded(
        HEAD
        + """
@dataclass
class C:
    scale: Optional[float] = None

class M(nn.Module):
    def __init__(self, config: C = C(0.1)):
        super().__init__()
        self.scale = config.scale
    def forward(self, x):
        return F.scaled_dot_product_attention(x, x, x, scale=self.scale)
"""
    )
    x = torch.randn(2, 3, 4)
    want, got = theirs["M"]()(x), ours["M"](rngs=nnx.Rngs(0))(x.numpy())
    torch.testing.assert_close(torch.tensor(got.tolist()), want)
