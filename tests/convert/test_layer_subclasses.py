"""Classes that derive from torch's layers: what they hand on, and what of torch's layer they call or read."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import both, check, rules_of, same


@pytest.mark.parametrize("mode", ["zeros", "reflect", "replicate", "circular"])
def test_convolutions_with_a_padding_mode(mode: str) -> None:
    check(f"""
class Standardised(nn.Conv1d):
    def __init__(self, i, o, k, stride=1, padding=0, dilation=1, groups=1, bias=True, padding_mode="zeros"):
        super().__init__(i, o, k, stride, padding, dilation, groups, bias, padding_mode)

    def forward(self, x):
        return self._conv_forward(x, self.weight - self.weight.mean(), self.bias)


class Masked(nn.Conv1d):
    def forward(self, x):
        return super()._conv_forward(x, self.weight * 2, self.bias)


class Own(nn.Conv1d):
    def forward(self, x):
        return F.conv1d(x, self.weight, self.bias, self.stride, self.padding)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Standardised(3, 3, 3, padding=1, padding_mode="{mode}")
        self.b = Masked(3, 3, 5, padding="same", dilation=2, padding_mode="{mode}")
        self.c = Own(3, 3, 3, 1, 1, padding_mode="{mode}")
        self.d = nn.Conv1d(3, 3, 3, padding=1, padding_mode="{mode}")

    def forward(self, x):
        x = x[:, None].expand(-1, 3, -1).repeat(1, 1, 3)
        return self.d(self.c(self.b(self.a(x)))[0]) + self.d.padding[0]
""")


def test_a_layer_keeps_what_its_subclass_reads() -> None:
    source = """
class Up(nn.ConvTranspose1d):
    def forward(self, x):
        x = F.conv_transpose1d(x, self.weight, self.bias, self.stride, self.padding)
        return x[..., : -self.kernel_size[0]]


class Norm(nn.BatchNorm1d):
    def forward(self, x):
        self._check_input_dim(x)
        return (x - self.running_mean) * self.weight


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = Up(3, 4, 2, stride=2)
        self.norm = Norm(4)

    def forward(self, x):
        return self.norm(self.up(x[:, :3, None])[..., 0] if len(x) > 5 else x)
"""
    check(source)
    both(source)


def test_a_method_of_torchs_layer_is_said() -> None:
    source = """import torch
from torch import nn

class Up(nn.ConvTranspose2d):
    def forward(self, x, size):
        return self._output_padding(x, size, self.stride, self.padding, self.kernel_size, 2)
"""
    assert rules_of(source) == ["API001"]


def test_parameters_are_drawn_anew() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(5, 4, padding_idx=0)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Linear(4, 4, bias=False)])
        self.conv = nn.Conv1d(4, 4, 1)
        self.norm = nn.BatchNorm1d(4)
        self.reset_parameters()

    def reset_parameters(self):
        self.embed.reset_parameters()
        for layer in self.layers:
            layer.reset_parameters()
        self.conv.reset_parameters()
        self.norm.reset_parameters()

    def forward(self, x):
        return self.norm(self.conv(self.layers[1](self.layers[0](x))[..., None])[..., 0])
""")
    for line in ("reset_embedding(self.embed, rngs=rngs)", "reset_norm(self.norm)"):
        assert line in code
    namespace: dict = {}
    exec(code, namespace)
    port = namespace["M"](rngs=nnx.Rngs(0))
    before = migrator.to_state_dict(port)
    for variable in (port.norm.weight, port.norm.running_mean, port.embed.embedding):
        variable[...] = variable[...] + 1
    port.reset_parameters(rngs=nnx.Rngs(1))
    after = migrator.to_state_dict(port)
    drawn = {name for name in after if not np.array_equal(before[name], after[name])}
    assert drawn == {
        "embed.weight",
        "layers.0.weight",
        "layers.0.bias",
        "layers.1.weight",
        "conv.weight",
        "conv.bias",
    }
    assert not after["embed.weight"][0].any()
    assert abs(after["embed.weight"][1:]).max() < 5
    assert abs(after["layers.0.weight"]).max() <= 0.5


