"""A 2-layer LSTM over 512 steps: compile and run time of the converted layer against the same with ``nnx.RNN``.

``python benchmarks/lstm.py`` prints both.
"""

from __future__ import annotations

import functools
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
from flax import nnx

from rules.compat.rnn import LSTM

STEPS, BATCH, FEATURES, LAYERS, REPEATS = 512, 8, 64, 2, 60


class Stack(nnx.Module):
    """The same network as a person writes it with ``nnx.RNN``."""

    def __init__(self, *, rngs: nnx.Rngs):
        cells = [nnx.OptimizedLSTMCell(FEATURES, FEATURES, rngs=rngs) for _ in range(LAYERS)]
        self.layers = nnx.List([nnx.RNN(cell, time_major=True) for cell in cells])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def prepare(module: nnx.Module) -> tuple[dict[str, float], dict[str, Callable[[], Any]]]:
    """Seconds to trace and compile the output and the gradients, and the compiled calls."""
    graph, state = nnx.split(module)
    x = jax.random.normal(jax.random.key(0), (STEPS, BATCH, FEATURES))

    def forward(state, x):
        out = nnx.merge(graph, state)(x)
        return out[0] if isinstance(out, tuple) else out

    def loss(state, x):
        return forward(state, x).sum()

    seconds, calls = {}, {}
    for name, function in (("forward", forward), ("gradient", jax.grad(loss, allow_int=True))):
        start = time.perf_counter()
        compiled = jax.jit(function).lower(state, x).compile()
        seconds[name] = time.perf_counter() - start
        calls[name] = functools.partial(compiled, state, x)
    return seconds, calls


def median_seconds(calls: list[Callable[[], Any]]) -> list[float]:
    """The median time of each call; they take turns, so that a machine that changes its pace does so for all."""
    runs: list[list[float]] = [[] for _ in calls]
    for repeat in range(REPEATS + 1):
        for found, call in zip(runs, calls, strict=True):
            start = time.perf_counter()
            jax.block_until_ready(call())
            if repeat:  # the first run of each warms up
                found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in runs]


def main() -> None:
    """Print a table."""
    compiled, ours = prepare(LSTM(FEATURES, FEATURES, LAYERS, rngs=nnx.Rngs(0)))
    others, theirs = prepare(Stack(rngs=nnx.Rngs(0)))
    for name in ours:
        run = median_seconds([ours[name], theirs[name]])
        for what, (a, b) in {"compile": (compiled[name], others[name]), "run": run}.items():
            print(f"{name} {what:8} converted {a:8.4f} s   nnx.RNN {b:8.4f} s   {a / b:5.2f}")


if __name__ == "__main__":
    main()
