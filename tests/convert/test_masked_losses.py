"""Losses of what a mask selects, taken over the mask: values, slopes, and nothing selected."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import loaded, rules_of

MODEL = """
class M(nn.Module):
    def forward(self, x, y):
        keep = {mask}
        return F.{loss}(x[{index}], y[{index}]{more})
"""
LOSSES = "mse_loss l1_loss smooth_l1_loss huber_loss binary_cross_entropy_with_logits".split()


def compare(source: str, x: torch.Tensor, y: torch.Tensor) -> None:
    """Value and slopes are torch's, also under jit."""
    theirs, ours, code = loaded(source)
    assert "masked_loss(" in code
    x, y = x.clone().requires_grad_(), y.clone()
    loss = theirs["M"]()(x, y)
    loss.backward()
    port = jax.jit(ours["M"]())
    given = jnp.asarray(x.detach().numpy()), jnp.asarray(y.numpy())
    value, slope = jax.value_and_grad(port)(*given)
    np.testing.assert_allclose(value, loss.detach(), rtol=1e-5)
    np.testing.assert_allclose(slope, x.grad, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("more", ["", ", reduction='sum'"])
@pytest.mark.parametrize(("mask", "index"), [("y > 0.3", "keep"), ("y > 0.3", "~keep")])
def test_values_and_slopes(loss: str, more: str, mask: str, index: str) -> None:
    torch.manual_seed(0)
    source = MODEL.format(loss=loss, more=more, mask=mask, index=index)
    compare(source, torch.randn(4, 5) * 2, torch.rand(4, 5))


@pytest.mark.parametrize("loss", LOSSES)
def test_a_mask_over_the_leading_axes(loss: str) -> None:
    torch.manual_seed(0)
    source = MODEL.format(loss=loss, more="", mask="y[..., 0] > 0.5", index="keep")
    compare(source, torch.randn(4, 5, 3), torch.rand(4, 5, 3))


def test_what_is_left_out_may_be_anything() -> None:
    """Targets that are nan or inf where they are left out touch neither value nor slopes."""
    source = MODEL.format(loss="mse_loss", more="", mask="~torch.isnan(y)", index="keep")
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    y[0, 1] = y[2, 2] = float("nan")
    compare(source, x, y)
    source = MODEL.format(loss="l1_loss", more="", mask="torch.isfinite(y)", index="keep")
    y[1, 1] = float("inf")
    compare(source, x, y)


@pytest.mark.parametrize(("more", "value"), [("", np.nan), (", reduction='sum'", 0.0)])
def test_nothing_selected(more: str, value: float) -> None:
    source = MODEL.format(loss="mse_loss", more=more, mask="y > 9", index="keep")
    theirs, ours, _ = loaded(source)
    x, y = torch.randn(3, 4), torch.zeros(3, 4)
    np.testing.assert_equal(theirs["M"]()(x, y).item(), value)
    made = ours["M"]()(jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
    np.testing.assert_equal(made.item(), value)


@pytest.mark.parametrize(
    "call",
    [
        "F.mse_loss(x[x > 0], y[y > 0])",  # as many of each only by chance
        "F.mse_loss(x[x > 0], y[x > 0], reduction='none')",
        "F.mse_loss(x[x > 0], y)",
        "F.binary_cross_entropy(x[x > 0], y[x > 0])",
        "F.cross_entropy(x[y[:, 0] > 0], y[y[:, 0] > 0], weight=y[0])",
    ],
)
def test_what_is_no_such_loss_is_a_finding(call: str) -> None:
    source = f"class M(nn.Module):\n    def forward(self, x, y):\n        return {call}\n"
    assert "DYN001" in rules_of(source)


@pytest.mark.parametrize("name", ["mean", "sum"])
@pytest.mark.parametrize(
    "call", ["torch.masked_select(x * 2, y > 0.5)", "x.masked_select(y > 0.5)"]
)
@pytest.mark.parametrize("shapes", [((3, 4), (3, 4)), ((3, 4), (4,)), ((3, 1), (3, 4))])
def test_reduced_selections(name: str, call: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """torch.masked_select expands both to one shape."""
    torch.manual_seed(0)
    source = f"class M(nn.Module):\n    def forward(self, x, y):\n        return {call}.{name}()\n"
    theirs, ours, code = loaded(source)
    assert f"selected_{name}(" in code
    x, y = torch.randn(shapes[0], requires_grad=True), torch.rand(shapes[1])
    y.view(-1)[0] = 1.0
    result = theirs["M"]()(x, y)
    result.backward()
    given = jnp.asarray(x.detach().numpy()), jnp.asarray(y.numpy())
    value, slope = jax.value_and_grad(jax.jit(ours["M"]()))(*given)
    np.testing.assert_allclose(value, result.detach(), rtol=1e-5)
    np.testing.assert_allclose(slope, x.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rest", ["", ".mean(0)", ".std()", ".int().sum()"])
def test_selections_that_are_no_mean_are_findings(rest: str) -> None:
    line = f"return torch.masked_select(x, y > 0){rest}"
    assert "DYN005" in rules_of(
        f"class M(nn.Module):\n    def forward(self, x, y):\n        {line}\n"
    )
