"""``flex_attention``: what torch computes on the host, and the gradients of the same written out."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, convert, rules_of

IMPORTS = """
from torch.nn.attention.flex_attention import BlockMask, and_masks, create_block_mask, create_mask, flex_attention, or_masks


def causal(b, h, q_idx, kv_idx):
    return q_idx >= kv_idx


def near(size):
    def mask(b, h, q_idx, kv_idx):
        return (q_idx - kv_idx).abs() < size

    return mask
"""
BODIES = {
    "plain": "return flex_attention(q, k, v)",
    "scaled": "return flex_attention(q, k, v, scale=0.3)",
    "causal": "m = create_block_mask(causal, None, None, n, n, device=q.device); return flex_attention(q, k, v, block_mask=m)",
    "both": "m = create_block_mask(and_masks(causal, near(2)), B=b, H=h, Q_LEN=n, KV_LEN=n, device='cpu'); return flex_attention(q, k, v, block_mask=m.to(q.device))",
    "either": "m = create_block_mask(or_masks(causal, near(3)), 1, 1, n, n, 'cpu', BLOCK_SIZE=64); return flex_attention(q, k, v, None, m)",
    "of the batch": """
        def same(b, h, q_idx, kv_idx):
            return (ids[b, q_idx] == ids[b, kv_idx]) & (h < 2)
        m = create_block_mask(same, b, h, n, n, device="cpu"); return flex_attention(q, k, v, block_mask=m) * m.shape[-1]""",
    "scores": """
        def score(s, b, h, q_idx, kv_idx):
            return torch.where(kv_idx > 0, s - self.slope[h] * (q_idx - kv_idx).abs(), -float("inf"))
        return flex_attention(q, k, v, score_mod=score)""",
    "fewer heads": "return flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True)",
    "dense": "m = create_mask(causal, 1, 1, n, n, device='cpu'); return (q @ k.transpose(-2, -1)).masked_fill(~m, 0.0) @ v",
}


def _source(body: str) -> str:
    lines = body.split(";") if "\n" not in body else [body]
    head = """

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.slope = nn.Parameter(torch.tensor([0.5, 0.25, 0.125, 1.0]))

    def forward(self, q, k, v, ids, block_mask: BlockMask | None = None):
        b, h, n, d = q.shape
"""
    return IMPORTS + head + "".join(f"        {line.strip()}\n" for line in lines)


def _inputs() -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(2, 4, 5, 8, generator=generator) for _ in range(3)]
    return [*made, torch.tensor([[0, 0, 1, 1, 2], [0, 1, 1, 1, 1]])]


@pytest.mark.parametrize("name", sorted(BODIES))
def test_values(name: str) -> None:
    source = _source(BODIES[name])
    result = convert(source)
    assert result.complete, result.findings
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + source, theirs)
    exec(result.code, ours)
    with torch.no_grad():
        want = theirs["M"]()(*_inputs())
    port = ours["M"](rngs=nnx.Rngs(0))
    got, slopes = jax.jit(
        jax.value_and_grad(
            lambda q, *rest: (port(q, *rest) ** 2).sum() + 0 * q.sum(), argnums=(0, 1, 2)
        )
    )(*(jnp.asarray(one.numpy()) for one in _inputs()))
    np.testing.assert_allclose(got, (want**2).sum().numpy(), rtol=1e-4)
    found = port(*(jnp.asarray(one.numpy()) for one in _inputs()))
    np.testing.assert_allclose(found, want.numpy(), rtol=1e-4, atol=1e-6)
    assert all(bool(jnp.isfinite(one).all()) for one in slopes)


def test_gradients_where_a_query_attends_to_nothing() -> None:
    code = convert(_source(BODIES["of the batch"])).code
    ours: dict = {}
    exec(code, ours)
    tensors = [one.requires_grad_() for one in _inputs()[:3]]
    ids = _inputs()[3]
    mask = (ids[:, None, :, None] == ids[:, None, None, :]) & (torch.arange(4) < 2)[:, None, None]
    q, k, v = tensors
    scores = (q @ k.transpose(-2, -1) / 8**0.5).masked_fill(~mask, -float("inf"))
    weights = torch.where(mask, scores, -1e9).softmax(-1) * mask.any(-1, keepdim=True)
    ((weights @ v * 5) ** 2).sum().backward()
    slopes = jax.grad(
        lambda *x: (ours["M"](rngs=nnx.Rngs(0))(*x, jnp.asarray(ids.numpy())) ** 2).sum(), (0, 1, 2)
    )(*(jnp.asarray(one.detach().numpy()) for one in tensors))
    for slope, tensor in zip(slopes, tensors, strict=True):
        assert tensor.grad is not None
        np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("return flex_attention(q, k, v, block_mask=block_mask[:, :, 0])", "API002"),
        ("m = create_block_mask(causal, 1, 1, n, n, 'cpu'); return m.to_dense()", "API002"),
        ("m = create_block_mask(causal, 1, 1, n, n, 'cpu'); return q * m.sparsity()", "API002"),
        ("return flex_attention(q, k, v, return_lse=True)", "API002"),
    ],
)
def test_what_is_of_torchs_kernels_alone(line: str, rule: str) -> None:
    assert rules_of(_source(line)) == [rule]


def test_a_mask_of_other_sizes() -> None:
    code = convert(_source(BODIES["causal"].replace("n, n", "n, n + 1", 1))).code
    ours: dict = {}
    exec(code, ours)
    with pytest.raises(ValueError, match="a mask"):
        ours["M"](rngs=nnx.Rngs(0))(*(jnp.asarray(one.numpy()) for one in _inputs()))


def test_a_kernel_that_torch_would_compile_is_not_asked_for() -> None:
    source = """
def supported(device) -> bool:
    device = torch.device(device)
    if device.type == "cuda":
        return True
    if device.type == "cpu":
        return getattr(torch.cpu, "_is_avx2_supported", lambda: False)() and not torch.xpu.is_available()
    return False
"""
    ours: dict = {}
    result = convert(source)
    assert result.complete
    exec(result.code, ours)
    assert ours["supported"]("cpu") is False
