"""Classes and functions that make modules, in one display: ``[make() for make in (Block, build_block)]``."""

from __future__ import annotations

import jax.numpy as jnp
import pytest
from flax import nnx

from tests.convert.tools import loaded

HEAD = """
class A(nn.Module):
    def __init__(self, d=4):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        return self.fc(x)


class B(A):
    pass


def small(d=4):
    return A(d)


KINDS = [A, small]
NAMED = {"a": A, "s": small}
"""
BODIES = {
    "a comprehension": "return [m() for m in (A, small)]",
    "a function first": "return [m(4) for m in [small, B]]",
    "a dict": "return [m() for n, m in {'a': A, 's': small}.items()]",
    "a named dict": "return [NAMED[n](4) for n in ('a', 's')] + [m() for m in NAMED.values()]",
    "a loop": "out = []\n    for m in (A, small):\n        out.append(m())\n    return out",
    "zipped": "out = []\n    for m, n in zip([A, small], [4, 4]):\n        out.append(m(n))\n    return out",
    "a named list": "return [m(4) for m in KINDS]",
    "an item": "return [KINDS[0](4), KINDS[1](4)]",
    "a choice": "f = small if True else A\n    return [f(4), A()]",
}


@pytest.mark.parametrize("name", BODIES)
def test_functions_hand_their_generator_on(name: str) -> None:
    theirs, ours, _ = loaded(f"{HEAD}\n\ndef build():\n    {BODIES[name]}\n")
    made = ours["build"](rngs=nnx.Rngs(0))
    assert len(made) == len(theirs["build"]())
    assert all(one(jnp.zeros((1, 4))).shape == (1, 4) for one in made)


def test_a_default() -> None:
    _, ours, _ = loaded(
        f"{HEAD}\n\ndef build(kinds=(A, small)):\n    return [m(4) for m in kinds]\n"
    )
    assert len(ours["build"](rngs=nnx.Rngs(0))) == 2
    assert len(ours["build"]((ours["B"],), rngs=nnx.Rngs(0))) == 1


@pytest.mark.parametrize(
    "chosen",
    [
        "(small if deep else nn.Identity)(4)",
        "(small if deep else B)(4)",
        "(nn.Identity if not deep else B if deep is None else small)(4)",
        "nn.Linear(4, (max if deep else min)(4, 4))",
    ],
)
def test_a_choice_that_is_called(chosen: str) -> None:
    _, ours, _ = loaded(
        f"{HEAD}\n\nclass M(nn.Module):\n    def __init__(self, deep=True):\n        super().__init__()\n"
        f"        self.part = {chosen}\n\n    def forward(self, x):\n        return self.part(x)\n"
    )
    for deep in (True, False):
        assert ours["M"](deep, rngs=nnx.Rngs(0))(jnp.zeros((1, 4))).shape == (1, 4)
