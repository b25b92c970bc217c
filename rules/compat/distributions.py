"""``torch.distributions``: samples, densities and divergences, with the parameters and shapes of torch's classes.

A distribution draws from the ``nnx.Rngs`` it is made with. Parameters and values are not checked (``validate_args``).
"""

from __future__ import annotations

import math
from copy import copy

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from jax.scipy.linalg import solve_triangular
from jax.scipy.special import erf, erfinv, logsumexp

from rules.compat.losses import binary_cross_entropy_with_logits


def _floats(*values):
    """Numbers and arrays as arrays of one shape; numbers have the dtype of the arrays."""
    dtype = jnp.result_type(*values)
    dtype = dtype if jnp.issubdtype(dtype, jnp.floating) else jnp.float32
    return jnp.broadcast_arrays(*(jnp.asarray(value, dtype) for value in values))


def _inside(probs):
    """Probabilities away from 0 and 1, whose logarithms are finite."""
    eps = jnp.finfo(probs.dtype).eps
    return jnp.clip(probs, eps, 1 - eps)


class Distribution(nnx.Pytree):
    """What all distributions have; ``sample`` carries no gradient, ``rsample`` does."""

    has_rsample = True

    def __init__(self, rngs: nnx.Rngs):
        self.rngs = rngs

    @property
    def event_shape(self):
        return ()

    @property
    def stddev(self):
        return jnp.sqrt(self.variance)

    def sample(self, sample_shape=()):
        return lax.stop_gradient(self.rsample(sample_shape))

    def perplexity(self):
        return jnp.exp(self.entropy())

    def expand(self, batch_shape):
        """The distribution with its parameters broadcast to another batch shape."""
        new, cut = copy(self), len(self.batch_shape)
        for name, value in vars(self).items():
            if isinstance(value, jax.Array):
                setattr(new, name, jnp.broadcast_to(value, (*batch_shape, *value.shape[cut:])))
        return new

    def kl_divergence(self, other):
        """KL(self ‖ other) of two distributions of one class."""
        if not (isinstance(other, type(self)) or isinstance(self, type(other))):
            names = f"{type(self).__name__} and {type(other).__name__}"
            raise NotImplementedError(f"the divergence of {names} has no conversion")
        return self._divergence(other)


class Normal(Distribution):
    """A Gaussian of each element of ``loc`` and ``scale``."""

    def __init__(self, loc, scale, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.loc, self.scale = _floats(loc, scale)

    @property
    def batch_shape(self):
        return self.loc.shape

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return self.scale

    @property
    def variance(self):
        return self.scale**2

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.loc.shape)
        return self.loc + self.scale * jax.random.normal(self.rngs(), shape, self.loc.dtype)

    def log_prob(self, value):
        squared = (value - self.loc) ** 2 / (2 * self.scale**2)
        return -squared - jnp.log(self.scale) - math.log(math.sqrt(2 * math.pi))

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(self.scale)

    def cdf(self, value):
        return 0.5 * (1 + erf((value - self.loc) / (self.scale * math.sqrt(2))))

    def icdf(self, value):
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)

    def _divergence(self, other):
        ratio = (self.scale / other.scale) ** 2
        return 0.5 * (ratio + ((self.loc - other.loc) / other.scale) ** 2 - 1 - jnp.log(ratio))


