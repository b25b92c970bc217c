"""Gradients written by hand: a ``torch.autograd.Function`` computes, and differentiates, as in torch."""

from __future__ import annotations

import textwrap
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import rules_of

HEADER = """import torch
import torch.nn.functional as F
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.cuda.amp import custom_bwd, custom_fwd

"""
X = torch.linspace(-1.7, 1.6, 12).reshape(3, 4)
W = torch.linspace(0.3, 2.1, 20).reshape(5, 4)

CASES = {
    "takes leave of ctx": """
class Step(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        del ctx
        return (x > 0).to(x.dtype) * x

    @staticmethod
    def backward(ctx, grad_output):
        del ctx
        return grad_output


def f(x, w):
    return Step.apply(x @ w.T)
""",
    "saved input": """
class Swish(torch.autograd.Function):
    @staticmethod
    def forward(ctx, i):
        ctx.save_for_backward(i)
        return i * torch.sigmoid(i)

    @staticmethod
    def backward(ctx, grad_output):
        i = ctx.saved_tensors[0]
        s = torch.sigmoid(i)
        return grad_output * (s * (1 + i * (1 - s)))

def f(x, w):
    return Swish.apply(x)
""",
    "saved output, hints": """
class Mish(Function):
    @staticmethod
    def forward(ctx, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x.mul(torch.tanh(F.softplus(x)))

    @staticmethod
    def backward(ctx, grad_output: torch.Tensor):
        x = ctx.saved_tensors[0]
        sigmoid = torch.sigmoid(x)
        t = F.softplus(x).tanh()
        return grad_output.mul(t + x * sigmoid * (1 - t * t))

mish = Mish.apply

def f(x, w):
    return mish(x).sum(1)
""",
    "gradient reversal": """
class Reverse(Function):
    @staticmethod
    def forward(ctx, x, alpha=1.0):
        ctx.alpha = alpha
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output.neg() * ctx.alpha, None

def f(x, w):
    return Reverse.apply(x * 2, 0.3) + Reverse.apply(x)
""",
    "sign with a straight-through window": """
class Binary(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return input.sign()

    @staticmethod
    def backward(ctx, grad_output):
        input, = ctx.saved_variables  # their older name
        grad_input = grad_output.clone()
        grad_input[input.ge(1)] = 0
        grad_input[input.le(-1)] = 0
        return grad_input

def f(x, w):
    return Binary().apply(x) * x
""",
    "quantisation with a learned step": """
def grad_scale(x, scale):
    return (x - x * scale).detach() + x * scale

class Quantise(Function):
    @staticmethod
    def forward(ctx, x, step, bits, signed=True):
        low = -2 ** (bits - 1) if signed else 0
        high = 2 ** (bits - 1) - 1 if signed else 2 ** bits - 1
        ctx.save_for_backward(x, step)
        ctx.other = low, high
        q = torch.clamp(torch.round(x / step), low, high)
        return q * step

    @staticmethod
    def backward(ctx, grad_output):
        x, step = ctx.saved_tensors
        low, high = ctx.other
        q = x / step
        below = (q < low).float()
        above = (q > high).float()
        inside = 1.0 - below - above
        grad_step = ((below * low + above * high + inside * (-q + q.round())) * grad_output).sum().unsqueeze(0)
        return inside * grad_output, grad_step, None, None

def f(x, w):
    return Quantise.apply(x, w[0, :1], 2)
""",
    "needs_input_grad": """
class Linear(Function):
    @staticmethod
    def forward(ctx, input, weight, bias=None):
        ctx.save_for_backward(input, weight, bias)
        output = input.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        input, weight, bias = ctx.saved_tensors
        grad_input = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_input = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(input)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_input, grad_weight, grad_bias

def f(x, w):
    return Linear.apply(x, w, w[:, 0]) + Linear.apply(x, w)
""",
    "setup_context": """
class Power(Function):
    @staticmethod
    def forward(x, exponent):
        return x ** exponent

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, exponent = inputs
        ctx.save_for_backward(x, output)
        ctx.exponent = exponent

    @staticmethod
    def backward(ctx, grad):
        x, output = ctx.saved_tensors
        return grad * ctx.exponent * output / x, None

def f(x, w):
    return Power.apply(x, 3)
""",
    "several outputs": """
class Largest(Function):
    @staticmethod
    def forward(ctx, x, dim):
        values, indices = x.max(dim)
        mask = (x > 0).to(x.dtype)
        ctx.dim, ctx.shape = dim, x.shape
        ctx.mark_non_differentiable(indices, mask)
        ctx.save_for_backward(indices)
        return values, indices, mask

    @staticmethod
    def backward(ctx, grad_values, grad_indices, grad_mask):
        indices, = ctx.saved_tensors
        grad = torch.zeros(ctx.shape)
        grad = grad.scatter(ctx.dim, indices.unsqueeze(ctx.dim), grad_values.unsqueeze(ctx.dim))
        return grad + grad_mask, None

def f(x, w):
    values, indices, mask = Largest.apply(x, 1)
    return values.sum() + (mask * x).sum() + indices.sum()
""",
    "a gradient in another shape and dtype, a base class": """
class Base(Function):
    @staticmethod
    @custom_bwd
    def backward(ctx, grad):
        return grad.double(), (grad * ctx.factor).float()

class Scale(Base):
    @staticmethod
    @custom_fwd(cast_inputs=torch.float32)
    def forward(ctx, x, scale):
        ctx.factor = 1.5
        return x * scale

def f(x, w):
    return Scale.apply(x, w[:1, :1])
""",
    "methods of the class": """
class Root(Function):
    @classmethod
    def _slope(cls, x, power):
        return (x * x + 1) ** (power - 1)

    @classmethod
    def forward(cls, ctx, x, power=0.5, scale=2.0):
        ctx.power = power
        y = scale * cls._slope(x, power + 1)
        ctx.save_for_backward(x, y)
        return y

    @classmethod
    def backward(cls, ctx, grad):
        x, y = ctx.saved_tensors
        return grad * 3 * ctx.power * x * cls._slope(x, ctx.power), None, None

class Steeper(Root):
    @classmethod
    def _slope(cls, x, power):
        return (x * x + 2) ** power

def f(x, w):
    return Root.apply(x, 0.25) + Steeper.apply(x[:, :1], 1.5, 3.0) * Root.apply(w[:1, :1])
""",
    "methods of the class, with a setup of its own": """
class Square(Function):
    @classmethod
    def forward(cls, x, w):
        return x * x * w

    @classmethod
    def setup_context(cls, ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @classmethod
    def backward(cls, ctx, grad):
        x, w = ctx.saved_tensors
        return 5 * grad * x * w, (grad * x * x).sum(0, keepdim=True)

def f(x, w):
    return Square.apply(x, w[:1])
""",
    "in a list": """
class Total(Function):
    @staticmethod
    def forward(ctx, x, others):
        ctx.count = len(others)
        return x * others[0].sum()

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.count, None

def f(x, w):
    return Total.apply(x, [w, w])
""",
}


