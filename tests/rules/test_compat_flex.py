"""Helpers of flex attention against torch's, called directly."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import torch
from torch.nn.attention import flex_attention as theirs

from rules.compat.flex import (
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
    over_places,
)


def causal(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx >= kv_idx


def close(b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
    return q_idx - kv_idx < 2 + b + h


def test_masks() -> None:
    for ours, torchs in ((and_masks, theirs.and_masks), (or_masks, theirs.or_masks)):
        want = theirs.create_mask(torchs(causal, close), 2, 3, 5, 6, device="cpu")
        np.testing.assert_array_equal(create_mask(ours(causal, close), 2, 3, 5, 6), want.numpy())
    assert create_mask(causal, None, None, 2, 3).shape == (1, 1, 2, 3)
    assert over_places(lambda *places: sum(places), (2, 1, 1, 3)).tolist() == [
        [[[0, 1, 2]]],
        [[[1, 2, 3]]],
    ]


def test_attention() -> None:
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, heads, 5, 4, generator=generator) for heads in (4, 2, 2))

    def score(s: Any, b: Any, h: Any, q_idx: Any, kv_idx: Any) -> Any:
        return s * (1 + h) - kv_idx

    for mask in (None, causal, close):
        made = [create_block_mask(mask, None, 1, 5, 5) if mask else None]
        made += [theirs.create_block_mask(mask, None, 1, 5, 5, device="cpu") if mask else None]
        with torch.no_grad():
            want = theirs.flex_attention(q, k, v, score, made[1], enable_gqa=True)
        arrays = [jnp.asarray(one.numpy()) for one in (q, k, v)]
        found = flex_attention(*arrays, score, made[0], enable_gqa=True)
        np.testing.assert_allclose(found, want.numpy(), rtol=1e-4, atol=1e-6)
