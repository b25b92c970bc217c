"""What both modules start from: constants, tables and buffers by value, drawn parameters by their spread.

Weights are carried from torch to the port before anything is run, so a run says nothing of the values the port makes
by itself: a mask in a buffer, the part of a table that no example reaches, a scale that starts at one. They are
compared here, as they are after construction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from numerics.compare import Difference, compare
from numerics.rounding import Float64, RoundingNoise
from numerics.runners import to_numpy
from numerics.tree import tensors

Build = Callable[[int], torch.nn.Module]
"""Builds the torch module once more, with all generators at the given seed."""

BUILDS = 9
STANDARD_ERRORS = 6.0
FEWEST = 64
"""Values that an array must have for its spread to say something."""


def drawn(module: torch.nn.Module, build: Build) -> dict[str, torch.Tensor]:
    """The tensors of ``module`` that are others when it is built with another seed."""
    again = tensors(build(1))
    return {
        name: value
        for name, value in tensors(module).items()
        if name in again and not _same(value, again[name])
    }


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and bool(
        np.array_equal(to_numpy(a), to_numpy(b), equal_nan=_is_float(a))
    )


def _is_float(value: torch.Tensor) -> bool:
    return value.dtype.is_floating_point or value.dtype.is_complex


def compare_initial(
    module: torch.nn.Module,
    random: Mapping[str, torch.Tensor],
    build: Build,
    port: Mapping[str, np.ndarray],
) -> list[Difference]:
    """Every tensor that both sides have, as they are built.

    Args:
      random: what ``drawn`` found; compared by mean and deviation, the rest value for value.
      port: the port's arrays by torch's names, in torch's layout.
    """
    found = {}
    for name, value in tensors(module).items():
        if name not in port:
            continue
        if name in random:
            found[name] = _compare_spread(name, [to_numpy(value)], _floats(port[name]))
        else:
            own = to_numpy(value)
            found[name] = compare(name, own, [own], _floats(port[name]), _dtype(value))
    wrong = [name for name, difference in found.items() if not difference.ok]
    if any(not found[name].structural for name in wrong):
        found |= _compared_again(wrong, module, random, build, port)
    return list(found.values())


def _compared_again(
    names: list[str],
    module: torch.nn.Module,
    random: Mapping[str, torch.Tensor],
    build: Build,
    port: Mapping[str, np.ndarray],
) -> dict[str, Difference]:
    """With torch's own error measured, and the spread of several constructions."""
    own = [tensors(module), *(_built(build, RoundingNoise(seed)) for seed in range(3))]
    reference = _built(build, Float64())
    others = [tensors(build(seed)) for seed in range(1, BUILDS)]
    found = {}
    for name in names:
        built = [run[name] for run in (own[0], *others) if name in run]
        if name in random or not all(_same(built[0], value) for value in built):
            # a sign or another one of few values may be drawn alike twice
            values = [to_numpy(value) for value in built]
            found[name] = _compare_spread(name, values, _floats(port[name]))
        else:
            runs = [to_numpy(run.get(name, own[0][name])) for run in own]
            exact = to_numpy(reference.get(name, own[0][name]))
            found[name] = compare(name, exact, runs, _floats(port[name]), _dtype(own[0][name]))
    return found


def _built(build: Build, mode: Any) -> dict[str, torch.Tensor]:
    """The tensors of a module built under a mode; none where it cannot be built so."""
    try:
        with mode:
            return tensors(build(0))
    except Exception:
        return {}  # torch's error counts as what its other constructions show


def _floats(value: np.ndarray) -> np.ndarray:
    return to_numpy(value)


def _dtype(value: torch.Tensor) -> str:
    return str(value.dtype).removeprefix("torch.")


def _compare_spread(name: str, own: list[np.ndarray], port: np.ndarray) -> Difference:
    """Mean and deviation over the array, against those of torch's constructions ``own``."""
    if port.shape != own[0].shape:
        problem = f"shape {port.shape} where torch has {own[0].shape}"
        return Difference(name, problem=problem, structural=True)
    if port.size < FEWEST or own[0].dtype.kind not in "fiub":
        return Difference(name)
    if not (np.isfinite(port).all() and np.isfinite(own[0]).all()):
        return Difference(name)
    means, deviations = zip(*((float(x.mean()), float(x.std())) for x in own), strict=True)
    scale = max(deviations)
    # of n normal numbers the mean has a standard error of s / sqrt(n), the deviation one of s / sqrt(2 n)
    error = STANDARD_ERRORS * scale / port.size**0.5
    for word, got, expected, share in (
        ("mean", port.mean(), means, 1.0),
        ("deviation", port.std(), deviations, 0.5**0.5),
    ):
        slack = share * error + 2 * (max(expected) - min(expected))
        if not min(expected) - slack <= got <= max(expected) + slack:
            problem = f"it starts with a {word} of {got:.3g} where torch's is {expected[0]:.3g}"
            return Difference(name, problem=problem)
    return Difference(name)
