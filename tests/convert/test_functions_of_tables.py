"""A function out of a table, or another in its place: the one may draw, and the other may not."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import HEADER, convert

SOURCE = """
def plain(x, scale):
    return x * scale

def noisy(x, scale):
    return F.dropout(x * scale, p=0.5)

TABLE = {{"noisy": noisy, "plain": plain}}

class Net(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.kind = kind

    def forward(self, x):
        {lines}
        return f(x, scale=2.0)
"""
CHOICES = {
    "in a branch": "f = plain\n        if self.kind != 'own':\n            f = TABLE[self.kind]",
    "with a hint": "f: object = plain\n        if self.kind != 'own':\n            f = TABLE[self.kind]",
    "by an expression": "f = TABLE[self.kind] if self.kind != 'own' else plain",
    "always": "f = TABLE['plain' if self.kind == 'own' else self.kind]",
}


@pytest.mark.parametrize("name", CHOICES)
def test_it_gets_a_generator_if_it_draws(name: str) -> None:
    source = SOURCE.format(lines=CHOICES[name])
    done = convert(source)
    assert done.complete, done.findings
    ours: dict = {}
    exec(done.code, ours)
    theirs: dict = {}
    exec(HEADER + source, theirs)
    x = np.ones(64, dtype=np.float32)
    for kind in ("own", "plain"):
        want = theirs["Net"](kind)(torch.tensor(x))
        got = ours["Net"](kind, rngs=nnx.Rngs(0))(jnp.asarray(x))
        np.testing.assert_array_equal(got, want)
    drawn = np.asarray(ours["Net"]("noisy", rngs=nnx.Rngs(0))(jnp.asarray(x)))
    assert set(drawn.tolist()) == {0.0, 4.0}


@pytest.mark.parametrize(
    ("given", "number"), [("", -100), ("ignore_index=2", 2), ("reduction='sum'", -100)]
)
def test_the_class_that_a_loss_leaves_out(given: str, number: int) -> None:
    source = f"""
class Net(nn.Module):
    def forward(self, x, labels, keep):
        loss = nn.CrossEntropyLoss({given})
        labels = torch.where(keep, labels, torch.tensor(loss.ignore_index).type_as(labels))
        return loss(x, labels), labels
"""
    done = convert(source)
    assert done.complete, done.findings
    ours: dict = {}
    exec(done.code, ours)
    theirs: dict = {}
    exec(HEADER + source, theirs)
    x, labels = np.eye(3, dtype=np.float32), np.array([0, 1, 1])
    keep = np.array([True, False, True])
    want = theirs["Net"]()(*map(torch.tensor, (x, labels, keep)))
    got = ours["Net"](rngs=nnx.Rngs(0))(*map(jnp.asarray, (x, labels, keep)))
    np.testing.assert_allclose(got[0], want[0], rtol=1e-6)
    assert got[1].tolist() == want[1].tolist() == [0, number, 1]


def test_a_loss_that_is_handed_over_is_not_known() -> None:
    source = """
class Net(nn.Module):
    def forward(self, x, labels, loss=None):
        if loss is None:
            loss = nn.CrossEntropyLoss()
        return loss(x, labels), loss.ignore_index
"""
    assert not convert(source).complete


def test_two_losses_under_one_name_are_a_finding() -> None:
    source = """
class Net(nn.Module):
    def forward(self, x, labels, other: bool):
        loss = nn.CrossEntropyLoss()
        if other:
            loss = nn.CrossEntropyLoss(ignore_index=1)
        return loss(x, labels), loss.ignore_index
"""
    assert not convert(source).complete
