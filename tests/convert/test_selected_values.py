"""``x[mask] = f(y[mask])``: computed everywhere, kept where the mask holds, with torch's gradients."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import libcst as cst
import numpy as np
import pytest
import torch

from rules.flags._selected import selected_write
from tests.convert.tools import loaded, rules_of

LINES = {
    "linear": "z = y.clone(); z[x < 0] = 2 * x[x < 0] - y[x < 0] / 3; return z",
    "logarithm": "z = y.clone(); z[x > 0] = torch.log(x[x > 0]); return z",
    "quotient": "z = y.clone(); z[x != 0] = y[x != 0] / x[x != 0]; return z",
    "same tensor": "z = x * 1; m = z > 0; z[m] = z[m].sqrt() ** 3; return z",
    "product of what may be infinite": "z = x * 1; w = y / x; m = x != 0; z[m] *= w[m]; return z",
    "divided": "z = y.clone(); m = x != 0; z[m] /= x[m]; return z",
    "power": "z = y.clone(); m = x > 0; z[m] = torch.pow((x[m] + 0.055) / 1.055, 2.4); return z",
    "a tensor without axes": "s = (y * 3).mean(); z = y.clone(); m = x > 0; z[m] = s * x[m].log(); return z",
    "one number for whole rows": "s = (y * 3).mean(); z = y * 1; m = x[:, 0] > 0; z[m] = s * x[m].exp() ** s; return z",
    "whole rows": "z = y.clone(); m = x[:, 0] > 0; z[m] += x[m].clamp(min=0.5); return z",
    "rows of one kind": "n, d = y.shape; n, d = x.shape; z = y.clone(); m = x[:, 0] > 0; z[m] = torch.ones(d) * 2; return z",
    "some of each row": "z = y * 1; m = x[:, 0] > 0; z[m, 0] = 7; z[m, 1:] *= 3; z[~m, -1] **= 0.5; return z",
    "behind others": "z = y * 1; z[:, x[0] > 0] = 5; z[..., x[1] > 1] += 2; z[0, x[0] == 0] = 1.5; return z",
    "a name for what is selected": "z = y * 1; m = x > 0; h = z[m]; z[m] = 2 * h + 0.5; return z",
    "a name, steep": "z = y * 1; m = x > 0; h = x[m]; z[m] = h * h.log(); return z",
    "a name, with its mask written out": "z = y.clone(); v = x[x < 0]; z[x < 0] = y[x < 0] * v; return z",
    "a name, read twice": "z = y * 1; m = x > 0; h = x[m]; w = y.mean(); z[m] = h.sqrt() * (w + h); return z",
    "a name, added": "z = y * 1; m = x > 0; h = x[m]; z[m] += h / 2; return z",
    "a root": "z = x * 1; z[x > 0] **= 0.5; return z",
    "rows and exponentials": "z = y.clone(); m = x[:, 0] > 0; z[m] = x[m].exp() - y[m]; return z",
}


def _source(lines: str) -> str:
    body = "\n".join(f"    {line.strip()}" for line in lines.split(";"))
    return f"def f(x: torch.Tensor, y: torch.Tensor):\n{body}\n"


def _inputs() -> tuple[np.ndarray, np.ndarray]:
    x = np.float32([[0.5, 0, -1, 2], [0, 1.5, 0.25, 3], [-2, 0, 0.75, 1e-3]])
    return x, np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.mark.parametrize("name", sorted(LINES))
def test_values_and_gradients(name: str) -> None:
    theirs, ours, _ = loaded(_source(LINES[name]))
    given = _inputs()
    tensors = [torch.tensor(one, requires_grad=True) for one in given]
    want = theirs["f"](*tensors)
    weights = torch.linspace(1, 2, want.numel()).reshape(want.shape)
    (want * weights).sum().backward()

    def total(x: jax.Array, y: jax.Array) -> jax.Array:
        return (ours["f"](x, y) * jnp.asarray(weights.numpy())).sum()

    got = jax.jit(ours["f"])(*map(jnp.asarray, given))
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=2e-5, atol=1e-6)
    slopes = jax.grad(total, argnums=(0, 1))(*map(jnp.asarray, given))
    for tensor, slope in zip(tensors, slopes, strict=True):
        expected = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        np.testing.assert_allclose(slope, expected.numpy(), rtol=2e-5, atol=1e-5)


def test_a_row_of_the_module_for_all_that_are_labelled() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embs = nn.ModuleList([nn.Embedding(1, 4) for _ in range(2)])
    def forward(self, x, labels: torch.LongTensor):
        x = x * 2
        x[labels == 0] += self.embs[0].weight
        x[labels == 1] += self.embs[1].weight
        return x
"""
    _, _, code = loaded(source)
    assert "x = where_leading(labels == 0, x + self.embs[0].embedding[...], x)" in code


