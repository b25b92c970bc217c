"""Loops that end by the value of a tensor: the rounds become a function that ``until`` calls."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import convert, loaded, rules_of

HEAD = "def f(x: torch.Tensor, n: int = 8, tol: float = 0.3):\n    "
X = np.linspace(-1, 1.2, 12, dtype=np.float32).reshape(3, 4)

CONVERTED = {
    "a test at the end": """
y = x
for _ in range(n):
    new = torch.tanh(y * 0.7 + x)
    change = (new - y).abs().max()
    y = new
    if change < tol:
        break
return y * 2
""",
    "a test at the beginning": """
y = x * 0.5
for _ in range(n):
    total = y.abs().sum()
    if total > 30 * tol:
        break
    y = y * 1.5
return y
""",
    "a number that is read": """
y = x
for i in range(n):
    old = y
    y = y - 0.5 * torch.sin(y)
    if (y - old).norm().item() < tol:
        break
return y, old
""",
    "conjugate gradients": """
a = x.t() @ x + torch.eye(4)
b = x.sum(0)
y = torch.zeros_like(b)
r = b - a @ y
p = r
rs = r @ r
for i in range(n):
    ap = a @ p
    alpha = rs / (p @ ap)
    y = y + alpha * p
    r = r - alpha * ap
    new = r @ r
    if new.sqrt() < tol * 0.01:
        break
    p = r + (new / rs) * p
    rs = new
return y
""",
    "rounds that count": """
y = x
rounds = 0
for _ in range(n):
    y = y * 0.5
    rounds += 1
    if y.abs().max() < tol:
        break
return y * rounds
""",
    "the number of the round": """
y = x
for k in range(1, n):
    y = y / k + 0.1
    if k > 2 and (y.mean() < tol):
        break
return y
""",
    "a return from the loop": """
y = x
for k in range(n):
    new = torch.cos(y)
    if (new - y).abs().mean() < tol:
        return y, y.sum()
    y = new
return y, y.sum()
""",
    "a size that the first round gives": """
y = torch.zeros(1)
for _ in range(n):
    y = 0.5 * y + x.mean(dim=0)
    if y.abs().max() > tol:
        break
return y + x
""",
    "what the loop binds first": """
y = x
for _ in range(n):
    step = y.exp().mean(1, keepdim=True)
    y = y - 0.1 * step
    if step.mean() < tol * 3:
        break
return y, step
""",
    "in place": """
y = x * 1
for _ in range(n):
    y += 0.25 * x
    y *= 0.9
    if y.abs().sum() > 6:
        break
return y
""",
    "without gradient": """
y = torch.zeros_like(x)
with torch.no_grad():
    for _ in range(n):
        new = torch.tanh(0.5 * y + x)
        d = (new - y).norm()
        y = new
        if d < tol:
            break
return torch.tanh(0.5 * y + x)
""",
    "a root that has no derivative where it stops": """
y = x.abs() + 0.1
for _ in range(n):
    gap = y - y.min()
    if gap.max() < 10 * tol:
        break
    y = y / torch.sqrt(gap.max() - 10 * tol)
return y
""",
    "a loop in a loop": """
y = x
for i in range(2):
    z = y
    for _ in range(n):
        z = z * 0.6 + 0.1 * i
        if z.abs().max() < tol:
            break
    y = y + z
return y
""",
    "a message": """
y = x
for i in range(n):
    y = y * 0.5
    if y.abs().max() < tol:
        print("after", i)
        break