class _Odds(Distribution):
    """Distributions by the probability of 1, or by ``logits``, its log-odds."""

    has_rsample = False

    def __init__(self, probs=None, logits=None, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            (self.probs,) = _floats(probs)
            inside = _inside(self.probs)
            self.logits = jnp.log(inside) - jnp.log1p(-inside)
        else:
            (self.logits,) = _floats(logits)
            self.probs = jax.nn.sigmoid(self.logits)

    @property
    def batch_shape(self):
        return self.probs.shape


class Bernoulli(_Odds):
    """1 with probability ``probs``, else 0."""

    @property
    def mean(self):
        return self.probs

    @property
    def mode(self):
        return jnp.where(self.probs == 0.5, jnp.nan, self.probs >= 0.5).astype(self.probs.dtype)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = (*sample_shape, *self.probs.shape)
        return jax.random.bernoulli(self.rngs(), self.probs, shape).astype(self.probs.dtype)

    def log_prob(self, value):
        return -binary_cross_entropy_with_logits(self.logits, value, reduction="none")

    def entropy(self):
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def _divergence(self, other):
        softplus, p, q = jax.nn.softplus, self.probs, other.probs
        one = p * (softplus(-other.logits) - softplus(-self.logits))
        one = jnp.where(p == 0, 0, jnp.where(q == 0, jnp.inf, one))
        two = (1 - p) * (softplus(other.logits) - softplus(self.logits))
        return one + jnp.where(p == 1, 0, jnp.where(q == 1, jnp.inf, two))


class Categorical(Distribution):
    """A number below the size of the last axis, whose probabilities are ``probs`` or the softmax of ``logits``."""

    has_rsample = False

    def __init__(self, probs=None, logits=None, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        if (probs is None) == (logits is None):
            raise ValueError("Either `probs` or `logits` must be specified, but not both.")
        if probs is not None:
            self.probs = probs / probs.sum(-1, keepdims=True)
            self.logits = jnp.log(_inside(self.probs))
        else:
            self.logits = logits - logsumexp(logits, axis=-1, keepdims=True)
            self.probs = jax.nn.softmax(self.logits)

    @property
    def batch_shape(self):
        return self.logits.shape[:-1]

    @property
    def mean(self):
        return jnp.full(self.batch_shape, jnp.nan, self.probs.dtype)

    @property
    def variance(self):
        return jnp.full(self.batch_shape, jnp.nan, self.probs.dtype)

    @property
    def mode(self):
        return jnp.argmax(self.probs, axis=-1)

    def sample(self, sample_shape=()):
        shape = (*sample_shape, *self.batch_shape)
        return jax.random.categorical(self.rngs(), self.logits, shape=shape)

    def log_prob(self, value):
        value = value.astype(jnp.int32)
        shape = jnp.broadcast_shapes(value.shape, self.batch_shape)
        logits = jnp.broadcast_to(self.logits, (*shape, self.logits.shape[-1]))
        value = jnp.broadcast_to(value, shape)
        return jnp.take_along_axis(logits, value[..., None], axis=-1)[..., 0]

    def entropy(self):
        logits = jnp.maximum(self.logits, jnp.finfo(self.logits.dtype).min)
        return -(logits * self.probs).sum(-1)

    def _divergence(self, other):
        terms = self.probs * (self.logits - other.logits)
        terms = jnp.where(self.probs == 0, 0, jnp.where(other.probs == 0, jnp.inf, terms))
        return terms.sum(-1)


class OneHotCategorical(Categorical):
    """A one-hot row instead of the number that ``Categorical`` draws."""

    @property
    def event_shape(self):
        return self.logits.shape[-1:]

    @property
    def mean(self):
        return self.probs

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def _rows(self, index):
        return jax.nn.one_hot(index, self.probs.shape[-1], dtype=self.probs.dtype)

    @property
    def mode(self):
        return self._rows(super().mode)

    def sample(self, sample_shape=()):
        return self._rows(super().sample(sample_shape))

    def log_prob(self, value):
        return super().log_prob(jnp.argmax(value, axis=-1))


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """One-hot rows whose gradient is that of the probabilities."""

    has_rsample = True

    def rsample(self, sample_shape=()):
        return self.sample(sample_shape) + (self.probs - lax.stop_gradient(self.probs))


class Independent(Distribution):
    """A distribution whose last batch axes are one event: densities are summed over them."""

    def __init__(self, base_distribution, reinterpreted_batch_ndims, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def batch_shape(self):
        shape = self.base_dist.batch_shape
        return shape[: len(shape) - self.reinterpreted_batch_ndims]

    @property
    def event_shape(self):
        shape = self.base_dist.batch_shape
        last = shape[len(shape) - self.reinterpreted_batch_ndims :]
        return (*last, *self.base_dist.event_shape)

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    def expand(self, batch_shape):
        last = self.event_shape[: self.reinterpreted_batch_ndims]
        base = self.base_dist.expand((*batch_shape, *last))
        return Independent(base, self.reinterpreted_batch_ndims, rngs=self.rngs)

    @property
    def mean(self):
        return self.base_dist.mean

    @property
    def mode(self):
        return self.base_dist.mode

    @property
    def variance(self):
        return self.base_dist.variance

    def sample(self, sample_shape=()):
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()):
        return self.base_dist.rsample(sample_shape)

    def _summed(self, value):
        return value.sum(tuple(range(-self.reinterpreted_batch_ndims, 0)))

    def log_prob(self, value):
        return self._summed(self.base_dist.log_prob(value))

    def entropy(self):
        return self._summed(self.base_dist.entropy())

    def _divergence(self, other):
        return self._summed(self.base_dist.kl_divergence(other.base_dist))


class MultivariateNormal(Distribution):
    """A Gaussian over the last axis, by its covariance, its precision or the lower Cholesky factor of the covariance."""

    def __init__(
        self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, *, rngs: nnx.Rngs
    ):
        super().__init__(rngs)
        if scale_tril is None and covariance_matrix is not None:
            scale_tril = jnp.linalg.cholesky(covariance_matrix)
        elif scale_tril is None:
            flipped = jnp.linalg.cholesky(jnp.flip(precision_matrix, (-2, -1)))
            upper = jnp.flip(flipped, (-2, -1)).mT
            identity = jnp.broadcast_to(jnp.eye(upper.shape[-1], dtype=upper.dtype), upper.shape)
            scale_tril = solve_triangular(upper, identity, lower=True)
        batch = jnp.broadcast_shapes(scale_tril.shape[:-2], loc.shape[:-1])
        self.loc = jnp.broadcast_to(loc, (*batch, loc.shape[-1]))
        self.scale_tril = jnp.broadcast_to(scale_tril, (*batch, *scale_tril.shape[-2:]))

    @property
    def batch_shape(self):
        return self.loc.shape[:-1]

    @property
    def event_shape(self):
        return self.loc.shape[-1:]

    @property
    def mean(self):
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return (self.scale_tril**2).sum(-1)

    @property
    def covariance_matrix(self):
        return self.scale_tril @ self.scale_tril.mT

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.loc.shape)
        noise = jax.random.normal(self.rngs(), shape, self.loc.dtype)
        return self.loc + jnp.einsum("...ij,...j->...i", self.scale_tril, noise)

    def _half_log_det(self):
        return jnp.log(jnp.diagonal(self.scale_tril, axis1=-2, axis2=-1)).sum(-1)

    def _mahalanobis(self, difference):
        """The squared length of a difference in units of the distribution's width."""
        shape = (*difference.shape[:-1], *self.scale_tril.shape[-2:])
        lower = jnp.broadcast_to(self.scale_tril, shape)
        return (solve_triangular(lower, difference[..., None], lower=True)[..., 0] ** 2).sum(-1)

    def log_prob(self, value):
        difference = jnp.broadcast_to(
            value - self.loc, jnp.broadcast_shapes(value.shape, self.loc.shape)
        )
        constant = self.loc.shape[-1] * math.log(2 * math.pi)
        return -0.5 * (constant + self._mahalanobis(difference)) - self._half_log_det()

    def entropy(self):
        return 0.5 * self.loc.shape[-1] * (1 + math.log(2 * math.pi)) + self._half_log_det()

    def _divergence(self, other):
        batch = jnp.broadcast_shapes(self.batch_shape, other.batch_shape)
        size = self.loc.shape[-1]
        mine = jnp.broadcast_to(self.scale_tril, (*batch, size, size))
        theirs = jnp.broadcast_to(other.scale_tril, (*batch, size, size))
        spread = (solve_triangular(theirs, mine, lower=True) ** 2).sum((-2, -1))
        difference = jnp.broadcast_to(other.loc - self.loc, (*batch, size))
        distance = other._mahalanobis(difference)
        return other._half_log_det() - self._half_log_det() + 0.5 * (spread + distance - size)
