"""Attributes that are assigned anew: of another shape or dtype, or a tensor where there was a number or an argument."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, both, check, module


def _twice(init: str, forward: str, *args: object) -> str:
    """Compare two calls of a module that keeps what it has seen, also under jit; the converted code."""
    source = f"class M(nn.Module):\n    def __init__(self, given=None):\n        super().__init__()\n        {init}\n\n"
    source += f"    def forward(self, x):\n        {forward}\n"
    model, port, code = both(source, *args)
    jitted = both(source, *args)[1]
    step = nnx.jit(lambda m, x: m(x))
    for _ in range(2):
        want = model(X).detach().numpy()
        for got in (port(jnp.asarray(X.numpy())), step(jitted, jnp.asarray(X.numpy()))):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
            assert got.dtype == want.dtype
    assert set(migrator.to_state_dict(port)) == set(model.state_dict())
    return code


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ("self.seen = torch.zeros(1, 4)", "self.seen = self.seen * 0.5 + x; return self.seen"),
        (
            "self.register_buffer('seen', torch.zeros(1, 4))",
            "self.seen = x - self.seen; return self.seen",
        ),
        (
            "self.register_buffer('step', torch.tensor(0))",
            "self.step = self.step + 0.5; return x * self.step",
        ),
        ("self.loss = 0.0", "self.loss = x.mean() + self.loss; return x - self.loss"),
        ("self.total = 0", "self.total += x.mean(); return x * self.total"),
        ("self.gap = -1", "self.gap = x.abs().max() + self.gap; return x * self.gap"),
        ("self.last = float('inf')", "self.last = x.min(); return x * self.last"),
    ],
    ids=["shape", "buffer shape", "dtype", "number", "added to", "negative", "infinite"],
)
def test_what_is_kept_takes_the_form_of_the_new_value(init: str, forward: str) -> None:
    _twice(init, forward)


@pytest.mark.parametrize("given", [None, 0.25, [0.5, 0.25]], ids=["none", "number", "list"])
def test_an_argument_that_becomes_a_tensor_is_declared_then(given: object) -> None:
    init = (
        "self.alpha = given\n        if isinstance(given, float):\n"
        "            self.alpha = torch.Tensor([given, 1 - given])\n"
        "        if isinstance(given, list):\n            self.alpha = torch.Tensor(given)"
    )
    forward = "return x if self.alpha is None else x * self.alpha[0]"
    assert "self.alpha = nnx.data(jnp.array(given, jnp.float32))" in _twice(init, forward, given)


def test_a_registered_buffer_stays_one_where_the_constructor_assigns_it_again() -> None:
    code = _twice(
        "self.register_buffer('queue', torch.ones(3, 4)); self.queue = F.normalize(self.queue, dim=0)",
        "self.queue = torch.cat([x[:1], self.queue[:-1]]); return x + self.queue",
    )
    assert "persistent=False" not in code


def test_the_old_value_with_a_number_and_two_branches_stay_as_they_were() -> None:
    made = module("self.register_buffer('n', torch.zeros(3))", "self.n = self.n + 1\nreturn x")
    assert "self.n[...] = self.n[...] + 1" in made
    made = module("if dim:\n    self.w = 1.0\nelse:\n    self.w = torch.ones(2)")
    assert "self.w = 1.0" in made


def test_the_state_of_another_module_leaves_out_what_torch_does_not_store() -> None:
    source = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.register_buffer("calls", torch.zeros(1), persistent=False)
        self.register_buffer("sum", torch.zeros(4))
        self.seen = torch.zeros(4)

    def forward(self, x):
        self.calls += 1
        self.sum = self.sum + x.sum(0)
        self.seen = self.seen + x.mean(0)
        return self.fc(x) + self.calls + self.seen + self.sum


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Net()
        self.b = Net()

    def forward(self, x):
        y = self.a(x)
        self.b.load_state_dict(self.a.state_dict())
        return y * self.b(x)
"""
    model, port, _ = both(source)
    for _ in range(2):
        got = port(jnp.asarray(X.numpy()))
        np.testing.assert_allclose(got, model(X).detach().numpy(), rtol=1e-5, atol=1e-5)


def test_none_in_a_branch_and_a_module_later_in_it() -> None:
    source = """
class M(nn.Module):
    def __init__(self, size: int = 3, deep: bool = True):
        super().__init__()
        if deep:
            self.first = nn.Linear(4, 4)
            self.last = None
            if size > 1:
                self.last = self.make()
        else:
            self.first = None

    def make(self) -> nn.Sequential:
        layers = nn.Sequential()
        layers.add_module("fc", nn.Linear(4, 4))
        return layers

    def forward(self, x):
        return self.last(self.first(x))
"""
    assert "self.last = nnx.data(None)" in check(source)


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ("self.s = None", "y = x if self.s is None else x + self.s[0]; self.s = (x, y); return y"),
        (
            "self.s = (torch.zeros(3, 4), torch.ones(1))",
            "a, b = self.s; self.s = (a + x, b); return a + b",
        ),
        ("self.s = []", "y = x + len(self.s); self.s = [x, y]; return y"),
        ("self.s = {}", "y = x * 2; self.s = {'b': x, 'a': y}; return y + self.s['b']"),
        ("self.rnn = nn.LSTM(4, 4); self.s = None", "y, self.s = self.rnn(x, self.s); return y"),
    ],
    ids=["none", "tuple", "list", "dict", "lstm"],
)
def test_containers_of_what_the_last_pass_has_seen(init: str, forward: str) -> None:
    _twice(init, forward)


@pytest.mark.parametrize("masked", [False, True])
def test_what_is_state_in_one_branch_only(masked: bool) -> None:
    """In the other it is a tensor with no key."""
    source = """
class M(nn.Module):
    def __init__(self, masked: bool):
        super().__init__()
        if masked:
            self.register_buffer("mask", torch.tril(torch.ones(4, 4)))
            self.gain = nn.Parameter(torch.full((4,), 2.0))
        else:
            self.mask = torch.Tensor()
            self.gain = torch.ones(4)
        self.masked = masked

    def forward(self, x):
        y = x @ self.mask if self.masked else x
        return y * self.gain + self.mask.numel()
"""
    code = check(source, masked)
    assert "persistent=False" in code
