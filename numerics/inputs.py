"""hypothesis strategies from an input spec: few shapes, many kinds of values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from numerics.example import Example
from numerics.spec import (
    FLOATS,
    Array,
    Choice,
    Constant,
    Group,
    InputSpec,
    Item,
    SpecError,
    evaluate,
)
from numerics.tree import mapped

PROFILES = ("normal", "zeros", "ties", "tiny", "large", "offset", "mixed")
ASKED_FOR = ("denormal", "infinite", "nan")
"""Profiles for those who name them: normal values with some denormal, infinite or NaN ones among them."""
ALL_PROFILES = PROFILES + ASKED_FOR
"""Kinds of values, simplest first: hypothesis shrinks towards the front.

``normal`` is N(0, 1), or uniform where a range is given; ``ties`` repeats a few values; ``tiny`` and ``large``
are 1e-3 and 10 times normal; ``offset`` has a mean far above its spread (where a one-pass variance loses its
digits); ``mixed`` spreads magnitudes from 1e-4 to 1e2 inside one array. Integers are uniform in their range;
``zeros`` takes the lowest, ``ties`` a few of them, ``large`` includes both ends.
"""


def examples(
    sizes: Sequence[Mapping[str, int]],
    profiles: Sequence[str] = PROFILES,
    weights: Sequence[str] = ("fresh",),
) -> st.SearchStrategy[Example]:
    """A strategy over all runs; shrinks to small sizes, simple profiles, plain weights and seed 0."""
    return st.builds(
        Example,
        sizes=st.sampled_from([tuple(assignment.items()) for assignment in sizes]),
        profile=st.sampled_from(list(profiles)),
        seed=st.integers(0, 2**16 - 1),
        weights=st.sampled_from(list(weights)),
    )


def materialise(spec: InputSpec, example: Example) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The call's ``(args, kwargs)`` as numpy arrays and constants."""
    rng = np.random.default_rng([example.seed, ALL_PROFILES.index(example.profile)])
    sizes = dict(example.sizes)
    if spec.hook is not None:
        args, kwargs = _from_hook(spec.hook(rng, sizes, example.profile))
    else:
        args, kwargs = (), {}
        for item in spec.items:
            value = _draw(item, sizes, example, rng)
            if item.name is None:
                args = (*args, value)
            elif not _left_out(item, example):
                kwargs[item.name] = value
    if example.jitter:
        args, kwargs = mapped(lambda x: jittered(x, example.jitter), (args, kwargs))
    return args, kwargs


def alike(
    spec: InputSpec, example: Example, count: int
) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    """``count`` calls with other numbers but one structure: the same arguments are passed, plain values are the same.

    The first is the example's own. Where a hook gives too few of its structure, they are repeated.
    """
    found = [materialise(spec, example)]
    wanted = _structure(found[0])
    for seed in range(example.seed + 1, example.seed + 1 + 20 * count):
        if len(found) == count:
            break
        call = materialise(spec, replace(example, seed=seed))
        if _structure(call) == wanted:
            found.append(call)
    return [found[index % len(found)] for index in range(count)]


