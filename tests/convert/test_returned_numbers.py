"""Losses that are returned with the numbers they are made of: ``return loss, losses`` with ``losses.append(l.item())``."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import HEADER, loaded, rules_of

SOURCE = """
def n(x: torch.Tensor):
    return (x > 0).sum() if len(x) > 1 else x.sum()


def f(x: torch.Tensor, y: torch.Tensor):
    loss = 0
    BEFORE
    for one, other in zip(x, y):
        part = torch.mean((one - other) ** 2)
        loss += part
        LINE
    return RETURNED


def total(x: torch.Tensor, y: torch.Tensor):
    CALL
"""
WAYS = {
    "list": ("parts = []", "parts.append(part.item())", "loss, parts"),
    "hinted list": ("parts: list[float] = []", "parts.append(part.item())", "loss, parts"),
    "several": (
        "a = []; b = []",
        "a.append(part.item()); b.append(float(part.float()))",
        "loss, a, b",
    ),
    "dict": ("log = {}", "log['part'] = part.item()", "loss, log"),
    "dict with more": ("log = dict(n=3)", "pass", "loss, {'last': part.item(), 'n': 3}"),
    "dict by a call": ("log = dict(n=2.0, first=x.max().item())", "pass", "loss, log"),
    "updated dict": (
        "log = dict(n=2.0)",
        "log.update(part=part.item()); log.update({'more': float(part.float())})",
        "loss, log",
    ),
    "returned dict": ("pass", "pass", "loss, dict(part=part.item(), n=2.0)"),
    "choice": ("log = {}", "log['part'] = part.item() if len(x) > 1 else 0.0", "loss, log"),
    "name": ("pass", "last = part.item()", "loss, last"),
    "in place": ("pass", "pass", "loss, [part.item(), (float(part.float()),)]"),
    "float of a number": ("log = {}", "log['part'] = float(part.item())", "loss, log"),
    "float of a count": ("pass", "pass", "loss, {'n': float((x > 0).sum().item())}"),
    "counts": ("pass", "pass", "loss, (x > 0).sum().item()"),
    "floats of any dtype": (
        "pass",
        "pass",
        "loss, {'last': float(part.detach()), 'n': float(n(x))}",
    ),
    "floats of counts": ("pass", "pass", "loss, float((x > 0).sum()), float(x.sum() > 1)"),
}
CALL = "return f(x, y)"


def source(way: tuple[str, str, str], call: str = CALL) -> str:
    made = SOURCE
    for word, text in zip(("BEFORE", "LINE", "RETURNED"), way, strict=True):
        made = made.replace(word, text)
    return made.replace("CALL", call)


X, Y = torch.linspace(-1, 1, 6).reshape(2, 3), torch.linspace(2, 0, 6).reshape(2, 3) ** 2


def numbers(given: object) -> list[object]:
    return jax.tree.leaves(given)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_python_gets_numbers_and_jax_arrays_without_gradient(way: tuple[str, str, str]) -> None:
    theirs, ours, _ = loaded(source(way))
    want, *others = theirs["f"](X, Y)
    x, y = jnp.asarray(X.numpy()), jnp.asarray(Y.numpy())
    for run in (ours["f"], ours["total"]):
        got, *rest = run(x, y)
        np.testing.assert_allclose(got, want, rtol=1e-6)
        assert [type(one) for one in numbers(rest)] == [type(one) for one in numbers(others)]
        np.testing.assert_allclose(numbers(rest), numbers(others), rtol=1e-6)
    got, *rest = jax.jit(ours["f"])(x, y)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    np.testing.assert_allclose(numbers(rest), numbers(others), rtol=1e-6)
    leaf = X.clone().requires_grad_()
    theirs["f"](leaf, Y)[0].backward()

    def whole(x: jax.Array) -> jax.Array:
        loss, *rest = ours["f"](x, y)
        return loss + sum(numbers(rest))  # type: ignore[arg-type, return-value]

    np.testing.assert_allclose(jax.grad(whole)(x), leaf.grad, rtol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        "loss, parts = f(x, y)\n    return loss * 2",
        "loss, parts = f(x, y)\n    return loss, parts",
        "f(x, y)\n    return x",
    ],
)
def test_callers_that_do_not_ask(call: str) -> None:
    theirs, ours, _ = loaded(source(WAYS["list"], call))
    want = theirs["total"](X, Y)
    got = jax.jit(ours["total"])(jnp.asarray(X.numpy()), jnp.asarray(Y.numpy()))
    for one, other in zip(numbers(got), numbers(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    ("way", "call"),
    [
        (("parts = []", "parts.append(part.item())", "loss, sum(parts)"), CALL),
        (("parts = []", "parts.append(part.item())", "loss, parts[0]"), CALL),
        (("parts = []", "parts.append(part.item())", "(loss if parts[0] > 1 else x), parts"), CALL),
        (("parts = more = []", "parts.append(part.item())", "loss, parts, len(more)"), CALL),
        (("parts = []", "parts.append(part.item()); more = parts", "loss, parts"), CALL),
        (("last = 0.0", "last += part.item()", "loss, last"), CALL),
        (("pass", "last = part.item()", "loss * last if last > 1 else loss, last"), CALL),
        (("pass", "pass", "loss, -part.item()"), CALL),
        (("pass", "pass", "loss, [n.item() for n in x[0]]"), CALL),
        (("log = {}; more = {}", "more['a'] = part.item(); log.update(more)", "loss, log"), CALL),
        (("log = {}", "log.update(part=part.item())", "loss * log['part'], log"), CALL),
        (("log = {}", "log['part'] = 1.0 if part.item() > 1 else 0.0", "loss, log"), CALL),
        (WAYS["list"], "loss, parts = f(x, y)\n    return loss if parts[0] > 1 else x"),
        (WAYS["list"], "out = f(x, y)\n    return out[0] if out[1][0] > 1 else x"),
        (WAYS["list"], "loss, parts = f(x, y)\n    print(parts)\n    return loss"),
        (WAYS["list"], "many = [f]\n    return many[0](x, y)"),
        (WAYS["name"], "return torch.zeros(int(f(x, y)[1]))"),
    ],
)
def test_what_asks_for_the_number_is_a_finding(way: tuple[str, str, str], call: str) -> None:
    assert "DYN004" in rules_of(source(way, call))


def test_a_decorated_function_is_a_finding() -> None:
    made = source(WAYS["list"]).replace("def f(", "@traced\ndef f(")
    made = "def traced(g):\n    return lambda *a: g(*a) if g(*a)[1][0] > 1 else a\n\n" + made
    assert "DYN004" in rules_of(made)


def test_analyze_says_what_convert_does() -> None:
    found = migrator.analyze_source(HEADER + source(WAYS["list"]))
    (only,) = [one for one in found if one.rule == "DYN004"]
    assert not only.blocks
    assert "convert returns the number" in only.message
