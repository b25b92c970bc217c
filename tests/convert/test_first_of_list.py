"""``val = res[0]; val += res[i]``: in torch the first of the list is the sum then, and the list of the port shows it."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import loaded, rules_of

SOURCE = """
def f(x: torch.Tensor, y: torch.Tensor):
    res = MADE
    BEFORE
    val = res[0]
    LINES
    return RETURNED
"""
LOOP = "for i in range(1, 3):\n        val += res[i]"
WAYS = {
    "the sum": (LOOP, "val"),
    "the list too": (LOOP, "(val, res)"),
    "all of them": ("for i in range(3):\n        val += res[i]", "(res, val)"),
    "product": ("val *= y\n    val -= res[1]", "(val, res[0], res[2])"),
}
MADE = "[x[i] * (i + 1) for i in range(3)]"


def source(lines: str, returned: str, made: str = MADE, before: str = "pass") -> str:
    text = SOURCE.replace("MADE", made).replace("BEFORE", before)
    return text.replace("LINES", lines).replace("RETURNED", returned)


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_the_list_shows_the_sum(way: tuple[str, str]) -> None:
    theirs, ours, _ = loaded(source(*way))
    x, y = torch.linspace(-1, 1, 6).reshape(3, 2), torch.tensor([2.0, 3.0])
    leaf = x.clone().requires_grad_()
    want = theirs["f"](leaf, y)
    got = jax.jit(ours["f"])(jnp.asarray(x.numpy()), jnp.asarray(y.numpy()))
    pairs = list(zip(jax.tree.leaves(got), _flat(want), strict=True))
    for one, other in pairs:
        np.testing.assert_allclose(one, other.detach(), rtol=1e-6)
    sum(one.sum() for one in _flat(want)).backward()  # type: ignore[union-attr]

    def total(x: jax.Array) -> jax.Array:
        return sum(one.sum() for one in jax.tree.leaves(ours["f"](x, jnp.asarray(y.numpy()))))  # type: ignore[return-value]

    np.testing.assert_allclose(jax.grad(total)(jnp.asarray(x.numpy())), leaf.grad, rtol=1e-6)


def _flat(given: object) -> list[torch.Tensor]:
    if isinstance(given, (tuple, list)):
        return [one for part in given for one in _flat(part)]
    assert isinstance(given, torch.Tensor)
    return [given]


@pytest.mark.parametrize(
    ("lines", "returned", "made", "before"),
    [
        (LOOP, "(val, first)", MADE, "first = res[0]"),
        (LOOP, "(val, res)", "[x * 2] * 3", "pass"),
        (LOOP, "(val, res, x)", "[x[i] for i in range(3)]", "pass"),
        (LOOP + "\n    res.reverse()", "(val, res)", MADE, "pass"),
        (LOOP + "\n    res[0] = y\n    val += y", "(val, res)", MADE, "pass"),
        (LOOP + "\n    other = res\n    val += y", "(val, other)", MADE, "pass"),
        (LOOP + "\n    z = res[1].view(-1)\n    val += y", "(val, z, res)", MADE, "pass"),
        ("for val in res:\n        val += y", "(val, res)", MADE, "pass"),
        (LOOP, "(val, kept[0])", MADE, "kept = tuple(res)"),
    ],
)
def test_what_others_see_is_a_finding(lines: str, returned: str, made: str, before: str) -> None:
    found = rules_of(source(lines, returned, made, before))
    assert {"MUT001", "MUT002", "MUT003"} & set(found)
