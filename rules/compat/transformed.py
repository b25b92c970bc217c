"""``torch.distributions`` made of others: transformed, relaxed and mixed; and the transforms themselves."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax
from jax.scipy.special import gammaln, logsumexp

from rules.compat.distributions import Categorical, Distribution, Normal, _floats, _inside, _Odds


class _Last:
    """The last array that a transform was given and what it made of it; no part of a compiled function."""

    x = y = None

    def __eq__(self, other):
        return isinstance(other, _Last)

    def __hash__(self):
        return 0


class Transform(nnx.Pytree):
    """An invertible function of each element; with ``cache_size=1`` the last result is inverted without error."""

    sign = 1

    def __init__(self, cache_size=0):
        self.last = _Last() if cache_size else None

    def _keep(self, x, y):
        if self.last is not None:
            self.last.x, self.last.y = x, y

    def __call__(self, x):
        if self.last is not None and x is self.last.x:
            return self.last.y
        y = self._call(x)
        self._keep(x, y)
        return y

    def inverse(self, y):
        if self.last is not None and y is self.last.y:
            return self.last.x
        x = self._inverse(y)
        self._keep(x, y)
        return x

    @property
    def inv(self):
        return InverseTransform(self)

    def result_shape(self, shape):
        return shape


class InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, forward):
        super().__init__()
        self.forward = forward

    @property
    def inv(self):
        return self.forward

    @property
    def sign(self):
        return self.forward.sign

    def __call__(self, x):
        return self.forward.inverse(x)

    def inverse(self, y):
        return self.forward(y)

    def log_abs_det_jacobian(self, x, y):
        return -self.forward.log_abs_det_jacobian(y, x)

    def result_shape(self, shape):
        return self.forward.result_shape(shape)


class ExpTransform(Transform):
    """y = eˣ"""

    def _call(self, x):
        return jnp.exp(x)

    def _inverse(self, y):
        return jnp.log(y)

    def log_abs_det_jacobian(self, x, y):
        return x


class TanhTransform(Transform):
    """y = tanh x"""

    def _call(self, x):
        return jnp.tanh(x)

    def _inverse(self, y):
        return jnp.arctanh(y)

    def log_abs_det_jacobian(self, x, y):
        return 2 * (math.log(2) - x - jax.nn.softplus(-2 * x))


class SigmoidTransform(Transform):
    """y = 1 / (1 + e⁻ˣ), kept between 0 and 1"""

    def _clipped(self, y):
        return jnp.clip(y, jnp.finfo(y.dtype).tiny, 1 - jnp.finfo(y.dtype).eps)

    def _call(self, x):
        return self._clipped(jax.nn.sigmoid(x))

    def _inverse(self, y):
        y = self._clipped(y)
        return jnp.log(y) - jnp.log1p(-y)

    def log_abs_det_jacobian(self, x, y):
        return -jax.nn.softplus(-x) - jax.nn.softplus(x)


class SoftplusTransform(Transform):
    """y = log(1 + eˣ)"""

    def _call(self, x):
        return jax.nn.softplus(x)

    def _inverse(self, y):
        return jnp.log(-jnp.expm1(-y)) + y

    def log_abs_det_jacobian(self, x, y):
        return -jax.nn.softplus(-x)


class AffineTransform(Transform):
    """y = loc + scale · x"""

    def __init__(self, loc, scale, cache_size=0):
        super().__init__(cache_size)
        self.loc, self.scale = loc, scale

    @property
    def sign(self):
        return jnp.sign(self.scale)

    def _call(self, x):
        return self.loc + self.scale * x

    def _inverse(self, y):
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x, y):
        return jnp.broadcast_to(jnp.log(jnp.abs(jnp.asarray(self.scale, x.dtype))), x.shape)

    def result_shape(self, shape):
        return jnp.broadcast_shapes(shape, jnp.shape(self.loc), jnp.shape(self.scale))


class PowerTransform(Transform):
    """y = x to a power"""

    def __init__(self, exponent, cache_size=0):
        super().__init__(cache_size)
        (self.exponent,) = _floats(exponent)

    @property
    def sign(self):
        return jnp.sign(self.exponent)

    def _call(self, x):
        return x**self.exponent

    def _inverse(self, y):
        return y ** (1 / self.exponent)

    def log_abs_det_jacobian(self, x, y):
        return jnp.log(jnp.abs(self.exponent * y / x))

    def result_shape(self, shape):
        return jnp.broadcast_shapes(shape, self.exponent.shape)


class ComposeTransform(Transform):
    """Transforms one after the other."""

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = nnx.List(parts)

    @property
    def sign(self):
        return math.prod(part.sign for part in self.parts)

    def _call(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def _inverse(self, y):
        for part in reversed(self.parts):
            y = part.inverse(y)
        return y

    def log_abs_det_jacobian(self, x, y):
        total = jnp.zeros_like(x)
        for part in self.parts:
            y = part(x)
            total = total + part.log_abs_det_jacobian(x, y)
            x = y
        return total

    def result_shape(self, shape):
        for part in self.parts:
            shape = part.result_shape(shape)
        return shape


class TransformedDistribution(Distribution):
    """What transforms make of the samples of ``base_distribution``."""

    def __init__(self, base_distribution, transforms, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        transforms = [transforms] if isinstance(transforms, Transform) else transforms
        base, events = base_distribution, len(base_distribution.event_shape)
        before = shape = (*base.batch_shape, *base.event_shape)
        for transform in transforms:
            shape = transform.result_shape(shape)
        self.transforms = nnx.List(transforms)
        self.base_dist = base if shape == before else base.expand(shape[: len(shape) - events])

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @property
    def batch_shape(self):
        return self.base_dist.batch_shape

    @property
    def event_shape(self):
        return self.base_dist.event_shape

    def expand(self, batch_shape):
        base = self.base_dist.expand(batch_shape)
        return TransformedDistribution(base, self.transforms, rngs=self.rngs)

    def sample(self, sample_shape=()):
        x = self.base_dist.sample(sample_shape)
        for transform in self.transforms:
            y = lax.stop_gradient(transform(x))
            transform._keep(x, y)
            x = y
        return x

    def rsample(self, sample_shape=()):
        x = self.base_dist.rsample(sample_shape)
        for transform in self.transforms:
            x = transform(x)
        return x

    def log_prob(self, value):
        events, changes = tuple(range(-len(self.event_shape), 0)), 0
        for transform in reversed(self.transforms):
            x = transform.inverse(value)
            changes = changes - transform.log_abs_det_jacobian(x, value).sum(events)
            value = x
        return changes + self.base_dist.log_prob(value)

    def _increasing(self, value):
        """Probabilities, or those of the other side where the transforms turn the order around."""
        sign = math.prod(transform.sign for transform in self.transforms)
        return sign * (value - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inverse(value)
        return self._increasing(self.base_dist.cdf(value))

    def icdf(self, value):
        value = self.base_dist.icdf(self._increasing(value))
        for transform in self.transforms:
            value = transform(value)
        return value


class LogNormal(TransformedDistribution):
    """A number whose logarithm is Gaussian."""

    def __init__(self, loc, scale, *, rngs: nnx.Rngs):
        super().__init__(Normal(loc, scale, rngs=rngs), ExpTransform(), rngs=rngs)

    @property
    def loc(self):
        return self.base_dist.loc

    @property
    def scale(self):
        return self.base_dist.scale

    @property
    def mean(self):
        return jnp.exp(self.loc + self.scale**2 / 2)

    @property
    def mode(self):
        return jnp.exp(self.loc - self.scale**2)

    @property
    def variance(self):
        return jnp.expm1(self.scale**2) * jnp.exp(2 * self.loc + self.scale**2)

    def entropy(self):
        return self.base_dist.entropy() + self.loc

    def expand(self, batch_shape):
        loc, scale = (jnp.broadcast_to(value, batch_shape) for value in (self.loc, self.scale))
        return LogNormal(loc, scale, rngs=self.rngs)

    def _divergence(self, other):
        return self.base_dist.kl_divergence(other.base_dist)


class LogitRelaxedBernoulli(_Odds):
    """The log-odds of a ``RelaxedBernoulli``."""

    def __init__(self, temperature, probs=None, logits=None, *, rngs: nnx.Rngs):
        super().__init__(probs, logits, rngs=rngs)
        self.temperature = temperature

    def expand(self, batch_shape):
        logits = jnp.broadcast_to(self.logits, batch_shape)
        return LogitRelaxedBernoulli(self.temperature, logits=logits, rngs=self.rngs)

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.probs.shape)
        drawn = _inside(jax.random.uniform(self.rngs(), shape, self.probs.dtype))
        probs = _inside(self.probs)
        odds = jnp.log(drawn) - jnp.log1p(-drawn) + jnp.log(probs) - jnp.log1p(-probs)
        return odds / self.temperature

    def log_prob(self, value):
        away = self.logits - value * self.temperature
        return jnp.log(self.temperature) + away - 2 * jnp.log1p(jnp.exp(away))


class RelaxedBernoulli(TransformedDistribution):
    """A number between 0 and 1, nearer to them the lower the temperature."""

    def __init__(self, temperature, probs=None, logits=None, *, rngs: nnx.Rngs):
        base = LogitRelaxedBernoulli(temperature, probs, logits, rngs=rngs)
        super().__init__(base, SigmoidTransform(), rngs=rngs)

    @property
    def has_rsample(self):
        return True

    @property
    def temperature(self):
        return self.base_dist.temperature

    @property
    def logits(self):
        return self.base_dist.logits

    @property
    def probs(self):
        return self.base_dist.probs


class ExpRelaxedCategorical(Categorical):
    """The logarithms of a ``RelaxedOneHotCategorical``."""

    has_rsample = True

    def __init__(self, temperature, probs=None, logits=None, *, rngs: nnx.Rngs):
        super().__init__(probs, logits, rngs=rngs)
        self.temperature = temperature

    @property
    def event_shape(self):
        return self.logits.shape[-1:]

    def expand(self, batch_shape):
        logits = jnp.broadcast_to(self.logits, (*batch_shape, *self.event_shape))
        return ExpRelaxedCategorical(self.temperature, logits=logits, rngs=self.rngs)

    def rsample(self, sample_shape=()):
        shape = (*sample_shape, *self.logits.shape)
        drawn = _inside(jax.random.uniform(self.rngs(), shape, self.logits.dtype))
        scores = (self.logits - jnp.log(-jnp.log(drawn))) / self.temperature
        return scores - logsumexp(scores, axis=-1, keepdims=True)

    def sample(self, sample_shape=()):
        return lax.stop_gradient(self.rsample(sample_shape))

    def log_prob(self, value):
        count = self.logits.shape[-1]
        scale = gammaln(float(count)) + (count - 1) * jnp.log(self.temperature)
        score = self.logits - value * self.temperature
        return (score - logsumexp(score, axis=-1, keepdims=True)).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Numbers along the last axis whose sum is 1, nearer to a one-hot row the lower the temperature."""

    def __init__(self, temperature, probs=None, logits=None, *, rngs: nnx.Rngs):
        base = ExpRelaxedCategorical(temperature, probs, logits, rngs=rngs)
        super().__init__(base, ExpTransform(), rngs=rngs)

    @property
    def temperature(self):
        return self.base_dist.temperature

    @property
    def logits(self):
        return self.base_dist.logits

    @property
    def probs(self):
        return self.base_dist.probs