def _structure(value: Any) -> Any:
    """All of a call that its numbers do not change."""
    if isinstance(value, np.ndarray):
        return value.shape, value.dtype.name
    if isinstance(value, dict):
        return {key: _structure(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_structure(part) for part in value]
    return repr(value)


def _left_out(item: Item, example: Example) -> bool:
    """Whether an optional argument is missing: in every other example, all of them together."""
    return item.optional and example.seed % 2 == 0


def _from_hook(result: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if isinstance(result, dict):
        return (), result
    if not isinstance(result, tuple | list):
        raise SpecError(f"an input hook returns a tuple of arguments, not {type(result).__name__}")
    pair = len(result) == 2 and isinstance(result[0], tuple | list) and isinstance(result[1], dict)
    if pair and all(isinstance(key, str) for key in result[1]):
        return tuple(result[0]), result[1]
    return tuple(result), {}


def jittered(value: Any, seed: int) -> Any:
    """``value`` with every float moved by about 1e-5 of itself (two ulp where that is more); equal values stay
    equal, zeros stay zero.

    A difference that is real survives this; one that comes from a value that lay on a boundary (a ReLU at
    zero, two nearly equal maxima) does not.
    """
    if not isinstance(value, np.ndarray) or value.dtype.name not in FLOATS:
        return value
    wide = value.astype(np.float64)
    with np.errstate(all="ignore"):
        step = max(1e-5, 2 * float(ml_dtypes.finfo(value.dtype).eps))
        moved = wide * (1 + step * np.sin(1e4 * (wide % 1.0) + seed))
    return np.where(np.isfinite(wide), moved, wide).astype(value.dtype)


def _draw(item: Item, sizes: Mapping[str, int], example: Example, rng: np.random.Generator) -> Any:
    """The item's value, None where it is left out."""
    if _left_out(item, example):
        return None
    if isinstance(item, Constant):
        return item.value
    if isinstance(item, Choice):
        return item.values[int(rng.integers(len(item.values)))]
    if isinstance(item, Group):
        parts = [_draw(part, sizes, example, rng) for part in item.items]
        if item.kind == "dict":
            named = zip(item.items, parts, strict=True)
            return {part.name: value for part, value in named if not _left_out(part, example)}
        return parts if item.kind == "list" else tuple(parts)
    return draw_array(item, sizes, example.profile, rng)


def draw_array(
    array: Array, sizes: Mapping[str, int], profile: str, rng: np.random.Generator
) -> np.ndarray:
    """One array of the given profile, inside its bounds."""
    shape = tuple(int(evaluate(size, sizes)) for size in array.shape)
    low, high = evaluate(array.low, sizes), evaluate(array.high, sizes)
    if array.ragged:
        values = _ragged(shape, profile, rng)
    elif array.dtype == "bool":
        values = _booleans(shape, array, profile, rng)
    elif array.dtype in FLOATS:
        values = _floats(shape, low, high, profile, rng, array.distribution)
    else:
        if high is None:
            raise SpecError(f"an {array.dtype} input needs a range, such as range = [0, 10]")
        values = _integers(shape, int(low or 0), int(high), profile, rng)
    if array.sorted:
        values = np.sort(values, axis=-1)
    dtype = ml_dtypes.bfloat16 if array.dtype == "bfloat16" else np.dtype(array.dtype)
    return values.astype(dtype)


def _booleans(
    shape: tuple[int, ...], array: Array, profile: str, rng: np.random.Generator
) -> np.ndarray:
    density = array.density
    if profile == "zeros":
        density = 0.0
    values = rng.random(shape) < density
    if not array.empty and shape and shape[-1] and density < 1:
        rows = values.reshape(-1, shape[-1])
        rows[np.arange(len(rows)), rng.integers(shape[-1], size=len(rows))] = True
    return values


def _ragged(shape: tuple[int, ...], profile: str, rng: np.random.Generator) -> np.ndarray:
    """A mask of sequences; ``zeros`` makes all but one of length one, ``ties`` all of one length."""
    if not shape or not shape[-1]:
        return np.ones(shape)
    lengths = rng.integers(1, shape[-1] + 1, size=shape[:-1])
    if profile == "zeros":
        lengths = np.ones_like(lengths)
    elif profile == "ties":
        lengths = np.full_like(lengths, shape[-1])
    if lengths.size:
        lengths.flat[int(rng.integers(lengths.size))] = shape[-1]
    return np.arange(shape[-1]) < lengths[..., None]


def _integers(
    shape: tuple[int, ...], low: int, high: int, profile: str, rng: np.random.Generator
) -> np.ndarray:
    if high <= low:
        raise SpecError(f"the range [{low}, {high}) is empty")
    if profile == "zeros":
        return np.full(shape, low)
    if profile == "ties":
        return rng.choice(rng.integers(low, high, size=2), size=shape)
    values = rng.integers(low, high, size=shape)
    if profile == "large" and values.size > 1:
        values.flat[0], values.flat[-1] = low, high - 1
    return values


def _floats(
    shape: tuple[int, ...],
    low: Any,
    high: Any,
    profile: str,
    rng: np.random.Generator,
    distribution: str,
) -> np.ndarray:
    bounded = low is not None and high is not None
    if distribution not in ("", "uniform"):
        values = _shaped(_unbounded(shape, profile, rng), distribution)
        if bounded and distribution == "normal":  # bounds lie three deviations from the mean
            values = (low + high) / 2 + (high - low) / 6 * values
        return values if low is None and high is None else np.clip(values, low, high)
    if bounded:
        if profile == "zeros":
            return np.full(shape, min(max(0.0, low), high))
        if profile == "ties":
            return rng.choice(np.linspace(low, high, 5), size=shape)
        return rng.uniform(low, high, size=shape)
    values = _unbounded(shape, profile, rng)
    if low is not None:
        values = low + np.abs(values)
    return values if high is None else high - np.abs(values)


def _shaped(values: np.ndarray, distribution: str) -> np.ndarray:
    """Numbers of a profile with another distribution's shape (see ``spec.Array``)."""
    if distribution == "lognormal":
        return np.exp(np.clip(values, -40, 40))
    if distribution == "probabilities":
        shares = np.exp(values - values.max(axis=-1, keepdims=True, initial=-np.inf))
        return shares / shares.sum(axis=-1, keepdims=True)
    if distribution == "unit":
        values = np.where((values == 0).all(axis=-1, keepdims=True), 1.0, values)
        return values / np.linalg.norm(values, axis=-1, keepdims=True)
    return values


def _unbounded(shape: tuple[int, ...], profile: str, rng: np.random.Generator) -> np.ndarray:
    values = rng.standard_normal(shape)
    if profile == "zeros":
        return np.zeros(shape)
    if profile in ASKED_FOR:
        return np.where(rng.random(shape) < 0.2, _special(profile, values), values)
    if profile == "ties":
        return rng.choice([-1.0, -0.5, 0.0, 0.5, 1.0, 2.0], size=shape)
    if profile == "mixed":
        return values * 10.0 ** rng.uniform(-4, 2, size=shape)
    if profile == "offset":
        return 10.0 + 0.1 * values
    return values * {"normal": 1.0, "tiny": 1e-3, "large": 10.0}[profile]


def _special(profile: str, values: np.ndarray) -> np.ndarray:
    if profile == "nan":
        return np.full(values.shape, np.nan)
    return np.sign(values) * (np.inf if profile == "infinite" else 1e-40)
