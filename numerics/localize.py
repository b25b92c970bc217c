"""The first submodule that diverges: its inputs agree (or its outputs' gradients), what it makes of them does not."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from numerics.compare import Difference, compare
from numerics.inputs import Example, materialise
from numerics.pair import Outcome, Pair
from numerics.randomness import replaying
from numerics.runners import Run, TorchMode, as_real, run_torch, to_numpy
from numerics.tree import flatten

Key = tuple[str, int]
"""A submodule's path in torch's words and the how-many-eth call of it."""


@dataclass
class Call:
    """One call of a submodule: its array arguments and results, and the gradients that reached them."""

    inputs: list[np.ndarray] = field(default_factory=list)
    outputs: list[np.ndarray] = field(default_factory=list)
    input_gradients: dict[int, np.ndarray] = field(default_factory=dict)
    output_gradients: dict[int, np.ndarray] = field(default_factory=dict)


Calls = dict[Key, Call]


def leaves(value: Any) -> list[Any]:
    """The tensors or arrays in nested arguments, in order; everything else is passed over."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = [getattr(value, f.name) for f in dataclasses.fields(value)]
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, tuple | list):
        return [leaf for part in value for leaf in leaves(part)]
    is_array = isinstance(value, torch.Tensor | jax.Array | np.ndarray)
    return [value] if is_array else []


def replaced(value: Any, new: Iterator[Any]) -> Any:
    """The same nested arguments with every array taken from ``new``."""
    if isinstance(value, Mapping):
        return {key: replaced(part, new) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(replaced(part, new) for part in value))
    if isinstance(value, tuple | list):
        return type(value)([replaced(part, new) for part in value])
    return next(new) if isinstance(value, torch.Tensor | jax.Array) else value


# --- torch ------------------------------------------------------------------------------------------------------


class TorchCalls:
    """Forward hooks on every submodule; calls are kept in the order they finish."""

    def __init__(self, gradients: bool) -> None:
        self.calls: Calls = {}
        self._gradients = gradients
        self._open: list[tuple[Key, Call]] = []
        self._counts: dict[str, int] = {}

    @contextmanager
    def watching(self, module: torch.nn.Module) -> Iterator[None]:
        """Record every call of a submodule (the module itself is ``""``)."""
        with ExitStack() as stack:
            for path, part in module.named_modules():
                if isinstance(part, torch.jit.ScriptModule):
                    continue  # it takes no hooks
                before = part.register_forward_pre_hook(self._before(path), with_kwargs=True)
                after = part.register_forward_hook(self._after, with_kwargs=True)
                stack.callback(before.remove)
                stack.callback(after.remove)
            yield

    def current(self) -> str:
        """The path of the submodule that runs now."""
        return self._open[-1][0][0] if self._open else ""

    def _before(self, path: str) -> Callable[..., Any]:
        def hook(module: Any, args: Any, kwargs: Any) -> Any:
            count = self._counts.get(path, 0)
            self._counts[path] = count + 1
            call = Call(inputs=[_copied(x) for x in leaves((args, kwargs))])
            self._open.append(((path, count), call))
            if not self._gradients:
                return None
            # a clone of its own, so that the gradient through this call alone can be seen
            clones = [
                _hooked(x.clone(), call.input_gradients, i) for i, x in _indexed(args, kwargs)
            ]
            return replaced((args, kwargs), iter(clones))

        return hook

    def _after(self, module: Any, args: Any, kwargs: Any, result: Any) -> None:
        key, call = self._open.pop()
        call.outputs = [_copied(x) for x in leaves(result)]
        if self._gradients:
            for index, value in enumerate(leaves(result)):
                _hooked(value, call.output_gradients, index)
        self.calls[key] = call


def _indexed(args: Any, kwargs: Any) -> Iterator[tuple[int, torch.Tensor]]:
    return iter(enumerate(leaves((args, kwargs))))


def _copied(value: Any) -> np.ndarray:
    return np.array(to_numpy(value))


def _hooked(value: torch.Tensor, into: dict[int, np.ndarray], index: int) -> torch.Tensor:
    def keep(gradient: torch.Tensor) -> None:
        into[index] = _copied(gradient)

    if value.requires_grad:
        value.register_hook(keep)
    return value