class MixtureSameFamily(Distribution):
    """One of the distributions along the last batch axis, chosen by a ``Categorical``."""

    has_rsample = False

    def __init__(self, mixture_distribution, component_distribution, *, rngs: nnx.Rngs):
        super().__init__(rngs)
        self.mixture_distribution = mixture_distribution
        self.component_distribution = component_distribution

    @property
    def batch_shape(self):
        return self.component_distribution.batch_shape[:-1]

    @property
    def event_shape(self):
        return self.component_distribution.event_shape

    def expand(self, batch_shape):
        count = self.component_distribution.batch_shape[-1]
        return MixtureSameFamily(
            self.mixture_distribution.expand(batch_shape),
            self.component_distribution.expand((*batch_shape, count)),
            rngs=self.rngs,
        )

    def _axis(self):
        """The axis of the components in what has an event."""
        return -1 - len(self.event_shape)

    def _weights(self):
        """The probabilities of the components, with the axes of the events."""
        probs = self.mixture_distribution.probs
        missing = len(self.batch_shape) - len(self.mixture_distribution.batch_shape)
        missing = 0 if probs.ndim == 2 else missing
        ones = (1,) * len(self.event_shape)
        return probs.reshape(*probs.shape[:-1], *(1,) * missing, probs.shape[-1], *ones)

    @property
    def mean(self):
        return (self._weights() * self.component_distribution.mean).sum(self._axis())

    @property
    def variance(self):
        parts, weights = self.component_distribution, self._weights()
        away = parts.mean - jnp.expand_dims(self.mean, self._axis())
        return (weights * (parts.variance + away**2)).sum(self._axis())

    def sample(self, sample_shape=()):
        chosen = self.mixture_distribution.sample(sample_shape)
        drawn = self.component_distribution.sample(sample_shape)
        chosen = chosen.reshape(*chosen.shape, *(1,) * (1 + len(self.event_shape)))
        return jnp.take_along_axis(drawn, chosen, self._axis()).squeeze(self._axis())

    def log_prob(self, value):
        value = jnp.expand_dims(value, self._axis())
        weights = jax.nn.log_softmax(self.mixture_distribution.logits)
        return logsumexp(self.component_distribution.log_prob(value) + weights, axis=-1)

    def cdf(self, value):
        value = jnp.expand_dims(value, self._axis())
        parts = self.component_distribution.cdf(value)
        return (parts * self.mixture_distribution.probs).sum(-1)
