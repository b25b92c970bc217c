"""``w = getattr(layer, name); w.data = w.data.half()``: what CLIP's ``convert_weights`` does to a model."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import HEADER, loaded, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self, kdim=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.attn = nn.MultiheadAttention(4, 2, kdim=kdim, add_bias_kv=True)
        self.norm = nn.LayerNorm(4)
        self.proj = nn.Parameter(torch.randn(4, 3))
        self.text = nn.Parameter(torch.ones(2)) if kdim is None else None
        self.register_buffer("table", torch.ones(3))

    def forward(self, x):
        return self.norm(self.fc(x)) @ self.proj + self.table


def cast(model: nn.Module):
    def one(l):
        if isinstance(l, nn.Linear):
            l.weight.data = l.weight.data.half()
            if l.bias is not None:
                l.bias.data = l.bias.data.half()

        if isinstance(l, nn.MultiheadAttention):
            for attr in [*[f"{s}_proj_weight" for s in ["in", "q", "k", "v"]], "in_proj_bias", "bias_k", "bias_v"]:
                tensor = getattr(l, attr)
                if tensor is not None:
                    tensor.data = tensor.data.half()

        for name in ["text", "proj", "table"]:
            if hasattr(l, name):
                attr = getattr(l, name)
                if attr is not None:
                    attr.data = attr.data.bfloat16()

    model.apply(one)
"""


@pytest.mark.parametrize("kdim", [None, 5])
def test_a_model_gets_the_types_of_torch(kdim: int | None) -> None:
    from flax import nnx

    theirs, ours, _ = loaded(SOURCE)
    torch.manual_seed(0)
    model, port = theirs["M"](kdim), ours["M"](kdim, rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    proj = port.proj
    theirs["cast"](model)
    ours["cast"](port)
    assert port.proj is proj
    want, got = model.state_dict(), migrator.to_state_dict(port)
    assert {n: str(one.dtype).removeprefix("torch.") for n, one in want.items()} == {
        n: str(one.dtype) for n, one in got.items()
    }
    for name, value in want.items():
        np.testing.assert_array_equal(got[name].astype(np.float32), value.float().numpy())


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('["text", "proj", "table"]', '["text", "weight"]'),
        ('["text", "proj", "table"]', '["text", "proj", "unheard"]'),
        ('["text", "proj", "table"]', "dir(l)"),
        ("attr.data = attr.data.bfloat16()", "attr.data = attr.data.bfloat16() * 2"),
        ("attr.data = attr.data.bfloat16()", "attr.data = attr.data.t()"),
        (
            "attr.data = attr.data.bfloat16()",
            "l = model\n                    attr.data = attr.data.half()",
        ),
        ("attr = getattr(l, name)", "attr = getattr(l, name)\n                name = 'table'"),
        ("attr = getattr(l, name)", "attr = getattr(l, name) if l else l"),
        ('["in", "q", "k", "v"]', "model.names"),
    ],
)
def test_what_may_be_held_under_another_name_is_a_finding(old: str, new: str) -> None:
    assert old in SOURCE
    assert migrator.convert_source(HEADER + SOURCE).complete
    assert rules_of(SOURCE.replace(old, new))
