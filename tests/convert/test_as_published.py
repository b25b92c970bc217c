"""Idioms of published code: what an update broadcasts, which class super() passes over, what comes before what."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import X, both, check, convert, loaded, rules_of

ADVANTAGES = """def gae(rewards, values, dones, next_value, next_done, gamma: float = 0.99, lam: float = 0.95):
    with torch.no_grad():
        next_value = next_value.reshape(1, -1)
        advantages = torch.zeros_like(rewards)
        last = 0
        for t in reversed(range(4)):
            if t == 3:
                going, nextvalues = 1.0 - next_done, next_value
            else:
                going, nextvalues = 1.0 - dones[t + 1], values[t + 1]
            delta = rewards[t] + gamma * nextvalues * going - values[t]
            advantages[t] = last = delta + gamma * lam * going * last
    return advantages
"""


def test_leading_axes_that_the_place_has_not_are_left_out() -> None:
    theirs, ours, _ = loaded(ADVANTAGES)
    torch.manual_seed(0)
    given = [torch.rand(4, 2), torch.rand(4, 2), torch.rand(4, 2), torch.rand(2), torch.rand(2)]
    found = ours["gae"](*[jnp.asarray(one.numpy()) for one in given])
    np.testing.assert_allclose(found, theirs["gae"](*given).numpy(), rtol=1e-5)


@pytest.mark.parametrize(
    "line",
    ["x[0] = v.unsqueeze(0)", "x[0] = v[None, None]", "x[0] = v.view(1, -1)", "x[0, 0] = v[:1]"],
)
def test_leading_axes_of_what_is_written(line: str) -> None:
    source = (
        f"def f(x: torch.Tensor, v: torch.Tensor):\n    x = x.clone()\n    {line}\n    return x\n"
    )
    theirs, ours, _ = loaded(source)
    x, v = X, torch.arange(4.0)
    found = ours["f"](jnp.asarray(x.numpy()), jnp.asarray(v.numpy()))
    np.testing.assert_array_equal(found, theirs["f"](x, v).numpy())


def test_what_has_no_such_axis_is_written_as_it_is() -> None:
    code = convert(
        "def f(x: torch.Tensor, v: torch.Tensor):\n    x = x.clone()\n    x[0] = v + 1\n    return x\n"
    ).code
    assert ".at[0].set(v + 1)" in code


SUPERS = """class Base(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n


class A(Base):
    def __init__(self, n=4):
        super().__init__(n)
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.fc(x)


class B(A):
    def __init__(self, n=4):
        {init}
        self.g = nn.Linear(n, n)

    def forward(self, x):
        return self.g(x) * 2


class M(B):
    def forward(self, x):
        return {forward} + 1
"""


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        ("super(A, self).__init__(n + 1)", "super(M, self).forward(x) * self.n"),
        ("super().__init__(n)", "super(B, self).forward(x)"),
        ("super().__init__(n)", "super(M, self).forward(x)"),
    ],
)
def test_super_passes_over_the_class_that_it_is_told(init: str, forward: str) -> None:
    check(SUPERS.format(init=init, forward=forward))


def test_a_layer_cannot_be_passed_over() -> None:
    source = """class A(nn.Linear):
    def __init__(self):
        super().__init__(4, 4)


class M(A):
    def __init__(self):
        super(A, self).__init__(4, 4, bias=False)
"""
    assert rules_of(source) == ["API001"]


BASES = """class Tag(nn.Module):
    def tag(self):
        return 2


class Extra:
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.extra = nn.Linear(4, 4)


class Vec(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
        self.fc = nn.Linear(n, n)


class M({bases}):
    def __init__(self):
        super().__init__(4)

    def forward(self, x):
        return self.fc(x) * self.n
"""


@pytest.mark.parametrize("bases", ["Vec", "Tag, Vec", "Extra, Vec"])
def test_the_generator_reaches_the_base_that_draws(bases: str) -> None:
    check(BASES.format(bases=bases))


def test_helpers_stand_before_what_reads_them() -> None:
    source = """LAYERS = {"linear": nn.Linear, "norm": nn.LayerNorm}
from functools import partial


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = LAYERS["linear"](4, 4)
        self.n = partial(LAYERS["norm"], eps=1e-3)([4])

    def forward(self, x):
        return self.n(self.a(x))
"""
    check(source)


def test_imports_stand_before_what_reads_them() -> None:
    source = """try:
    import torch._dynamo as dynamo
except ImportError:
    dynamo = None
import torch
from torch import nn
Layer = type[nn.Module]
"""
    result = migrator.convert_source(source)
    assert result.complete
    exec(result.code, {})


def test_parameters_out_of_a_generator() -> None:
    check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        n = 4
        self.phi = nn.ParameterList(torch.ones(n) * n for n in (4, 1))

    def forward(self, x):
        return x * self.phi[0] + self.phi[1]
"""
    )


@pytest.mark.parametrize(
    "value", ["Pair(torch.ones(4) * 3, 2)", "collections.OrderedDict(a=torch.ones(4) * 3, b=2)"]
)
def test_a_named_tuple_of_tensors_is_kept(value: str) -> None:
    read = "self.p.a * self.p.b" if value.startswith("Pair") else 'self.p["a"] * self.p["b"]'
    check(
        f"""import collections

Pair = collections.namedtuple("Pair", "a b")


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.p = {value}

    def forward(self, x):
        return x * {read}
"""
    )


def test_an_autograd_function_takes_arguments_by_name() -> None:
    source = """class Centred(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, dim=-1):
        ctx.dim = dim
        return x - x.mean(dim, keepdim=True)

    @staticmethod
    def backward(ctx, g):
        return g - 2 * g.mean(ctx.dim, keepdim=True), None


centred = Centred.apply


def f(x: torch.Tensor):
    return centred(x, dim=0)
"""
    theirs, ours, _ = loaded(source)
    x = X.clone().requires_grad_()
    out = theirs["f"](x)
    (out * X).sum().backward()
    array = jnp.asarray(X.numpy())
    np.testing.assert_allclose(ours["f"](array), out.detach().numpy(), atol=1e-6)
    found = jax.grad(lambda v: (ours["f"](v) * array).sum())(array)
    np.testing.assert_allclose(found, x.grad.numpy(), atol=1e-6)


def test_a_list_of_places_is_an_index() -> None:
    source = """class M(nn.Module):
    def __init__(self, n, idxs):
        super().__init__()
        self.idxs = idxs
        keep = torch.ones(n)
        keep[idxs] = 0
        self.register_buffer("keep", keep)
        self.w = nn.Parameter(torch.arange(float(n)))

    def forward(self, x):
        return x * self.keep + self.w[self.idxs].sum()
"""
    check(source, 4, [2, 0])
    check(source, 4, 1)


def test_a_convolution_with_parameters_of_a_list() -> None:
    source = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.vars = nn.ParameterList([nn.Parameter(torch.randn(2, 3, 3)), nn.Parameter(torch.zeros(2))])

    def forward(self, x, vars=None):
        if vars is None:
            vars = self.vars
        w, b = vars[0], vars[1]
        return F.conv1d(x, w, b, padding=1)
"""
    check(source)


@pytest.mark.parametrize(
    "lines",
    [
        "t = y",
        "w, t = self.w, y",
        "t = y if x.ndim == y.ndim else torch.zeros_like(y)",
        "t = y * 2",
        "t = self.fc(x)",
        "t = self.made(y)",
    ],
)
def test_another_name_under_no_grad_keeps_its_gradient(lines: str) -> None:
    source = f"""class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.w = nn.Parameter(torch.ones(4))

    @torch.no_grad()
    def pick(self, a, b):
        if a.shape == b.shape:
            return a
        return b

    @torch.no_grad()
    def made(self, a):
        b = a * 2
        return b

    def forward(self, x):
        y = self.fc(x)
        with torch.no_grad():
            w = self.w
            {lines}
        return x * t * w + y * 0 + self.pick(y, x) * 0.5
"""
    model, port, _ = both(source)
    model(X).pow(2).sum().backward()
    grads = nnx.grad(lambda m, x: (m(x) ** 2).sum())(port, jnp.asarray(X.numpy()))
    kernel = grads["fc"]["kernel"][...].T
    np.testing.assert_allclose(kernel, model.fc.weight.grad.numpy(), atol=1e-4)
    np.testing.assert_allclose(grads["w"][...], model.w.grad.numpy(), atol=1e-4)


def test_a_product_whose_rest_is_taken_has_64_bits() -> None:
    source = "def f(ids: torch.LongTensor):\n    return (ids * {}) % 97\n"
    assert rules_of(source.format(1000003)) == ["DTY004"]
    assert rules_of(source.format(31)) == []


def test_numpy_compares_by_element() -> None:
    source = """import numpy as np


class Schedule:
    def __init__(self, *, betas):
        betas = np.array(betas, dtype=np.float64)
        assert (betas > 0).all() and (betas <= 1).all()
        self.betas = betas
"""
    assert convert(source).complete


def test_the_place_of_a_maximum_is_asked_as_a_tensor_is() -> None:
    source = """def accuracy(output, labels):
    preds = output.max(1)[1].type_as(labels)
    return preds.eq(labels).double().sum() / len(labels)
"""
    theirs, ours, _ = loaded(source)
    labels = torch.tensor([3, 0, 3])
    found = ours["accuracy"](jnp.asarray(X.numpy()), jnp.asarray(labels.numpy()))
    assert float(found) == pytest.approx(float(theirs["accuracy"](X, labels)))


def test_parameters_of_a_dict_of_tensors() -> None:
    check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.d = nn.ParameterDict({"b": torch.ones(4) * 2, "a": torch.ones(4)})

    def forward(self, x):
        return x * self.d["b"] + self.d["a"]
"""
    )


def test_an_empty_size_is_an_empty_tuple() -> None:
    code = convert("def f(s: torch.Size | None = None):\n    s = torch.Size()\n    return s\n").code
    assert "    s = ()\n" in code
