"""Sizes and axes given as one number or as several, which is only known when the port runs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
import torch

from rules.compat.shape import expand_to
from tests.convert.tools import both, check, rules_of


def _kept(line: str, head: str = "self, n") -> str:
    return f"""
class M(nn.Module):
    def __init__({head}):
        super().__init__()
        self.n = n
        self.w = nn.Parameter(torch.rand(1, 4))
        self.one = nn.Parameter(torch.rand(1))

    def forward(self, x):
        return {line}
"""


@pytest.mark.parametrize(
    ("line", "n"),
    [
        ("x * self.one.expand(self.n)", 4),
        ("x * self.one.expand(self.n)", (4,)),
        ("x * self.one.expand(self.n)", [3, 4]),
        ("x * self.one.expand(self.n)", np.int64(4)),
        ("x + self.w.expand(self.n)", (3, -1)),
        ("x + self.w.expand(self.n)", (2, 3, -1)),
        ("x + self.w[0].broadcast_to(self.n)", 4),
        ("x + self.w[0].expand(self.n)", -1),
        ("x.flip(self.n) + self.one", 1),
        ("x.flip(self.n) + self.one", -2),
        ("x.flip(self.n) + self.one", (0, 1)),
        ("x.flip(self.n) + self.one", [0]),
        ("x.flip(self.n) + self.one", ()),
        ("torch.flip(x, self.n) + self.one", (0, 1)),
        ("torch.flip(x, dims=self.n).cumsum(1).flip(self.n) + self.one", [1]),
        ("x.flip(dims=self.n) + self.one", (1,)),
    ],
)
def test_one_or_several(line: str, n: object) -> None:
    check(_kept(line), n)


def test_what_is_known_is_written_out() -> None:
    assert "jnp.flip(x, self.n)" in check(_kept("x.flip(self.n)", "self, n: int"), 1)
    assert "jnp.flip(x, (self.n,))" in check(_kept("x.flip([self.n])"), 1)
    assert "broadcast_to(self.one[...], (self.n,))" in check(
        _kept("x * self.one.expand(self.n)", "self, n: int"), 4
    )


def test_what_torch_refuses_is_refused() -> None:
    _, port, _ = both(_kept("x * self.one.expand(self.n)"), 4)
    port.n = (-1, 4)
    with pytest.raises(IndexError):
        port(np.ones((3, 4), np.float32))


def test_a_size_of_a_tensor_is_none() -> None:
    line = "x * self.one.expand(x.argmax())"
    assert rules_of(_kept(line)) == ["DYN003"]


@pytest.mark.parametrize("size", [3, np.int64(3), (3,), (2, 3), (2, -1), [4, 1, 3]])
def test_expand_to(size: Any) -> None:
    for x in (np.float32([1.5]), np.arange(3, dtype=np.float32)):
        if np.ndim(size) and -1 in size and x.size == 1:
            continue
        want = torch.tensor(x).expand(size).numpy()
        np.testing.assert_array_equal(jax.jit(lambda x: expand_to(x, size))(x), want)
