"""In-place methods under ``no_grad``: detach_() cuts a gradient off, all others leave the tensor the one that it had."""

from __future__ import annotations

import pytest

from tests.convert.tools import X, compare_gradients, convert, rules_of


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


def test_a_context_of_the_file_that_does_something() -> None:
    source = CONTEXTS.replace("yield", "print()\n    yield") + _source(
        "context = null_context() if x.shape[0] else torch.no_grad()\nwith context:\n    z = y * 2\nreturn z"
    )
    assert rules_of(source)[:1] == ["API001"]
