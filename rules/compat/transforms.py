"""Function transforms whose results torch arranges otherwise than JAX."""

from __future__ import annotations

from collections.abc import Callable

import jax
from jax import lax


def grad_and_value(
    fun: Callable, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Callable:
    """``jax.value_and_grad`` with the gradient first (``torch.func.grad_and_value``)."""
    both = jax.value_and_grad(fun, argnums, has_aux)
    return lambda *args, **kwargs: both(*args, **kwargs)[::-1]


def while_loop(cond: Callable, body: Callable, carried: tuple) -> tuple:
    """``lax.while_loop`` over functions that take the carried values one by one."""
    return lax.while_loop(
        lambda values: cond(*values), lambda values: tuple(body(*values)), tuple(carried)
    )
