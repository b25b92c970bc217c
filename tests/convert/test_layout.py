"""Lines that conversion made too long are broken at their last bracket; the user's own are not touched."""

from __future__ import annotations

import ast
from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

from migrator.convert.layout import LIMIT, wrapped
from tests.convert.tools import convert, function

LONG = "value_" + "x" * 32


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        pytest.param(
            f"    y = a_function({LONG}, {LONG}, z=3)",
            f"    y = a_function(\n        {LONG}, {LONG}, z=3\n    )",
            id="the arguments fit on a line of their own",
        ),
        pytest.param(
            f"y = f({LONG}, {LONG}, {LONG})",
            f"y = f(\n    {LONG},\n    {LONG},\n    {LONG},\n)",
            id="one a line",
        ),
        pytest.param(
            f"def function(self, {LONG}, {LONG}, *, rngs):",
            f"def function(\n    self, {LONG}, {LONG}, *, rngs\n):",
            id="signature",
        ),
        pytest.param(
            f"y = f({LONG}, {LONG}, {LONG})({LONG})",
            f"y = f(\n    {LONG},\n    {LONG},\n    {LONG},\n)({LONG})",
            id="an earlier bracket where the last one does not help",
        ),
        pytest.param(
            f"y = f(g({LONG}, {LONG}, {LONG}))",
            f"y = f(\n    g(\n        {LONG},\n        {LONG},\n        {LONG},\n    )\n)",
            id="one long argument",
        ),
        pytest.param(
            f"y = f({LONG}, {LONG}) if {LONG} else None",
            f"y = f(\n    {LONG}, {LONG}\n) if {LONG} else None",
            id="text behind the bracket",
        ),
    ],
)
def test_broken(line: str, expected: str) -> None:
    body = "\n    pass" if line.endswith(":") else ""
    head = "if x:\n" if line.startswith(" ") else ""
    assert wrapped(f"{head}{line}{body}\n", "") == f"{head}{expected}{body}\n"


@pytest.mark.parametrize(
    "code",
    [
        pytest.param(f"y = f({LONG})\n", id="short enough"),
        pytest.param(f'y = """\nf({LONG}, {LONG}, {LONG})\n"""\n', id="inside a string"),
        pytest.param(f"y = {LONG} + {LONG} + {LONG}\n", id="no bracket"),
        pytest.param(f"y = f({LONG}, {LONG}, {LONG})  # why\n", id="a comment at the end"),
    ],
)
def test_left_alone(code: str) -> None:
    assert wrapped(code, "") == code


def test_a_line_of_the_source_stays() -> None:
    code = f"y = f({LONG}, {LONG}, {LONG})\n"
    assert wrapped(code, code) == code


def test_meaning_and_limit() -> None:
    code = f'y = f({LONG}, g({LONG}, "a, (b"), [{LONG}, 1], k={LONG})\n'
    made = wrapped(code, "")
    assert ast.dump(ast.parse(made)) == ast.dump(ast.parse(code))
    assert max(map(len, made.splitlines())) <= LIMIT


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("return(x.view(1))", "return(x.reshape(1))"),
        (
            "y = x if(x.size(0) == 1)else(x.view(-1))",
            "y = x if(x.shape[0] == 1)else(x.reshape(-1))",
        ),
        ("assert(x.dim() == 2)", "assert(x.ndim == 2)"),
        ("w = (x.size(0))and(x.size(1))", "w = (x.shape[0])and(x.shape[1])"),
        (
            "z = [a for a in(x.unbind(0))if(a.size(0) > 1)]",
            "z = [a for a in(jnp.unstack(x))if(a.shape[0] > 1)]",
        ),
    ],
)
def test_brackets_stay_where_a_keyword_has_no_space(source: str, expected: str) -> None:
    assert function(source) == expected


CHAIN = """\
def f(x):
    y = (
        torch.distributions.Normal(x, 1.0)
        .log_prob(x)
        .sum(-1)
    )
    z = (
        torch.distributions.Normal(x, 1.0)  # a unit
        .log_prob(x)
        .sum(-1)
    )
    return y, z
"""


def test_a_chain_over_lines_keeps_no_line_break_that_parentheses_held() -> None:
    code = convert(CHAIN).code
    scope: dict[str, Any] = {"torch": torch}
    exec(CHAIN, scope)
    x = torch.linspace(-1, 1, 6).reshape(2, 3)
    want = scope["f"](x)
    exec(code, scope)
    for ours, theirs in zip(scope["f"](x.numpy(), rngs=nnx.Rngs(0)), want, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert "# a unit" in code


def test_strings_in_an_f_string_do_not_end_it() -> None:
    source = "def f(x):\n    a = f\"{torch.__version__} {x.shape!s:>9}\"\n    return a, f'{torch.__version__}'\n"
    code = convert(source).code
    scope: dict[str, Any] = {}
    exec(code, scope)
    number = scope["f"](np.zeros(2))
    assert number == ("2.13.0      (2,)", "2.13.0")
