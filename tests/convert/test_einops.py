"""einops in models: its layers become patterns or the copied EinMix, its patterns say ranks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from einops.layers.torch import EinMix
from flax import nnx

from migrator import convert_source, load_state_dict
from rules.compat.einmix import EinMix as FlaxEinMix
from tests.convert.tools import HEADER

IMPORTS = (
    HEADER
    + "from einops import pack, rearrange, unpack\n"
    + "from einops.layers.torch import EinMix, Rearrange, Reduce\n"
)


def converted(source: str) -> str:
    result = convert_source(IMPORTS + source)
    assert result.complete, result.findings
    return result.code


def test_patterns_are_partial_functions_in_a_sequential() -> None:
    source = """
class M(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.net = nn.Sequential(Rearrange("b (n p) -> b n p", p=p), Reduce("b n p -> b p", "max"))

    def forward(self, x):
        return self.net(x)
"""
    code = converted(source)
    assert 'functools.partial(einops.rearrange, pattern="b (n p) -> b n p", p=p)' in code
    assert 'functools.partial(einops.reduce, pattern="b n p -> b p", reduction="max")' in code
    assert "layers.torch" not in code


def test_a_pattern_class_can_be_handed_around() -> None:
    code = converted(
        "class M(nn.Module):\n    def __init__(self, make=Rearrange):\n        super().__init__()\n"
        '        self.f = make("a b -> b a")\n'
    )
    scope: dict[str, object] = {}
    exec(code, scope)
    made = scope["M"](rngs=nnx.Rngs(0))  # type: ignore[operator]
    assert made.f(np.ones((2, 3))).shape == (3, 2)


@pytest.mark.parametrize(
    ("shape", "args", "kwargs"),
    [
        ((2, 3, 4), ("a b c -> a b d", "c d"), {"c": 4, "d": 5}),
        ((2, 6, 4), ("a (h b) c -> h 1 a (d b)", "h c d", "h d"), {"h": 2, "c": 4, "d": 5}),
        ((2, 3, 4), ("... c -> ... d", "c d", "d"), {"c": 4, "d": 5}),
        ((2, 3, 4), ("a b c -> a b c", "c"), {"c": 4}),
    ],
)
def test_einmix_is_torchs(shape: tuple, args: tuple, kwargs: dict) -> None:
    theirs = EinMix(*args, **kwargs)
    ours = FlaxEinMix(*args, **kwargs, rngs=nnx.Rngs(0))
    load_state_dict(ours, theirs.state_dict())
    x = torch.randn(shape)
    np.testing.assert_allclose(ours(x.numpy()), theirs(x).detach().numpy(), atol=1e-5)


def test_packed_shapes_share_no_memory() -> None:
    code = converted(
        "def f(x: torch.Tensor, y: torch.Tensor):\n"
        '    z, ps = pack([x, y], "b * d")\n    z += 1\n    return unpack(z, ps, "b * d")\n'
    )
    assert "    z = z + 1\n" in code or "    z += 1\n" in code


def test_a_pattern_says_the_rank() -> None:
    code = converted('def f(x):\n    return rearrange(x, "b (h w) c -> b c h w", h=2).flatten(2)\n')
    assert "reshape(*" in code
