"""The first submodule whose random draws do not line up between torch and the port."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import zip_longest
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx
from torch.utils._python_dispatch import TorchDispatchMode

from numerics.compare import Difference
from numerics.inputs import Example, materialise
from numerics.localize import FlaxCalls, TorchCalls
from numerics.pair import Pair
from numerics.parameters import perturbed
from numerics.randomness import Tape, kind_of, substituted
from numerics.runners import TorchMode, run_torch

Place = tuple[str, str, int]
"""A draw: the path of the submodule that makes it, its kind, its number of elements."""


class _Noting(TorchDispatchMode):
    """Notes where torch draws."""

    def __init__(self, where: Callable[[], str]) -> None:
        super().__init__()
        self.found: list[Place] = []
        self._where = where

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        kind = kind_of(func)
        if kind is not None:
            self.found.append((self._where(), kind, result.numel()))
        return result


class _NotingTape(Tape):
    """Gives zeros, and notes where the port asks for them."""

    def __init__(self, where: Callable[[], str]) -> None:
        super().__init__((), ())
        self.found: list[Place] = []
        self._where = where

    def take(self, kind: str, shape: tuple[int, ...] | None) -> jax.Array:
        self.found.append((self._where(), kind, -1 if shape is None else int(np.prod(shape))))
        return jnp.zeros(shape or ())


def draws(pair: Pair, example: Example, train: bool) -> tuple[list[Place], list[Place]]:
    """Every draw of torch and of the port, in order."""
    args, kwargs = materialise(pair.spec, example)
    module, port = pair.original
    own = _torch_draws(perturbed(module, example.weights), args, kwargs, train)
    return own, _port_draws(port, module, args, kwargs, train)


def compare_draws(pair: Pair, example: Example, train: bool) -> list[Difference]:
    """How many random numbers a call takes: a dropout that is missing shows here, however little it changes.

    Nothing where a number cannot be told (a permutation), or where torch draws inside an operation.
    """
    own, port = draws(pair, example, train)
    if any(size < 0 for _, _, size in port):
        return []
    ours, theirs = (sum(size for _, _, size in found) for found in (own, port))
    if ours == theirs:
        return [Difference("random numbers")]
    problem = f"torch draws {ours} in a call, the port {theirs}"
    return [Difference("random numbers", problem=problem, structural=True)]


def first_unshared(pair: Pair, example: Example, train: bool) -> str | None:
    """The submodule of the first draw that only one side makes, or makes elsewhere, or of another kind or size."""
    for ours, theirs in zip_longest(*draws(pair, example, train)):
        if ours is None or theirs is None or ours != theirs:
            return (ours or theirs)[0]
    return None


def _torch_draws(module: torch.nn.Module, args: Any, kwargs: Any, train: bool) -> list[Place]:
    calls = TorchCalls(gradients=False)
    noting = _Noting(calls.current)

    def watch(copy: torch.nn.Module) -> ExitStack:
        stack = ExitStack()
        stack.enter_context(calls.watching(copy))
        stack.enter_context(noting)
        return stack

    run_torch(module, args, kwargs, TorchMode(train), watch=watch)
    return noting.found


def _port_draws(
    port: nnx.Module, module: torch.nn.Module, args: Any, kwargs: Any, train: bool
) -> list[Place]:
    port.train() if train else port.eval()
    graphdef, state = nnx.split(port)
    recorder = FlaxCalls()
    tape = _NotingTape(recorder.current)
    paths = [path for path, _ in module.named_modules()]

    def run(state: Any) -> None:
        copy = nnx.merge(graphdef, state, copy=True)
        with recorder.watching(copy, paths), substituted(tape):
            copy(*args, **kwargs)

    jax.eval_shape(run, state)
    return tape.found
