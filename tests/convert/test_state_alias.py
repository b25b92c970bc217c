"""A local name for a buffer through which the buffer is written, masks, factories from tables."""

from __future__ import annotations

import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, body, check, convert, rules_of

CACHE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("cache", torch.zeros(3, 4))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        out = self.cache
        out[1:] = x[1:]
        out[:, 0] += 1
        n = self.count
        n.add_(2)
        return out * 2 + self.count
"""


def test_a_buffer_written_through_a_local_name() -> None:
    result = convert(CACHE)
    assert result.complete, result.findings
    assert "self.cache[...] = out" in result.code
    theirs: dict = {}
    ours: dict = {}
    exec(HEADER + CACHE, theirs)
    exec(result.code, ours)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    x = torch.linspace(0, 1, 12).reshape(3, 4)
    step = nnx.jit(lambda m, x: m(x))
    for _ in range(2):
        want, got = model(x), step(port, x.numpy())
        torch.testing.assert_close(torch.tensor(got.tolist()), want)
    state = migrator.to_state_dict(port)
    for name, value in model.state_dict().items():
        torch.testing.assert_close(torch.tensor(state[name].tolist()), value)


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("out = self.cache\n", "out = self.cache[:2]\n"),
        ("out = self.cache\n", "out = self.cache\n        self.cache[0] = 1\n"),
        (
            "out = self.cache\n",
            "out = self.cache\n        view = out[0]\n        self.keep = view\n",
        ),
        ("return out", "out = x\n        out[0] = 1\n        return x + out"),
    ],
)
def test_a_name_that_is_not_all_of_the_buffer_is_a_finding(line: str, instead: str) -> None:
    assert "MUT001" in rules_of(CACHE.replace(line, instead))


def test_results_of_one_call_share_no_memory() -> None:
    made = body(
        "def f(x: torch.Tensor):\n    w, i = torch.topk(x, 2)\n    w /= w.sum()\n    return w, i\n",
        "def f",
    )
    assert "w /= w.sum()" in made
    source = "def f(x: torch.Tensor):\n    a, b = x.chunk(2)\n    a /= 2\n    return a, b, x\n"
    assert rules_of(source) == ["MUT001"]


def test_states_of_a_recurrent_layer_share_no_memory() -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.lstm = nn.LSTM(4, 4)\n\n    def forward(self, x):\n"
        "        out, (h, c) = self.lstm(x)\n        h += 1\n        return h * c + out.sum()\n"
    )
    assert rules_of(source) == []


def test_rows_of_an_expanded_tensor_share_memory() -> None:
    source = "def f(x: torch.Tensor):\n    a, b = (x * 2).sum(0).expand(2, 4)\n    b += 1\n    return a, b\n"
    assert rules_of(source) == ["MUT001"]
    assert rules_of(source.replace("expand(2, 4)", "repeat(2, 1)")) == []


def test_values_taken_by_the_mask_they_are_written_through() -> None:
    made = body(
        "def f(x: torch.Tensor, y: torch.Tensor):\n    x = x * 2\n    x[x > y] = y[x > y]\n    return x\n",
        "def f",
    )
    assert "x = jnp.where(x > y, y, x)" in made


def test_classes_in_a_table_that_decorators_fill() -> None:
    check("""
ACTS = {}


def register(name):
    def wrap(cls):
        ACTS[name] = cls
        return cls

    return wrap


@register("swish")
class Swish(nn.Module):
    def forward(self, x):
        return x * torch.sigmoid(x)


@register("scaled")
class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x):
        return x * self.scale


def get_act(name):
    if callable(name):
        return name()
    return ACTS[name]()


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = get_act("swish")
        self.b = get_act(Scaled)
        self.c = Swish()
        self.d = get_act("scaled")

    def forward(self, x):
        return self.d(self.c(self.b(self.a(x))))
""")


def test_the_type_of_another_tensor() -> None:
    made = body(
        "def f(x: torch.Tensor, y: torch.Tensor):\n    if x.type() != y.type():\n"
        "        x = x.type(y.type())\n    return x\n",
        "def f",
    )
    assert "if x.dtype != y.dtype:" in made
    assert "x = x.astype(y.dtype)" in made


@pytest.mark.parametrize("test", ["x.type() == 'torch.FloatTensor'", "x.type().endswith('r')"])
def test_the_name_of_a_type_is_a_finding(test: str) -> None:
    source = f"def f(x: torch.Tensor):\n    return x if {test} else x + 1\n"
    assert rules_of(source) == ["API002"]


def test_a_child_by_a_name_that_is_put_together() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(2):
            self.add_module("fc_%d" % i, nn.Linear(4, 4))

    def forward(self, x):
        for i in range(2):
            x = self._modules["fc_%d" % i](x).view(-1, 4)
        return x
""")
    assert 'getattr(self, "fc_%d" % i)(x).reshape(-1, 4)' in code


def test_what_a_mask_selects_is_reduced_over_the_mask() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = self.fc(x)
        valid = x[:, 0] > 0
        low = x[~valid].mean()
        return torch.stack([x[x > 0].mean(), x[valid].sum(), (x * 2)[x > 0.5].sum(), low])
"""
    code = check(source)
    assert "jnp.mean(x, where=x > 0)" in code, code
    assert "masked_mean(x, ~valid)" in code
    for line in ("x[x > 0].prod()", "x[x > 0].mean(0)", "x[mask].prod()"):
        source = f"def f(x: torch.Tensor, mask: torch.Tensor):\n    return {line}\n"
        assert rules_of(source) == ["DYN001"], line
