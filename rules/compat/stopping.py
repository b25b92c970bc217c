"""Loops that end by the value of a tensor: ``for i in range(n): …; if change < tol: break``."""

from __future__ import annotations

from functools import partial

import jax
from jax import lax


def until(step, rounds, *state):
    """``state, stop = step(*state)`` for each of the rounds, until one says to stop.

    Traced, the rounds after that compute nothing and keep the state, so that gradients are those of the rounds that ran.

    Shapes: the state's may change in the first round only.
    Errors: TypeError where a later round changes the shape or dtype of the state.
    """
    stop = False
    for place in range(len(rounds)):
        if isinstance(stop, jax.core.Tracer):
            return _rest(step, len(rounds) - place, state, stop)
        if stop:
            break
        state, stop = step(*state)
    return state


def _rest(step, rounds, state, stop):
    def go(carry, _):
        state, stop = carry
        return lax.cond(stop, lambda *kept: (kept, True), step, *state), None

    (state, _), _ = lax.scan(go, (state, stop), length=rounds)
    return state


def until_numbered(step, rounds, *state):
    """``until`` for a step that is told the number of its round, ``state, stop = step(i, *state)``."""
    stop = False
    for i in rounds:
        if isinstance(stop, jax.core.Tracer):
            state, stop = lax.cond(stop, lambda *kept: (kept, True), partial(step, i), *state)
        elif stop:
            break
        else:
            state, stop = step(i, *state)
    return state
