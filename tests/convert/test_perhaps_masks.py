"""What is called a mask and may, by all that the source says, hold numbers of places: its dtype tells, once there is one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import HEADER, convert, rules_of

REDUCED = {
    "mean": "return x[mask].mean() + (x[mask] * y[mask]).sum()",
    "logarithm": "return torch.log(x[mask] ** 2).mean()",
    "largest and least": "return x[mask].max() + (x[mask] - y[mask]).min()",
    "loss": "return F.mse_loss(x[mask], y[mask])",
    "classes": "a = x[mask]; b = t[mask]; return F.cross_entropy(a, b, reduction='mean')",
    "likelihood": "return F.nll_loss(x[mask], t[mask], ignore_index=1, reduction='sum')",
    "all others": "return x[~mask].mean() + F.l1_loss(x[~mask], y[~mask])",
    "two of them": "return (x[mask & other] ** 2).sum()",
    "written": "x = x * 1; x[mask] = y[mask]; return (x ** 2).sum()",
    "others written": "x = x * 1; x[~mask] = y[~mask]; return (x ** 2).sum()",
}


def _source(lines: str) -> str:
    head = "class M(nn.Module):\n    def forward(self, x, y, t, mask, other):\n"
    return head + "".join(f"        {line.strip()}\n" for line in lines.split(";"))


MASKS = {
    "bool": torch.tensor([True, False, True]),
    "uint8": torch.tensor([1, 0, 1], dtype=torch.uint8),
    "places": torch.tensor([2, 0]),
}


@pytest.mark.parametrize("mask", sorted(MASKS))
@pytest.mark.parametrize("name", sorted(REDUCED))
def test_values_and_gradients(name: str, mask: str) -> None:
    source = _source(REDUCED[name])
    result = convert(source)
    assert result.complete, result.findings
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + source, theirs)
    exec(result.code, ours)
    generator = torch.Generator().manual_seed(0)
    x, y = torch.rand(3, 4, generator=generator) + 0.5, torch.rand(3, 4, generator=generator)
    t, index = torch.tensor([2, 3, 1]), MASKS[mask]
    tensors = [x.requires_grad_(), y.requires_grad_()]
    other = torch.ones_like(index)
    want = theirs["M"]()(*tensors, t, index, other)
    want.backward()
    rest = [jnp.asarray(one.numpy()) for one in (t, index, other)]
    run = jax.jit(jax.value_and_grad(lambda *given: ours["M"]()(*given), argnums=(0, 1)))
    got, slopes = run(*(jnp.asarray(one.detach().numpy()) for one in tensors), *rest)
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-5)
    for tensor, slope in zip(tensors, slopes, strict=True):
        expected = torch.zeros_like(tensor) if tensor.grad is None else tensor.grad
        np.testing.assert_allclose(slope, expected.numpy(), rtol=1e-4, atol=1e-6)


def test_what_is_selected_has_no_shape() -> None:
    for lines in ("return x[~mask]", "return x[mask & other]", "a = x[mask]; return a.cumsum(0)"):
        assert rules_of(_source(lines))[:1] == ["DYN001"]
