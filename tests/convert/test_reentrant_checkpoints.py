"""``checkpoint`` in its reentrant form, which has a gradient only where a tensor that it is handed has one."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, both

SOURCE = """
from torch.utils.checkpoint import checkpoint


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(4, 4)
        self.l = nn.Linear(4, 4)
        self.e = nn.Embedding(9, 4)
        self.h = nn.Linear(4, 4)
        self.register_buffer("b", torch.ones(4))

    def run(self, x):
        return self.l(x)

    def own(self, z):
        return checkpoint(self.l, z, use_reentrant=True)

    def other(self, z):
        return checkpoint(self.h, z, use_reentrant=False)

    def without(self, x):
        with torch.no_grad():
            z = self.s(x)
        return checkpoint(self.l, z, use_reentrant=True)

    def again(self, x):
        z = torch.zeros_like(x)
        z = z + self.s(x)
        return checkpoint(self.l, z, use_reentrant=True)

    def written(self, x):
        z = torch.zeros_like(x)
        z.add_(self.s(x))
        return checkpoint(self.l, z, use_reentrant=True)

    def chained(self, x):
        z = torch.zeros_like(x)
        q = z.add_(self.s(x))
        return checkpoint(self.l, z, use_reentrant=True)

    def switched(self, x):
        with torch.no_grad():
            with torch.enable_grad():
                z = self.s(x)
        return checkpoint(self.l, z, use_reentrant=True)

    def named(self, x):
        z = x.detach()
        if (z := self.s(x)) is not None:
            return checkpoint(self.l, z, use_reentrant=True)

    def kept(self, x):
        self.b = self.s(x)[0]
        z = self.b
        return checkpoint(self.l, z, use_reentrant=True)

    def twice(self, x):
        z = checkpoint(self.s, x.detach(), use_reentrant=True)
        return checkpoint(self.l, z, use_reentrant=True)

    def both(self, x):
        z = checkpoint(self.s, x.detach(), use_reentrant=False)
        return checkpoint(self.l, z, use_reentrant=True)

    def chosen(self, x):
        y = self.s(x)
        with torch.no_grad():
            z = y if self.training else y
        return checkpoint(self.l, z, use_reentrant=True)

    def forward(self, x):
        y = self.s(x)
        return self.h({call}) + y
"""


@pytest.mark.parametrize(
    ("call", "cut"),
    [
        ("checkpoint(self.l, y, use_reentrant=True)", False),
        ("checkpoint(self.l, y.detach(), use_reentrant=True)", True),
        ("checkpoint(self.l, self.s(x).detach())", True),
        ("checkpoint(self.l, y.detach(), use_reentrant=False)", False),
        ("checkpoint(self.run, y.detach(), use_reentrant=True)", True),
        ("checkpoint(lambda z: self.l(z) * 2, y.detach(), use_reentrant=True)", True),
        ("checkpoint(self.e, (x * 2).abs().long(), use_reentrant=True)[:, 0]", True),
        ("checkpoint(self.e, (x * 2).abs().long(), use_reentrant=False)[:, 0]", False),
        ("checkpoint(self.l, torch.ones_like(y), use_reentrant=True)", True),
        ("checkpoint(lambda t: self.l(t[0]), (y,), use_reentrant=True)", True),
        ("checkpoint(lambda t: self.l(t['y']), {'y': y}, use_reentrant=True)", True),
        ("self.own(y.detach())", True),
        ("self.own(z=y)", False),
        ("self.without(x)", True),
        ("self.again(x)", False),
        ("self.written(x)", False),
        ("self.chained(x)", False),
        ("self.switched(x)", False),
        ("self.named(x)", False),
        ("self.kept(x)", False),
        ("self.chosen(x)", False),
        ("checkpoint(self.l, torch.as_tensor(y))", False),
        ("self.twice(x)", True),
        ("self.both(x)", False),
        ("self.other(y.detach()) + self.own(y)", False),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_parameters_have_the_gradients_of_torch(call: str, cut: bool) -> None:
    model, port, _ = both(SOURCE.replace("{call}", call))
    (model(X) ** 2).sum().backward()

    def loss(module: nnx.Module) -> jax.Array:
        return (module(jnp.asarray(X.numpy())) ** 2).sum()

    slopes = migrator.to_state_dict(nnx.jit(nnx.grad(loss))(port), like=port)
    for name, value in model.named_parameters():
        want = np.zeros(value.shape) if value.grad is None else value.grad
        np.testing.assert_allclose(slopes[name], want, rtol=1e-4, atol=1e-5)
    layer = model.e if "self.e" in call else model.l
    assert (layer.weight.grad is None) is cut


def test_what_a_program_calls_may_be_handed_anything() -> None:
    source = SOURCE.replace("{call}", "checkpoint(self.l, x)")
    model, port, _ = both(source + "\n\ndef demo():\n    return M()(torch.randn(3, 4))\n")
    model(X.clone().requires_grad_()).sum().backward()
    slopes = nnx.grad(lambda module: module(jnp.asarray(X.numpy())).sum())(port)
    found = migrator.to_state_dict(slopes, like=port)["l.weight"]
    np.testing.assert_allclose(found, model.l.weight.grad, rtol=1e-4, atol=1e-5)
