"""``torch.tensor(x)`` of tensors copies their values: no gradient flows through it, as through ``torch.normal``."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import compare_gradients, convert, loaded

X = torch.linspace(0.5, 2.0, 6).reshape(2, 3)


@pytest.mark.parametrize(
    "value",
    [
        "torch.tensor(x * y)",
        "torch.tensor([x.sum(), y.mean()]).sum()",
        "torch.tensor([[row.sum() for row in x], [2.0, 3.0]]).sum()",
        "torch.as_tensor(x * y)",
        "torch.as_tensor([x.sum(), 2.0]).sum()",
        "torch.asarray([x.sum(), y.sum()]).sum()",
        "torch.Tensor([x.sum(), y.sum()]).sum()",
        "x.new_tensor(y * x)",
        "torch.tensor(x.detach())",
        "torch.tensor(x > 1).float()",
        "torch.tensor(n, dtype=torch.float32) * x",
    ],
)
@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_the_gradient_is_that_of_torch(value: str) -> None:
    source = "def f(x: torch.Tensor, y: torch.Tensor, n: int = 3):\n"
    compare_gradients(f"{source}    return x * y + {value}\n", X, X + 1)


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_what_is_not_known_may_be_a_tensor() -> None:
    source = """
class M(nn.Module):
    def __init__(self, fn, scale):
        super().__init__()
        self.fn = fn
        self.scale = torch.tensor(scale)

    def forward(self, x):
        loss = self.fn(x)
        return x.sum() + torch.tensor(0.5 * loss) + torch.tensor([1.0, 2.0]).sum()
"""
    theirs, ours, code = loaded(source)
    assert (
        code.count("lax.stop_gradient(") == 1
    )  # not of the numbers, nor while the module is built
    port = ours["M"](lambda a: (a * a).sum(), 2.0, rngs=nnx.Rngs(0))
    model = theirs["M"](lambda a: (a * a).sum(), 2.0)
    x = X.clone().requires_grad_()
    model(x).backward()
    got = jax.grad(lambda a: port(a))(jnp.asarray(X.numpy()))
    np.testing.assert_allclose(got, x.grad)


@pytest.mark.parametrize("made", ["as_tensor", "asarray", "Tensor", "FloatTensor"])
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.filterwarnings("ignore:torch.asarray. unspecified")
def test_of_what_is_not_known_it_shows_when_it_runs(made: str) -> None:
    """The array itself keeps its gradient; a list of arrays has lost it."""
    source = f"def g(x):\n    return torch.{made}(x)\n"
    theirs, ours, _ = loaded(source)
    for given in (lambda x: x, lambda x: [x.sum(), 2.0]):
        x = X.clone().requires_grad_()
        (theirs["g"](given(x)).sum() + x.sum()).backward()
        got = jax.grad(lambda a, given=given: ours["g"](given(a)).sum() + a.sum())(
            jnp.asarray(X.numpy())
        )
        np.testing.assert_allclose(got, x.grad)


@pytest.mark.filterwarnings("ignore:To copy construct")
@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_a_function_that_makes_a_layer_as_well() -> None:
    source = "def f(x: torch.Tensor):\n    loss = nn.L1Loss()\n    return x.sum() + torch.tensor(loss(x, 2 * x))\n"
    theirs, ours, _ = loaded(source)
    x = X.clone().requires_grad_()
    theirs["f"](x).backward()
    got = jax.grad(lambda a: ours["f"](a, rngs=nnx.Rngs(0)))(jnp.asarray(X.numpy()))
    np.testing.assert_allclose(got, x.grad)


@pytest.mark.parametrize(
    "line",
    [
        "a = torch.tensor(x.shape)",
        "a = torch.tensor([n, 2.0])",
        "a = torch.tensor(x > n)",
        "a = torch.tensor(x).long()",
        "a = torch.tensor([])",
    ],
)
def test_what_has_no_gradient_is_left_as_it_is(line: str) -> None:
    code = convert(f"def f(x: torch.Tensor, n: int):\n    {line}\n    return a\n").code
    assert "stop_gradient" not in code


@pytest.mark.parametrize("given", ["x, x", "x, 0.5", "0.5, x"])
def test_numbers_drawn_about_a_tensor_have_no_gradient(given: str) -> None:
    """``torch.normal(mean, std)`` is no reparametrised draw: ``mean + std * torch.randn_like(std)`` is."""
    source = f"class M(nn.Module):\n    def forward(self, x):\n        return x * 3 + torch.normal({given})\n"
    theirs, ours, _ = loaded(source)
    x = X.clone().requires_grad_()
    theirs["M"]()(x).sum().backward()
    port = ours["M"](rngs=nnx.Rngs(0))
    got = nnx.grad(lambda a, net: net(a).sum())(jnp.asarray(X.numpy()), port)
    np.testing.assert_allclose(got, x.grad)
