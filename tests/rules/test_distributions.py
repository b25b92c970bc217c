"""The classes of ``torch.distributions`` in JAX: values, gradients and shapes against torch, samples by their moments."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.distributions as td
from flax import nnx

from rules.compat import distributions as ours
from tests.convert.tools import both, rules_of

WIDE = np.linspace(-1.5, 1.5, 12, dtype=np.float32).reshape(3, 4)
ROW = np.array([0.3, 0.9, 1.7, 0.2], np.float32)
SQUARE = np.eye(4, dtype=np.float32) * 0.7 + 0.1
LOWER = np.tril(SQUARE + 0.2)
BITS = (WIDE > 0).astype(np.float32)
INDEX = np.array([0, 3, 1])
ROWS = np.eye(4, dtype=np.float32)[INDEX]


def _softmax(module, x):
    return torch.softmax(x, -1) if module is td else jax.nn.softmax(x, axis=-1)


def _sigmoid(module, x):
    return torch.sigmoid(x) if module is td else jax.nn.sigmoid(x)


CASES: dict[str, tuple[Callable, tuple, np.ndarray]] = {
    "normal": (lambda m, o, a, b: m.Normal(a, b, **o), (WIDE, ROW), WIDE * 2),
    "normal of numbers": (lambda m, o, a: m.Normal(a, 0.5, **o), (WIDE,), WIDE * 2),
    "bernoulli logits": (lambda m, o, a: m.Bernoulli(logits=3 * a, **o), (WIDE,), BITS),
    "bernoulli probs": (lambda m, o, a: m.Bernoulli(_sigmoid(m, a), **o), (WIDE,), BITS),
    "categorical logits": (lambda m, o, a: m.Categorical(logits=a, **o), (WIDE,), INDEX),
    "categorical probs": (lambda m, o, a: m.Categorical(_softmax(m, a) * 3, **o), (WIDE,), INDEX),
    "one-hot logits": (lambda m, o, a: m.OneHotCategorical(logits=a, **o), (WIDE,), ROWS),
    "one-hot probs": (lambda m, o, a: m.OneHotCategorical(_softmax(m, a) * 3, **o), (WIDE,), ROWS),
    "one-hot straight": (
        lambda m, o, a: m.OneHotCategoricalStraightThrough(logits=a, **o),
        (WIDE,),
        ROWS,
    ),
    "independent": (
        lambda m, o, a, b: m.Independent(m.Normal(a, b, **o), 1, **o),
        (WIDE, ROW),
        WIDE * 2,
    ),
    "multivariate": (lambda m, o, a, c: m.MultivariateNormal(a, c, **o), (WIDE, SQUARE), WIDE * 2),
    "multivariate lower": (
        lambda m, o, a, c: m.MultivariateNormal(a, scale_tril=c, **o),
        (WIDE, LOWER),
        WIDE * 2,
    ),
    "multivariate precision": (
        lambda m, o, a, c: m.MultivariateNormal(a, precision_matrix=c, **o),
        (WIDE, SQUARE),
        WIDE * 2,
    ),
}
QUESTIONS: dict[str, Callable] = {
    "log_prob": lambda d, v: d.log_prob(v),
    "entropy": lambda d, v: d.entropy(),
    "perplexity": lambda d, v: d.perplexity(),
    "mean": lambda d, v: d.mean,
    "variance": lambda d, v: d.variance,
    "stddev": lambda d, v: d.stddev,
}


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("case", CASES)
def test_values_and_gradients(case: str, question: str) -> None:
    make, given, value = CASES[case]
    ask = QUESTIONS[question]
    theirs = [torch.tensor(x, requires_grad=True) for x in given]
    expected = ask(make(td, {}, *theirs), torch.tensor(value))
    rngs = nnx.Rngs(0)

    def port(*args):
        return ask(make(ours, {"rngs": rngs}, *args), jnp.asarray(value))

    got = port(*map(jnp.asarray, given))
    assert got.shape == tuple(expected.shape)
    assert got.dtype == jnp.float32
    np.testing.assert_allclose(got, expected.detach(), rtol=2e-5, atol=2e-5)
    if not expected.requires_grad or question == "mean":
        return
    weights = np.cos(np.arange(expected.numel(), dtype=np.float32)).reshape(expected.shape)
    wanted = torch.autograd.grad(
        (expected * torch.tensor(weights)).nan_to_num().sum(), theirs, allow_unused=True
    )
    grads = jax.grad(
        lambda *args: jnp.nan_to_num(port(*args) * weights).sum(), tuple(range(len(given)))
    )(*map(jnp.asarray, given))
    for mine, one in zip(grads, wanted, strict=True):
        want = np.zeros_like(mine) if one is None else one.numpy()
        np.testing.assert_allclose(mine, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("case", CASES)
def test_divergences(case: str) -> None:
    make, given, _ = CASES[case]
    other = tuple(x * np.float32(0.8) for x in given)
    expected = td.kl_divergence(
        make(td, {}, *map(torch.tensor, given)), make(td, {}, *map(torch.tensor, other))
    )
    o = {"rngs": nnx.Rngs(0)}
    p, q = (make(ours, o, *map(jnp.asarray, args)) for args in (given, other))
    np.testing.assert_allclose(p.kl_divergence(q), expected, rtol=1e-4, atol=1e-5)


def test_every_class_has_a_case() -> None:
    o = {"rngs": nnx.Rngs(0)}
    made = {type(make(ours, o, *map(jnp.asarray, given))) for make, given, _ in CASES.values()}
    assert made == {
        ours.Normal,
        ours.Bernoulli,
        ours.Categorical,
        ours.OneHotCategorical,
        ours.OneHotCategoricalStraightThrough,
        ours.Independent,
        ours.MultivariateNormal,
    }


def test_divergences_at_the_edges() -> None:
    probs = np.array([0.0, 0.25, 0.75, 1.0], np.float32)
    a, b = np.meshgrid(probs, probs)
    o = {"rngs": nnx.Rngs(0)}
    expected = td.kl_divergence(td.Bernoulli(torch.tensor(a)), td.Bernoulli(torch.tensor(b)))
    got = ours.Bernoulli(a, **o).kl_divergence(ours.Bernoulli(b, **o))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    rows = np.array([[0.0, 0.5, 0.5], [0.2, 0.8, 0.0]], np.float32)
    p, q = rows, rows[::-1].copy()
    expected = td.kl_divergence(td.Categorical(torch.tensor(p)), td.Categorical(torch.tensor(q)))
    got = ours.Categorical(jnp.asarray(p), **o).kl_divergence(ours.Categorical(jnp.asarray(q), **o))
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_samples(case: str) -> None:
    make, given, _ = CASES[case]
    theirs = make(td, {}, *map(torch.tensor, given))
    mine = make(ours, {"rngs": nnx.Rngs(0)}, *map(jnp.asarray, given))
    assert mine.batch_shape == tuple(theirs.batch_shape)
    assert mine.event_shape == tuple(theirs.event_shape)
    drawn, expected = mine.sample((4000,)), theirs.sample((4000,))
    assert drawn.shape == tuple(expected.shape)
    assert mine.sample().shape == theirs.sample().shape
    if case.startswith("categorical"):
        drawn = jax.nn.one_hot(drawn, 4)
        np.testing.assert_allclose(drawn.mean(0), theirs.probs, atol=0.04)
        return
    np.testing.assert_allclose(drawn.mean(0), theirs.mean, atol=0.12)
    np.testing.assert_allclose(drawn.var(0), theirs.variance, rtol=0.15, atol=0.01)
    if theirs.has_rsample and not case.startswith("one-hot"):
        total = jax.grad(
            lambda loc: (
                make(ours, {"rngs": nnx.Rngs(0)}, loc, *map(jnp.asarray, given[1:])).rsample().sum()
            )
        )(jnp.asarray(given[0]))
        np.testing.assert_allclose(total, np.ones_like(given[0]))


def test_one_hot_rows_pass_the_gradient_of_their_probabilities() -> None:
    theirs = torch.tensor(WIDE, requires_grad=True)
    expected = td.OneHotCategoricalStraightThrough(logits=theirs)
    drawn = (expected.rsample((2,)) * torch.tensor(LOWER[:3])).sum()
    (wanted,) = torch.autograd.grad(drawn, theirs)

    def port(x):
        mine = ours.OneHotCategoricalStraightThrough(logits=x, rngs=nnx.Rngs(0))
        return (mine.rsample((2,)) * LOWER[:3]).sum()

    np.testing.assert_allclose(jax.grad(port)(jnp.asarray(WIDE)), wanted, atol=1e-6)
    mine = ours.OneHotCategorical(logits=jnp.asarray(WIDE), rngs=nnx.Rngs(0))
    np.testing.assert_array_equal(mine.mode, td.OneHotCategorical(logits=torch.tensor(WIDE)).mode)


ONE_HOT = """
import torch.distributions as D


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)

    def forward(self, x):
        d = D.OneHotCategoricalStraightThrough(logits=self.fc(x))
        e = D.OneHotCategorical(probs=torch.softmax(x, -1))
        return d.entropy(), d.log_prob(d.mode), e.mean, d.rsample().sum(-1), e.sample().sum(-1)
