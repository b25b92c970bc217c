"""Activations that jax.nn lacks or differentiates differently where they bend."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def leaky_relu(input, negative_slope=0.01):
    """x where x > 0, else negative_slope · x; the slope at 0 is ``negative_slope``, as in torch."""
    return jnp.where(input > 0, input, negative_slope * input)


def hardtanh(input, min_val=-1.0, max_val=1.0):
    """Clip to [min_val, max_val]; the slope at both ends is 0, as in torch."""
    clipped = jnp.where(input <= min_val, min_val, jnp.where(input >= max_val, max_val, input))
    return clipped.astype(input.dtype)


def softplus(input, beta=1.0, threshold=20.0):
    """log(1 + exp(beta · x)) / beta, and x itself where beta · x > threshold."""
    scaled = input * beta
    return jnp.where(scaled > threshold, input, jnp.logaddexp(scaled, 0) / beta)


def elu(input, alpha=1.0, scale=1.0, input_scale=1.0):
    """scale · x where x > 0, else scale · alpha · (exp(input_scale · x) - 1)."""
    negative = jnp.where(input > 0, 0, input)
    return scale * jnp.where(input > 0, input, alpha * jnp.expm1(input_scale * negative))


def hardshrink(input, lambd=0.5):
    """0 inside [-lambd, lambd], x outside."""
    return jnp.where((input >= -lambd) & (input <= lambd), 0, input)


def softshrink(input, lambd=0.5):
    """0 inside [-lambd, lambd], outside it x moved towards 0 by lambd."""
    outside = jnp.where(input > 0, input - lambd, input + lambd)
    return jnp.where((input >= -lambd) & (input <= lambd), 0, outside)


def threshold(input, threshold, value):
    """x where x > threshold, else ``value``."""
    return jnp.where(input <= threshold, value, input)


def prelu(input, weight):
    """x where x > 0, else weight · x; ``weight`` has one element or one per channel (axis 1)."""
    weight = weight.reshape((-1, *(1,) * (input.ndim - 2)) if weight.size > 1 else ())
    return jnp.where(input > 0, input, weight * input)


def rrelu(input, lower=1 / 8, upper=1 / 3, training=False, *, rngs=None):
    """Leaky ReLU whose slope is drawn from U(lower, upper) in training, else their mean."""
    if not training:
        return leaky_relu(input, (lower + upper) / 2)
    slope = rngs.dropout.uniform(input.shape, input.dtype, lower, upper)
    return jnp.where(input > 0, input, slope * input)


def gumbel_softmax(logits, tau=1.0, hard=False, dim=-1, *, rngs):
    """softmax((logits + Gumbel noise) / tau); ``hard`` gives one-hot values with the soft gradient."""
    noise = rngs.gumbel(logits.shape, logits.dtype)
    soft = jax.nn.softmax((logits + noise) / tau, axis=dim)
    if not hard:
        return soft
    one_hot = jax.nn.one_hot(jnp.argmax(soft, dim), soft.shape[dim], axis=dim, dtype=soft.dtype)
    return one_hot - jax.lax.stop_gradient(soft) + soft