# --- Flax -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Slot:
    """Where a submodule or function hangs in its parent."""

    parent: Any
    key: Any
    value: Any

    def put(self, value: Any) -> None:
        """Replace it."""
        if isinstance(self.key, int):
            self.parent[self.key] = value
        else:
            setattr(self.parent, self.key, value)


def find_slot(module: Any, path: str) -> Slot | None:
    """The place of torch's ``layer1.0.conv`` in the port: sequences by index, the rest by attribute."""
    slot: Slot | None = None
    value = module
    for segment in path.split("."):
        key: int | str = int(segment) if segment.isdigit() else segment
        parent = getattr(value, "layers", value) if isinstance(key, int) else value
        try:
            value = parent[key] if isinstance(key, int) else getattr(parent, key)
        except (AttributeError, IndexError, KeyError, TypeError):
            return None
        slot = Slot(parent, key, value)
    return slot


class FlaxCalls:
    """The calls of a port's submodules, with values that may be traced ones.

    ``taps`` are zeros added to every input and output, by key and side, so that the gradient with respect to a
    tap is the gradient that reaches the value.
    """

    def __init__(self, taps: Mapping[str, Any] | None = None) -> None:
        self.calls: dict[Key, tuple[list[Any], list[Any]]] = {}
        self._taps = taps or {}
        self._paths: dict[int, str] = {}
        self._counts: dict[str, int] = {}
        self._open: list[str] = []

    def current(self) -> str:
        """The path of the submodule that runs now."""
        return self._open[-1] if self._open else ""

    @contextmanager
    def watching(self, module: nnx.Module, paths: Sequence[str]) -> Iterator[None]:
        """Record the calls of what stands at torch's ``paths``."""
        classes = {type(module)}
        self._paths[id(module)] = ""
        for path in paths:
            slot = find_slot(module, path) if path else None
            if slot is None or id(slot.value) in self._paths:
                continue
            if isinstance(slot.value, nnx.Module):
                self._paths[id(slot.value)] = path
                classes.add(type(slot.value))
            elif callable(slot.value):
                slot.put(self._wrapped(slot.value, path))
        with ExitStack() as stack:
            for cls in classes:
                self._patch(cls, stack)
            yield

    def _patch(self, cls: type, stack: ExitStack) -> None:
        own = vars(cls).get("__call__")
        original = cls.__call__
        recorder = self

        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            path = recorder._paths.get(id(self))
            if path is None or type(self) is not cls:
                return original(self, *args, **kwargs)
            return recorder._record(path, original.__get__(self), args, kwargs)

        cls.__call__ = call  # type: ignore[method-assign]
        if own is None:
            stack.callback(delattr, cls, "__call__")
        else:
            stack.callback(setattr, cls, "__call__", own)

    def _wrapped(self, function: Callable[..., Any], path: str) -> Callable[..., Any]:
        return lambda *args, **kwargs: self._record(path, function, args, kwargs)

    def _record(self, path: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        count = self._counts.get(path, 0)
        self._counts[path] = count + 1
        if self._taps:
            args, kwargs = self._tapped((args, kwargs), path, count, "in")
        inputs = leaves((args, kwargs))
        self._open.append(path)
        try:
            result = function(*args, **kwargs)
        finally:
            self._open.pop()
        if self._taps:
            result = self._tapped(result, path, count, "out")
        self.calls[path, count] = (inputs, leaves(result))
        return result

    def _tapped(self, value: Any, path: str, count: int, side: str) -> Any:
        new = []
        for index, leaf in enumerate(leaves(value)):
            tap = self._taps.get(tap_name(path, count, side, index))
            if tap is not None and tap.shape == leaf.shape:
                leaf = leaf + tap.astype(leaf.dtype)
            new.append(leaf)
        return replaced(value, iter(new))


def tap_name(path: str, count: int, side: str, index: int) -> str:
    """The name of one tap."""
    return f"{path}#{count}#{side}#{index}"


# --- both -------------------------------------------------------------------------------------------------------


@dataclass
class Trace:
    """The calls of all runs of one example in one mode."""

    reference: Calls
    own: list[Calls]
    port: Calls


def trace(pair: Pair, outcome: Outcome, train: bool, gradients: bool, noise: int = 3) -> Trace:
    """Run an example once more on both sides with every submodule watched."""
    args, kwargs = materialise(pair.spec, outcome.example)
    module = pair.weighted(outcome.example)
    plain = run_torch(module, args, kwargs, TorchMode(train, gradients))
    replay = tuple(plain.raw_draws)

    def watched(mode: TorchMode) -> Calls:
        calls = TorchCalls(gradients)
        run_torch(module, args, kwargs, mode, watch=calls.watching)
        return calls.calls

    own = [watched(TorchMode(train, gradients, replay=replay))]
    try:
        reference = watched(TorchMode(train, gradients, float64=True, replay=replay))
    except (
        Exception
    ):  # the reference is a refinement; verification has noted that float64 does not run
        reference = own[0]
    own += [watched(TorchMode(train, gradients, noise=i, replay=replay)) for i in range(noise)]
    return Trace(reference, own, _flax_calls(pair, args, kwargs, plain, own[0], train, gradients))


def _flax_calls(
    pair: Pair, args: Any, kwargs: Any, plain: Run, calls: Calls, train: bool, gradients: bool
) -> Calls:
    """The port's calls, compiled as a whole: eager JAX would compile every operation by itself."""
    port = pair.flax.module
    port.train() if train else port.eval()
    graphdef, state = nnx.split(port)
    paths = list(dict.fromkeys(path for path, _ in calls))
    kinds = [draw.kind for draw in plain.draws]
    taps = _zero_taps(calls) if gradients else {}
    arrays, treedef = jax.tree.flatten((args, kwargs), is_leaf=lambda x: x is None)
    moving = {i: jnp.asarray(x) for i, x in enumerate(arrays) if isinstance(x, np.ndarray)}

    def run(taps: Any, state: Any, moving: Any, draws: Any) -> Any:
        module = nnx.merge(graphdef, state, copy=True)
        given = [moving.get(i, x) for i, x in enumerate(arrays)]
        call_args, call_kwargs = jax.tree.unflatten(treedef, given)
        recorder = FlaxCalls(taps)
        with recorder.watching(module, paths), replaying(kinds, draws):
            outputs = module(*call_args, **call_kwargs)
        found = {f"{path}#{count}": both for (path, count), both in recorder.calls.items()}
        return _scalar(outputs, plain.cotangents), found

    inputs = (state, moving, [draw.value for draw in plain.draws])
    with jax.default_matmul_precision("highest"):
        if gradients:
            (_, found), slopes = jax.jit(jax.value_and_grad(run, has_aux=True))(taps, *inputs)
        else:
            (_, found), slopes = jax.jit(run)(taps, *inputs), {}
    return _as_calls(found, slopes)


def _scalar(outputs: Any, cotangents: Mapping[str, np.ndarray]) -> Any:
    flat = flatten(outputs)
    pairs = [
        (as_real(jnp.asarray(flat[path])), weight)
        for path, weight in cotangents.items()
        if path in flat
    ]
    return sum(
        (jnp.sum(x * weight) for x, weight in pairs if x.shape == weight.shape), jnp.zeros(())
    )


def _zero_taps(calls: Calls) -> dict[str, np.ndarray]:
    taps = {}
    for (path, count), call in calls.items():
        for side, values, reached in (
            ("in", call.inputs, call.input_gradients),
            ("out", call.outputs, call.output_gradients),
        ):
            for index in reached:
                zeros = np.zeros(values[index].shape, np.float32)
                taps[tap_name(path, count, side, index)] = zeros
    return taps


def _as_calls(found: Mapping[str, Any], slopes: Mapping[str, Any]) -> Calls:
    calls: Calls = {}
    for name, (inputs, outputs) in found.items():
        path, _, count = name.rpartition("#")
        calls[path, int(count)] = Call(
            [to_numpy(x) for x in inputs], [to_numpy(x) for x in outputs]
        )
    for name, slope in slopes.items():
        path, count, side, index = name.rsplit("#", 3)
        if (path, int(count)) in calls:
            call = calls[path, int(count)]
            into = call.input_gradients if side == "in" else call.output_gradients
            into[int(index)] = to_numpy(slope)
    return calls


def _agree(
    reference: Sequence[np.ndarray], own: Sequence[Sequence[np.ndarray]], port: Sequence[np.ndarray]
) -> bool:
    if len(reference) != len(port) or any(len(run) != len(reference) for run in own):
        return False
    return all(
        compare("", value, [run[i] for run in own], port[i]).ok for i, value in enumerate(reference)
    )


def _agree_by_index(
    reference: Mapping[int, Any], own: Sequence[Mapping[int, Any]], port: Mapping[int, Any]
) -> bool:
    shared = [i for i in reference if i in port and all(i in run for run in own)]
    return _agree(
        [reference[i] for i in shared],
        [[run[i] for i in shared] for run in own],
        [port[i] for i in shared],
    )


def first_divergence(pair: Pair, outcome: Outcome) -> str | None:
    """The submodule where a failing example starts to differ, by torch's path; None when it cannot be told."""
    mode, _, kind = outcome.failed.partition(" ")
    if mode not in ("eval", "train"):
        return _owner(outcome, [])
    try:
        if kind == "gradients":
            return _backward(trace(pair, outcome, mode == "train", gradients=True), outcome)
        found = trace(pair, outcome, mode == "train", gradients=False)
    except (
        Exception
    ):  # a port that raises cannot be traced either: only the module as a whole is known
        return _owner(outcome, [])
    return _forward(found) if kind == "outputs" else _owner(outcome, list(found.own[0]))


def layer_errors(pair: Pair, example: Example, train: bool = False) -> list[Difference]:
    """How each submodule's output compares, in the order torch computes them; named by torch's path.

    A submodule that the port has not got, or that returns no numbers, is left out; the module itself is ``""``.
    """
    found = trace(pair, Outcome(example, {}), train, gradients=False)
    errors = []
    for key in found.own[0]:
        if key not in found.port or any(key not in run for run in (found.reference, *found.own)):
            continue
        runs = [found.reference[key], *(run[key] for run in found.own), found.port[key]]
        if len({len(call.outputs) for call in runs}) != 1 or not runs[0].outputs:
            continue
        tensors = [[call.outputs[i] for call in runs] for i in range(len(runs[0].outputs))]
        compared = [compare(key[0], t[0], t[1:-1], t[-1]) for t in tensors]
        errors.append(max(compared, key=lambda d: (not d.ok, d.ratio)))
    return errors


def _forward(found: Trace) -> str | None:
    """The first call to finish whose inputs agree and whose outputs do not (children finish before parents)."""
    for key in found.own[0]:
        if key not in found.port or any(key not in run for run in (found.reference, *found.own)):
            continue
        own, port = [run[key] for run in found.own], found.port[key]
        if not _agree(
            found.reference[key].outputs, [c.outputs for c in own], port.outputs
        ) and _agree(found.reference[key].inputs, [c.inputs for c in own], port.inputs):
            return key[0]
    return None


def _backward(found: Trace, outcome: Outcome) -> str | None:
    """The deepest call whose output gradients agree, while what it makes of them does not.

    That is: its inputs' gradients, those of its own parameters, or those that reach the outputs of a submodule.
    """
    wrong = {difference.name for difference in outcome.checks[outcome.failed] if not difference.ok}
    owners = {name.rpartition(".")[0] for name in wrong if not name.startswith("input ")}
    agreeing, wrong_before, wrong_after = [], set(), set()
    for key in found.own[0]:
        if key not in found.port or key not in found.reference:
            continue
        own, port, reference = (
            [run[key] for run in found.own],
            found.port[key],
            found.reference[key],
        )
        if _agree_by_index(
            reference.output_gradients, [c.output_gradients for c in own], port.output_gradients
        ):
            agreeing.append(key)
        else:
            wrong_after.add(key[0])
        if not _agree_by_index(
            reference.input_gradients, [c.input_gradients for c in own], port.input_gradients
        ):
            wrong_before.add(key)
    suspects = [
        key[0]
        for key in agreeing
        if key in wrong_before
        or key[0] in owners
        or any(path.startswith(key[0] + "." if key[0] else "") for path in wrong_after - {key[0]})
    ]
    if not suspects:
        return _owner(outcome, list(found.own[0]))
    return max(suspects, key=lambda path: path.count(".") + bool(path))


def _owner(outcome: Outcome, order: Sequence[Key]) -> str | None:
    """The module that owns the first tensor that differs, in the order modules run."""
    names = [d.name for d in outcome.checks.get(outcome.failed, []) if not d.ok]
    owners = [name.rpartition(".")[0] for name in names if not name.startswith("input ")]
    if outcome.failed.endswith("outputs") or not owners:
        return None
    ran = [path for path, _ in order]
    return min(owners, key=lambda path: ran.index(path) if path in ran else len(ran))
