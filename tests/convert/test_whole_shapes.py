"""``torch.randn(shape, device=device)``: a single argument may be the whole shape, and stays so beside keywords."""

from __future__ import annotations

import pytest

from tests.convert.tools import loaded

CALLS = [
    "torch.randn(shape, device='cpu')",
    "torch.rand(shape, dtype=torch.float32)",
    "torch.randn(shape, generator=None)",
    "torch.zeros(shape, device='cpu')",
    "torch.ones(shape, dtype=torch.float32)",
    "torch.empty(shape, device='cpu')",
    "torch.randn(size=shape)",
    "torch.rand(device='cpu', size=shape)",
    "torch.zeros(size=shape)",
    "torch.full(shape, 1.0, device='cpu')",
    "torch.zeros(1).new_zeros(shape, device='cpu')",
]


@pytest.mark.parametrize("call", CALLS)
def test_a_shape_or_a_number(call: str) -> None:
    theirs, ours, _ = loaded(
        "class M(nn.Module):\n    def draw(self, shape):\n        return "
        + call
        + "\n\n    def forward(self, x):\n        return x\n"
    )
    from flax import nnx

    made = ours["M"]
    port = made(rngs=nnx.Rngs(0)) if "rand" in call else made()
    for shape in ((2, 3), [4], (), 5):
        if isinstance(shape, int) and ("size=" in call or "full" in call):
            continue  # torch takes no number there
        assert port.draw(shape).shape == tuple(theirs["M"]().draw(shape).shape), shape
