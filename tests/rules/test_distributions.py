"""The classes of ``torch.distributions`` in JAX: values, gradients and shapes against torch, samples by their moments."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
import torch.distributions as td
from flax import nnx
from scipy import stats

from migrator.infer import distributions as known
from migrator.infer import kinds as k
from rules.compat.continuous import (
    Beta,
    Cauchy,
    Chi2,
    Dirichlet,
    Exponential,
    Gamma,
    Gumbel,
    HalfNormal,
    Laplace,
    StudentT,
    Uniform,
)
from rules.compat.counts import Binomial, Geometric, NegativeBinomial, Poisson
from rules.compat.distributions import (
    Bernoulli,
    Categorical,
    Independent,
    MultivariateNormal,
    Normal,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
)
from rules.compat.transformed import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    LogNormal,
    MixtureSameFamily,
    PowerTransform,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    SigmoidTransform,
    SoftplusTransform,
    TanhTransform,
    TransformedDistribution,
)
from rules.definitions import index
from tests.convert.tools import both, rules_of

CLASSES = (
    Uniform,
    Laplace,
    Cauchy,
    Gumbel,
    HalfNormal,
    Exponential,
    Gamma,
    Chi2,
    StudentT,
    Dirichlet,
    Beta,
    Poisson,
    Geometric,
    Binomial,
    NegativeBinomial,
    Normal,
    Bernoulli,
    Categorical,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Independent,
    MultivariateNormal,
    ExpTransform,
    TanhTransform,
    SigmoidTransform,
    SoftplusTransform,
    AffineTransform,
    PowerTransform,
    ComposeTransform,
    TransformedDistribution,
    LogNormal,
    RelaxedBernoulli,
    RelaxedOneHotCategorical,
    MixtureSameFamily,
)
ours = SimpleNamespace(**{cls.__name__: cls for cls in CLASSES})
WIDE = np.linspace(-1.5, 1.5, 12, dtype=np.float32).reshape(3, 4)
ROW = np.array([0.3, 0.9, 1.7, 0.2], np.float32)
SQUARE = np.eye(4, dtype=np.float32) * 0.7 + 0.1
LOWER = np.tril(SQUARE + 0.2)
UNIT = (WIDE + 1.7) / 3.4
WHOLE = np.arange(12, dtype=np.float32).reshape(3, 4) % 5
POSITIVE = np.exp(WIDE * 0.6)
TEMPERATURE = np.array(0.7, np.float32)
SIMPLEX = np.array([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1], [0.25] * 4], np.float32)
BITS = (WIDE > 0).astype(np.float32)
INDEX = np.array([0, 3, 1])
ROWS = np.eye(4, dtype=np.float32)[INDEX]


def _softmax(module, x):
    return torch.softmax(x, -1) if module is td else jax.nn.softmax(x, axis=-1)


def _one(module, x):
    return torch.ones_like(x) if module is td else jnp.ones_like(x)


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
    "uniform": (lambda m, o, a, b: m.Uniform(a - b, a + 1, **o), (WIDE, ROW), WIDE),
    "laplace": (lambda m, o, a, b: m.Laplace(a, b, **o), (WIDE, ROW), WIDE * 2),
    "cauchy": (lambda m, o, a, b: m.Cauchy(a, b, **o), (WIDE, ROW), WIDE * 2),
    "gumbel": (lambda m, o, a, b: m.Gumbel(a, b, **o), (WIDE, ROW), WIDE * 2),
    "half normal": (lambda m, o, b: m.HalfNormal(b, **o), (POSITIVE,), UNIT * 2),
    "exponential transform": (
        lambda m, o, a, b: m.TransformedDistribution(m.Normal(a, b, **o), m.ExpTransform(), **o),
        (WIDE * 0.5, ROW * 0.3),
        UNIT * 2,
    ),
    "log normal": (lambda m, o, a, b: m.LogNormal(a, b, **o), (WIDE * 0.5, ROW * 0.3), UNIT * 2),
    "exponential": (lambda m, o, b: m.Exponential(b, **o), (POSITIVE,), UNIT * 2),
    "gamma": (lambda m, o, a, b: m.Gamma(a, b, **o), (POSITIVE, ROW), UNIT * 2),
    "gamma of a number": (lambda m, o, a: m.Gamma(a, 2.0, **o), (POSITIVE,), UNIT * 2),
    "chi2": (lambda m, o, a: m.Chi2(a, **o), (POSITIVE,), UNIT * 2),
    "student": (lambda m, o, a, b: m.StudentT(a, 0.3, b, **o), (POSITIVE + 9, ROW), WIDE),
    "student, few": (lambda m, o, a, b: m.StudentT(a, b, **o), (POSITIVE, ROW), WIDE),
    "beta": (lambda m, o, a, b: m.Beta(a, b, **o), (POSITIVE, ROW), UNIT),
    "beta of a number": (lambda m, o, a: m.Beta(a, 2, **o), (POSITIVE,), UNIT),
    "dirichlet": (lambda m, o, a: m.Dirichlet(a, **o), (POSITIVE,), SIMPLEX),
    "dirichlet, small": (lambda m, o, a: m.Dirichlet(a * 0.2, **o), (POSITIVE,), SIMPLEX),
    "poisson": (lambda m, o, a: m.Poisson(a, **o), (POSITIVE,), WHOLE),
    "geometric probs": (lambda m, o, a: m.Geometric(_sigmoid(m, a), **o), (WIDE,), WHOLE),
    "geometric logits": (lambda m, o, a: m.Geometric(logits=a, **o), (WIDE,), WHOLE),
    "binomial": (lambda m, o, a: m.Binomial(5, _sigmoid(m, a), **o), (WIDE,), WHOLE),
    "binomial logits": (lambda m, o, a: m.Binomial(5, logits=a, **o), (WIDE,), WHOLE),
    "negative binomial": (
        lambda m, o, a, b: m.NegativeBinomial(b, _sigmoid(m, a), **o),
        (WIDE, POSITIVE),
        WHOLE,
    ),
    "negative binomial logits": (
        lambda m, o, a: m.NegativeBinomial(3, logits=a, **o),
        (WIDE,),
        WHOLE,
    ),
    "relaxed": (
        lambda m, o, t, a: m.RelaxedBernoulli(t, logits=a, **o),
        (TEMPERATURE, WIDE),
        UNIT,
    ),
    "relaxed row": (
        lambda m, o, t, a: m.RelaxedOneHotCategorical(t, logits=a, **o),
        (TEMPERATURE, WIDE),
        SIMPLEX,
    ),
    "relaxed row probs": (
        lambda m, o, t, a: m.RelaxedOneHotCategorical(t, _softmax(m, a), **o),
        (TEMPERATURE, WIDE),
        SIMPLEX,
    ),
    "squashed": (
        lambda m, o, a, b: m.TransformedDistribution(
            m.Independent(m.Normal(a, b, **o), 1, **o), [m.TanhTransform(cache_size=1)], **o
        ),
        (WIDE, ROW),
        WIDE * 0.6,
    ),
    "squashed and stretched": (
        lambda m, o, a, b: m.TransformedDistribution(
            m.Normal(a, 0.5, **o), [m.TanhTransform(), m.AffineTransform(0.0, -b)], **o
        ),
        (WIDE[0], POSITIVE),
        POSITIVE * UNIT * 0.9,
    ),
    "logistic": (
        lambda m, o, a, b: m.TransformedDistribution(
            m.Uniform(_one(m, b) * 0, _one(m, b), **o),
            [m.SigmoidTransform().inv, m.AffineTransform(a, b)],
            **o,
        ),
        (WIDE, ROW),
        WIDE * 2,
    ),
    "softplus, powers": (
        lambda m, o, a, b: m.TransformedDistribution(
            m.Normal(a, b, **o),
            m.ComposeTransform([m.SoftplusTransform(), m.PowerTransform(b)]),
            **o,
        ),
        (WIDE, ROW),
        UNIT,
    ),
    "mixture": (
        lambda m, o, w, a: m.MixtureSameFamily(
            m.Categorical(logits=w, **o), m.Normal(a, 0.5, **o), **o
        ),
        (WIDE, WIDE * 0.7),
        WIDE[:, 0],
    ),
    "mixture of vectors": (
        lambda m, o, w, a: m.MixtureSameFamily(
            m.Categorical(logits=w, **o), m.Independent(m.Normal(a, 0.5, **o), 1, **o), **o
        ),
        (WIDE[:, :2], np.stack([WIDE, -0.5 * WIDE], 1)),
        WIDE,
    ),
}
LOCATED = "normal", "independent", "multivariate", "uniform", "laplace", "gumbel"
"""Cases whose first argument moves the samples."""
QUESTIONS: dict[str, Callable] = {
    "log_prob": lambda d, v: d.log_prob(v),
    "entropy": lambda d, v: d.entropy(),
    "perplexity": lambda d, v: d.perplexity(),
    "mean": lambda d, v: d.mean,
    "variance": lambda d, v: d.variance,
    "stddev": lambda d, v: d.stddev,
    "mode": lambda d, v: d.mode,
    "cdf": lambda d, v: d.cdf(v),
    "icdf": lambda d, v: d.icdf(abs(v) % 1),
}


def _answered(case: str) -> dict[str, torch.Tensor]:
    """What torch answers of a case, where the converted class has an answer too."""
    make, given, value = CASES[case]
    theirs = make(td, {}, *(torch.tensor(x, requires_grad=True) for x in given))
    found = {}
    for question, ask in QUESTIONS.items():
        with contextlib.suppress(NotImplementedError, AttributeError, ValueError):
            answer = ask(theirs, torch.tensor(value))
            if question in known.members(type(theirs).__name__):
                found[question] = answer
    return found


@pytest.mark.parametrize("case", CASES)
def test_values(case: str) -> None:
    make, given, value = CASES[case]
    expected = _answered(case)
    assert "log_prob" in expected

    @jax.jit
    def port(*args):
        mine = make(ours, {"rngs": nnx.Rngs(0)}, *args)
        return {question: QUESTIONS[question](mine, jnp.asarray(value)) for question in expected}

    got = port(*map(jnp.asarray, given))
    for question, want in expected.items():
        assert got[question].shape == tuple(want.shape), question
        whole = want.dtype == torch.int64
        assert got[question].dtype == (jnp.int32 if whole else jnp.float32), question
        np.testing.assert_allclose(
            got[question], want.detach(), rtol=2e-5, atol=2e-5, err_msg=question
        )


@pytest.mark.parametrize("case", CASES)
def test_gradients(case: str) -> None:
    make, given, value = CASES[case]
    theirs = [torch.tensor(x, requires_grad=True) for x in given]
    expected = make(td, {}, *theirs)
    asked = [q for q, answer in _answered(case).items() if answer.requires_grad and q != "mode"]
    if "concentration" in vars(expected):
        asked = [q for q in asked if q != "cdf"]  # torch has no derivative of it

    def total(module, distribution, value):
        answers = [QUESTIONS[question](distribution, value) for question in asked]
        scales = (np.cos(np.arange(math.prod(a.shape))).reshape(a.shape) for a in answers)
        lib = torch if module is td else jnp
        return sum(
            lib.nan_to_num(answer * lib.asarray(scale, dtype=answer.dtype)).sum()
            for answer, scale in zip(answers, scales, strict=True)
        )

    @jax.jit
    def port(args):
        return total(ours, make(ours, {"rngs": nnx.Rngs(0)}, *args), jnp.asarray(value))

    wanted = torch.autograd.grad(total(td, expected, torch.tensor(value)), theirs)
    got = jax.grad(port)([jnp.asarray(x) for x in given])
    for mine, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(mine, want, rtol=1e-4, atol=2e-4)


@pytest.mark.parametrize("case", CASES)
def test_divergences(case: str) -> None:
    make, given, _ = CASES[case]
    other = tuple(x * np.float32(0.8) for x in given)
    name = type(make(td, {}, *map(torch.tensor, given))).__name__
    kinds = (k.Other(f"torch.distributions.{name}"),) * 2
    try:
        td.kl_divergence(
            make(td, {}, *map(torch.tensor, given)), make(td, {}, *map(torch.tensor, other))
        )
    except NotImplementedError:
        return
    if not known.comparable(*kinds):
        return
    expected = td.kl_divergence(
        make(td, {}, *map(torch.tensor, given)), make(td, {}, *map(torch.tensor, other))
    )
    o = {"rngs": nnx.Rngs(0)}
    p, q = (make(ours, o, *map(jnp.asarray, args)) for args in (given, other))
    np.testing.assert_allclose(p.kl_divergence(q), expected, rtol=1e-4, atol=1e-5)


def test_every_class_has_a_case() -> None:
    o = {"rngs": nnx.Rngs(0)}
    made = {type(make(ours, o, *map(jnp.asarray, given))) for make, given, _ in CASES.values()}
    offered = {
        name.rpartition(".")[2] for name in index("op") if name.startswith(known.DISTRIBUTIONS)
    }
    assert {cls.__name__ for cls in made} == {
        name for name in offered if name[0].isupper() and not name.endswith("Transform")
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


def _one_of_each() -> list[str]:
    """A case of every class."""
    found: dict[str, str] = {}
    for case, (make, given, _) in CASES.items():
        found.setdefault(type(make(td, {}, *map(torch.tensor, given))).__name__, case)
    return list(found.values())


@pytest.mark.parametrize("case", _one_of_each())
def test_samples(case: str) -> None:
    make, given, _ = CASES[case]
    theirs = make(td, {}, *map(torch.tensor, given))
    mine = make(ours, {"rngs": nnx.Rngs(0)}, *map(jnp.asarray, given))
    assert mine.batch_shape == tuple(theirs.batch_shape)
    assert mine.event_shape == tuple(theirs.event_shape)
    assert mine.has_rsample == theirs.has_rsample
    torch.manual_seed(0)
    drawn = np.asarray(nnx.jit(lambda d: d.sample((4000,)))(mine))
    expected = theirs.sample((4000,)).numpy()
    assert drawn.shape == tuple(expected.shape)
    assert mine.sample().shape == theirs.sample().shape
    if case.startswith("categorical"):
        drawn = jax.nn.one_hot(drawn, 4)
        np.testing.assert_allclose(drawn.mean(0), theirs.probs, atol=0.04)
        return
    columns = zip(drawn.reshape(4000, -1).T, expected.reshape(4000, -1).T, strict=True)
    assert max(stats.ks_2samp(a, b, method="asymp").statistic for a, b in columns) < 0.06
    moments = known.members(type(theirs).__name__)
    if "mean" not in moments or not (theirs.mean + theirs.variance).isfinite().all():
        return
    far = 5 * float(theirs.stddev.max()) / 4000**0.5
    np.testing.assert_allclose(drawn.mean(0), theirs.mean, atol=far)
    np.testing.assert_allclose(drawn.var(0), theirs.variance, rtol=0.15, atol=0.01)
    if theirs.has_rsample and case in LOCATED:
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


ACTOR = """
import torch.distributions as D
from torch.distributions.transforms import TanhTransform


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 8)

    def forward(self, x):
        mu, log_std = self.fc(x).chunk(2, -1)
        base = D.Independent(D.Normal(mu, log_std.clamp(-5, 2).exp()), 1)
        scaled = D.AffineTransform(0.0, 2.0, cache_size=1)
        policy = D.TransformedDistribution(base, [TanhTransform(cache_size=1), scaled])
        value = D.MixtureSameFamily(D.Categorical(logits=x), D.Normal(mu, 1.0))
        noise = D.Beta(x.exp(), 2.0).expand((2, *x.shape))
        back = D.ExpTransform().inv(x.exp()) + D.SigmoidTransform()(x)
        known = policy.log_prob(torch.tanh(x)), value.log_prob(x.sum(-1)), noise.mean, back
        action = policy.rsample()
        return known, action, policy.log_prob(action)
