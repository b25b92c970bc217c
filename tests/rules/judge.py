"""Whether a JAX function computes what a torch function computes on one sample, gradients and moments included."""

from __future__ import annotations

import functools
import math
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import torch
from torch.testing._internal.opinfo.core import gradcheck_wrapper_hermitian_input

from tests.rules.database import Call, record
from tests.rules.freedom import UP_TO_SIGN, hermitian_part, settled
from tests.rules.values import compare, leaves, to_jax

UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}
ANY_INDEX = {"mode"}
"""Torch gives the index of any of the equal elements: only the values are compared."""


DRAWN_ON_THE_WAY = {"svd_lowrank", "pca_lowrank"}
"""Random numbers that are not the result: how it spreads depends on signs that are free."""


class Outcome(Exception):
    """Why a sample was not compared."""


class Wrong(Exception):
    """JAX and torch disagree."""


@dataclass
class Trial:
    """One sample: the torch function of its tensors, and the JAX function of the same arrays.

    ``draw`` is the torch function to draw from where results are random: the sample's wrapper may seed.
    """

    info: Any
    sample: Any
    inputs: list[torch.Tensor]
    run_torch: Callable[[list[torch.Tensor]], Any]
    compute: Callable[[list[Any]], Any]
    draw: Callable[[], Any] | None = None


def hermitian(info: Any) -> bool:
    """Whether an entry is differentiated as a function of the Hermitian part of its input."""
    return info.gradcheck_wrapper is gradcheck_wrapper_hermitian_input


def recorded(
    function: Callable[..., Any], sample: Any, info: Any
) -> tuple[tuple[Any, ...], dict[str, Any], list[Call]]:
    """A sample's arguments and the torch calls it makes; raises Outcome where torch refuses it."""
    if hermitian(info):
        sample.input = (sample.input + sample.input.mH) / 2
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    try:
        calls = record(function, args, kwargs)
    except Exception as error:
        raise Outcome(f"torch: {str(error)[:80]}") from None
    if not calls:
        raise Outcome("not a torch function")
    return args, kwargs, calls


def usable(inputs: list[torch.Tensor], values: list[Any]) -> None:
    """Raise Outcome for samples that mean nothing in JAX."""
    if any(t.layout != torch.strided or t.is_quantized for t in inputs):
        raise Outcome("sparse or quantised sample")
    if any(isinstance(v, torch.nn.Module) for v in values):
        raise Outcome("a torch module as argument")
    numbers = [v for v in jax.tree.leaves(values) if isinstance(v, int)]
    if any(abs(v) >= 2**31 for v in numbers) and not jax.config.jax_enable_x64:
        raise Outcome("a number of more than 32 bits")


def judge(trial: Trial, gradients: bool) -> None:
    """Compare values, shapes, dtypes, structure and gradients; raises Wrong or Outcome."""
    inputs, name = trial.inputs, trial.info.name
    arrays = [to_jax(t) for t in inputs]
    # A call may update its arguments, so JAX runs first.
    got = trial.compute(arrays)
    moved = [i for i, t in enumerate(inputs) if t.is_floating_point() or t.is_complex()]
    differentiable = gradients and bool(moved) and trial.draw is None
    tensors, want, moved = _reference(trial, moved, differentiable)

    @functools.cache
    def precise() -> Any:
        return trial.run_torch([_double(t) for t in inputs])

    if name in ANY_INDEX:
        got, want = got[:1], want[:1]
    defined = trial.draw is None and name not in UNINITIALISED
    problem = compare(got, want, precise if defined else None, values=defined)
    if problem and (
        compare(got, want, values=False)
        or compare(
            settled(name, trial.sample, got), settled(name, trial.sample, want), values=defined
        )
    ):
        raise Wrong(problem)
    if problem and name in UP_TO_SIGN:  # other signs, other gradients
        return
    if trial.draw is not None and name not in DRAWN_ON_THE_WAY:
        check_moments(lambda: trial.compute(arrays), trial.draw)
    elif differentiable:
        check_gradients(trial, arrays, want, tensors, moved)


def _reference(
    trial: Trial, moved: list[int], differentiable: bool
) -> tuple[list[torch.Tensor], Any, list[int]]:
    """torch's result with the leaves it was computed from, and which of them torch differentiates."""

    def attempt(moved: list[int]) -> tuple[list[torch.Tensor], Any]:
        tensors = [
            t.detach().clone().requires_grad_(differentiable and i in moved)
            for i, t in enumerate(trial.inputs)
        ]
        return tensors, trial.run_torch(list(tensors))

    try:
        try:
            return *attempt(moved), moved
        except RuntimeError as error:
            if "not differentiable with respect to" not in str(error):
                raise
            moved = moved[:1]  # weights and targets that torch takes as constants
            return *attempt(moved), moved
    except Exception as error:
        raise Outcome(f"torch: {str(error)[:80]}") from None


