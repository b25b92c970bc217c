"""Hints that cannot be right: a tuple that is used as one tensor, a tensor that is False by default."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, convert

USED = {
    "given as a tensor": ("return x", "self.inner(x)"),
    "used as one": ("return x.view(-1, 2)[:, 0]", "self.inner(x)"),
}


@pytest.mark.parametrize("name", USED)
def test_a_tuple_that_is_used_as_a_tensor_is_one(name: str) -> None:
    inner, outer = USED[name]
    source = f"""
class Scale(nn.Module):
    def forward(self, y):
        return y.view(-1) * 2

class Inner(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = Scale()

    def forward(self, x: tuple[torch.FloatTensor]):
        y = self.scale(x)
        {inner.replace("return x", "return y, x")}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor):
        return {outer}
"""
    done = convert(source)
    assert done.complete, done.findings
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + source, theirs)
    exec(done.code, ours)
    x = np.arange(6.0, dtype=np.float32).reshape(3, 2)
    for got, want in zip(
        ours["Net"](rngs=nnx.Rngs(0))(jnp.asarray(x)), theirs["Net"]()(torch.tensor(x))
    ):
        np.testing.assert_array_equal(got, want)


def test_several_tensors_stay_several() -> None:
    source = """
class Net(nn.Module):
    def forward(self, xs: tuple[torch.FloatTensor]):
        return sum(x.view(-1) for x in xs), xs[0].view(-1)
"""
    done = convert(source)
    assert done.complete, done.findings
    ours: dict = {}
    exec(done.code, ours)
    xs = (jnp.ones((2, 2)), jnp.ones((4,)))
    np.testing.assert_array_equal(ours["Net"]()(xs)[0], np.full(4, 2.0))


def test_an_option_that_is_hinted_as_a_tensor() -> None:
    source = """
class Net(nn.Module):
    def forward(self, x: torch.Tensor, both: torch.Tensor | None = False):
        return (x, x + 1) if both else (x,)
"""
    done = convert(source)
    assert done.complete, done.findings
    ours: dict = {}
    exec(done.code, ours)
    net = ours["Net"]()
    assert len(net(jnp.ones(2))) == 1
    assert len(net(jnp.ones(2), True)) == 2


def test_a_tuple_of_one_number_may_be_a_number() -> None:
    source = """
class Net(nn.Module):
    def __init__(self, size: tuple[int]):
        super().__init__()
        self.weight = nn.Parameter(torch.Tensor(size))

    def forward(self, x):
        return x * self.weight.shape[0]
"""
    done = convert(source)
    assert done.complete, done.findings
    ours: dict = {}
    exec(done.code, ours)
    assert ours["Net"](3, rngs=nnx.Rngs(0)).weight.shape == (3,)
    with pytest.raises(TypeError, match="a tuple may be a size or values"):
        ours["Net"]((3, 2), rngs=nnx.Rngs(0))
