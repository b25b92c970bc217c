"""``torch.distributions`` of real numbers other than the Gaussians of ``distributions.py``."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jax.scipy.special import digamma, gammainc, gammaln, xlogy

from rules.compat.distributions import Distribution, _floats


class Uniform(Distribution):
    """Every number from ``low`` to ``high`` alike."""

    def __init__(self, low, high, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.low, self.high = _floats(low, high)

    @property
    def batch_shape(self):
        return self.low.shape

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return jnp.nan * self.high

    @property
    def stddev(self):
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self):
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.low.shape)
        drawn = jax.random.uniform(self.rngs(), shape, self.low.dtype)
        return self.low + drawn * (self.high - self.low)

    def log_prob(self, value):
        inside = (self.low <= value) & (value < self.high)
        return jnp.log(inside.astype(self.low.dtype)) - jnp.log(self.high - self.low)

    def entropy(self):
        return jnp.log(self.high - self.low)

    def cdf(self, value):
        return jnp.clip((value - self.low) / (self.high - self.low), 0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def _divergence(self, other):
        ratio = jnp.log((other.high - other.low) / (self.high - self.low))
        return jnp.where((other.low > self.low) | (other.high < self.high), jnp.inf, ratio)


class Laplace(Distribution):
    """Two exponentials back to back, around ``loc``."""

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
        return 2**0.5 * self.scale

    @property
    def variance(self):
        return 2 * self.scale**2

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.loc.shape)
        return self.loc + self.scale * jax.random.laplace(self.rngs(), shape, self.loc.dtype)

    def log_prob(self, value):
        return -jnp.log(2 * self.scale) - jnp.abs(value - self.loc) / self.scale

    def entropy(self):
        return 1 + jnp.log(2 * self.scale)

    def cdf(self, value):
        away = value - self.loc
        return 0.5 - 0.5 * jnp.sign(away) * jnp.expm1(-jnp.abs(away) / self.scale)

    def icdf(self, value):
        term = value - 0.5
        return self.loc - self.scale * jnp.sign(term) * jnp.log1p(-2 * jnp.abs(term))

    def _divergence(self, other):
        ratio, away = self.scale / other.scale, jnp.abs(self.loc - other.loc)
        return away / other.scale - jnp.log(ratio) + ratio * jnp.exp(-away / self.scale) - 1


class Cauchy(Distribution):
    """The ratio of two Gaussians, around ``loc``: it has no mean."""

    def __init__(self, loc, scale, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.loc, self.scale = _floats(loc, scale)

    @property
    def batch_shape(self):
        return self.loc.shape

    @property
    def mean(self):
        return jnp.full_like(self.loc, jnp.nan)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return jnp.full_like(self.loc, jnp.inf)

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.loc.shape)
        return self.loc + self.scale * jax.random.cauchy(self.rngs(), shape, self.loc.dtype)

    def log_prob(self, value):
        squared = ((value - self.loc) / self.scale) ** 2
        return -math.log(math.pi) - jnp.log(self.scale) - jnp.log1p(squared)

    def entropy(self):
        return math.log(4 * math.pi) + jnp.log(self.scale)

    def cdf(self, value):
        return jnp.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value):
        return jnp.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def _divergence(self, other):
        both = (self.scale + other.scale) ** 2 + (self.loc - other.loc) ** 2
        return jnp.log(both) - jnp.log(4 * self.scale * other.scale)


class Gumbel(Distribution):
    """The largest of many numbers, around ``loc``."""

    def __init__(self, loc, scale, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.loc, self.scale = _floats(loc, scale)

    @property
    def batch_shape(self):
        return self.loc.shape

    @property
    def mean(self):
        return self.loc + self.scale * jnp.euler_gamma

    @property
    def mode(self):
        return self.loc

    @property
    def stddev(self):
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self):
        return self.stddev**2

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.loc.shape)
        return self.loc + self.scale * jax.random.gumbel(self.rngs(), shape, self.loc.dtype)

    def log_prob(self, value):
        y = (self.loc - value) / self.scale
        return y - jnp.exp(y) - jnp.log(self.scale)

    def entropy(self):
        return jnp.log(self.scale) + 1 + jnp.euler_gamma

    def _divergence(self, other):
        ratio = self.scale / other.scale
        away = (other.loc - self.loc) / other.scale
        overlap = jnp.exp(away + gammaln(1 + ratio))
        return ratio * jnp.euler_gamma - jnp.log(ratio) - away + overlap - 1 - jnp.euler_gamma


class HalfNormal(Distribution):
    """The absolute value of a Gaussian around 0."""

    def __init__(self, scale, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        (self.scale,) = _floats(scale)

    @property
    def batch_shape(self):
        return self.scale.shape

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def mode(self):
        return jnp.zeros_like(self.scale)

    @property
    def variance(self):
        return self.scale**2 * (1 - 2 / math.pi)

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.scale.shape)
        return self.scale * jnp.abs(jax.random.normal(self.rngs(), shape, self.scale.dtype))

    def log_prob(self, value):
        constant = math.log(2) - 0.5 * math.log(2 * math.pi)
        density = constant - jnp.log(self.scale) - 0.5 * (value / self.scale) ** 2
        return jnp.where(value >= 0, density, -jnp.inf)

    def entropy(self):
        return 0.5 + 0.5 * math.log(2 * math.pi) + jnp.log(self.scale) - math.log(2)

    def _divergence(self, other):
        ratio = (self.scale / other.scale) ** 2
        return 0.5 * (ratio - 1 - jnp.log(ratio))


class Exponential(Distribution):
    """The time to the next event, of which there are ``rate`` in a unit of time."""

    def __init__(self, rate, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        (self.rate,) = _floats(rate)

    @property
    def batch_shape(self):
        return self.rate.shape

    @property
    def mean(self):
        return 1 / self.rate

    @property
    def mode(self):
        return jnp.zeros_like(self.rate)

    @property
    def stddev(self):
        return 1 / self.rate

    @property
    def variance(self):
        return self.rate**-2

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.rate.shape)
        return jax.random.exponential(self.rngs(), shape, self.rate.dtype) / self.rate

    def log_prob(self, value):
        return jnp.log(self.rate) - self.rate * value

    def entropy(self):
        return 1 - jnp.log(self.rate)

    def cdf(self, value):
        return 1 - jnp.exp(-self.rate * value)

    def icdf(self, value):
        return -jnp.log1p(-value) / self.rate

    def _divergence(self, other):
        ratio = other.rate / self.rate
        return ratio - 1 - jnp.log(ratio)


class Gamma(Distribution):
    """A positive number by its shape ``concentration`` and its inverse scale ``rate``."""

    def __init__(self, concentration, rate, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.concentration, self.rate = _floats(concentration, rate)

    @property
    def batch_shape(self):
        return self.rate.shape

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return jnp.maximum((self.concentration - 1) / self.rate, 0)

    @property
    def variance(self):
        return self.concentration / self.rate**2

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.rate.shape)
        drawn = jax.random.gamma(self.rngs(), self.concentration, shape, self.rate.dtype)
        return jnp.maximum(drawn / self.rate, jnp.finfo(self.rate.dtype).tiny)

    def log_prob(self, value):
        shape = self.concentration
        powers = xlogy(shape, self.rate) + xlogy(shape - 1, value)
        return powers - self.rate * value - gammaln(shape)

    def entropy(self):
        shape = self.concentration
        return shape - jnp.log(self.rate) + gammaln(shape) + (1 - shape) * digamma(shape)

    def cdf(self, value):
        return gammainc(self.concentration, self.rate * value)

    def _divergence(self, other):
        mine, theirs = self.concentration, other.concentration
        shapes = gammaln(theirs) - gammaln(mine) + (mine - theirs) * digamma(mine)
        rates = theirs * jnp.log(self.rate / other.rate)
        return shapes + rates + (other.rate - self.rate) * (mine / self.rate)


class Chi2(Gamma):
    """The sum of ``df`` squared standard Gaussians."""

    def __init__(self, df, *, rngs: nnx.Rngs):
        super().__init__(0.5 * df, 0.5, rngs=rngs)

    @property
    def df(self):
        return self.concentration * 2


class StudentT(Distribution):
    """A Gaussian of unknown width, with ``df`` degrees of freedom."""

    def __init__(self, df, loc=0.0, scale=1.0, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.df, self.loc, self.scale = _floats(df, loc, scale)

    @property
    def batch_shape(self):
        return self.df.shape

    @property
    def mean(self):
        return jnp.where(self.df <= 1, jnp.nan, self.loc)

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        finite = self.df > 2
        beyond = jnp.where(finite, self.df, 3) - 2
        otherwise = jnp.where(self.df <= 1, jnp.nan, jnp.inf)
        return jnp.where(finite, self.scale**2 * self.df / beyond, otherwise)

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.df.shape)
        return self.loc + self.scale * jax.random.t(self.rngs(), self.df, shape, self.df.dtype)

    def log_prob(self, value):
        half = 0.5 * (self.df + 1)
        width = jnp.log(self.scale) + 0.5 * jnp.log(self.df) + 0.5 * math.log(math.pi)
        constant = width + gammaln(0.5 * self.df) - gammaln(half)
        return -half * jnp.log1p(((value - self.loc) / self.scale) ** 2 / self.df) - constant

    def entropy(self):
        half = 0.5 * (self.df + 1)
        beta = gammaln(0.5 * self.df) + math.lgamma(0.5) - gammaln(half)
        spread = half * (digamma(half) - digamma(0.5 * self.df))
        return jnp.log(self.scale) + spread + 0.5 * jnp.log(self.df) + beta


class Dirichlet(Distribution):
    """Numbers above 0 along the last axis whose sum is 1."""

    def __init__(self, concentration, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.concentration = concentration

    @property
    def batch_shape(self):
        return self.concentration.shape[:-1]

    @property
    def event_shape(self):
        return self.concentration.shape[-1:]

    @property
    def mean(self):
        return self.concentration / self.concentration.sum(-1, keepdims=True)

    @property
    def mode(self):
        above = jnp.maximum(self.concentration - 1, 0)
        mode = above / above.sum(-1, keepdims=True)
        corner = jax.nn.one_hot(jnp.argmax(mode, axis=-1), mode.shape[-1], dtype=mode.dtype)
        return jnp.where((self.concentration < 1).all(-1, keepdims=True), corner, mode)

    @property
    def variance(self):
        total = self.concentration.sum(-1, keepdims=True)
        return self.concentration * (total - self.concentration) / (total**2 * (total + 1))

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.batch_shape)
        dtype = self.concentration.dtype
        return jax.random.dirichlet(self.rngs(), self.concentration, shape, dtype)

    def log_prob(self, value):
        powers = xlogy(self.concentration - 1, value).sum(-1)
        return powers + gammaln(self.concentration.sum(-1)) - gammaln(self.concentration).sum(-1)

    def entropy(self):
        total, count = self.concentration.sum(-1), self.concentration.shape[-1]
        constant = gammaln(self.concentration).sum(-1) - gammaln(total)
        each = (self.concentration - 1) * digamma(self.concentration)
        return constant - (count - total) * digamma(total) - each.sum(-1)

    def _divergence(self, other):
        mine, theirs = self.concentration, other.concentration
        total = mine.sum(-1)
        constants = gammaln(total) - gammaln(theirs.sum(-1))
        constants = constants - (gammaln(mine) - gammaln(theirs)).sum(-1)
        away = digamma(mine) - digamma(total)[..., None]
        return constants + ((mine - theirs) * away).sum(-1)


class Beta(Distribution):
    """A number between 0 and 1."""

    def __init__(self, concentration1, concentration0, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        both = jnp.stack(_floats(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, rngs=rngs)

    @property
    def concentration1(self):
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self):
        return self._dirichlet.concentration[..., 1]

    @property
    def batch_shape(self):
        return self._dirichlet.batch_shape

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def expand(self, batch_shape):
        ones = jnp.broadcast_to(self.concentration1, batch_shape)
        return Beta(ones, jnp.broadcast_to(self.concentration0, batch_shape), rngs=self.rngs)

    def rsample(self, sample_shape=()):
        return self._dirichlet.rsample(sample_shape)[..., 0]

    def log_prob(self, value):
        return self._dirichlet.log_prob(jnp.stack([value, 1 - value], -1))

    def entropy(self):
        return self._dirichlet.entropy()

    def _divergence(self, other):
        return self._dirichlet.kl_divergence(other._dirichlet)
