"""The emulated matrix unit against networks that round their operands themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from numerics.emulation import _largest, matrix_unit

KEYS = jax.random.split(jax.random.key(0), 8)


def matmuls(product: Callable[..., Any]) -> Callable[[Any], Any]:
    weights = [jax.random.normal(key, (64, 64)) / 8 for key in KEYS[:6]]

    def stack(x: jax.Array) -> jax.Array:
        for weight in weights:
            x = jnp.tanh(product(x, weight))
        return x

    return stack


def convolutions(product: Callable[..., Any]) -> Callable[[Any], Any]:
    weights = [jax.random.normal(key, (8, 8, 3, 3)) / 9 for key in KEYS[:4]]

    def stack(x: jax.Array) -> jax.Array:
        for weight in weights:
            x = jax.nn.relu(product(x, weight)) + x
        return x

    return stack


def conv(x: jax.Array, w: jax.Array) -> jax.Array:
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")


def bf16_matmul(x: jax.Array, w: jax.Array) -> jax.Array:
    x, w = x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)
    return jnp.matmul(x, w, preferred_element_type=jnp.float32)


def bf16_conv(x: jax.Array, w: jax.Array) -> jax.Array:
    x, w = (a.astype(jnp.bfloat16).astype(jnp.float32) for a in (x, w))
    return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", precision="highest")


@pytest.mark.parametrize(
    ("stack", "plain", "explicit", "shape"),
    [
        (matmuls, jnp.matmul, bf16_matmul, (16, 64)),
        (convolutions, conv, bf16_conv, (2, 8, 12, 12)),
    ],
    ids=["matmul", "convolution"],
)
def test_the_error_is_that_of_bfloat16_operands(
    stack: Any, plain: Any, explicit: Any, shape: tuple[int, ...]
) -> None:
    x = jax.random.normal(KEYS[7], shape)
    exact = jax.jit(stack(plain))(x)
    rounded = np.abs(jax.jit(stack(explicit))(x) - exact).max()
    with matrix_unit():
        emulated = np.abs(jax.jit(stack(plain))(x) - exact).max()
    assert rounded > 1e-4
    assert rounded / 2 <= emulated <= rounded * 2
    after = jax.jit(stack(plain))(x)
    assert np.abs(after - exact).max() == 0, "nothing is left behind"


def test_gradients_are_rounded_in_their_own_products() -> None:
    x = jax.random.normal(KEYS[0], (16, 64))
    w = jax.random.normal(KEYS[1], (64, 64))

    def loss(w: jax.Array) -> jax.Array:
        return jnp.sum((x @ w) ** 2)

    with matrix_unit():
        found = jax.jit(jax.grad(loss))(w)
    y = bf16_matmul(x, w)
    assert np.abs(found - bf16_matmul(x.T, 2 * y)).max() <= 1e-5 * np.abs(found).max()


def test_a_gradient_that_is_noise_already_says_nothing() -> None:
    exact = {"w": np.array([1.0, 2.0]), "cancelled": np.array([1e-20])}
    plain = {"w": exact["w"] * (1 + 1e-7), "cancelled": np.array([1e-9])}
    port = {"w": exact["w"] * 1.01, "cancelled": np.array([1e-3])}
    assert _largest(exact, plain, port) == pytest.approx(0.01)


def test_products_that_ask_for_more_get_it() -> None:
    x = jax.random.normal(KEYS[0], (16, 64))
    highest = jax.jit(lambda x: jnp.matmul(x, x.T, precision="highest"))
    with matrix_unit():
        found = jax.jit(lambda x: jnp.matmul(x, x.T, precision="highest"))(x)
    assert (found == highest(x)).all()
