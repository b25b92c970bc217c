"""``feats.append(x); x = self.relu(x)`` in place: in torch the list holds what has become of the tensor."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import X, both, rules_of

SOURCE = """
def put(holder, tensor):
    holder.append(tensor)


class M(nn.Module):
    def __init__(self, flag=True):
        super().__init__()
        self.flag, self.lin, self.act = flag, nn.Linear(4, 4), nn.ReLU(inplace=True)
        self.maybe = nn.ReLU(inplace=flag)
        self.norm = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(4, 4))

    def forward(self, x):
        feats, out = [], {}
        for i in range(2):
            y = self.lin(x)
LINES
            x = x + y
        return y, feats, out
"""
PUTS = {"list": "feats.append(y)", "dict": "out['a'] = y", "both": "feats.append(y)\nout['b'] = y"}
WRITES = {
    "sum": "y += x",
    "item": "y[:, 0] = 0",
    "method": "y.mul_(2).add_(1)",
    "its result": "y = y.relu_()",
    "function": "y = F.leaky_relu(y, 0.1, inplace=True)",
    "layer": "y = self.act(y)",
    "statement": "self.act(y)",
    "view": "y.view(-1)[0] = 0",
    "where": "if self.flag:\n    y += 1",
}
REFUSED = {
    "twice": "feats.append(y)\nfeats.append(y)\ny += 1",
    "twice by a loop": "for k in range(2):\n    feats.append(y)\ny += 1",
    "something behind it": "feats.append(y)\nfeats.append(x)\ny += 1",
    "a function": "feats.append(y)\nput(feats, x)\ny += 1",
    "a view": "feats.append(y[:, 0])\nfeats.append(y)\ny += 1",
    "an argument": "y = x\nfeats.append(y)\ny += 1",
    "two of one tensor": "feats.append(y)\nz = feats[-1]\ny += 1\ny = y + z",
    "perhaps in place": "feats.append(y)\ny = self.maybe(y)",
    "the first of several": "feats.append(y)\ny = self.norm(y)",
    "perhaps there": "if self.flag:\n    feats.append(y)\ny += 1",
    "sometimes": "feats.append(y)\nfor k in range(2):\n    y = self.act(y) if k else y + 1",
    "another name": "g = feats\nfeats.append(y)\ng.append(x)\ny += 1",
    "put in front": "feats.append(y)\nfeats.insert(0, x)\ny += 1",
}


def source(lines: str) -> str:
    indented = "\n".join(" " * 12 + line for line in lines.splitlines())
    return SOURCE.replace("LINES", indented)


@pytest.mark.parametrize(("put", "write"), list(itertools.product(PUTS, WRITES)))
def test_what_holds_the_tensor_shows_the_write(put: str, write: str) -> None:
    model, port, _ = both(source(f"{PUTS[put]}\n{WRITES[write]}"))
    leaf = X.clone().requires_grad_()
    want = jax.tree.leaves(model(leaf), is_leaf=lambda one: isinstance(one, torch.Tensor))
    x = jnp.asarray(X.numpy())
    for one, other in zip(jax.tree.leaves(port(x)), want, strict=True):
        np.testing.assert_allclose(one, other.detach(), atol=1e-5)
    sum((one * one).sum() for one in want).backward()
    got = jax.grad(lambda x: sum((one * one).sum() for one in jax.tree.leaves(port(x))))(x)
    np.testing.assert_allclose(got, leaf.grad, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("lines", REFUSED.values(), ids=REFUSED)
def test_what_may_be_elsewhere_is_refused(lines: str) -> None:
    assert rules_of(source(lines))


def test_the_port_says_it_in_one_line() -> None:
    code = migrator.convert_source(
        "import torch\nfrom torch import nn\n" + source("feats.append(y)\ny = self.act(y)")
    ).code
    assert "            y = self.act(y)\n            feats[-1] = y\n" in code


def test_a_number_in_a_name_is_of_digits() -> None:
    """``net.add_module(str(i), layer)`` gives no other module a child ``lin`` that hands on what it is given."""
    slices = """
        class Slices(nn.Module):
            def __init__(self):
                super().__init__()
                self.one = nn.Sequential()
                layers = [nn.Linear(4, 4), nn.Identity(), nn.ReLU(inplace=True)]
                for i in range(3):
                    self.one.add_module(NAME, layers[i])

            def forward(self, x):
                return self.one(x + 1)
    """
    import textwrap

    text = source("feats.append(y)\ny += 1") + textwrap.dedent(slices)
    for name in ("str(i)", 'f"{i}"', '"" + str(i + 1)'):
        assert not rules_of(text.replace("NAME", name)), name
    assert rules_of(text.replace("NAME", "names(i)"))
