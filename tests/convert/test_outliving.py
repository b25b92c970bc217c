"""A traced value that is kept where the next call finds it is a tracer there: a finding, unless it is computed anew."""

from __future__ import annotations

import textwrap

import jax.numpy as jnp
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, convert, rules_of

TABLE = "torch.arange(n).float().cos()"
CLASSES = """
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple


@dataclass
class Cache:
    cos: torch.Tensor


class Pair(NamedTuple):
    cos: torch.Tensor
    sin: torch.Tensor


class Store:
    def __init__(self):
        self.made = {}

    def get(self, n):
        if n not in self.made:
            self.made[n] = torch.arange(n).float().cos()
        return self.made[n]


CACHE = {}
LAST = None
"""
NET = """

class Net(nn.Module):
    shared = {}

    def __init__(self):
        super().__init__()
        self.cache = {}
        self.seen = []
        self.last = None
        BUILT

    def forward(self, x):
        n = x.shape[-1]
"""


def net(*forward: str, built: str = "self.n = 1", before: str = "") -> str:
    body = textwrap.indent("\n".join(forward), " " * 8)
    return CLASSES + before + NET.replace("BUILT", built) + body + "\n"


@pytest.mark.parametrize(
    "lines",
    [
        (f"self.cache[n] = Cache({TABLE})", "return x * self.cache[n].cos"),
        (f"self.cache[n] = Pair({TABLE}, {TABLE})", "return x * self.cache[n].cos"),
        (f"self.cache[n] = ({TABLE}, n)", "return x * self.cache[n][0]"),
        (f"self.cache.update({{n: {TABLE}}})", "return x * self.cache[n]"),
        (f"return x * self.cache.setdefault(n, {TABLE})",),
        (f"self.last = Cache({TABLE})", "return x * self.last.cos"),
        (f"self.seen.append(Cache({TABLE}))", "return x * self.seen[0].cos"),
        (f"CACHE[n] = {TABLE}", "return x * CACHE[n]"),
        (f"Net.shared[n] = {TABLE}", "return x * Net.shared[n]"),
    ],
)
def test_what_is_kept_for_the_next_call_is_found(lines: tuple[str, ...]) -> None:
    assert rules_of(net(*lines)) == ["TRC003"]


@pytest.mark.parametrize(
    "made",
    [
        f"def table(n):\n    global LAST\n    if LAST is None:\n        LAST = {TABLE}\n    return LAST",
        f"def table(n, memo={{}}):\n    if n not in memo:\n        memo[n] = {TABLE}\n    return memo[n]",
        f"def table(n):\n    table.last = {TABLE}\n    return table.last",
        "@lru_cache\ndef table(n):\n    return torch.randn(n)",
    ],
)
def test_a_function_that_keeps_what_it_makes_is_found(made: str) -> None:
    source = net("return x * table(n)", before=f"\n\n{made}\n")
    assert rules_of(source) == ["TRC003"]


def test_what_an_object_of_the_constructor_keeps_is_found() -> None:
    assert rules_of(net("return x * self.store.get(n)", built="self.store = Store()")) == ["TRC003"]
    assert rules_of(net("store = Store()", "return x * store.get(n)")) == []


def test_a_kept_property_is_found() -> None:
    source = net("return x * self.table")
    source += "\n    @cached_property\n    def table(self):\n        return torch.ones(1)\n"
    assert rules_of(source) == ["TRC003"]


@pytest.mark.parametrize(
    "lines",
    [
        ("cache = {}", f"cache[n] = {TABLE}", "return x * cache[n]"),
        ("self.cache[n] = n + 1", "return x * self.cache[n]"),
        ("last = Cache(x)", "last.cos = x + 1", "return last.cos"),
        ("CACHE = {}", f"CACHE[n] = {TABLE}", "return x * CACHE[n]"),
    ],
)
def test_what_a_call_has_for_itself_is_no_finding(lines: tuple[str, ...]) -> None:
    assert rules_of(net(*lines)) == []


@pytest.mark.parametrize("write", ["t.add_(1)", "t += 1", "t[0] = 1", "torch.add(t, 1, out=t)"])
def test_what_lru_cache_keeps_and_a_caller_writes_to_is_found(write: str) -> None:
    """The next call gets what this one has written."""
    made = f"@lru_cache\ndef table(n: int):\n    return {TABLE}\n"
    source = net("t = table(n)", "x = x * t", write, "return x", before=f"\n\n{made}")
    assert "TRC003" in rules_of(source)


def test_what_lru_cache_keeps_is_computed_anew() -> None:
    made = f"@lru_cache(maxsize=None)\ndef table(n: int):\n    return {TABLE}\n"
    names = "@lru_cache\ndef names(n: int):\n    return [str(i) for i in range(n)]\n"
    source = net("return x * table(n)", before=f"\n\n{made}\n\n{names}")
    result = convert(source)
    assert result.complete
    assert result.code.count("@lru_cache") == 1  # of the texts, which may be kept
    converted: dict[str, object] = {}
    exec(result.code, converted)
    torch_side: dict[str, object] = {}
    exec(HEADER + source, torch_side)
    module = converted["Net"](rngs=nnx.Rngs(0))  # type: ignore[operator]
    call = nnx.jit(lambda model, x: model(x))
    for rows in (2, 3):
        x = torch.randn(rows, 4)
        expected = torch_side["Net"]()(x)  # type: ignore[operator]
        assert jnp.allclose(call(module, jnp.asarray(x.numpy())), jnp.asarray(expected.numpy()))
