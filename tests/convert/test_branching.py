"""Branches on the value of a tensor become ``lax.cond`` where both ways surely give the same shapes and types."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import both, convert, loaded, rules_of

X = np.linspace(-1, 1.2, 12, dtype=np.float32).reshape(3, 4)

CONVERTED = {
    "one name": "if x.sum() > 0:\n        x = x * 2\n    return x",
    "one name, both ways": "if x.sum() > 0:\n        y = x * 2\n    else:\n        y = torch.relu(x) - 1\n    return y",
    "several names": "if (x > 1.5).any():\n        x = x * 2\n        y = x + 1\n    else:\n        y = x - 1\n    return x, y",
    "a local of the branch": "if x.max() < 1:\n        t = x.exp()\n        x = t / (1 + t)\n    return x",
    "an early return": "if x.mean() > 0:\n        return x * 2\n    return x.sqrt().nan_to_num()",
    "a return before more is done": "if x.sum() > 0:\n        return x\n    y = x + 1\n    return y",
    "in place": "y = x * 0\n    if x.sum() > 0:\n        y += x * 2\n    return y",
    "in place, after more": "y = x * 1\n    if x.sum() > 0:\n        t = x.mean()\n        y *= t\n        y -= t\n    return y",
    "in place, of a number": "s = x.sum() * 2\n    if s > 1:\n        s += x.mean()\n    return x * s",
    "a return in a loop": "for i in range(3):\n        y = x + i\n        if y.sum() > 4:\n            return y\n        y = y * 2\n        z = y - 1\n        return z",
    "returns both ways": "if x.mean() > 0:\n        return x, x.sum()\n    else:\n        return x * 2, x.max()",
    "an expression": "y = x * 2 if x.sum() > 0 else -x\n    return y + 1",
    "and, or, not": "if x.sum() > 0 and not x.max() > 5 or x.min() > 0:\n        x = x + 1\n    return x",
    "in a loop": "for i in range(3):\n        h = x.sum()\n        if h > 3:\n            x = x - 1\n        else:\n            x = x + i\n    return x",
    "numbers of no axes": "s = x.sum()\n    if s > 1:\n        s = s * 0.5\n    return x * s",
    "one element": "if x[:1, :1] > 0:\n        x = x + 1\n    return x",
    "a number that is asked": "if x.sum():\n        x = x + 1\n    return x",
    "the same call": "y = x @ x.t()\n    if y.sum() > 0:\n        z = x @ x.t() + y.sum()\n    else:\n        z = x @ x.t()\n    return z",
    "after what Python tells": "if x.ndim == 2 and x.sum() > 0:\n        x = x * 2\n    return x",
    "several names after what Python tells": "y = x - 1\n    if x.ndim == 2 and not x.max() > 5:\n        x = x + 1\n        y = y * 2\n    return x, y",
    "what is read as a number": "if x.sum().item() > 0.5:\n        x = x + 1\n    return x",
    "a number of Python's": "n = x.shape[0] + 1\n    return x * 2 if x[:1, :1].item() < n else x",
    "a number for both ways": (
        "if x.max() > 2:\n        top = 255\n    else:\n        top = 1\n    low = -1 if x.min() < -0.5 else 0\n"
        "    n = top - low\n    c = (0.01 * n) ** 2\n    return (x * 2 + c) / (x * x + 3 * c) - n"
    ),
    "numbers of both ways": (
        "if x.max() > 2:\n        a = 2.5\n        x = x + 1\n    else:\n        a = 0.5\n    y = x * -a\n    y += a\n    return y, x < a"
    ),
    "where the other way has no value": "if x.min() > 0:\n        x = torch.log(x)\n    return x",
}
SOURCE = "def f(x: torch.Tensor):\n    {}\n"


@pytest.mark.parametrize("body", CONVERTED.values(), ids=list(CONVERTED))
def test_values_and_gradients(body: str) -> None:
    theirs, ours, text = loaded(SOURCE.format(body))
    assert "lax.cond(" in text or "jnp.where(" in text
    run = jax.jit(ours["f"])
    for scale in (1.0, -1.0, 0.0, 4.0):
        for shift in (0.0, 2.0):
            x = torch.tensor(X * scale + shift, requires_grad=True)
            want = theirs["f"](x)
            got = run(jnp.asarray(x.detach().numpy()))
            pairs = zip(want, got, strict=True) if isinstance(want, tuple) else [(want, got)]
            total = 0
            for one, other in pairs:
                np.testing.assert_allclose(other, one.detach().numpy(), rtol=1e-5, atol=1e-6)
                total = total + one.sum()
            (gradient,) = torch.autograd.grad(total, [x])
            found = jax.grad(lambda x: sum(y.sum() for y in jax.tree.leaves(run(x))))(
                jnp.asarray(x.detach().numpy())
            )
            np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "if x.sum() > 0:\n        x = x[:1]\n    return x",
        "if x.ndim == 2 and x.sum() > 0:\n        y = x * 2\n    else:\n        y = x\n    return y",
        "if x.ndim == 2 and x.sum() > 0:\n        return x * 2\n    return x",
        "if x.sum() > 0 and torch.rand(1) < 0.5:\n        x = x * 2\n    return x",
        "if x.ndim == 2 and x.sum() > 0:\n        x = x[:1]\n    return x",
        "if x.sum() > 0:\n        x = x.sum()\n    return x",
        "if x.sum() > 0:\n        x = x @ x.t()\n    return x",
        "if x.sum() > 0:\n        x = x > 0\n    return x",
        "if x.sum() > 0:\n        y = x * 2\n    return y",
        "y = 0\n    if x.sum() > 0:\n        y = x * 2\n    return y",
        "if x.sum() > 0:\n        x = F.dropout(x)\n    return x",
        "if x.sum() > 0:\n        x = x + torch.rand_like(x)\n    return x",
        "if x.sum() > 0:\n        x.add_(1)\n    return x",
        "if x.sum() > 0:\n        x += 1\n    return x",
        "y = 0\n    if x.sum() > 0:\n        y += x.sum()\n    return y",
        "y = torch.relu(x)\n    if x.sum() > 0:\n        y //= 2\n    return y",
        "y = torch.relu(x)\n    if x.sum() > 0:\n        y += F.dropout(x)\n    return y",
        "y = [x]\n    if x.sum() > 0:\n        y += [x]\n    return y[0]",
        "if x.sum() > 0:\n        x[0] = 1\n    return x",
        "if x.sum() > 0:\n        return x\n    y = x.t()\n    return y",
        "if x.sum() > 0:\n        return x\n    y = x + 1\n    y.add_(1)\n    return y",
        "if x.sum() > 0:\n        return x\n    y = F.dropout(x)\n    return y",
        "if x.sum() > 0:\n        return x.sum()\n    y = x + 1\n    return 0",
        "if x.ndim == 3:\n        y = x\n    if x.sum() > 0:\n        return x\n    y = y + 1\n    return x",
        "n = 3 if x.sum() > 0 else 2\n    return x[:n]",
        "n = 3 if x.sum() > 0 else 2\n    return x * n, n",
        "n = 65536 if x.sum() > 0 else 256\n    c = n ** 2\n    return x / c",
        "n = 65536 if x.sum() > 0 else 256\n    c = n * 65536\n    return x / c",
        "n = 3 if x.sum() > 0 else 2.0\n    return x * n",
        "n = 3 if x.sum() > 0 else 2\n    m = n * 2\n    return x.repeat(m, 1)[:3]",
        "n = 3 if x.sum() > 0 else 2\n    return x * n ** -x.shape[0]",
        "n = 3 if x.sum() > 0 else 2\n    return x * (n // 2)",
        "n = 3 if x.sum() > 0 else 2\n    return x * (2 if n > 2 else 1)",
        "if x.sum() > 0:\n        n = 3\n    else:\n        n = x.shape[0]\n    return x * [1, 2, 3, 4][n]",
        "g = lambda: y\n    if x.sum() > 0:\n        return x\n    y = x + 1\n    return g()",
        "if x.sum() > 0:\n        return x\n    return x.t()",
        "if x.sum() > 0:\n        return x\n    return None",
        "if x.sum() > 0:\n        x = x * 2\n    elif x.sum() < -1:\n        x = x * 3\n    return x",
        "for i in range(3):\n        if x.sum() > 0:\n            break\n        x = x + 1\n    return x",
        "while x.sum() > 1:\n        x = x / 2\n    return x",
        "g = lambda: x\n    if x.sum() > 0:\n        x = x * 2\n    return g()",
        "y = [x for _ in range(2) if x.sum() > 0]\n    return y",
        "with torch.no_grad():\n        if x.sum() > 0:\n            x = x * 2\n    return x",
    ],
)
def test_what_is_not_plain_to_see_is_a_finding(body: str) -> None:
    assert "DYN002" in rules_of(SOURCE.format(body))


def test_a_half_is_compared_with_the_number_as_it_is() -> None:
    """256 is not 257, which in bfloat16 it is."""
    lines = "if x.bfloat16().max().item() >= 257:\n        x = x + 1\n    return x"
    theirs, ours, _ = loaded(SOURCE.format(lines))
    for value in (256.0, 258.0):
        x = torch.full((2,), value)
        np.testing.assert_array_equal(jax.jit(ours["f"])(jnp.asarray(x.numpy())), theirs["f"](x))


@pytest.mark.parametrize("order", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("number", [0.1, 0.7, 1e-5, -0.1, 3e38, 16777217.0])
def test_a_number_that_float32_has_not_is_compared_in_double_precision(
    order: str, number: float
) -> None:
    lines = f"if x.max().item() {order} n * 1.0:\n        x = x + 1\n    return x"
    theirs, ours, _ = loaded(
        SOURCE.format(lines).replace("x: torch.Tensor", "x: torch.Tensor, n: float")
    )
    run = jax.jit(ours["f"], static_argnums=1)
    near = np.float32(number)
    for value in (
        near,
        np.nextafter(near, np.float32(np.inf)),
        np.nextafter(near, np.float32(-np.inf)),
    ):
        x = np.full((2,), value)
        np.testing.assert_array_equal(run(x, number), theirs["f"](torch.tensor(x), number))


@pytest.mark.parametrize("test", ["x.sum().item() > x.mean().item()", "x.sum().item() == 0.1"])
def test_what_double_precision_would_tell_apart_is_a_finding(test: str) -> None:
    assert "DYN004" in rules_of(SOURCE.format(f"if {test}:\n        x = x + 1\n    return x"))


GUIDED = """
class M(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.fc = nn.Linear(4, 4)

    def forward(self, x, condition):
        if self.training and torch.rand(1){} < self.p:
            condition = torch.zeros_like(condition)
        noise = torch.rand_like(x)
        return self.fc(x + condition), condition, noise
"""


@pytest.mark.parametrize("read", ["", ".item()"])
def test_what_is_left_out_by_chance_in_training(read: str) -> None:
    code = convert(GUIDED.format(read)).code
    assert "        if not self.deterministic:\n            condition = lax.cond(" in code
    theirs, ours, _ = loaded(GUIDED.format(read))
    x = np.ones((2, 4), np.float32)
    for p, kept in ((0.0, 1.0), (1.0, 0.0)):
        port = ours["M"](p, rngs=nnx.Rngs(0))
        run = nnx.jit(lambda module, x: module(x, x))
        port.eval()
        assert (run(port, x)[1] == 1).all()
        port.train()
        assert (run(port, x)[1] == kept).all()
        model = theirs["M"](p)
        assert (model(torch.tensor(x), torch.tensor(x))[1] == kept).all()
    spec = {"inputs": [np.ones((2, 4), np.float32)] * 2}
    report = migrator.verify(theirs["M"](0.5), ours["M"](0.5, rngs=nnx.Rngs(0)), **spec)
    assert report.verdict == "equal", str(report)
    assert not any("random" in note for note in report.notes)


STATEFUL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = nn.BatchNorm1d(4)
        self.act = nn.GELU()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x):
        if self.seen > 3:
            {}
        return x
"""


def test_layers_without_state_and_buffers_that_are_asked() -> None:
    assert not rules_of(STATEFUL.format("x = self.act(x) * 2"))
    assert (
        "lax.cond(self.seen[...] > 3, lambda: " in convert(STATEFUL.format("x = self.act(x)")).code
    )


@pytest.mark.parametrize("line", ["x = self.norm(x)", "x = self.fc(x)"])
def test_layers_with_state_or_of_other_sizes_are_a_finding(line: str) -> None:
    assert rules_of(STATEFUL.format(line)) == ["DYN002"]


CLAMPED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x, half: bool = False):
        x = x.half() if half else self.l(x)
        if {test}:
            most = torch.finfo(x.dtype).max - 1000
            x = torch.clamp(x, min=-most, max=most)
        return x
