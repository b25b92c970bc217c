"""``torch.distributions``: objects that sample and say how likely a value is (``rules/compat/distributions.py``)."""

from __future__ import annotations

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
from rules.registry import op


@op(
    "torch.distributions.Normal",
    example={"torch.distributions.Normal(x, 1.0)": "Normal(x, 1.0, rngs=rngs)"},
)
def normal(loc, scale, validate_args=None, *, rngs) -> Other:
    """A Gaussian."""
    return Normal(loc, scale, rngs=rngs)


@op(
    "torch.distributions.Bernoulli",
    example={"torch.distributions.Bernoulli(logits=x)": "Bernoulli(logits=x, rngs=rngs)"},
)
def bernoulli(probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """1 or 0."""
    return Bernoulli(probs=probs, logits=logits, rngs=rngs)


@op(
    "torch.distributions.Categorical",
    example={"torch.distributions.Categorical(x)": "Categorical(probs=x, rngs=rngs)"},
)
def categorical(probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """An index."""
    return Categorical(probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.OneHotCategorical")
def one_hot_categorical(probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """A one-hot row."""
    return OneHotCategorical(probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.OneHotCategoricalStraightThrough")
def one_hot_straight_through(probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """A one-hot row with the gradient of its probabilities."""
    return OneHotCategoricalStraightThrough(probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.Independent")
def independent(base_distribution, reinterpreted_batch_ndims, validate_args=None, *, rngs) -> Other:
    """Batch axes as one event."""
    return Independent(base_distribution, reinterpreted_batch_ndims, rngs=rngs)


@op("torch.distributions.MultivariateNormal")
def multivariate_normal(
    loc,
    covariance_matrix=None,
    precision_matrix=None,
    scale_tril=None,
    validate_args=None,
    *,
    rngs,
) -> Other:
    """A Gaussian over the last axis."""
    return MultivariateNormal(
        loc,
        covariance_matrix=covariance_matrix,
        precision_matrix=precision_matrix,
        scale_tril=scale_tril,
        rngs=rngs,
    )


@op("torch.distributions.Uniform")
def uniform(low, high, validate_args=None, *, rngs) -> Other:
    """Every number of a range alike."""
    return Uniform(low, high, rngs=rngs)


@op("torch.distributions.Laplace")
def laplace(loc, scale, validate_args=None, *, rngs) -> Other:
    """Two exponentials back to back."""
    return Laplace(loc, scale, rngs=rngs)


@op("torch.distributions.Cauchy")
def cauchy(loc, scale, validate_args=None, *, rngs) -> Other:
    """The ratio of two Gaussians."""
    return Cauchy(loc, scale, rngs=rngs)


@op("torch.distributions.Gumbel")
def gumbel(loc, scale, validate_args=None, *, rngs) -> Other:
    """The largest of many numbers."""
    return Gumbel(loc, scale, rngs=rngs)


@op("torch.distributions.HalfNormal")
def half_normal(scale, validate_args=None, *, rngs) -> Other:
    """The absolute value of a Gaussian."""
    return HalfNormal(scale, rngs=rngs)


@op("torch.distributions.LogNormal")
def log_normal(loc, scale, validate_args=None, *, rngs) -> Other:
    """The exponential of a Gaussian."""
    return LogNormal(loc, scale, rngs=rngs)


@op("torch.distributions.Exponential")
def exponential(rate, validate_args=None, *, rngs) -> Other:
    """The time to the next event."""
    return Exponential(rate, rngs=rngs)


@op("torch.distributions.Gamma")
def gamma(concentration, rate, validate_args=None, *, rngs) -> Other:
    """A positive number."""
    return Gamma(concentration, rate, rngs=rngs)


@op("torch.distributions.Chi2")
def chi2(df, validate_args=None, *, rngs) -> Other:
    """The sum of squared Gaussians."""
    return Chi2(df, rngs=rngs)


@op("torch.distributions.StudentT")
def student_t(df, loc=0.0, scale=1.0, validate_args=None, *, rngs) -> Other:
    """A Gaussian of unknown width."""
    return StudentT(df, loc=loc, scale=scale, rngs=rngs)


@op("torch.distributions.Beta")
def beta(concentration1, concentration0, validate_args=None, *, rngs) -> Other:
    """A number between 0 and 1."""
    return Beta(concentration1, concentration0, rngs=rngs)


@op("torch.distributions.Dirichlet")
def dirichlet(concentration, validate_args=None, *, rngs) -> Other:
    """Positive numbers whose sum is 1."""
    return Dirichlet(concentration, rngs=rngs)


@op("torch.distributions.Poisson")
def poisson(rate, validate_args=None, *, rngs) -> Other:
    """The number of events."""
    return Poisson(rate, rngs=rngs)


@op("torch.distributions.Geometric")
def geometric(probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """The number of failures."""
    return Geometric(probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.Binomial")
def binomial(total_count=1, probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """The number of successes."""
    return Binomial(total_count=total_count, probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.NegativeBinomial")
def negative_binomial(total_count, probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """The number of successes before a number of failures."""
    return NegativeBinomial(total_count, probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.RelaxedBernoulli")
def relaxed_bernoulli(temperature, probs=None, logits=None, validate_args=None, *, rngs) -> Other:
    """A number near 0 or 1."""
    return RelaxedBernoulli(temperature, probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.RelaxedOneHotCategorical")
def relaxed_one_hot_categorical(
    temperature, probs=None, logits=None, validate_args=None, *, rngs
) -> Other:
    """A row that is nearly one-hot."""
    return RelaxedOneHotCategorical(temperature, probs=probs, logits=logits, rngs=rngs)


@op("torch.distributions.TransformedDistribution")
def transformed_distribution(base_distribution, transforms, validate_args=None, *, rngs) -> Other:
    """What transforms make of samples."""
    return TransformedDistribution(base_distribution, transforms, rngs=rngs)


@op("torch.distributions.MixtureSameFamily")
def mixture_same_family(
    mixture_distribution, component_distribution, validate_args=None, *, rngs
) -> Other:
    """One of several distributions of one class."""
    return MixtureSameFamily(mixture_distribution, component_distribution, rngs=rngs)


@op("torch.distributions.ExpTransform")
def exp_transform(cache_size=0) -> Other:
    """eˣ."""
    return ExpTransform(cache_size=cache_size)


@op("torch.distributions.TanhTransform")
def tanh_transform(cache_size=0) -> Other:
    """tanh x."""
    return TanhTransform(cache_size=cache_size)


@op("torch.distributions.SigmoidTransform")
def sigmoid_transform(cache_size=0) -> Other:
    """The logistic function."""
    return SigmoidTransform(cache_size=cache_size)


@op("torch.distributions.SoftplusTransform")
def softplus_transform(cache_size=0) -> Other:
    """log(1 + eˣ)."""
    return SoftplusTransform(cache_size=cache_size)


@op("torch.distributions.AffineTransform")
def affine_transform(loc, scale, *, cache_size=0) -> Other:
    """loc + scale · x."""
    return AffineTransform(loc, scale, cache_size=cache_size)


@op("torch.distributions.PowerTransform")
def power_transform(exponent, cache_size=0) -> Other:
    """x to a power."""
    return PowerTransform(exponent, cache_size=cache_size)


@op("torch.distributions.ComposeTransform")
def compose_transform(parts, cache_size=0) -> Other:
    """One after the other."""
    return ComposeTransform(parts, cache_size=cache_size)


@op(
    "torch.distributions.kl_divergence",
    example={
        "torch.distributions.kl_divergence(torch.distributions.Normal(x, 1.0), torch.distributions.Normal(y, 1.0))": (
            "Normal(x, 1.0, rngs=rngs).kl_divergence(Normal(y, 1.0, rngs=rngs))"
        )
    },
)
def kl_divergence(p, q) -> Tensor["float"]:
    """Of two distributions of one class."""
    return p.kl_divergence(q)
