"""Sharing random numbers: torch's draws are recorded in call order and handed to the port."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax.nnx import rnglib
from torch.utils._python_dispatch import TorchDispatchMode

_KINDS = {
    "randn": "normal",
    "randn_like": "normal",
    "normal_": "normal",
    "normal": "normal",
    "rand": "uniform",
    "rand_like": "uniform",
    "uniform_": "uniform",
    "uniform": "uniform",
    "bernoulli_": "bernoulli",
    "bernoulli": "bernoulli",
    "randint": "randint",
    "randint_like": "randint",
    "random_": "randint",
    "randperm": "permutation",
    "multinomial": "categorical",
    "exponential_": "exponential",
    "exponential": "exponential",
}
"""ATen operation → the distribution, by the name jax.random gives it."""


@dataclass(frozen=True)
class Draw:
    """One draw: the distribution, in its standard form where it has one, and what torch drew."""

    kind: str
    value: np.ndarray


class NotInTorch(RuntimeError):
    """Torch itself cannot do what is to be compared: a second derivative that it has not got, a second backward pass."""


class ReplayMismatch(RuntimeError):
    """The port asks for random numbers in another order, kind or shape than torch did."""


def kind_of(func: Any) -> str | None:
    """The distribution an ATen operation draws from; None when it draws nothing, or nothing known here."""
    seeded = torch.Tag.nondeterministic_seeded in func.tags
    return _KINDS.get(func.overloadpacket.__name__) if seeded else None


class Recorder(TorchDispatchMode):
    """Notes every draw torch makes; ``unknown`` names draws whose kind has no counterpart here."""

    def __init__(self) -> None:
        super().__init__()
        self.draws: list[Draw] = []
        self.raw: list[torch.Tensor] = []
        self.unknown: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return result
        name = func.overloadpacket.__name__
        if name not in _KINDS:
            if not _is_deterministic(name, args, kwargs or {}):
                self.unknown.append(name)
            return result
        self.raw.append(result.detach().clone())
        self.draws.append(_standard(name, func, args, kwargs or {}, result))
        return result


def _is_deterministic(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Fused operations that may draw but were asked for no dropout."""
    if name.startswith("_scaled_dot_product"):
        return not any(isinstance(arg, float) and arg > 0 for arg in args[3:5])
    return "rnn" in name or "lstm" in name


def _standard(
    name: str, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], result: torch.Tensor
) -> Draw:
    """The draw with its location and scale taken out."""
    kind, value = _KINDS[name], result.detach()
    if value.dtype == torch.bfloat16:  # which numpy has not, and float32 holds
        value = value.float()
    bound = dict(kwargs)
    for argument, given in zip(func._schema.arguments, args, strict=False):
        bound.setdefault(argument.name, given)
    if kind == "normal":
        value = (value - bound.get("mean", 0.0)) / bound.get("std", 1.0)
    elif kind == "uniform":
        low, high = bound.get("from", 0.0), bound.get("to", 1.0)
        value = (value - low) / (high - low)
    elif kind == "exponential":
        value = value * bound.get("lambd", 1.0)
    return Draw(kind, value.clone().numpy())


class Replayer(TorchDispatchMode):
    """Gives torch the draws of an earlier run again, in whatever precision it asks for them."""

    def __init__(self, raw: Sequence[torch.Tensor]) -> None:
        super().__init__()
        self._raw = iter(raw)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        kind = kind_of(func)
        if kind is None:
            return result
        recorded = next(self._raw, None)
        if recorded is None or recorded.shape != result.shape:
            raise ReplayMismatch(f"torch itself draws differently on a second run ({kind})")
        result.copy_(recorded)
        return result


