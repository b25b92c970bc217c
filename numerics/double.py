"""Rounding in another order, told from a difference: the port in float64 beside torch in float64.

A sum over many equal terms, such as the gradient of a convolution's weights behind a global mean, loses digits by the
order in which it is added, which is XLA's affair and no port's. What is rounding shrinks with the precision: where the
port in float64 is a million times nearer to torch in float64 than it is in float32, the two are one function. A formula
that loses digits of its own (a variance in one pass) shrinks as well, and is told by how much it loses in float32.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx

from numerics.compare import Difference
from numerics.inputs import materialise
from numerics.pair import Outcome, Pair, Runs
from numerics.runners import Run

MOST = 10.0
"""How many times what is allowed a port's error may be, and still be one of the order of adding."""
SHRINKS = 2.0**-20
"""What is left of it in float64, whose epsilon is 2**-29 of float32's."""
_KINDS = frozenset(["outputs", "gradients", "state"])


def without_rounding(pair: Pair, outcome: Outcome, noise: int) -> Outcome:
    """The outcome of an example, its differences taken back where all of them are rounding in another order."""
    checks = dict(outcome.checks)
    runs: dict[bool, tuple[Runs, Run]] = {}
    for name, found in outcome.checks.items():
        mode, _, kind = name.partition(" ")
        if all(difference.ok for difference in found):
            continue
        if kind not in _KINDS or any(d.problem or d.ratio > MOST for d in found):
            return outcome
        train = mode == "train"
        if train not in runs:
            runs[train] = _in_both(pair, outcome, train, noise)
        usual, double = runs[train]
        sides = (getattr(run, kind) for run in (usual.reference, usual.port, double))
        if not is_rounding(found, *sides):
            return outcome
        checks[name] = [replace(one, ratio=min(one.ratio, 1.0)) for one in found]
    return replace(outcome, checks=checks)


def is_rounding(
    differences: Iterable[Difference],
    reference: Mapping[str, np.ndarray],
    port: Mapping[str, np.ndarray],
    double: Mapping[str, np.ndarray],
) -> bool:
    """Whether all differences of a check shrink with the precision.

    Args:
      reference: torch in float64, by the names of the differences.
      port, double: the port in float32 and in float64."""
    for name in (one.name for one in differences if not one.ok):
        if name not in double or name not in reference:
            return False
        base, single, exact = (run[name] for run in (reference, port, double))
        if exact.shape != base.shape:
            return False
        usable = np.isfinite(base) & np.isfinite(single)
        error, left = (np.abs(run - base)[usable].max() for run in (single, exact))
        if not left <= SHRINKS * error:
            return False
    return True


def _in_both(pair: Pair, outcome: Outcome, train: bool, noise: int) -> tuple[Runs, Run]:
    """The usual runs of an example, and the port in float64 with the same random numbers and cotangents."""
    args, kwargs = materialise(pair.spec, outcome.example)
    grad = dict(pair.modes(outcome.example)).get(train, False)
    usual = pair.runs(outcome.example, args, kwargs, train, grad, noise)
    plain, runner = usual.own[0], pair.flax
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        module = nnx.clone(runner.module)
        nnx.update(module, jax.tree.map(_widened, nnx.state(module)))
        wide = runner.beside(module)
        given, by_name = jax.tree.map(_widened, (tuple(args), dict(kwargs)))
        inputs = any(name.startswith("input ") for name in plain.gradients)
        double = wide.once(
            given, by_name, plain, train=train, grad=bool(plain.gradients), inputs=inputs
        )
    return usual, double


def _widened(value: Any) -> Any:
    """A float32 array in float64, everything else as it is."""
    if isinstance(value, np.ndarray):
        return value.astype(np.float64) if value.dtype == np.float32 else value
    is_single = isinstance(value, jax.Array) and value.dtype == jnp.float32
    return value.astype(jnp.float64) if is_single else value