def test_a_layer_and_a_plain_class_as_bases() -> None:
    """``nn.Linear.__init__(self, …)`` is what super() finds, as no base before it has the method."""
    code = check(
        """
class Adapter:
    def __init__(self, rank: int):
        self.rank = rank

class M(nn.Linear, Adapter):
    def __init__(self, a: int, b: int, rank: int = 2, **kwargs):
        nn.Linear.__init__(self, a, b, **kwargs)
        Adapter.__init__(self, rank=rank)
        self.down = nn.Parameter(self.weight.new_zeros((rank, a)))
        self.reset_parameters()

    def reset_parameters(self):
        nn.Linear.reset_parameters(self)
        if hasattr(self, "down"):
            nn.init.ones_(self.down)

    def cuda(self, device=None):
        super().cuda(device)
        return self

    def forward(self, x):
        return nn.Linear.forward(self, x) + (x @ self.down.t()).sum() * self.rank
""",
        4,
        3,
    )
    assert "super().__init__(a, b, rngs=rngs, **kwargs)" in code
    assert "reset_weights(self, rngs=rngs)" in code
    assert "super().cuda" not in code


def test_a_method_that_a_plain_base_has_is_found_there() -> None:
    source = "class A:\n    def forward(self, x):\n        return x\n"
    source += "class M(A, nn.Linear):\n    def forward(self, x):\n        return nn.Linear.forward(self, x)\n"
    assert "API001" in rules_of(source)


@pytest.mark.parametrize(
    ("bases", "told"),
    [
        ("nn.Module, metaclass=Meta", True),
        ("Base, nn.Module", True),
        ("nn.Module, metaclass=abc.ABCMeta", False),
        ("nn.Module, abc.ABC", False),
    ],
)
def test_a_metaclass_of_its_own_has_no_place_beside_that_of_flax(bases: str, told: bool) -> None:
    source = f"""
import abc


class Meta(type):
    def __call__(cls, *args):
        return type.__call__(cls, *args)


class Base(metaclass=Meta):
    pass


class M({bases}):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return self.l(x)
"""
    if not told:
        check(source)
        return
    assert rules_of(source) == ["API001"]


def test_layers_of_a_transformer_that_are_put_together_anew() -> None:
    check("""class Half(nn.TransformerEncoderLayer):
    def forward(self, src, src_mask=None, src_key_padding_mask=None):
        x = self.norm1(src + 0.5 * self._sa_block(src, src_mask, src_key_padding_mask))
        return self.norm2(x + 0.5 * self._ff_block(x))


class Double(nn.TransformerDecoderLayer):
    def _ff_block(self, x):
        return 2 * super()._ff_block(x)

    def forward(self, tgt, memory):
        x = tgt + self._sa_block(self.norm1(tgt), None, None)
        x = x + self._mha_block(self.norm2(x), memory, None, None)
        return x + self._ff_block(self.norm3(x))


class Own(nn.TransformerEncoderLayer):
    def _sa_block(self, x, attn_mask, key_padding_mask, is_causal=False):
        return 3.0 * super()._sa_block(x, attn_mask, key_padding_mask, is_causal)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Half(8, 2, 16, batch_first=True)
        self.b = Double(8, 2, 16, batch_first=True)
        self.c = Own(8, 2, 16, batch_first=True, norm_first=True)
        self.l = nn.Linear(4, 8)

    def forward(self, x):
        x = self.l(x)[:, None, :].repeat(1, 3, 1)
        return self.c(self.b(self.a(x), x.flip(1)))
""")


def test_parameters_of_what_is_not_known_are_drawn_anew() -> None:
    """A copy of a layer of torch's, or of a module of the file that has the method."""
    model, port, code = both("""
import copy

class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def reset_parameters(self):
        nn.init.zeros_(self.fc.weight)

    def forward(self, x):
        return self.fc(x)

class Twice(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.a = module
        self.b = copy.deepcopy(module)
        self.b.reset_parameters()

    def forward(self, x):
        return self.b(self.a(x))

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleList(
            [Twice(Own()), Twice(nn.Linear(4, 4)), Twice(nn.LayerNorm(4)), Twice(nn.Embedding(4, 4))]
        )

    def forward(self, x):
        return self.parts[2](self.parts[1](self.parts[0](x)))
""")
    assert "reset_parameters_(self.b, rngs=rngs)" in code
    fresh = type(port)(rngs=nnx.Rngs(0))
    assert not np.any(fresh.parts[0].b.fc.kernel)
    for i, name in ((1, "kernel"), (3, "embedding")):
        first, second = (np.asarray(getattr(getattr(fresh.parts[i], part), name)) for part in "ab")
        assert not np.array_equal(first, second)
        assert np.all(np.abs(second) < 5)
    same(model, port, np.ones((3, 4), np.float32))