return y
""",
}


def _source(lines: str) -> str:
    return HEAD + lines.strip().replace("\n", "\n    ") + "\n"


@pytest.mark.parametrize("name", list(CONVERTED))
def test_values_and_gradients(name: str) -> None:
    """Whatever round is the last, also where none is and where there is none at all."""
    theirs, ours, text = loaded(_source(CONVERTED[name]))
    assert "until(" in text or "until_numbered(" in text
    run = jax.jit(ours["f"], static_argnums=(1, 2))

    def summed(x: jax.Array, n: int, tol: float) -> jax.Array:
        return sum(one.sum() for one in jax.tree.leaves(run(x, n, tol)))

    binds = name in ("what the loop binds first", "a number that is read")
    for n in (1, 2, 8) if binds else (0, 2, 8):
        for tol in (1e-6, 0.3, 10.0):
            x = torch.tensor(X, requires_grad=True)
            want, got = theirs["f"](x, n, tol), run(X, n, tol)
            eager = ours["f"](jnp.asarray(X), n, tol)
            many = isinstance(want, tuple)
            for a, b, c in zip(want, got, eager, strict=True) if many else [(want, got, eager)]:
                np.testing.assert_allclose(b, a.detach().numpy(), rtol=2e-5, atol=2e-6)
                np.testing.assert_allclose(c, a.detach().numpy(), rtol=2e-5, atol=2e-6)
            total = sum(one.sum() for one in want) if many else want.sum()
            if not total.requires_grad:
                continue
            (gradient,) = torch.autograd.grad(total, [x])
            np.testing.assert_allclose(jax.grad(summed)(X, n, tol), gradient, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize(
    "lines",
    [
        "y = x\nfor i in range(n):\n    y = torch.cat([y, x])\n    if y.sum() > 3:\n        break\nreturn y",
        "y = x\nfor i in range(n):\n    z = y.t()\n    y = z * 2\n    if y.sum() > 3:\n        break\nreturn y",
        "y = x\nfor i in range(n):\n    y = y * 2\n    if y.sum() > 3:\n        break\nreturn y * i",
        "y = x\nfor i in range(n):\n    y = y * 2\n    if y.sum() > 3:\n        break\nelse:\n    y = x\nreturn y",
        "y = x\nfor i in range(n):\n    y = F.dropout(y)\n    if y.sum() > 3:\n        break\nreturn y",
        "y = x\nfor i in range(n):\n    if y.sum() > 3:\n        break\n    z = y * 2\n    y = z\nreturn z",
        "y = x\nk = 0\nfor i in range(n):\n    y = y * 2\n    k += 1\n    if y.sum() > 3:\n        break\nreturn y, k",
        "y = x\nout = []\nfor i in range(n):\n    y = y * 2\n    out.append(y)\n    if y.sum() > 3:\n        break\nreturn out",
        "y = x\nfor i in range(n):\n    y[0] = y[0] * 2\n    if y.sum() > 3:\n        break\nreturn y",
        "for i in range(n):\n    x += 1\n    if x.sum() > 3:\n        break\nreturn x",
        "y = x\nfor i in range(n):\n    y = y * 2\n    if y.sum() > 3:\n        break\n    if y.sum() < -3:\n        break\nreturn y",
        "y = x\nfor i in range(n):\n    y = y * 2\n    if y.sum() > 3:\n        y = y + 1\n        break\nreturn y",
        "y = x\nfor i in range(n):\n    y = y * 2\n    if y.sum() > 3:\n        return x\nreturn y",
        "y = x\nfor i in range(n):\n    y = y * 2\n    if y.sum() > 3:\n        continue\n    y = y + 1\nreturn y",
        "y = x\nfor row in x:\n    y = y * row\n    if y.sum() > 3:\n        break\nreturn y",
        "y, z = x, 1\nfor i in range(n):\n    if y.sum() > 3:\n        break\n    z = y * 2\n    y = z\nreturn y * z",
        "y = x\ng = lambda: y\nfor i in range(n):\n    y = y * 2\n    if g().sum() > 3:\n        break\nreturn y",
        "y = x\nfor i in range(n):\n    y = y * 2\n    if y.sum() > 3 and torch.rand(()) < 0.5:\n        break\nreturn y",
    ],
)
def test_other_loops_are_a_finding(lines: str) -> None:
    assert {"DYN002", "MUT001", "DYN004"} & set(rules_of(_source(lines)))


def test_layers_with_state_are_a_finding() -> None:
    source = """
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 4)
            self.norm = nn.BatchNorm1d(4)

        def forward(self, x):
            for _ in range(5):
                new = LAYER
                if (new - x).abs().max() < 0.1:
                    break
                x = new
            return x
    """
    assert convert(source.replace("LAYER", "torch.tanh(self.fc(x))")).complete
    assert rules_of(source.replace("LAYER", "self.norm(x)")) == ["DYN002"]
