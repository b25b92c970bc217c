"""In-place methods under ``no_grad``: detach_() cuts a gradient off, all others leave the tensor the one that it had."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, both, compare_gradients, convert, rules_of


def _source(lines: str) -> str:
    head = "def f(x: torch.Tensor):\n    y = x * x\n"
    return head + "".join(f"    {line}\n" for line in lines.split("\n"))


@pytest.mark.parametrize(
    "lines",
    [
        "with torch.no_grad():\n    y.detach_()\nreturn torch.exp(y) + x",
        "with torch.no_grad():\n    z = y.detach_()\nreturn torch.exp(y) + z + x",
        "with torch.no_grad():\n    z = torch.exp(y)\n    z.detach_()\nreturn torch.exp(y + z)",
        "with torch.set_grad_enabled(x.shape[0] > 5):\n    y.detach_()\nreturn torch.exp(y) + x",
        "y.data.detach_()\nreturn torch.exp(y) + x",
        "with torch.no_grad():\n    y.mul_(2)\nreturn torch.exp(y)",
        "with torch.no_grad():\n    z = y * 3\n    z = z.mul_(2)\nreturn torch.exp(y) + z",
    ],
)
def test_gradients(lines: str) -> None:
    source = _source(lines)
    assert convert(source).complete
    compare_gradients(source, X)


@pytest.mark.parametrize("lines", ["z = y.mul_(2)", "y = y.clamp_(min=0)", "z = F.relu_(y)"])
def test_what_a_method_gives_is_the_tensor_itself(lines: str) -> None:
    source = _source(f"with torch.no_grad():\n    {lines}\nreturn torch.exp(y)")
    assert rules_of(source) == ["MUT002"]


@pytest.mark.parametrize(
    "lines",
    [
        "z = y.float()",
        "z = y.to(x.device).contiguous()",
        "z = nn.Identity()(y)",
        "z = F.dropout(y, 0.5, False)",
        "z = default(y, 1)",
        "z = default(None, y)",
        "z, w = y.float(), y * 2",
        "z = y.flatten(0, 0) if x.shape[0] else y * 2",
        "nn.ReLU(inplace=True)(y); z = y",
    ],
)
def test_what_may_give_the_tensor_itself(lines: str) -> None:
    given = "def default(v, d):\n    return v if v is not None else d\n\n"
    source = given + _source(f"with torch.no_grad():\n    {lines}\nreturn torch.exp(z)")
    assert rules_of(source) == ["MUT002"]


@pytest.mark.parametrize(
    "lines",
    [
        "z = (y * 2).float()",
        "z = doubled(y)",
        "w = y.float()\n    z = w * 2",
        "z = y * 2\n    z = z.float()",
    ],
)
def test_what_is_computed_there_has_no_gradient(lines: str) -> None:
    given = "def doubled(v):\n    v = v * 2\n    return v\n\n"
    source = given + _source(f"with torch.no_grad():\n    {lines}\nreturn torch.exp(z) + y")
    assert convert(source).complete
    compare_gradients(source, X)


def test_what_a_function_under_no_grad_gives_back() -> None:
    head = "@torch.no_grad()\ndef g(t, u):\n    return (t if t.shape[0] > 1 else u), t * 2\n\n"
    compare_gradients(head + _source("a, b = g(y, x)\nreturn torch.exp(a) + b"), X)
    assert rules_of(
        "class M(nn.Module):\n    @torch.no_grad()\n    def g(self, t):\n        return t.float()\n\n"
        "    def forward(self, x: torch.Tensor):\n        return self.g(x * 2)"
    ) == ["MUT002"]


def test_a_function_that_fills_what_it_is_given() -> None:
    source = "def uniform_(tensor, a, b):\n    with torch.no_grad():\n        return tensor.uniform_(a, b)\n"
    assert convert(source).complete


def test_the_parameter_of_a_layer_is_one_under_no_grad() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            w = self.fc.weight
            n = w.norm(dim=1, keepdim=True)
        return F.linear(x, w / n)
"""
    model, port, _ = both(source)
    model(X).square().sum().backward()
    array = jnp.asarray(X.numpy())
    slope = nnx.grad(lambda m: (m(array) ** 2).sum())(port)
    found = migrator.to_state_dict(slope, like=port)["fc.weight"]
    assert model.fc.weight.grad is not None
    np.testing.assert_allclose(found, model.fc.weight.grad.numpy(), rtol=1e-4, atol=1e-6)


CONTEXTS = """
from contextlib import contextmanager

@contextmanager
def null_context():
    '''Nothing.'''
    yield

"""


@pytest.mark.parametrize(
    "context",
    [
        "null_context() if {test} else torch.no_grad()",
        "torch.no_grad if not {test} else null_context",
    ],
)
@pytest.mark.parametrize("test", ["x.shape[0] > 5", "x.shape[0] < 5"])
def test_a_context_of_the_file_that_does_nothing(context: str, test: str) -> None:
    entered = "context" if "()" in context else "context()"
    lines = f"context = {context.format(test=f'({test})')}\nwith {entered}:\n    z = y * 2\nreturn torch.exp(y) + z"
    source = CONTEXTS + _source(lines)
    assert convert(source).complete
    compare_gradients(source, X)


@pytest.mark.parametrize(
    "body", ["print()\n    yield", "with open('f'):\n        yield", "yield 1"]
)
def test_a_context_of_the_file_that_does_something(body: str) -> None:
    source = CONTEXTS.replace("yield", body) + _source(
        "context = null_context() if x.shape[0] else torch.no_grad()\nwith context:\n    z = y * 2\nreturn z"
    )
    assert rules_of(source)[:1] == ["API001"]
