"""A 2-layer LSTM over 512 steps: compile and run time of the converted layer against the same with ``nnx.RNN``.

``python benchmarks/lstm.py`` prints both; the first run of each is left out of its run time.
"""

from __future__ import annotations

import time

import jax
from flax import nnx

from rules.compat.rnn import LSTM

STEPS, BATCH, FEATURES, LAYERS, REPEATS = 512, 8, 64, 2, 20


class Stack(nnx.Module):
    """The same network as a person writes it with ``nnx.RNN``."""

    def __init__(self, *, rngs: nnx.Rngs):
        cells = [nnx.OptimizedLSTMCell(FEATURES, FEATURES, rngs=rngs) for _ in range(LAYERS)]
        self.layers = nnx.List([nnx.RNN(cell, time_major=True) for cell in cells])

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def measure(module: nnx.Module) -> dict[str, float]:
    """Seconds to trace and compile, and best seconds of a run, for output and for gradients."""
    graph, state = nnx.split(module)
    x = jax.random.normal(jax.random.key(0), (STEPS, BATCH, FEATURES))

    def forward(state, x):
        out = nnx.merge(graph, state)(x)
        return out[0] if isinstance(out, tuple) else out

    def loss(state, x):
        return forward(state, x).sum()

    found = {}
    for name, function in (("forward", forward), ("gradient", jax.grad(loss, allow_int=True))):
        start = time.perf_counter()
        compiled = jax.jit(function).lower(state, x).compile()
        found[f"{name} compile"] = time.perf_counter() - start
        runs = []
        for _ in range(REPEATS):
            start = time.perf_counter()
            jax.block_until_ready(compiled(state, x))
            runs.append(time.perf_counter() - start)
        found[f"{name} run"] = min(runs)
    return found


def main() -> None:
    """Print a table."""
    ours = measure(LSTM(FEATURES, FEATURES, LAYERS, rngs=nnx.Rngs(0)))
    theirs = measure(Stack(rngs=nnx.Rngs(0)))
    for name, seconds in ours.items():
        ratio = seconds / theirs[name]
        print(
            f"{name:17} converted {seconds:8.4f} s   nnx.RNN {theirs[name]:8.4f} s   {ratio:5.2f}"
        )


if __name__ == "__main__":
    main()