class Tape:
    """The draws a traced function takes as arguments, consumed in order."""

    def __init__(self, kinds: Sequence[str], values: Sequence[jax.Array]) -> None:
        self._draws = list(zip(kinds, values, strict=True))
        self._next = 0

    def take(self, kind: str, shape: tuple[int, ...] | None) -> jax.Array:
        if self._next >= len(self._draws):
            raise ReplayMismatch(f"the port draws more often than torch (a {kind}{shape or ''})")
        recorded, value = self._draws[self._next]
        if recorded != kind:
            raise ReplayMismatch(f"torch drew {recorded} here, the port {kind}")
        if shape is not None and value.size != int(np.prod(shape)):
            raise ReplayMismatch(f"torch drew {kind} of shape {value.shape}, the port {shape}")
        self._next += 1
        return value if shape is None else value.reshape(shape)

    def finish(self) -> None:
        if self._next != len(self._draws):
            raise ReplayMismatch(
                f"torch draws {len(self._draws)} times, the port {self._next} times"
            )


def _shape(shape: Any) -> tuple[int, ...]:
    return (int(shape),) if isinstance(shape, int | np.integer) else tuple(shape)


def _substitutes(tape: Tape) -> dict[str, Callable[..., Any]]:
    """jax.random's functions with its signatures, fed from the tape."""

    def normal(key: Any, shape: Any = (), dtype: Any = None, **_: Any) -> jax.Array:
        value = tape.take("normal", _shape(shape))
        return value if dtype is None else value.astype(dtype)

    def uniform(
        key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0, **_: Any
    ) -> jax.Array:
        value = tape.take("uniform", _shape(shape))
        value = value if dtype is None else value.astype(dtype)
        return value * (maxval - minval) + minval

    def bernoulli(key: Any, p: Any = 0.5, shape: Any = None, **_: Any) -> jax.Array:
        wanted = jnp.shape(p) if shape is None else _shape(shape)
        return tape.take("bernoulli", wanted).astype(bool)

    def randint(
        key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, **_: Any
    ) -> jax.Array:
        value = tape.take("randint", _shape(shape))
        return value.astype(dtype if dtype is not None else jnp.int32)

    def permutation(
        key: Any, x: Any, axis: int = 0, independent: bool = False, **_: Any
    ) -> jax.Array:
        order = tape.take("permutation", None).astype(jnp.int32)
        return order if jnp.ndim(x) == 0 else jnp.take(jnp.asarray(x), order, axis=axis)

    def categorical(
        key: Any, logits: Any, axis: int = -1, shape: Any = None, **_: Any
    ) -> jax.Array:
        wanted = shape
        if wanted is None:
            sizes = list(jnp.shape(logits))
            del sizes[axis]
            wanted = tuple(sizes)
        return tape.take("categorical", _shape(wanted)).astype(jnp.int32)

    def exponential(key: Any, shape: Any = (), dtype: Any = None, **_: Any) -> jax.Array:
        value = tape.take("exponential", _shape(shape))
        return value if dtype is None else value.astype(dtype)

    def gumbel(key: Any, shape: Any = (), dtype: Any = None, **_: Any) -> jax.Array:
        return -jnp.log(exponential(key, shape, dtype))

    found = (normal, uniform, bernoulli, randint, permutation, categorical, exponential, gumbel)
    return {function.__name__: function for function in found}


@contextmanager
def replaying(kinds: Sequence[str], values: Sequence[jax.Array]) -> Iterator[None]:
    """While active, jax.random and nnx.Rngs return ``values`` in order instead of drawing.

    Active only while a function is traced, with ``values`` its arguments: one compilation serves all draws.

    Raises:
      ReplayMismatch: order, kind or number of elements differ from what torch drew.
    """
    tape = Tape(kinds, values)
    with substituted(tape):
        yield
    tape.finish()


@contextmanager
def substituted(tape: Tape) -> Iterator[None]:
    """While active, jax.random and nnx.Rngs take their numbers from the tape."""
    substitutes = _substitutes(tape)
    saved: list[tuple[Any, str, Any]] = []

    def as_method(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda self, *args, **kwargs: function(self(), *args, **kwargs)

    for name, function in substitutes.items():
        for owner in (jax.random, rnglib.Rngs, rnglib.RngStream):
            if name in vars(owner):
                saved.append((owner, name, vars(owner)[name]))
                setattr(owner, name, function if owner is jax.random else as_method(function))
    try:
        yield
    finally:
        for owner, name, original in saved:
            setattr(owner, name, original)
