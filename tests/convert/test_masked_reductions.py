"""Means, sums and losses of what a mask selects: taken over the mask, with torch's values and gradients."""

from __future__ import annotations

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from rules.compat.losses import cross_entropy
from rules.compat.masks import masked_class_loss, masked_max, masked_min
from tests.convert.tools import HEADER, convert, rules_of

LINES = {
    "squares": "return ((x[m] - y[m]) ** 2).mean()",
    "absolute": "return torch.abs(x[m] - y[m]).sum() / m.sum()",
    "logarithm of what is negative elsewhere": "k = x > 0; return x[k].log().mean() + torch.sum(1 / x[k])",
    "names": "a, b = x[m], y[m]; d = a - b; return torch.sqrt((d * d).mean()) + (a * 2).sum()",
    "the same name": "d = x - y; d = d[m]; return d.abs().mean() + (d ** 2).sum()",
    "how many": "return ((x[m] > y[m]).float().mean() + (x[m] == 0.25).sum()) * x[m].mean()",
    "whole rows": "k = x[:, 0] > 0; d = x[k] - y[k]; return (d.exp() * y[k]).mean()",
    "a mask made before": "m = m.bool(); a = x[m]; b = y[m]; return F.mse_loss(a, b) + F.l1_loss(a, b.detach())",
    "sum of a loss": "a = x[m]; return F.smooth_l1_loss(torch.sigmoid(a), y[m], reduction='sum')",
    "module": "mse = nn.MSELoss(); a = x[m]; return mse(a, y[m])",
    "module that sums": "l1 = nn.L1Loss(reduction='sum'); return l1(x[m] * 2, y[m])",
    "largest and least": "return x[m].max() + (x[m] - y[m]).min() + torch.max((y * y)[m]) + t[t > 0].max()",
    "classes": "k = t >= 0; return F.cross_entropy(x[k], t[k])",
    "classes by name": "k = t >= 0; a = x[k]; b = t[k]; ce = nn.CrossEntropyLoss(ignore_index=1); return ce(a, b)",
    "smoothed": "k = t > 0; return F.cross_entropy(x[k], t[k], label_smoothing=0.2, reduction='sum')",
    "likelihood": "k = t > 0; p = F.log_softmax(x, -1); return F.nll_loss(p[k], t[k])",
    "probabilities": "k = t != 0; return F.cross_entropy(x[k], y.softmax(-1)[k])",
    "pure calls": "return F.cross_entropy(x[t.ge(0)], t[t.ge(0)]) + (x[m.bool()] - y[m.bool()]).abs().mean()",
}
HEAD = "def f(x: torch.Tensor, y: torch.Tensor, t: torch.LongTensor, m: torch.BoolTensor):\n"


def _source(lines: str) -> str:
    return HEAD + "".join(f"    {line.strip()}\n" for line in lines.split(";"))


OTHER_MASKS = [name for name, lines in LINES.items() if "t[" in lines or "k = " in lines]


@pytest.mark.parametrize(
    ("name", "nan"),
    [(n, nan) for n in sorted(LINES) for nan in (False, True) if not nan or n not in OTHER_MASKS],
)
def test_values_and_gradients(name: str, nan: bool) -> None:
    source = _source(LINES[name])
    result = convert(source)
    assert result.complete, result.findings
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + source, theirs)
    exec(result.code, ours)
    x = np.float32([[0.5, 0.25, -1, 2], [-1, 1.5, 0.25, 3], [-2, 0.2, 0.75, 1e-3]])
    y = np.linspace(-1, 2, 12, dtype=np.float32).reshape(3, 4)
    m = np.array([[True, True, False, True], [False] * 4, [True, False, True, True]])
    if nan:  # what is left out may be no number
        x, y = np.where(m, x, np.nan), np.where(m, y, np.inf)
    t = np.array([2, -1, 1])
    tensors = [torch.tensor(one, requires_grad=True) for one in (x, y)]
    want = theirs["f"](*tensors, torch.tensor(t), torch.tensor(m))
    want.backward()
    rest = jnp.asarray(t), jnp.asarray(m)
    made = "rngs" in inspect.signature(ours["f"]).parameters  # for the loss that it makes
    f = functools.partial(ours["f"], rngs=nnx.Rngs(0)) if made else ours["f"]
    run = jax.jit(jax.value_and_grad(f, argnums=(0, 1)))
    got, slopes = run(jnp.asarray(x), jnp.asarray(y), *rest)
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-5)
    for tensor, slope in zip(tensors, slopes, strict=True):
        expected = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        np.testing.assert_allclose(slope, expected.numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "lines",
    [
        "a = x[m]; return (a - y[m]).mean(), a",
        "a = x[m]; return (a - y[m]).mean() * a.numel()",
        "a = x[m]; m = x > 1; return (a * y[m]).mean()",
        "a = x[m]; m[0] = True; return (a * y[m]).mean()",
        "a = x[m]; m.logical_not_(); return (a * y[m]).mean()",
        "a = x[m]; a += 1; return a.mean()",
        "d = x - y; d = d[m]; s = d.sum(); d = y; return s + d.mean()",
        "return (x[m] - y[~m]).mean()",
        "return (x[m] - x[m].mean()).abs().mean()",
        "return (x[m] * y[0]).mean()",
        "return x[m].cumsum(0).mean()",
        "return F.mse_loss(x[m], y[m], reduction='none')",
        "w = y[0]; return F.cross_entropy(x[m], t[m], weight=w)",
        "return F.cross_entropy(x[m].exp(), t[m], ignore_index=int(t[0]))",
        "ce = nn.CrossEntropyLoss(); ce = nn.CrossEntropyLoss(ignore_index=0); return ce(x[t > 0], t[t > 0])",
        "k = torch.rand(3) > 0.5; return (x[torch.rand(3) > 0.5] - y[k]).mean()",
        "s = y.max(); return (x[m] * s).log().mean()",
    ],
)
def test_what_depends_on_the_data(lines: str) -> None:
    assert {"DYN001", "DYN006"} & set(rules_of(_source(lines)))


def test_a_name_for_what_a_loop_selects_anew() -> None:
    lines = "total = 0\n    for i in range(3):\n        m = x > i\n        a = x[m]\n        total = total + (a * y[m]).mean()\n    return total"
    assert "DYN001" in rules_of(_source(lines))


def test_a_name_that_may_be_all_or_what_is_selected() -> None:
    lines = "d = x - y\n    if y is not None:\n        d = d[m]\n    return d.abs().mean()"
    assert "DYN001" in rules_of(_source(lines))


def test_a_mask_over_classes() -> None:
    with pytest.raises(ValueError, match="among the classes"):
        masked_class_loss(cross_entropy, jnp.ones(3), jnp.ones(3), jnp.ones(3, bool))


@pytest.mark.parametrize("dtype", [torch.float32, torch.int32, torch.bool])
def test_largest_and_least_of_what_a_mask_selects(dtype: torch.dtype) -> None:
    x = torch.arange(-4, 8).reshape(3, 4).remainder(7).to(dtype)
    for mask in (x > 1 if dtype != torch.bool else x, torch.tensor([True, False, True])):
        ours = jnp.asarray(x.numpy()), jnp.asarray(mask.numpy())
        assert masked_max(*ours) == x[mask].max().item()
        assert masked_min(*ours) == x[mask].min().item()
