"""Run and compile time of functional helpers against what one would write in plain JAX (``python -m benchmarks.functional``)."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from flax import nnx
from jax import lax

from rules.compat.conv_functional import conv2d, conv_transpose2d
from rules.compat.interpolate import interpolate
from rules.compat.pooling import adaptive_avg_pool2d, avg_pool2d, max_pool2d

IMAGE = (8, 64, 56, 56)


def channels_last(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """A channels-last function between the transposes that a channels-first boundary needs."""
    return lambda x: function(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)


def pairs() -> dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]]:
    """Name → (helper, plain JAX) of (N, C, H, W)."""
    weight = jnp.ones((64, 64, 3, 3)) / 64
    sizes = (*IMAGE[:2], 112, 112)
    return {
        "conv2d 3x3": (
            lambda x: conv2d(x, weight, padding=1),
            lambda x: lax.conv_general_dilated(x, weight, (1, 1), [(1, 1), (1, 1)]),
        ),
        "conv_transpose2d 3x3, stride 2": (
            lambda x: conv_transpose2d(x, weight, stride=2),
            lambda x: lax.conv_transpose(
                x, weight, (2, 2), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")
            ),
        ),
        "max_pool2d 3, stride 2": (
            lambda x: max_pool2d(x, 3, 2, 1),
            channels_last(lambda x: nnx.max_pool(x, (3, 3), (2, 2), [(1, 1), (1, 1)])),
        ),
        "avg_pool2d 2": (
            lambda x: avg_pool2d(x, 2),
            channels_last(lambda x: nnx.avg_pool(x, (2, 2), (2, 2))),
        ),
        "adaptive_avg_pool2d 7": (
            lambda x: adaptive_avg_pool2d(x, 7),
            lambda x: x.reshape(*IMAGE[:2], 7, 8, 7, 8).mean((3, 5)),
        ),
        "interpolate bilinear x2": (
            lambda x: interpolate(x, scale_factor=2, mode="bilinear"),
            lambda x: jax.image.resize(x, sizes, "bilinear", antialias=False),
        ),
        "interpolate nearest x2": (
            lambda x: interpolate(x, scale_factor=2),
            lambda x: x.repeat(2, axis=2).repeat(2, axis=3),
        ),
    }


def measure(function: Callable[[Any], Any], x: Any) -> tuple[float, float, float]:
    """Seconds to compile value and gradient, then to run each, the best of five."""
    gradient = jax.jit(jax.grad(lambda x: (function(x) ** 2).sum()))
    value = jax.jit(function)
    started = time.perf_counter()
    jax.block_until_ready((value(x), gradient(x)))
    compiling = time.perf_counter() - started
    best = []
    for run in (value, gradient):
        times = []
        for _ in range(5):
            started = time.perf_counter()
            jax.block_until_ready(run(x))
            times.append(time.perf_counter() - started)
        best.append(min(times))
    return compiling, *best


def main() -> None:
    """Print one line for each helper."""
    x = jax.random.normal(jax.random.key(0), IMAGE)
    print(f"{'(8, 64, 56, 56)':32} {'compile s':>16} {'run ms':>18} {'gradient ms':>20}")
    for name, (ours, plain) in pairs().items():
        a, b = measure(ours, x), measure(plain, x)
        cells = [
            f"{p * s:8.2f} vs {q * s:7.2f}" for p, q, s in zip(a, b, (1, 1e3, 1e3), strict=True)
        ]
        print(f"{name:32} {'   '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
