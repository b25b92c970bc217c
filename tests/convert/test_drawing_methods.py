"""Methods that call their model again and again run outside ``jit``: they may look at values."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, both, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.logits = nn.Embedding(5, 5)

    def forward(self, seq):
        return self.logits(seq)

    @torch.no_grad()
    def generate(self, seq, steps, eos=None):
        for _ in range(steps):
            new = self(seq[:, -1:]).argmax(dim=-1)
            seq = torch.cat((seq, new), dim=-1)
            if eos is not None and (seq == eos).any(dim=-1).all():
                break
        longest = (seq != 0).sum(dim=-1).max().item()
        return seq[:, :longest], seq[seq > 1], torch.unique(seq).tolist()
"""


@pytest.mark.parametrize("name", ["generate", "inference", "_infer", "p_sample_loop"])
def test_a_loop_that_ends_by_what_was_drawn(name: str) -> None:
    model, port, _ = both(SOURCE.replace("def generate", f"def {name}"))
    seq = torch.tensor([[1, 2], [3, 4]])
    ends = set()
    for eos in (None, 0, 1, 2, 3, 4):
        wanted = getattr(model, name)(seq, 6, eos)
        found = getattr(port, name)(seq.numpy(), 6, eos)
        ends.add(wanted[0].shape)
        for got, want in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(np.asarray(got), np.asarray(want))
    assert len(ends) > 1


def test_a_forward_pass_that_draws_is_traced() -> None:
    source = SOURCE.replace("return self.logits(seq)", "return self.generate(seq, 2)")
    assert "DYN002" in rules_of(source)
    for other in ("encode", "upsample", "q_resampled"):
        assert "DYN002" in rules_of(SOURCE.replace("def generate", f"def {other}"))
    drawn = SOURCE.replace("    @torch.no_grad()\n", "").replace("def generate", "def q_sample")
    once = drawn.replace("for _ in range(steps):", "if True:").replace("break", "pass")
    assert "DYN002" in rules_of(once)
    once = "class M(nn.Module):\n    def forward(self, x):\n        return x\n\n    def sample(self, x: torch.Tensor):\n"
    assert rules_of(
        once + "        if x.sum() > 0:\n            x = x[:2]\n        return x\n"
    ) == ["DYN002"]


def test_a_gradient_by_hand_without_a_graph() -> None:
    source = """
class Scale(torch.autograd.Function):
    @staticmethod
    @torch.no_grad()
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    @staticmethod
    @torch.no_grad()
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return 2 * grad * w, grad * x


def f(x: torch.Tensor, w: torch.Tensor):
    return Scale.apply(x, w).sum()
"""
    result = migrator.convert_source(HEADER + source)
    assert result.complete, result.findings
    assert "stop_gradient" not in result.code
    ours: dict = {}
    exec(result.code, ours)
    x, w = np.float32([1, 2]), np.float32([3, 4])
    got = nnx.grad(ours["f"], argnums=(0, 1))(x, w)
    np.testing.assert_array_equal(got[0], 2 * w)
    np.testing.assert_array_equal(got[1], x)