"""


def test_a_model_of_one_hot_rows() -> None:
    model, port, _ = both(ONE_HOT)
    got = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(WIDE))
    for mine, theirs in zip(got, model(torch.tensor(WIDE)), strict=True):
        np.testing.assert_allclose(mine, theirs.detach(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("method", ["cdf", "icdf"])
def test_the_cumulative_distribution_of_a_gaussian(method: str) -> None:
    value = np.array([0.1, 0.4, 0.6, 0.9], np.float32)
    expected = getattr(td.Normal(torch.tensor(WIDE), 0.5), method)(torch.tensor(value))
    mine = ours.Normal(WIDE, 0.5, rngs=nnx.Rngs(0))
    np.testing.assert_allclose(getattr(mine, method)(value), expected, rtol=1e-5, atol=1e-6)


MODEL = """
import torch.distributions as D
from torch.distributions.normal import Normal


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.prior = Normal(torch.zeros(4), torch.ones(4))

    def posterior(self, x):
        mu, log_std = self.fc(x).chunk(2, -1)
        return D.Independent(D.Normal(mu, log_std.exp()), 1)

    def forward(self, x):
        q = self.posterior(x)
        z = q.rsample()
        kl = D.kl_divergence(q, D.Independent(D.Normal(torch.zeros_like(z), 1.0), 1))
        c = D.Categorical(logits=self.fc(x))
        return kl + q.log_prob(x) + self.prior.log_prob(x).sum(-1), c.entropy().view(-1, 1), z
"""


def test_a_model_that_samples() -> None:
    model, port, code = both(MODEL)
    assert "validate" not in code
    x = torch.tensor(WIDE)
    expected = model(x)
    got = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(WIDE))
    for mine, theirs in zip(got[:2], expected[:2], strict=True):
        np.testing.assert_allclose(mine, theirs.detach(), rtol=1e-5, atol=1e-5)
    assert got[2].shape == tuple(expected[2].shape)
    again = port(jnp.asarray(WIDE))
    assert np.abs(again[2] - got[2]).max() > 0


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("return D.Normal(x, 1.0).expand((2, 3))", ["API001"]),
        ("return D.Gamma(x, x).sample()", ["API001"]),
        ("d = D.Normal(x, 1.0)\n    x += 1\n    return d.mean", ["MUT001"]),
        ("d = D.Normal(x, 1.0)\n    s = d.sample()\n    s += 1\n    return d.mean + s", []),
    ],
)
def test_what_distributions_do_not_do(line: str, rules: list[str]) -> None:
    source = (
        f"import torch.distributions as D\n\n\ndef f(x: torch.Tensor):\n    x = x * 2\n    {line}\n"
    )
    assert rules_of(source) == rules
