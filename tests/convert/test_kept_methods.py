"""Methods that a module keeps as values: a copy of the module calls its own."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from numerics.parameters import copied
from tests.convert.tools import both, check, convert, rules_of

HEAD = """
from functools import partial


class Kept(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x)


class M(nn.Module):
    def __init__(self, fast: bool = False):
        super().__init__()
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        self.size = 3
        self.inner = nn.Linear(4, 4)
"""
REST = """
    def _times(self, x):
        return x * self.scale

    def _plus(self, x):
        return x + self.scale

    @staticmethod
    def _same(x):
        return x

    def _bare(self, x):
        return x

    def _choose(self):
        if self.size > 2:
            return self._times
        return self._plus

    def _look_up(self, name):
        table = {{"times": self._times, "relu": torch.relu}}
        return table[name]

    def forward(self, x):
        return {}
"""


def _source(line: str, call: str = "self.fn(x)") -> str:
    return HEAD + f"        {line}\n" + REST.format(call)


@pytest.mark.parametrize(
    "line",
    [
        "self.fn = self._times",
        "if fast:\n            self.fn = self._same\n        else:\n            self.fn = self._times",
        "self.fn = self._bare if fast else self._times",
        "fns = {'same': self._same, 'times': self._times}\n        self.fn = fns['times']",
        "self.fn = {'times': self._times, 'plus': self._plus}['times']",
        "self.fn = {'plus': self._plus}.get('times', self._times)",
        "fns = {'times': self._times, 'plus': self._plus}\n        self.fn = fns['times']",
        "fns = dict(a=1)\n        self.fn = getattr(self, '_times')",
        "name = 'times'\n        self.fn = getattr(self, f'_{name}')",
        "self.fn = self._plus if fast else self._times",
        "self.fn = self._choose()",
        "if fast:\n            self.fn = self._plus\n        else:\n            self.fn = self._times",
    ],
)
def test_gradients_and_new_weights_reach_a_kept_method(line: str) -> None:
    model, port, _ = both(_source(line, "self.fn(x) + self.fn(x=2 * x)"))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    model(x).sum().backward()
    grads = nnx.jit(nnx.grad(lambda m, x: m(x).sum()))(port, jnp.asarray(x.numpy()))
    np.testing.assert_allclose(grads.scale[...], model.scale.grad.numpy(), rtol=1e-6)
    graph, state = nnx.split(port)
    state["scale"] = state["scale"].replace(jnp.full(4, 5.0))
    with torch.no_grad():
        model.scale.fill_(5.0)
    got = nnx.merge(graph, state)(jnp.asarray(x.numpy()))
    np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-6)


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("self.fns = {'times': self._times, 'plus': self._plus}", "self.fns['times'](x=x)"),
        ("self.fns = [self._times, self._plus]", "self.fns[0](x) + self.fns[1](x)"),
    ],
)
def test_gradients_reach_a_table_of_methods(line: str, call: str) -> None:
    model, port, _ = both(_source(line, call))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    model(x).sum().backward()
    grads = nnx.jit(nnx.grad(lambda m, x: m(x).sum()))(port, jnp.asarray(x.numpy()))
    np.testing.assert_allclose(grads.scale[...], model.scale.grad.numpy(), rtol=1e-6)


STATELESS = """
import copy


class Layer(nn.Module):
    def __init__(self, act: str = "gelu"):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.act = self.look_up(act)

    def look_up(self, name):
        table = {"gelu": self.gelu, "relu": F.relu, "swish": self.swish}
        return table[name]

    def gelu(self, x: torch.Tensor, scale: float = 1.5) -> torch.Tensor:
        return x * torch.erf(x / scale)

    def swish(self, x):
        return x * torch.sigmoid(x)

    def forward(self, x):
        return self.act(self.inner(x)) + self.swish(x)


