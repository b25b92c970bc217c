"""The first statement that differs inside a submodule: both versions run with their local variables watched.

A port keeps the original's names, so a variable's n-th value on one side belongs to its n-th on the other.
"""

from __future__ import annotations

import linecache
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from numerics.compare import compare
from numerics.inputs import materialise
from numerics.localize import find_slot, leaves
from numerics.pair import Outcome, Pair
from numerics.randomness import replaying
from numerics.report import Statement, Value
from numerics.runners import TorchMode, run_torch, to_numpy

Key = tuple[str, int]
"""A variable (with the index of a leaf where it holds several) and the how-many-eth value of it."""
RESULT = "result"


@dataclass(frozen=True)
class _Seen:
    line: int
    value: Any


class Watch:
    """Notes what local variables become in the methods of ``owner`` that stand in the file of ``code``.

    Args:
      code: of ``forward`` or ``__call__``; other methods' variables are named ``method.variable``.
      owner: tells the object whose methods they are. The first call of each is watched.
      keep: what to keep of an array: a copy, where it may be changed in place.
    """

    def __init__(
        self, code: CodeType, owner: Callable[[Any], bool], keep: Callable[[Any], Any]
    ) -> None:
        self.code, self._owner, self._keep = code, owner, keep
        self.seen: dict[Key, _Seen] = {}
        self._counts: Counter[str] = Counter()
        self._states: dict[FrameType, dict[str, Any]] = {}
        self._lines: dict[FrameType, int] = {}
        self._met: set[CodeType] = set()

    @contextmanager
    def watching(self, *_: Any) -> Iterator[None]:
        """Active for the thread; a debugger's or coverage's own tracing pauses."""
        before = sys.gettrace()
        sys.settrace(self._global)
        try:
            yield
        finally:
            sys.settrace(before)
            self._states.clear()
            self._lines.clear()

    def _global(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code.co_filename != self.code.co_filename or code in self._met:
            return None
        first = code.co_varnames[:1]
        if not first or not self._owner(frame.f_locals.get(first[0])):
            return None
        self._met.add(code)
        self._states[frame] = {name: _state(value) for name, value in frame.f_locals.items()}
        self._lines[frame] = code.co_firstlineno
        return self._local

    def _local(self, frame: FrameType, event: str, argument: Any) -> Any:
        states = self._states.get(frame)
        if states is None:
            return None
        method = "" if frame.f_code is self.code else f"{frame.f_code.co_name}."
        line = self._lines[frame]
        for name, value in frame.f_locals.items():
            state = _state(value)
            if state != states.get(name):
                states[name] = state
                self._note(method + name, value, line)
        if event == "return" and argument is not None:
            self._note(f"{method}{RESULT}", argument, line)
        self._lines[frame] = frame.f_lineno
        return self._local

    def _note(self, name: str, value: Any, line: int) -> None:
        found = leaves(value)
        for index, leaf in enumerate(found):
            label = name if len(found) == 1 else f"{name}[{index}]"
            self.seen[label, self._counts[label]] = _Seen(line, self._keep(leaf))
            self._counts[label] += 1


def _state(value: Any) -> Any:
    """What changes when a variable is bound again or its tensor written to."""
    if isinstance(value, torch.Tensor):
        return id(value), value._version
    if isinstance(value, tuple | list):
        return (id(value), *(_state(part) for part in value))
    return id(value)


def first_statement(pair: Pair, outcome: Outcome, path: str) -> Statement | None:
    """The first variable of the submodule's ``forward`` that differs from the port's; None when there is none.

    Only for differences in outputs, in code that both sides have: a function in a layer's place has no variables.
    """
    mode, _, kind = outcome.failed.partition(" ")
    if kind != "outputs" or mode not in ("eval", "train"):
        return None
    forward = type(pair.torch.get_submodule(path)).forward
    if forward.__module__.startswith("torch."):
        return None  # a layer of torch's and its port share no variables
    train, code = mode == "train", forward.__code__
    args, kwargs = materialise(pair.spec, outcome.example)
    module = pair.weighted(outcome.example)
    plain = run_torch(module, args, kwargs, TorchMode(train))
    replay = tuple(plain.raw_draws)

    def watched(mode: TorchMode) -> Watch:
        watch: list[Watch] = []

        def start(copy: torch.nn.Module) -> Any:
            target = copy.get_submodule(path)
            watch.append(
                Watch(code, lambda value: value is target, lambda x: np.array(to_numpy(x)))
            )
            return watch[0].watching()

        run_torch(module, args, kwargs, mode, watch=start)
        return watch[0]

    own = [watched(TorchMode(train, replay=replay))]
    reference = watched(TorchMode(train, float64=True, replay=replay))
    own += [watched(TorchMode(train, noise=i, replay=replay)) for i in range(3)]
    port, port_code = _port_values(pair, path, args, kwargs, train, plain.draws)
    return _first_difference(reference, own, port, port_code)


def _port_values(
    pair: Pair, path: str, args: Any, kwargs: Any, train: bool, draws: Any
) -> tuple[dict[Key, _Seen], CodeType]:
    """What the port's variables become: traced once, their values outputs of the compiled program."""
    port = pair.flax.module
    port.train() if train else port.eval()
    graphdef, state = nnx.split(port)
    slot = find_slot(port, path) if path else None
    target = port if not path else slot.value if slot is not None else None
    code = type(target).__call__.__code__
    lines: dict[Key, int] = {}
    arrays, treedef = jax.tree.flatten((args, kwargs), is_leaf=lambda x: x is None)
    moving = {i: jnp.asarray(x) for i, x in enumerate(arrays) if isinstance(x, np.ndarray)}
    kinds = [draw.kind for draw in draws]

    def run(state: Any, moving: Any, draws: Any) -> Any:
        copy = nnx.merge(graphdef, state, copy=True)
        slot = find_slot(copy, path) if path else None
        owner = slot.value if slot is not None else copy
        given = [moving.get(i, x) for i, x in enumerate(arrays)]
        call_args, call_kwargs = jax.tree.unflatten(treedef, given)
        watch = Watch(code, lambda value: value is owner, lambda x: x)
        with watch.watching(), replaying(kinds, draws):
            copy(*call_args, **call_kwargs)
        lines.update({key: seen.line for key, seen in watch.seen.items()})
        return [watch.seen[key].value for key in lines]

    with jax.default_matmul_precision("highest"):
        values = jax.jit(run)(state, moving, [draw.value for draw in draws])
    seen = {
        key: _Seen(line, to_numpy(value))
        for (key, line), value in zip(lines.items(), values, strict=True)
    }
    return seen, code


def _first_difference(
    reference: Watch, own: list[Watch], port: Mapping[Key, _Seen], port_code: CodeType
) -> Statement | None:
    for key, seen in own[0].seen.items():
        if key not in port or any(key not in watch.seen for watch in (reference, *own)):
            continue
        ours = [watch.seen[key].value for watch in own]
        found = compare(key[0], reference.seen[key].value, ours, port[key].value)
        if not found.ok:
            return Statement(
                key[0],
                _side(own[0].code, seen),
                _side(port_code, port[key]),
                str(found).partition(": ")[2],
            )
    return None


def _side(code: CodeType, seen: _Seen) -> Value:
    source = linecache.getline(code.co_filename, seen.line).strip()
    return Value(Path(code.co_filename).name, seen.line, source, statistics(seen.value))


def statistics(value: np.ndarray) -> str:
    """``"(3, 4), mean 0.1, deviation 1.2, from -2 to 3"``."""
    shape = str(tuple(value.shape))
    if value.dtype.kind not in "fiu" or not value.size:
        return f"{shape} of {value.dtype}"
    finite = value[np.isfinite(value)] if value.dtype.kind == "f" else value
    if not finite.size:
        return f"{shape}, nothing finite"
    text = f"{shape}, mean {finite.mean():.4g}, deviation {finite.std():.4g},"
    text += f" from {finite.min():.4g} to {finite.max():.4g}"
    other = value.size - finite.size
    return f"{text}, {other} not finite" if other else text