def run(source: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both versions of a file, loaded."""
    result = migrator.convert_source(HEADER + source)
    assert result.complete, result.findings
    theirs: dict[str, Any] = {}
    exec(HEADER + source, theirs)
    ours: dict[str, Any] = {}
    exec(result.code, ours)
    return theirs, ours


@pytest.mark.parametrize("source", CASES.values(), ids=list(CASES))
@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_values_and_gradients(source: str) -> None:
    theirs, ours = run(source)
    inputs = [X.clone().requires_grad_(), W.clone().requires_grad_()]
    out = theirs["f"](*inputs)
    weight = torch.linspace(0.5, 1.5, out.numel()).reshape(out.shape)
    wanted = torch.autograd.grad((out * weight).sum(), inputs, allow_unused=True)

    arrays = [jnp.asarray(t.detach().numpy()) for t in inputs]
    np.testing.assert_allclose(jax.jit(ours["f"])(*arrays), out.detach().numpy(), atol=1e-5)
    value = lambda x, w: (ours["f"](x, w) * weight.numpy()).sum()
    for grad in (jax.grad(value, (0, 1)), jax.jit(jax.grad(value, (0, 1)))):
        for got, want in zip(grad(*arrays), wanted, strict=True):
            want = np.zeros(got.shape) if want is None else want.numpy()
            np.testing.assert_allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("name", ["saved input", "saved output, hints"])
def test_no_traced_value_is_kept(name: str) -> None:
    ours: dict[str, Any] = {}
    exec(migrator.convert_source(HEADER + CASES[name]).code, ours)
    arrays = jnp.asarray(X.numpy()), jnp.asarray(W.numpy())
    with jax.checking_leaks():
        jax.jit(ours["f"])(*arrays)


def test_every_sample_of_a_batch_has_its_own_gradient() -> None:
    _, ours = run(CASES["needs_input_grad"])
    x, w = jnp.asarray(X.numpy()), jnp.asarray(W.numpy())
    of_row = jax.grad(lambda row, w: ours["f"](row[None], w).sum(), 1)
    whole = jax.grad(lambda x, w: ours["f"](x, w).sum(), 1)(x, w)
    np.testing.assert_allclose(jax.vmap(of_row, (0, None))(x, w).sum(0), whole, rtol=1e-5)


@pytest.mark.parametrize(
    ("forward", "more"),
    [
        ("ctx.mark_dirty(x)\nreturn x", ""),
        ("return helper(ctx, x)", ""),
        ("return x + torch.rand_like(x)", ""),
        ("return torch.fft.fft(x)", ""),
        ("return F.dropout(x, 0.5)", ""),
        ("return x", "\n    @staticmethod\n    def jvp(ctx, grad):\n        return grad\n"),
    ],
)
def test_what_is_not_understood_is_a_finding(forward: str, more: str) -> None:
    source = (
        "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        + textwrap.indent(forward, " " * 8)
        + "\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad\n"
    )
    assert "TRC009" in rules_of(source + more)


def test_functions_of_an_instance_are_a_finding() -> None:
    source = """
    class Own(torch.autograd.Function):
        def forward(self, x):
            return x

        def backward(self, grad):
            return grad
    """
    assert "TRC009" in rules_of(source)


def test_so_are_they_where_another_class_of_the_file_stands_between() -> None:
    source = CASES["a gradient in another shape and dtype, a base class"]
    noisy = source.replace("return x * scale", "return x * scale * torch.rand(1)")
    assert "TRC009" not in rules_of(HEADER + source)
    assert "TRC009" in rules_of(HEADER + noisy)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("grad[ctx.x > 1] = 0\n        return grad", "MUT003"),
        ("own = grad\n        own.mul_(2)\n        return own", "MUT003"),
    ],
)
def test_a_gradient_that_is_changed_in_place_is_a_finding(body: str, rule: str) -> None:
    source = (
        "class Own(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.x = x\n        return x.sign()\n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        BODY\n"
    )
    assert rule in rules_of(source.replace("BODY", body))
    assert rules_of(source.replace("BODY", "grad = grad.clone()\n        " + body)) == []


@pytest.mark.parametrize(
    ("lines", "rules"),
    [
        ("ctx.save_for_backward(x)\n        x += 1", ["MUT001"]),
        ("y = x * 2\n        ctx.save_for_backward(y)\n        y += 1", ["MUT001"]),
        ("y = x * 2\n        y += 1\n        ctx.save_for_backward(y)", []),
    ],
)
def test_what_is_saved_and_written_afterwards(lines: str, rules: list[str]) -> None:
    source = f"""
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        {lines}
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * x


def f(x: torch.Tensor):
    return Scale.apply(x * 2)
"""
    assert rules_of(source) == rules


def test_a_module_that_is_handed_a_context_is_no_autograd_function() -> None:
    source = (
        "class Base(torch.nn.Module):\n    pass\n\n\nclass Decoder(Base):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = torch.nn.Linear(3, 3)\n\n    def forward(self, ctx, x):\n        return self.fc(ctx) + x\n"
    )
    assert migrator.convert_source(HEADER + source).complete