class M(nn.Module):
    def __init__(self, act: str = "gelu"):
        super().__init__()
        layer = Layer(act)
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(2)])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x
"""


@pytest.mark.parametrize("act", ["gelu", "relu", "swish"])
def test_methods_that_read_nothing_of_the_module_become_static(act: str) -> None:
    """A bound one in an attribute would make a copy of the module endless."""
    assert "@staticmethod\n    def gelu(x: jax.Array, scale" in convert(STATELESS).code
    check(STATELESS, act)


def test_an_overridden_method_stays_one() -> None:
    more = "\n\nclass Other(Layer):\n    def gelu(self, x):\n        return x * self.inner(x)\n"
    assert rules_of(STATELESS + more) == ["API001"]


@pytest.mark.parametrize(
    "line",
    [
        "self.fn = partial(self._times)",
        "self.fn = self.inner.forward",
        "self.fns = {'times': self._times}\n        self.fn = self.fns.get('times')",
        "self.fns = [self._times, self._plus]\n        self.fns.reverse()",
        "self.fns = {'times': self._times, 'relu': torch.relu}",
        "table = {'times': self._times, 'relu': torch.relu}\n        self.fn = table['times']",
        "other, table = {'n': 1}, {'times': self._times}\n        other = {'n': 2}\n        table = {'times': self._times}"
        "\n        self.size = other['n']\n        self.fn = table['times']",
        "self.fn = self._look_up('times')",
        "self.kept = Kept(self._times)",
        "self.kept = nn.Sequential(Kept(lambda x: self.inner(x)))",
        "setattr(self, 'fn', self._times)",
        "fn = self._times\n        self.fn = fn",
    ],
)
def test_other_ways_to_keep_a_method_are_findings(line: str) -> None:
    assert "API001" in rules_of(_source(line, "x"))


@pytest.mark.parametrize("call", ["torch.relu(x) if self.fn is None else x", "(self.fn, x)[1]"])
def test_what_is_read_otherwise_is_a_finding(call: str) -> None:
    assert rules_of(_source("self.fn = self._times", call)) == ["API001"]


@pytest.mark.parametrize(
    "line",
    [
        "self.fn = lambda x: x * self.size",
        "self.fn = torch.relu",
        "self.parts = nn.ModuleList(map(lambda n: nn.Linear(n, self.size), [1, 2]))",
        "self.numbers = sorted([3, 1], key=lambda n: -n)",
        "self.kept = Kept(torch.relu)",
        "self.fn = self._same",
        "self.fn = self._same if self.size > 2 else self._bare",
        "self.fn = {'same': self._same, 'bare': self._bare}['same']",
    ],
)
def test_what_reads_nothing_that_changes_may_be_kept(line: str) -> None:
    assert convert(_source(line, "x")).complete


@pytest.mark.parametrize(
    "line",
    [
        "self.fn = self._same",
        "self.fn = self._bare if fast else self._same",
        "fns = {'same': self._same, 'bare': self._bare}\n        self.fn = fns['same']",
    ],
)
def test_functions_that_read_no_module_are_kept_as_they_are(line: str) -> None:
    model, port, code = both(_source(line, "self.fn(x) * self.scale"))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).detach().numpy())
    assert "getattr" not in code


def test_kept_methods_are_no_layers_where_all_parts_are_gone_through() -> None:
    line = "self.fn = self._times\n        for m in self.modules():\n            if isinstance(m, (nn.Linear, nn.ReLU)):\n                m.train()"
    model, port, _ = both(_source(line))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).detach().numpy())


FUNCTIONS = """
import functools
import types
import weakref


def scaled(self, x):
    return self.norm(x) * 2


class Path:
    def __init__(self, *steps):
        self.steps = steps

    def __call__(self, x):
        for step in self.steps:
            x = step(x)
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = nn.ModuleDict(dict(fc=nn.Linear(4, 4), act=nn.GELU(), dropout=nn.Dropout(0.5)))
        self.scale = nn.Parameter(torch.full((4,), 2.0))
        norm = nn.LayerNorm(4)
        self.norm = norm
        m = self.parts
        {}

    def forward(self, x):
        return {}
