"""Chains of calls in place: Python runs the first before it computes the arguments of the next."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, sides

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(5))
PROGRAM = """def mean_of(module):
    return module.b.mean()


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(4))
        self.w = nn.Parameter(torch.arange(4.0))
        self.a = 0.5

    def twice(self, t):
        return t.mul_(2).add_(t)

    def mean(self):
        return self.b.mean()

    def forward(self, x):
        y = x * 1.0
        LINES
"""
LINES = [
    "y.clamp_(min=0).div_(y.sum(-1, keepdim=True) + 1e-6); return y",
    "return y.clamp_(min=0).div_(y.sum(-1, keepdim=True) + 1e-6)",
    "z = y.clamp_(min=0).div_(y.sum(-1, keepdim=True) + 1e-6); return z + y",
    "y = y.mul_(2).add_(y); return y",
    "y.mul_(2).add_(other=y); return y",
    "y[0].mul_(2).add_(y[0]); return y",
    "y[0].mul_(2).add_(y[1]); return y",
    "y.mul_(1 - self.a).add_(torch.tanh(x + y), alpha=self.a); return y",
    "y.mul_(2).add_(1).sub_(y.mean()); return y",
    "y.mul_(2).add_(y.mean()).sub_(1); return y.sum(0)",
    "return y.mul_(2).add_(y).view(-1)",
    "return y.unsqueeze_(0).add_(y.sum(1, keepdim=True))",
    "return y.t_().add_(y)",
    "y.neg_().masked_fill_(y > 0, 0.0); return y",
    "return self.twice(y)",
    "self.b.mul_(0.9).add_(self.b.sum() + x.mean(), alpha=0.1); return y + self.b",
    "self.b.mul_(0.9).add_(self.mean()); return y + self.b",
    "self.b.copy_(x.mean(0)).add_(self.b); return y + self.b",
    "self.b.mul_(0.9).add_(mean_of(self)); return y + self.b",
    "self.w.data.div_(2).add_(self.w.data.mean()); return y + self.w",
    "return x + y.roll(1, 0).mul_(0.3).add_(y.mul(0.7))",
    "return torch.tanh(y.exp().mul_(2).sub_(y)) + y",
]
KEPT = {
    "self.b.mul_(0.9).add_(x.mean(0), alpha=0.1); return y + self.b": "self.b[...] * 0.9 + ",
    "y.mul_(2).add_(x); return y": "y * 2 + x",
}
REFUSED = [
    "z = y; y.mul_(2).add_(z); return y",
    "z = y; y.mul_(2).add_(z.sum()); return y",
    "z = y[1]; y[:2].mul_(2).add_(z); return y",
    "b = self.b; self.b.mul_(2).add_(b.sum()); return y + self.b",
    "return x + y.mul_(2).add_(y)",
    "return x + self.b.mul_(2).add_(self.mean())",
    "return x + self.b.mul_(2).add_(mean_of(self))",
    "return torch.sigmoid(y.mul_(2).add_(y))",
    "return y.mul_(2).add_(y) if self.training else y",
    "return y.mul_(2).add(y)",
    "return torch.stack([t.mul_(2).add_(t) for t in y.clone()])",
    "return F.relu(y, inplace=True).add_(y)",
    *(
        f"return x + y{view}.mul_(0.3).add_(y.sum())"
        for view in (".view(-1)[:4]", ".float()", ".contiguous()", ".squeeze()", ".detach()")
    ),
]


def _outcome(lines: str) -> str | None:
    """The code of a port that does what torch does, in two calls and under jit; None where it is refused."""
    told, theirs, ours = sides(HEADER + PROGRAM.replace("LINES", lines.replace("; ", "\n        ")))
    if told:
        return None
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    for call in (nnx.jit(lambda module, x: module(x)), lambda module, x: module(x)):
        want = model(X).detach().numpy()
        np.testing.assert_allclose(call(port, jnp.asarray(X.numpy())), want, rtol=1e-5, atol=1e-6)
    return "converted"


@pytest.mark.parametrize("lines", [*LINES, *KEPT])
def test_each_is_run_before_the_next_is_computed(lines: str) -> None:
    assert _outcome(lines)


@pytest.mark.parametrize("lines", REFUSED)
def test_in_the_middle_of_an_expression(lines: str) -> None:
    assert _outcome(lines) is None


@pytest.mark.parametrize("lines", KEPT)
def test_those_that_read_nothing_else_stay_in_a_line(lines: str) -> None:
    from migrator.convert import convert_source

    text = HEADER + PROGRAM.replace("LINES", lines.replace("; ", "\n        "))
    assert KEPT[lines] in convert_source(text).code
