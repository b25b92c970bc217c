"""``torch.distributions``: objects that sample and say how likely a value is (``rules/compat/distributions.py``)."""

from __future__ import annotations

from rules.compat.distributions import (
    Bernoulli,
    Categorical,
    Independent,
    MultivariateNormal,
    Normal,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
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