"""


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("self.fn = lambda x: m.dropout(m.act(m.fc(x)))", "x + self.fn(self.norm(x))"),
        ("self.fn = lambda x, k=2: norm(x) * self.scale * k", "self.fn(x) + self.fn(x, k=3)"),
    ],
)
def test_gradients_and_new_weights_reach_a_kept_function(line: str, call: str) -> None:
    model, port, _ = both(FUNCTIONS.format(line, call))
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    model.eval()(x).sum().backward()
    port.eval()
    grads = nnx.jit(nnx.grad(lambda m, x: m(x).sum()))(port, jnp.asarray(x.numpy()))
    of_fc, of_scale = model.parts["fc"].bias.grad, model.scale.grad
    if of_fc is not None:
        np.testing.assert_allclose(grads.parts.fc.bias[...], of_fc.numpy(), rtol=1e-5)
    if of_scale is not None:
        np.testing.assert_allclose(grads.scale[...], of_scale.numpy(), rtol=1e-5)
    graph, state = nnx.split(port)
    state["norm"]["bias"] = state["norm"]["bias"].replace(jnp.full(4, 5.0))
    with torch.no_grad():
        model.norm.bias.fill_(5.0)
    got = nnx.merge(graph, state)(jnp.asarray(x.numpy()))
    np.testing.assert_allclose(got, model(x).detach().numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "line",
    [
        "other = nn.Linear(4, 4)\n        self.fn = lambda x: other(x)",
        "w = nn.Parameter(torch.ones(4))\n        self.w = w\n        self.fns = [lambda x: x * w]",
        "self.fns = {'a': lambda x: m.fc(x)}",
        "self.fn = lambda x, layer=norm: layer(x)",
        "self.fn = lambda x, layer=self.norm: layer(x)",
        "def fn(x, layer=self.norm):\n            return layer(x)\n        self.fn = fn",
        "self.fn = functools.partial(F.linear, weight=norm.weight)",
        "self.fn = functools.partial(torch.mul, self.scale)",
        "self.fns = [lambda x, i=i: m.fc(x) * i for i in range(2)]",
        "self.fns = tuple(lambda x: m.fc(x) for i in range(2))",
        "self.path = Path(norm, torch.relu)",
        "self.path = Path(lambda x: self.norm(x))",
        "self.fn = lambda x: m.fc(x)\n        self.parts = nn.ModuleDict({'fc': nn.Linear(4, 4)})",
        "m = nn.Linear(4, 4)\n        self.fn = lambda x: m(x)",
        "self.fn = types.MethodType(scaled, self)",
        "self.fn = scaled.__get__(self)",
        "self.fn = scaled.__get__(self, type(self))",
        "self.part = weakref.ref(self.norm)",
    ],
)
def test_parts_that_a_kept_function_holds_are_findings(line: str) -> None:
    assert "API001" in rules_of(FUNCTIONS.format(line, "x"))


OTHER = """

class Other({}):
    def __init__(self):
        super().__init__()
        self.parts = nn.Linear(4, 4)

    def forward(self, x):
        return self.parts(x)
"""


def test_parts_of_other_classes_may_have_the_same_name() -> None:
    source = FUNCTIONS.format("self.fn = lambda x: m.fc(x)", "self.fn(x)")
    check(source + OTHER.format("nn.Module"))
    assert "API001" in rules_of(source + OTHER.format("M"))  # the same module's, then
    mixed = "\n\nclass Mixed(M, Other):\n    pass\n"
    assert "API001" in rules_of(source + OTHER.format("nn.Module") + mixed)


def test_a_copy_of_a_module_reads_its_own_parts() -> None:
    theirs: dict = {}
    source = FUNCTIONS.format("self.fn = lambda x: m.fc(x)", "self.fn(x)")
    exec("import torch\nfrom torch import nn\n" + source, theirs)
    model = theirs["M"]()
    x = torch.ones(1, 4, dtype=torch.float64)
    assert copied(model).double()(x).dtype == torch.float64
    with pytest.raises(RuntimeError):
        model(x)


@pytest.mark.parametrize(
    "line",
    [
        "size = (size, size)",
        "size = [(size, 1), {'a': size}]",
        "size, other = (other, 1), (size, 2)\n            size = (other,)\n            other = [size]",
    ],
)
def test_a_name_that_is_given_a_display_of_itself(line: str) -> None:
    source = f"""
class Conv(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.size = size

    def forward(self, x):
        return x


class M(nn.Module):
    def __init__(self, size=3, other=4):
        super().__init__()
        if isinstance(size, int):
            {line}
        self.conv = Conv(size)

    def forward(self, x):
        return self.conv(x)
"""
    check(source)
