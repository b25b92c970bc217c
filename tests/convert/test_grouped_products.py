"""Products of groups of rows, as experts take them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, x, w, ends):
        return {call}
"""


@pytest.mark.parametrize(
    "call",
    [
        "torch._grouped_mm(x, w, offs=ends)",
        "torch._grouped_mm(x, w, ends)",
        "F.grouped_mm(x, w, offs=ends)",
        "F.grouped_mm(x.reshape(2, 16, 16), w[:2])",
    ],
)
def test_groups_end_where_they_are_told(call: str) -> None:
    module, port, _ = both(SOURCE.format(call=call))
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(32, 16, generator=draw).bfloat16()
    w = torch.randn(3, 16, 8, generator=draw).bfloat16()
    ends = torch.tensor([4, 4, 32], dtype=torch.int32)  # the second group is empty
    ours = port(
        *(jnp.asarray(one.float().numpy()).astype("bfloat16") for one in (x, w)),
        jnp.asarray(ends.numpy()),
    )
    assert ours.dtype == jnp.bfloat16
    expected = module(x, w, ends).float().numpy()
    np.testing.assert_allclose(np.asarray(ours, np.float32), expected, rtol=0.02, atol=0.02)
