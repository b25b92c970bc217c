"""Cross entropy of logits of two axes and targets of one, which are class numbers then, is written on the spot."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from migrator.convert.helpers import Helpers
from rules.definitions import module_file
from tests.convert.tools import function, loaded

LOSS = "def f(x: torch.Tensor, y: torch.Tensor):\n    return F.cross_entropy({x}, {y}{more})\n"


def test_it_is_written_on_the_spot_where_the_axes_are_known() -> None:
    got = function("return F.cross_entropy(x.view(-1, n), y.view(-1), ignore_index=-1)")
    assert got.splitlines() == [
        "target = y.reshape(-1)",
        "log_p = jax.nn.log_softmax(x.reshape(-1, n))",
        "nll = -jnp.take_along_axis(log_p, target[:, None], axis=1)",
        "return jnp.mean(nll, where=target[:, None] != -1)",
    ]


def test_names_of_the_file_are_not_taken() -> None:
    got = function("log_p = x + 1", "return F.cross_entropy(log_p.view(-1, n), y.view(-1)) + log_p")
    assert "log_p2 = jax.nn.log_softmax(log_p.reshape(-1, n))" in got


def test_statements_take_the_same_names_again_but_not_within_one() -> None:
    loss = "F.cross_entropy(x.view(-1, n), y.view(-1))"
    got = function(f"z = {loss} + x", f"return z + {loss} + {loss}").splitlines()
    made = [line.partition(" = ")[0] for line in got if " = " in line and "where=" not in line]
    assert made == [*("target", "log_p", "nll") * 2, "target2", "log_p2", "nll2"]


def test_it_stays_one_expression_where_no_statement_may_stand_before() -> None:
    got = function("return F.cross_entropy(x.view(-1, n), y.view(-1)) if n > 1 else y")
    assert "log_p" not in got


def test_what_gets_its_value_within_the_statement_is_not_read_before_it() -> None:
    got = function("return (t := x * 2).sum() + F.cross_entropy(t.view(-1, n), y.view(-1))")
    assert got.splitlines()[0] == "target = y.reshape(-1)"
    assert "log_p" not in got


@pytest.mark.parametrize(
    "term",
    [
        "F.threshold(y * 3, 0.1, 0.2)",
        "F.cross_entropy(x.view(-1, 5), y.flatten().long().view(-1))",
        "(y * 4).flatten(0, 1).sum()",
    ],
)
def test_a_walrus_before_what_would_be_given_a_name(term: str) -> None:
    source = (
        f"def f(x: torch.Tensor, y: torch.Tensor):\n    return (y := (y + 1) % 5).sum() + {term}\n"
    )
    theirs, ours, _ = loaded(source)
    x, y = torch.randn(4, 5, generator=torch.Generator().manual_seed(0)), torch.ones(2, 2)
    want = theirs["f"](x, y)
    np.testing.assert_allclose(
        ours["f"](jnp.asarray(x.numpy()), jnp.asarray(y.numpy())), want.numpy(), rtol=1e-5
    )


def test_a_helper_is_not_hidden_by_a_local_name() -> None:
    helpers = Helpers(frozenset())
    helpers.passing.add("dropout")
    assert helpers.need(module_file("rules.compat.dropout"), "dropout") == "dropout_"


@pytest.mark.parametrize(
    "line",
    [
        "return F.cross_entropy(x, y)",  # the axes are not known
        "return F.cross_entropy(x.view(-1, n), y.view(-1, n))",  # probabilities
        "return F.cross_entropy(x.view(-1, n), y.view(-1), reduction='none')",
        "return F.cross_entropy(x.view(-1, n), y.view(-1), label_smoothing=0.1)",
        "return F.cross_entropy(x.view(-1, n), y.view(-1), weight=x[0])",
    ],
)
def test_what_may_be_something_else_is_the_helpers(line: str) -> None:
    assert "cross_entropy(" in function(line)


@pytest.mark.parametrize(
    ("ignored", "targets"),
    [
        (None, [0, 1, 2, 4]),
        (None, [0, -100, 2, 4]),  # lies outside of the classes
        (-1, [0, -1, -1, 4]),
        (2, [2, 2, 0, 1]),
        (255, [255, 1, 1, 1]),
        (1, [1, 1, 1, 1]),  # nothing is left
    ],
)
def test_its_value_and_gradient(ignored: int | None, targets: list[int]) -> None:
    more = "" if ignored is None else f", ignore_index={ignored}"
    theirs, ours, code = loaded(LOSS.format(x="x.view(-1, 5)", y="y.view(-1)", more=more))
    assert "log_softmax" in code
    x = (torch.randn(4, 5, generator=torch.Generator().manual_seed(0)) * 9 + 1e4).requires_grad_()
    y = torch.tensor(targets)
    want = theirs["f"](x, y)
    want.backward()
    value, gradient = jax.value_and_grad(ours["f"])(
        jnp.asarray(x.detach().numpy()), jnp.asarray(y.numpy())
    )
    assert x.grad is not None
    np.testing.assert_allclose(value, want.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(gradient, x.grad.numpy(), atol=1e-6)