"""


def test_a_model_of_what_transforms_make() -> None:
    model, port, _ = both(ACTOR)
    got = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(WIDE))
    for mine, theirs in zip(got[0], model(torch.tensor(WIDE))[0], strict=True):
        np.testing.assert_allclose(mine, theirs.detach(), rtol=1e-5, atol=1e-5)
    far = jnp.full((3, 4), 1e3)  # tanh is 1 there, and has no inverse
    _, action, density = nnx.jit(lambda m, x: m(x))(port, far)
    assert np.abs(action).max() == 2
    assert np.isfinite(density).all()


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("return D.Normal(x, 1.0).expand((2, 3)).mean", []),
        ("return D.Binomial(3, x).enumerate_support()", ["API001"]),
        ("return D.Weibull(x, x).sample()", ["API001"]),
        ("return D.kl_divergence(D.Normal(x, 1.0), D.Laplace(x, 1.0))", ["API001"]),
        ("return D.kl_divergence(D.Beta(x, 1.0), D.Beta(x, 2.0))", []),
        ("d = D.Normal(x, 1.0)\n    x += 1\n    return d.mean", ["MUT001"]),
        ("d = D.Normal(x, 1.0)\n    s = d.sample()\n    s += 1\n    return d.mean + s", []),
    ],
)
def test_what_distributions_do_not_do(line: str, rules: list[str]) -> None:
    source = (
        f"import torch.distributions as D\n\n\ndef f(x: torch.Tensor):\n    x = x * 2\n    {line}\n"
    )
    assert rules_of(source) == rules
