"""``checkpoint`` in its reentrant form, which has a gradient only where a tensor that it is handed has one."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, both, convert

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


def same_gradients(source: str) -> Any:
    """The original, of whose parameters those of the conversion have the gradients."""
    model, port, _ = both(source)
    (model(X) ** 2).sum().backward()

    def loss(module: nnx.Module) -> jax.Array:
        return (module(jnp.asarray(X.numpy())) ** 2).sum()

    slopes = migrator.to_state_dict(nnx.jit(nnx.grad(loss))(port), like=port)
    trained = [(name, p) for name, p in model.named_parameters() if p.requires_grad]
    for name, value in trained:
        want = np.zeros(value.shape) if value.grad is None else value.grad
        np.testing.assert_allclose(slopes[name], want, rtol=1e-4, atol=1e-5)
    return model


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
    model = same_gradients(SOURCE.replace("{call}", call))
    layer = model.e if "self.e" in call else model.l
    assert (layer.weight.grad is None) is cut


def test_what_a_program_calls_may_be_handed_anything() -> None:
    source = SOURCE.replace("{call}", "checkpoint(self.l, x)")
    model, port, _ = both(source + "\n\ndef demo():\n    return M()(torch.randn(3, 4))\n")
    model(X.clone().requires_grad_()).sum().backward()
    slopes = nnx.grad(lambda module: module(jnp.asarray(X.numpy())).sum())(port)
    found = migrator.to_state_dict(slopes, like=port)["l.weight"]
    np.testing.assert_allclose(found, model.l.weight.grad, rtol=1e-4, atol=1e-5)


FILLED = """
from torch.utils.checkpoint import checkpoint


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Linear(4, 4)
        self.l = nn.Linear(4, 4)
        self.h = nn.Linear(4, 4)
        self.register_buffer("b", torch.ones(3, 4))
        self.register_buffer("c", torch.ones(3, 4))

    def take(self, z):
        return checkpoint(self.l, z, use_reentrant=True)

    def forward(self, x):
        y = self.s(x)
        {lines}
        return self.h(checkpoint(self.l, {given}, use_reentrant=True))
"""


@pytest.mark.parametrize(
    ("lines", "given", "cut"),
    [
        ("self.b.copy_(y)", "self.b", False),
        ("self.b[...] = y", "self.b", False),
        ("self.b[1:] = y[1:]", "self.b", False),
        ("self.b[0].copy_(y[0])", "self.b * 2", False),
        ("self.b = self.b * 0.5 + y", "self.b[0]", False),
        ("self.b += y", "self.b", False),
        ("self.b.mul_(0.5).add_(y)", "self.b", False),
        ("self.b, self.c = y * 2, self.c", "self.b", False),
        ("self.c, self.b = y * 2, self.c * 1", "self.c", False),
        ("b = self.b; b.copy_(y)", "self.b", False),
        ("for b in (self.b, self.c): b.copy_(y)", "self.b", False),
        ("getattr(self, 'b').copy_(y)", "self.b", False),
        ("setattr(self, 'b', y)", "self.b", False),
        ("self.c.copy_(y); self.b.copy_(self.c)", "self.b", False),
        ("self.b.copy_(y.detach())", "self.b", True),
        ("self.c.copy_(y)", "self.b", True),
        ("self.b.data.copy_(y)", "self.b", True),
        ("self.b.zero_()", "self.b", True),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_a_buffer_has_the_gradient_of_what_fills_it(lines: str, given: str, cut: bool) -> None:
    source = FILLED.replace("{lines}", lines)
    model = same_gradients(source.replace("{given}", given))
    assert (model.l.weight.grad is None) is cut
    assert model.s.weight.grad is None or not cut
    handed = source.replace(
        "checkpoint(self.l, {given}, use_reentrant=True)", f"self.take({given})"
    )
    model = same_gradients(handed)
    assert (model.l.weight.grad is None) is cut


@pytest.mark.parametrize(
    "lines",
    [
        "self.b.copy_(y)\n        with torch.no_grad(): self.c.copy_(self.b)",
        "self.b.copy_(y)\n        self.c.copy_(y)\n        with torch.no_grad(): self.c.mul_(2)",
        "self.b.copy_(y)\n        self.c.copy_(y)\n        with torch.no_grad(): self.c = self.c * 2",
    ],
)
def test_what_is_written_without_gradients_after_a_buffer_is_filled(lines: str) -> None:
    source = FILLED.replace("{lines}", lines)
    same_gradients(source.replace("checkpoint(self.l, {given}, use_reentrant=True)", "self.c"))


@pytest.mark.parametrize(
    ("layer", "line", "told"),
    [
        ("nn.BatchNorm1d(4)", "checkpoint(self.norm, x, use_reentrant=False)", 1),
        ("nn.BatchNorm1d(4)", "checkpoint(self.run, x, use_reentrant=False)", 1),
        ("nn.Sequential(nn.BatchNorm1d(4))", "checkpoint(self.run, x, use_reentrant=False)", 1),
        ("nn.BatchNorm1d(4)", "self.norm(checkpoint(self.fc, x, use_reentrant=False))", 0),
        ("nn.LayerNorm(4)", "checkpoint(self.run, x, use_reentrant=False)", 0),
    ],
)
@pytest.mark.parametrize("test", ["if cheap:", "if self.training:"])
def test_statistics_that_torch_updates_twice(layer: str, line: str, told: int, test: str) -> None:
    """torch runs the function again for its gradient; the port updates what it keeps once."""
    result = convert(f"""
from torch.utils.checkpoint import checkpoint


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = {layer}
        self.fc = nn.Linear(4, 4)

    def run(self, x):
        return self.norm(self.fc(x))

    def forward(self, x, cheap: bool = False):
        {test}
            return {line}
        return self.run(x)
""")
    blocking = [one.rule for one in result.findings if one.blocks]
    warnings = [one.rule for one in result.findings if one.severity == "warning"]
    found = ["TRC010"] if told else []
    assert (warnings, blocking) == ((found, []) if "cheap" in test else ([], found))
