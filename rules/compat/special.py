"""Special functions that JAX lacks or defines on a smaller domain."""

from __future__ import annotations

import math
from functools import partial

import jax
import jax.numpy as jnp
from jax import lax


def i0(x: jax.Array) -> jax.Array:
    """Modified Bessel function of order 0; its gradient at 0 is 0, in jax.scipy.special.i0 it is 1."""
    return jnp.where(x == 0, 1, jax.scipy.special.i0(jnp.where(x == 0, 1, x)))


def bounded_logit(x: jax.Array, eps: float) -> jax.Array:
    """log(x / (1 - x)) of x bounded to [eps, 1 - eps], without a gradient where a bound is taken, infinite or not."""
    outside = (x < eps) | (x > 1 - eps)
    bound = jax.scipy.special.logit(jax.lax.stop_gradient(jnp.clip(x, eps, 1 - eps)))
    return jnp.where(outside, bound, jax.scipy.special.logit(jnp.where(outside, 0.5, x)))


def zeta(x: jax.Array, q: jax.Array) -> jax.Array:
    """Hurwitz zeta function Σ (q + k)^-x; of negative q the terms before q + k > 0 are added one by one."""
    q = jnp.asarray(q, jnp.result_type(x, q, jnp.float32))
    terms = jnp.maximum(jnp.ceil(-q), 0)

    def add(state):
        k, total = state
        return k + 1, total + jnp.where(k < terms, jnp.where(k < terms, q + k, 1) ** -x, 0)

    shape = jnp.broadcast_shapes(jnp.shape(x), q.shape)
    last = jnp.nan_to_num(terms).max(initial=0)
    start = (jnp.zeros((), q.dtype), jnp.zeros(shape, q.dtype))
    _, head = lax.while_loop(lambda s: s[0] < last, add, start)
    value = head + jax.scipy.special.zeta(x, q + terms)
    pole = (x == 1) | ((x > 1) & (q <= 0) & (q == jnp.floor(q)))
    return jnp.where(pole, jnp.inf, jnp.where(x < 1, jnp.nan, value))


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def polygamma(n: int, x: jax.Array) -> jax.Array:
    """n-th derivative of digamma, n ≥ 0, of negative x too."""
    if n == 0:
        return jnp.where(x == 0, -jnp.inf, jax.scipy.special.digamma(x))
    scale = (-1) ** (n + 1) * math.factorial(n)
    return (scale * zeta(n + 1, x)).astype(jnp.result_type(x, float))


polygamma.defjvp(lambda n, x, dx: (polygamma(n, x[0]), polygamma(n + 1, x[0]) * dx[0]))


def erfcx(x: jax.Array) -> jax.Array:
    """exp(x²) erfc(x) of any shape; above 5 by its asymptotic series (DLMF 7.12.1)."""
    x = jnp.asarray(x, jnp.result_type(x, jnp.float32))
    small = jnp.minimum(x, 5)
    t = 1 / (2 * jnp.square(jnp.maximum(x, 5)))
    series = 1 - t * (1 - 3 * t * (1 - 5 * t * (1 - 7 * t * (1 - 9 * t * (1 - 11 * t)))))
    far = series / (jnp.maximum(x, 5) * jnp.sqrt(jnp.pi).astype(x.dtype))
    return jnp.where(x > 5, far, jnp.exp(small * small) * jax.scipy.special.erfc(small))


def polynomial(x: jax.Array, n: jax.Array, kind: str) -> jax.Array:
    """Orthogonal polynomial of degree ``n`` (an array too) by its three-term recurrence (DLMF 18.9)."""
    dtype = jnp.result_type(x, n, jnp.float32)
    x, n = jnp.broadcast_arrays(jnp.asarray(x, dtype), jnp.asarray(n))
    n = n.astype(int)
    first = {"t": x, "u": 2 * x, "v": 2 * x - 1, "w": 2 * x + 1, "h": 2 * x, "l": 1 - x}.get(
        kind, x
    )

    def step(k, p, q):
        if kind == "h":
            return 2 * x * q - 2 * k * p
        if kind == "he":
            return x * q - k * p
        if kind == "l":
            return ((2 * k + 1 - x) * q - k * p) / (k + 1)
        if kind == "p":
            return ((2 * k + 1) * x * q - k * p) / (k + 1)
        return 2 * x * q - p

    def body(state):
        k, p, q, result = state
        p, q = q, step(k.astype(dtype), p, q)
        return k + 1, p, q, jnp.where(n == k + 1, q, result)

    one = jnp.ones_like(x)
    result = jnp.where(n < 0, 0, jnp.where(n == 0, one, first))
    last = n.max(initial=0)
    state = (jnp.asarray(1), one, first, result)
    return lax.while_loop(lambda s: s[0] < last, body, state)[3]