"""


@pytest.mark.parametrize(
    "test",
    [
        "torch.isinf(x).any()",
        "x.dtype == torch.float16 and torch.isinf(x).any()",
        "x.dtype == torch.float16 and (torch.isinf(x).any() or torch.isnan(x).any())",
    ],
)
def test_limits_of_a_type_are_numbers(test: str) -> None:
    """What transformers do in half precision, lest it overflows."""
    theirs, ours, text = loaded(CLAMPED.format(test=test))
    assert "lax.cond(" in text
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    for half in (False, True):
        for most in (1.0, 7e4, np.inf):
            x = X * np.float32(1.0)
            x[0, 0], x[1, 2] = most, -most
            want = model(torch.tensor(x), half).detach()
            got = nnx.jit(lambda m, x, half=half: m(x, half))(port, jnp.asarray(x))
            assert str(got.dtype) == str(want.dtype).removeprefix("torch.")
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-3 if half else 1e-5, atol=1e-6)


FLIPPED = """
class M(nn.Module):
    def __init__(self, p=1.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if torch.rand(1).item() < self.p:
            return -x
        return x
"""


@pytest.mark.parametrize("p", [0.0, 1.0])
def test_a_draw_that_is_taken_out_in_the_test(p: float) -> None:
    model, port, code = both(FLIPPED.replace("p=1.0", f"p={p}"))
    assert "lax.cond" in code
    x = torch.linspace(-1, 1, 6)
    np.testing.assert_array_equal(port(jnp.asarray(x.numpy())), model(x).numpy())


def test_a_loss_of_nothing() -> None:
    """What comes after an early return stands in a function, with the comments above it."""
    body = (
        "# none of it\n    if x.abs().sum() == 0:\n        return torch.tensor(0.0, device=x.device)\n\n"
        "    # with a name that is given again\n    mean = x.sum() / 6\n    x = x - mean\n    loss = (x ** 2).mean()\n    return loss"
    )
    theirs, ours, text = loaded(SOURCE.format(body))
    assert "def otherwise(x):\n        # with a name" in text
    run = jax.jit(ours["f"])
    for scale in (0.0, 1.0, -2.0):
        x = torch.tensor(X * scale, requires_grad=True)
        want = theirs["f"](x)
        np.testing.assert_allclose(run(jnp.asarray(X * scale)), want.detach(), rtol=1e-5)
        found = jax.grad(run)(jnp.asarray(X * scale))
        gradient = torch.autograd.grad(want, [x])[0] if scale else torch.zeros_like(x)
        np.testing.assert_allclose(found, gradient.numpy(), rtol=1e-5, atol=1e-6)


EXPERTS = """
class Expert(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.up = nn.Linear(d, 2 * d)
        self.down = nn.Linear(2 * d, d)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        h = F.gelu(self.up(x))
        return self.down({h})


class M(nn.Module):
    def __init__(self, d=4, n=5):
        super().__init__()
        self.router = nn.Linear(d, n)
        self.experts = nn.ModuleList([Expert(d) for _ in range(n)])

    def forward(self, x: torch.Tensor):
        weights, chosen = torch.topk(self.router(x).softmax(-1), 2, dim=-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            mask = (chosen == i).any(dim=-1)
            if mask.any():
                w = ((chosen == i).float() * weights).sum(dim=-1, keepdim=True)
                out += w * expert(x)
        return out
"""


@pytest.mark.parametrize("rows", [1, 6])
def test_experts_of_which_some_are_not_asked(rows: int) -> None:
    """What a module computes is left out where nobody asks for it, and so is its gradient."""
    model, port, code = both(EXPERTS.format(h="h"))
    assert "lax.cond(mask.any(), then" in code
    x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(rows))
    want = model(x)
    want.square().sum().backward()
    given = jnp.asarray(x.numpy())
    got = nnx.jit(lambda m, x: m(x))(port, given)
    np.testing.assert_allclose(got, want.detach().numpy(), rtol=1e-5, atol=1e-6)
    grads = nnx.jit(nnx.grad(lambda m, x: jnp.square(m(x)).sum()))(port, given)
    found = migrator.to_state_dict(grads, like=port)
    for name, parameter in model.named_parameters():
        wanted = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        np.testing.assert_allclose(found[name], wanted.numpy(), rtol=1e-4, atol=1e-6, err_msg=name)


def test_experts_that_draw_are_a_finding() -> None:
    assert rules_of(EXPERTS.format(h="self.drop(h)")) == ["DYN002"]


@pytest.mark.parametrize(
    "made",
    [
        "nn.utils.spectral_norm(nn.Linear(4, 4))",
        "nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4))",
    ],
)
def test_layers_that_write_when_they_are_asked_are_a_finding(made: str) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = {}\n\n"
        "    def forward(self, x: torch.Tensor):\n        y = torch.zeros_like(x)\n        if x.sum() > 0:\n"
        "            y += self.fc(x)\n        return y\n"
    )
    assert "DYN002" in rules_of(source.format(made))
    assert not rules_of(source.format("nn.Linear(4, 4)"))


def test_a_write_to_a_buffer_under_a_condition_is_a_finding() -> None:
    """``h`` is the buffer itself: what is added is there in the next call."""
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.ones(4))

    def forward(self, x):
        h = self.b
        if x.sum() > 0:
            h += 1
        return h * x
"""
    assert "DYN002" in rules_of(source)