def _double(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in double precision."""
    if tensor.is_complex():
        return tensor.detach().to(torch.complex128)
    return tensor.detach().double() if tensor.is_floating_point() else tensor


def _cotangents(outputs: list[Any]) -> list[np.ndarray]:
    """Fixed cotangents for torch outputs."""
    rng = np.random.default_rng(0)
    result = []
    for out in outputs:
        value = rng.uniform(-1, 1, tuple(out.shape))
        result.append(value + 1j * rng.uniform(-1, 1, value.shape) if out.is_complex() else value)
    return result


def check_gradients(
    trial: Trial, arrays: list[Any], want: Any, tensors: list[torch.Tensor], moved: list[int]
) -> None:
    """Compare vector-Jacobian products; torch's complex gradient is the conjugate of JAX's.

    A sample that holds NaN is compared by its values only: what torch calls the slope there says nothing.
    """
    if any(bool(tensors[i].isnan().any()) for i in moved):
        return
    project = hermitian_part if hermitian(trial.info) else (lambda gradient: gradient)
    outputs = list(leaves(want))
    which = [i for i, out in enumerate(outputs) if out.requires_grad]
    if not which:
        return
    outputs = [outputs[i] for i in which]
    cotangents = _cotangents(outputs)

    def grad(outs: list[torch.Tensor], ins: list[torch.Tensor]) -> list[torch.Tensor]:
        cts = [torch.as_tensor(c).to(o.dtype) for c, o in zip(cotangents, outs, strict=True)]
        grads = torch.autograd.grad(outs, ins, cts, allow_unused=True)
        found = [torch.zeros_like(i) if g is None else g for g, i in zip(grads, ins, strict=True)]
        return [project(g.to_dense() if g.is_sparse else g) for g in found]

    try:
        expected = grad(outputs, [tensors[i] for i in moved])
    except RuntimeError:  # torch refuses a derivative of this use
        return

    def forward(part: list[Any]) -> list[Any]:
        full = list(arrays)
        for i, value in zip(moved, part, strict=True):
            full[i] = value
        found = list(leaves(trial.compute(full)))
        return [found[i] for i in which]

    values, pull = jax.vjp(forward, [arrays[i] for i in moved])
    cts = [np.conj(c).astype(v.dtype) for c, v in zip(cotangents, values, strict=True)]
    (got,) = pull(cts)

    def precise() -> Any:
        ins = [_double(t.detach()).requires_grad_(t.requires_grad) for t in tensors]
        outs = list(leaves(trial.run_torch(list(ins))))
        return grad([outs[i] for i in which], [ins[i] for i in moved])

    if any(bool(g.isnan().any()) for g in expected):
        # Where only torch's single precision ends in NaN (complex renorm by p = inf), its double precision says.
        exact = [w.to(g.dtype) for w, g in zip(precise(), expected, strict=True)]
        expected = [w if not w.isnan().any() else g for w, g in zip(exact, expected, strict=True)]
    if problem := compare([project(jax.numpy.conj(g)) for g in got], expected, precise):
        raise Wrong(f"gradient: {problem}")


def check_moments(draw: Callable[[], Any], draw_torch: Callable[[], Any]) -> None:
    """Mean and spread of a random result agree within six standard errors."""
    first = next(iter(leaves(draw())), None)
    if first is None or first.size == 0:
        return
    count = min(max(4000 // first.size, 24), 60)

    def pool(one: Callable[[], Any]) -> np.ndarray:
        return np.stack(
            [
                np.asarray(to_jax(next(iter(leaves(one())))), np.complex128).ravel()
                for _ in range(count)
            ]
        )

    ours, theirs = pool(draw), pool(draw_torch)
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return
    center = np.median(theirs.real)
    for name, value in (("median", lambda a: a.real > center), ("mean", lambda a: a)):
        a, b = value(ours), value(theirs)
        # elements of one draw may hang together (whole channels dropped)
        alone = (a.std() ** 2 + b.std() ** 2) / a.size
        together = (a.mean(1).std() ** 2 + b.mean(1).std() ** 2) / count
        error = math.sqrt(max(alone, together))
        if abs(a.mean() - b.mean()) > 6 * error + 1e-6:
            raise Wrong(f"{name} of the draws: {a.mean():.4g}, torch {b.mean():.4g}")


def described(error: Exception) -> str:
    """An exception in one line, with the place in the rules where it was raised."""
    if isinstance(error, Wrong):
        return str(error)
    where = traceback.extract_tb(error.__traceback__)
    ours = [f for f in where if "/rules/" in f.filename and "/tests/" not in f.filename]
    line = f" ({Path(ours[-1].filename).name}:{ours[-1].lineno})" if ours else ""
    return (
        f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200] + line
    )


def sample_text(sample: Any) -> str:
    """A sample in one short line."""

    def show(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(show, value)) + ")"
        return repr(value)

    parts = [show(v) for v in (sample.input, *sample.args)]
    return ", ".join(parts + [f"{k}={show(v)}" for k, v in sample.kwargs.items()])[:300]


def status_of(found: dict[str, Any]) -> str:
    """The worst outcome of a name over all dtypes."""
    total: Counter[str] = Counter()
    for one in found.values():
        total.update(one["counts"])
    for status in ("wrong", "raises", "missing", "flagged", "verified"):
        if total[status]:
            return status
    return "not applicable" if total else "missing"
