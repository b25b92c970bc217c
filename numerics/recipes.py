"""Inputs made by a function that knows nothing of profiles: called with seeded generators, its floats varied."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import ml_dtypes
import numpy as np
import torch

from numerics.spec import FLOATS, SpecError
from numerics.tree import mapped

Hook = Callable[[np.random.Generator, Mapping[str, int], str], Any]


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """torch's, numpy's and Python's global generators at a seed; as they were afterwards."""
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(states[0])
        np.random.set_state(states[1])
        random.setstate(states[2])


@contextmanager
def kept_seed() -> Iterator[None]:
    """``torch.manual_seed(0)`` in a constructor changes nothing: what is drawn goes by the seed from outside."""

    def ignored(seed: int) -> torch.Generator:
        return torch.default_generator

    saved = torch.manual_seed, torch.random.manual_seed
    torch.manual_seed = torch.random.manual_seed = ignored
    try:
        yield
    finally:
        torch.manual_seed, torch.random.manual_seed = saved


def as_hook(function: Callable[[], Any]) -> Hook:
    """A hook from ``get_inputs()``: its tensors as numpy arrays, its floats varied as the profile says.

    Integers, booleans and everything else stay as they are made. Floats stay inside the range they show,
    unless they look unbounded (both signs, and beyond one).
    """

    def hook(rng: np.random.Generator, sizes: Mapping[str, int], profile: str) -> Any:
        with seeded(int(rng.integers(2**31))):
            made = function()
        return mapped(lambda value: vary(value, profile, rng), as_numpy(made))

    return hook


def one_of(
    function: Callable[[], Any], wanted: Callable[[int], bool] = lambda index: True
) -> Callable[[], Any]:
    """One of the calls whose arguments ``function()`` makes a list of, by Python's generator."""

    def made() -> Any:
        groups = [group for index, group in enumerate(function()) if wanted(index)]
        if not groups:
            raise SpecError("it returns no arguments at all")
        return random.choice(groups)

    return made


def as_numpy(value: Any) -> Any:
    """Tensors and arrays of any framework, however nested, as numpy; all else as it is."""
    if isinstance(value, torch.Tensor):
        if value.dtype == torch.bfloat16:
            return value.detach().float().cpu().numpy().astype(ml_dtypes.bfloat16)
        return value.detach().cpu().resolve_conj().resolve_neg().numpy()
    if isinstance(value, tuple | list | dict):
        return mapped(as_numpy, value)
    return np.asarray(value) if hasattr(value, "dtype") and hasattr(value, "shape") else value


def vary(value: Any, profile: str, rng: np.random.Generator) -> Any:
    """A float array in another profile of ``numerics.inputs.PROFILES``, in its own range where it has one."""
    if not isinstance(value, np.ndarray) or value.dtype.name not in FLOATS or not value.size:
        return value
    wide = value.astype(np.float64)
    if not np.isfinite(wide).all() or (wide == np.round(wide)).all():
        return value  # a mask or counts, which mean something
    low, high = float(wide.min()), float(wide.max())
    if profile == "ties":
        return rng.choice(wide.flat[: min(wide.size, 5)], size=wide.shape).astype(value.dtype)
    unbounded = low < -1 and high > 1
    if unbounded:
        wide = _unbounded(wide, profile, rng)
    elif profile in ("zeros", "tiny") and (low < 0 or low < 0.1 * high):
        wide = wide * (0.0 if profile == "zeros" else 1e-3)
    return wide.astype(value.dtype)


def _unbounded(values: np.ndarray, profile: str, rng: np.random.Generator) -> np.ndarray:
    if profile == "offset":
        return 10.0 + 0.1 * values
    if profile == "mixed":
        return values * 10.0 ** rng.uniform(-4, 2, size=values.shape)
    return values * {"zeros": 0.0, "tiny": 1e-3, "large": 10.0}.get(profile, 1.0)
