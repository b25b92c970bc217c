"""Outputs that are random in a way that cannot be shared: compared in distribution, over many runs of each side.

A run of either side uses random numbers of its own. Mean and deviation of every element over the runs are
estimated on both sides; the bounds are so wide (six standard errors, a factor two) that chance does not cross
them, and so narrow that a dropout that is missing, or of another rate, does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from numerics.compare import Difference, missing
from numerics.runners import TorchMode, run_torch, to_numpy
from numerics.tree import flatten

RUNS = 32
DEVIATIONS = 2.0
STANDARD_ERRORS = 6.0


def compare_distributions(
    module: torch.nn.Module,
    port: nnx.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    train: bool,
) -> list[Difference]:
    """Every output of ``RUNS`` runs of both, in distribution; the port has torch's weights already."""
    own = [
        run_torch(module, args, kwargs, TorchMode(train, seed=seed)).outputs for seed in range(RUNS)
    ]
    theirs = _port_outputs(port, args, kwargs, train)
    found = []
    for name, value in own[0].items():
        if name not in theirs:
            found.append(missing(name))
        elif theirs[name].shape[1:] != value.shape:
            problem = f"shape {theirs[name].shape[1:]} where torch has {value.shape}"
            found.append(Difference(name, problem=problem, structural=True))
        elif value.dtype.kind in "fiub" and value.size:
            runs = np.stack([np.asarray(run[name], np.float64) for run in own])
            found.append(_compared(name, runs, theirs[name].astype(np.float64)))
    return found


def _port_outputs(
    port: nnx.Module, args: Sequence[Any], kwargs: Mapping[str, Any], train: bool
) -> dict[str, np.ndarray]:
    """Outputs by path with a leading axis of runs; one compilation for all."""
    port.train() if train else port.eval()
    graphdef, keys, rest = nnx.split(port, nnx.RngKey, ...)
    leaves, treedef = jax.tree.flatten((tuple(args), dict(kwargs)), is_leaf=lambda x: x is None)
    arrays = {i: jnp.asarray(x) for i, x in enumerate(leaves) if isinstance(x, np.ndarray)}

    def run(seed: Any, keys: Any, rest: Any, arrays: Any) -> Any:
        keys = jax.tree.map(lambda key: jax.random.fold_in(key, seed), keys)
        module = nnx.merge(graphdef, keys, rest, copy=True)
        given = [arrays.get(i, leaf) for i, leaf in enumerate(leaves)]
        call_args, call_kwargs = jax.tree.unflatten(treedef, given)
        outputs = flatten(module(*call_args, **call_kwargs))
        return {path: jnp.asarray(value) for path, value in outputs.items()}

    runs = jax.jit(jax.vmap(run, in_axes=(0, None, None, None)))
    found = runs(jnp.arange(RUNS), keys, rest, arrays)
    return {path: to_numpy(value) for path, value in found.items()}


def _compared(name: str, own: np.ndarray, port: np.ndarray) -> Difference:
    """``own`` and ``port``: (runs, …)."""
    usable = np.isfinite(own).all(0)
    if not usable.any():
        return Difference(name)
    if not np.isfinite(port[:, usable]).all():
        problem = "it is not finite where torch's is in every run"
        return Difference(name, problem=problem, structural=True)
    own, port = own[:, usable], port[:, usable]
    scale = float(np.abs(own).max()) or 1.0
    spread, other = (float(np.sqrt(x.var(0, ddof=1).mean())) for x in (own, port))
    floor = 1e-5 * scale
    if max(spread, other) > floor and max(spread, other) > DEVIATIONS * min(spread, other):
        if min(spread, other) <= floor:
            sides = ("torch", "the port") if spread > other else ("the port", "torch")
            problem = f"{sides[0]} draws it at random, {sides[1]} does not"
        else:
            problem = (
                f"it varies by {other:.2g} from run to run where torch's varies by {spread:.2g}"
            )
        return Difference(name, problem=problem, structural=True)
    variance = (own.var(0, ddof=1) + port.var(0, ddof=1)) / len(own) + floor**2
    errors = float(np.sqrt(((own.mean(0) - port.mean(0)) ** 2 / variance).mean()))
    if errors > STANDARD_ERRORS:
        problem = f"its mean over {RUNS} runs is {errors:.1f} standard errors from torch's"
        return Difference(name, problem=problem, structural=True)
    return Difference(name)
