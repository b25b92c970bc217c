"""What is computed of each piece of a tensor, or by each of a few layers, and then written in place."""

from __future__ import annotations

from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import HEADER, REFUSED_BY_TORCH, X, sides

PROGRAM = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        self.i = nn.Identity()
        self.c = torch.ones(3, 2)

    def same(self, t):
        return t

    def kept(self, t):
        return self.c

    def forward(self, x):
        y = self.a(x)
        MADE
        WRITTEN
        return READ
"""
MADE = {
    "map": "q, k = map(lambda t: t, y.chunk(2, -1))",
    "map of views": "q, k = map(lambda t: t.reshape(3, 2), y.chunk(2, -1))",
    "map of new": "q, k = map(lambda t: t + 1, y.chunk(2, -1))",
    "list": "q, k = [t for t in y.chunk(2, -1)]",
    "generator": "q, k = (t.view(3, 2) for t in y.chunk(2, -1))",
    "one tensor": "q, k = [t for t in (y, y)]",
    "views of one": "q, k = map(lambda t: t.view(-1), (y, y))",
    "another": "q, k = map(lambda t: y, y.chunk(2, -1))",
    "a part": "z = y[:, :2]; q, k = map(lambda t: z, y.chunk(2, -1))",
    "a method": "q, k = [self.same(t) for t in y.chunk(2, -1)]",
    "what a method keeps": "q, k = [self.kept(t) for t in y.chunk(2, -1)]",
    "layers": "q, k = [f(y) for f in (self.a, self.b)]",
    "one layer": "q, k = [f(y) for f in (self.a, self.a)]",
    "nothing": "q, k = [f(y) for f in (self.i, self.i)]",
}
WRITTEN = ["q *= 2", "q.mul_(2)", "q[0] = 5.0", "k += 1"]
READ = ["(q.sum() + 2 * k.sum()) + x", "(q.sum() + 2 * k.sum()) + y", "y * 2"]
CONVERTED = ["map", "map of views", "map of new", "list", "generator", "layers", "one layer"]


def _outcome(made: str, written: str, read: str) -> bool | None:
    """Whether the port gives what torch does; None where it is refused."""
    lines = "\n        ".join(MADE[made].split("; "))
    source = PROGRAM.replace("MADE", lines).replace("WRITTEN", written).replace("READ", read)
    told, theirs, ours = sides(HEADER + source)
    if told:
        return None
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    try:
        want = model(X.clone()).detach().numpy()
    except REFUSED_BY_TORCH:
        return None
    got = nnx.jit(lambda module, x: module(x))(port, jnp.asarray(X.numpy()))
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    return True


@pytest.mark.parametrize("made", CONVERTED)
def test_pieces_share_nothing(made: str) -> None:
    _outcome(made, "q *= 2", READ[1])
    if made in ("map of new", "layers", "one layer"):
        assert _outcome(made, "q *= 2", READ[0])


@pytest.mark.parametrize("made", MADE)
def test_none_is_wrong(made: str) -> None:
    for written, read in (("q *= 2", READ[0]), ("k += 1", READ[2])):
        _outcome(made, written, read)


@pytest.mark.sweep
@pytest.mark.parametrize(("made", "written", "read"), list(product(MADE, WRITTEN, READ)))
def test_none_of_all_is_wrong(made: str, written: str, read: str) -> None:
    _outcome(made, written, read)
