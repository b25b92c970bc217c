"""``torch.distributions`` of counts."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from flax import nnx
from jax.scipy.special import gammaln, xlogy

from rules.compat.distributions import Distribution, _floats, _Odds
from rules.compat.losses import binary_cross_entropy_with_logits


class Poisson(Distribution):
    """How many events there are in a unit of time, with ``rate`` on average."""

    has_rsample = False

    def __init__(self, rate, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        (self.rate,) = _floats(rate)

    @property
    def batch_shape(self):
        return self.rate.shape

    @property
    def mean(self):
        return self.rate

    @property
    def mode(self):
        return jnp.floor(self.rate)

    @property
    def variance(self):
        return self.rate

    def sample(self, sample_shape=()):
        shape = (*sample_shape, *self.rate.shape)
        return jax.random.poisson(self.rngs(), self.rate, shape).astype(self.rate.dtype)

    def log_prob(self, value):
        return xlogy(value, self.rate) - self.rate - gammaln(value + 1)

    def _divergence(self, other):
        ratio = jnp.log(self.rate) - jnp.log(other.rate)
        return self.rate * ratio - (self.rate - other.rate)


class Geometric(_Odds):
    """How often 0 is drawn before the first 1, which has the probability ``probs``."""

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return jnp.zeros_like(self.probs)

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=()):
        shape, dtype = (*sample_shape, *self.probs.shape), self.probs.dtype
        drawn = jax.random.uniform(self.rngs(), shape, dtype, jnp.finfo(dtype).tiny)
        return jnp.floor(jnp.log(drawn) / jnp.log1p(-self.probs))

    def log_prob(self, value):
        probs = jnp.where((self.probs == 1) & (value == 0), 0, self.probs)
        return value * jnp.log1p(-probs) + jnp.log(self.probs)

    def entropy(self):
        probs, logits = self.probs, self.logits
        return binary_cross_entropy_with_logits(logits, probs, reduction="none") / probs

    def _divergence(self, other):
        return -self.entropy() - jnp.log1p(-other.probs) / self.probs - other.logits


class _Trials(_Odds):
    """Distributions over ``total_count`` trials that give 1 or 0."""

    def __init__(self, total_count, probs=None, logits=None, *, rngs: nnx.Rngs):
        given = logits if probs is None else probs
        if given is not None:
            dtype = jnp.asarray(given).dtype
            total_count, given = jnp.broadcast_arrays(jnp.asarray(total_count, dtype), given)
        probs, logits = (None, given) if probs is None else (given, logits)
        super().__init__(probs, logits, rngs=rngs)
        self.total_count = total_count


class Binomial(_Trials):
    """How many of ``total_count`` trials give 1."""

    def __init__(self, total_count=1, probs=None, logits=None, *, rngs: nnx.Rngs):
        super().__init__(total_count, probs, logits, rngs=rngs)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return jnp.minimum(jnp.floor((self.total_count + 1) * self.probs), self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()):
        shape = (*sample_shape, *self.probs.shape)
        return jax.random.binomial(self.rngs(), self.total_count, self.probs, shape)

    def log_prob(self, value):
        count, logits = self.total_count, self.logits
        ways = gammaln(count + 1) - gammaln(value + 1) - gammaln(count - value + 1)
        above = (jnp.maximum(logits, 0) + logits - jnp.minimum(logits, 0)) / 2
        return value * logits + ways - count * (above + jnp.log1p(jnp.exp(-jnp.abs(logits))))

    def _divergence(self, other):
        each = self.probs * (self.logits - other.logits)
        each = each + jnp.log1p(-self.probs) - jnp.log1p(-other.probs)
        more = self.total_count > other.total_count
        fewer = self.total_count < other.total_count
        divergence = jnp.where(more, jnp.inf, self.total_count * each)
        return jnp.where(fewer, jnp.nan, divergence)


class NegativeBinomial(_Trials):
    """How many trials give 1 until ``total_count`` of them have given 0."""

    @property
    def mean(self):
        return self.total_count * jnp.exp(self.logits)

    @property
    def mode(self):
        return jnp.maximum(jnp.floor((self.total_count - 1) * jnp.exp(self.logits)), 0)

    @property
    def variance(self):
        return self.mean / jax.nn.sigmoid(-self.logits)

    def sample(self, sample_shape=()):
        shape = (*sample_shape, *self.logits.shape)
        rate = jax.random.gamma(self.rngs(), self.total_count, shape) * jnp.exp(self.logits)
        return jax.random.poisson(self.rngs(), rate).astype(self.logits.dtype)

    def log_prob(self, value):
        count = self.total_count
        drawn = count * jax.nn.log_sigmoid(-self.logits) + value * jax.nn.log_sigmoid(self.logits)
        ways = gammaln(count + value) - gammaln(1 + value) - gammaln(count)
        return drawn + jnp.where(count + value == 0, 0, ways)