@pytest.mark.parametrize(
    "lines",
    [
        "z = y.clone(); z[x < 0] = x[x < 0].cumsum(0); return z",
        "z = y.clone(); z[x < 0] = x[x < 0] - x[x < 0].mean(); return z",
        "z = y.clone(); z[x < 0] = x[x > 0] * 2; return z",
        "z = y.clone(); v = x[x < 0]; z[x < 0] = y[x < 0] * v; return z, v",
        "z = y.clone(); v = x[x < 0]; z[x > 0] = 2 * v; return z",
        "z = y.clone(); m = x < 0; v = x[m]; m = x > 0; z[m] = 2 * v; return z",
        "z = y.clone(); m = x < 0; v = x[m]; z[m] = v * v.mean(); return z",
        "z = y.clone(); m = x < 0; v = x[m]; z[m] = v.flip(0); return z",
        "z = y * 1; w = z.view(-1); m = z < 0; v = z[m]; w[0] = 1; z[m] = 2 * v; return z",
        "z = y * 1; m = z < 0; v = z[m]; z += 1; z[m] = 2 * v; return z",
        "z = y.clone(); z[x.ge(0)] = x[x.ge(0)].exp(); return z",
    ],
)
def test_what_is_placed_by_data(lines: str) -> None:
    """A number of what is selected, another mask's, or a mask that is called for again."""
    assert set(rules_of(_source(lines))) <= {"DYN001", "DYN006", "MUT001"}
    assert rules_of(_source(lines))


def test_a_call_in_between_that_may_write() -> None:
    """What is unknown might write to the same memory."""
    lines = "z = y * 1; w = z.view(-1); m = z < 0; v = z[m]; unknown(w); z[m] = 2 * v; return z"
    assert "DYN001" in rules_of("from other import unknown\n\n\n" + _source(lines))


def test_parts() -> None:
    def found(line: str) -> Any:
        module = cst.parse_module(line)
        return selected_write(
            module.body[0].body[0],  # type: ignore[union-attr]
            lambda call: "torch.log" if isinstance(call.func, cst.Name) else "Tensor.to",
            lambda one: isinstance(one, (cst.Integer, cst.Float)),
            lambda one: {"row": 1, "x": 3, "m": 2}.get(getattr(one, "value", "")),
        )

    assert found("x[m] = y[m] * 2 + z[m]").linear
    assert not found("x[m] = y[m] * z[m]").linear
    assert not found("x[m] = log(y[m])").linear
    assert len(found("x[m] -= y[m] / z[m]").selections) == 2
    assert found("x[m] = row").linear
    assert found("x[m] = self.token.to(x.dtype)").linear
    assert not found("x[m] = row * y[m] * y[m]").linear
    for line in ("x[m] = 2", "x[m, 0] = y[m, 0]", "x[m] = y[n]", "x[m] = y", "x, z = y[m], 1"):
        assert found(line) is None
    assert found("z[m] = row") is None  # how many axes a place of z has is not known
