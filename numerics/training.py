"""A short training run on both sides: same weights, data, random numbers and optimiser; losses and final weights.

The loss is the mean squared distance of all float outputs from fixed random targets. torch runs in float64, in
its own precision and with random rounding, as everywhere, so that what ten steps make of rounding is measured,
not guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import torch
from flax import nnx

from numerics.compare import Difference, compare_all
from numerics.inputs import Example, alike
from numerics.randomness import Draw, NotInTorch, Recorder, ReplayMismatch, replaying
from numerics.runners import (
    FlaxRunner,
    TorchMode,
    as_real,
    call_tensors,
    cotangent,
    prepared,
    to_numpy,
    torch_context,
)
from numerics.spec import InputSpec
from numerics.tree import flatten

Call = tuple[tuple[Any, ...], dict[str, Any]]

OPTIMISERS: dict[str, tuple[Callable[..., torch.optim.Optimizer], optax.GradientTransformation]] = {
    "SGD": (lambda parameters: torch.optim.SGD(parameters, lr=1e-2), optax.sgd(1e-2)),
    "Adam": (lambda parameters: torch.optim.Adam(parameters, lr=1e-3), optax.adam(1e-3)),
}


@dataclass
class Trained:
    """The loss before each step, (steps,), and the state after the last by torch's names.

    ``paths`` are the outputs that the loss is made of, ``draws`` and ``raw`` the random numbers of each step.
    """

    losses: np.ndarray
    state: dict[str, np.ndarray]
    paths: list[str] = field(default_factory=list)
    draws: list[list[Draw]] = field(default_factory=list)
    raw: list[tuple[torch.Tensor, ...]] = field(default_factory=list)


def compare_training(
    module: torch.nn.Module,
    runner: FlaxRunner,
    spec: InputSpec,
    example: Example,
    optimiser: str,
    steps: int,
    noise: int,
) -> list[Difference]:
    """Losses and final state; the port has the module's weights already.

    Raises:
      ReplayMismatch: random numbers cannot be shared.
      NotInTorch: torch cannot train it so, as where one step's graph is kept in a buffer.
    """
    calls = alike(spec, example, steps)
    try:
        plain = _train_torch(module, calls, optimiser, TorchMode(True, True), None)
    except ReplayMismatch:
        raise
    except RuntimeError as error:
        raise NotInTorch(str(error)) from error
    if plain is None:
        return []
    runs = [plain]
    for mode in (
        TorchMode(True, True, float64=True),
        *(TorchMode(True, True, noise=i) for i in range(noise)),
    ):
        found = _train_torch(module, calls, optimiser, mode, plain.raw)
        assert found is not None
        runs.append(found)
    port = _train_port(runner, calls, optimiser, plain)
    own = [runs[0], *runs[2:]]
    return compare_all(
        {"losses": runs[1].losses, **runs[1].state},
        [{"losses": run.losses, **run.state} for run in own],
        {"losses": port.losses, **port.state},
    )


def _train_torch(
    module: torch.nn.Module,
    calls: Sequence[Call],
    optimiser: str,
    mode: TorchMode,
    raw: Sequence[tuple[torch.Tensor, ...]] | None,
) -> Trained | None:
    """None where nothing can be trained."""
    module = prepared(module, mode)
    parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
    if not parameters:
        return None
    stepper = OPTIMISERS[optimiser][0](parameters)
    result = Trained(np.zeros(len(calls)), {})
    for index, (args, kwargs) in enumerate(calls):
        step_mode = replace(mode, replay=None if raw is None else raw[index])
        step_mode = replace(step_mode, seed=index)
        call_args, call_kwargs = call_tensors(args, kwargs, step_mode, {})
        recorder = Recorder()
        with torch_context(step_mode, recorder):
            outputs = flatten(module(*call_args, **call_kwargs))
            result.paths = [
                path
                for path, value in outputs.items()
                if isinstance(value, torch.Tensor) and value.requires_grad
            ]
            if not result.paths:
                return None
            loss = _torch_loss([as_real(outputs[path]) for path in result.paths])
            stepper.zero_grad()
            loss.backward()
            stepper.step()
        result.losses[index] = float(loss.detach())
        result.draws.append(recorder.draws)
        result.raw.append(tuple(recorder.raw))
    state = {k: v for k, v in module.state_dict().items() if isinstance(v, torch.Tensor)}
    result.state = {name: to_numpy(value).copy() for name, value in state.items()}
    return result


def _torch_loss(outputs: Sequence[torch.Tensor]) -> torch.Tensor:
    terms = [
        ((value - torch.from_numpy(cotangent(1, i, tuple(value.shape))).to(value)) ** 2).mean()
        for i, value in enumerate(outputs)
    ]
    return torch.stack(terms).sum()


def _train_port(runner: FlaxRunner, calls: Sequence[Call], optimiser: str, own: Trained) -> Trained:
    runner.module.train()
    graphdef, params, rest = nnx.split(runner.module, nnx.Param, ...)
    transform = OPTIMISERS[optimiser][1]
    leaves, treedef = jax.tree.flatten(calls[0], is_leaf=lambda x: x is None)
    kinds = tuple(draw.kind for draw in own.draws[0])

    def loss(params: Any, rest: Any, moving: Any, values: Any) -> Any:
        module = nnx.merge(graphdef, params, rest, copy=True)
        given = [moving.get(i, leaf) for i, leaf in enumerate(leaves)]
        args, kwargs = jax.tree.unflatten(treedef, given)
        with replaying(kinds, values):
            outputs = flatten(module(*args, **kwargs))
        return _port_loss([as_real(outputs[path]) for path in own.paths]), nnx.state(
            module, nnx.Not(nnx.Param)
        )

    @jax.jit
    def step(params: Any, rest: Any, memory: Any, moving: Any, values: Any) -> Any:
        found = jax.value_and_grad(loss, has_aux=True)(params, rest, moving, values)
        (value, rest), gradients = found
        updates, memory = transform.update(gradients, memory, params)
        return value, optax.apply_updates(params, updates), rest, memory

    memory, losses = transform.init(params), []
    with jax.default_matmul_precision("highest"):
        for call, drawn in zip(calls, own.draws, strict=True):
            flat = jax.tree.leaves(call, is_leaf=lambda x: x is None)
            moving = {i: jnp.asarray(x) for i, x in enumerate(flat) if isinstance(x, np.ndarray)}
            values = [draw.value for draw in drawn]
            value, params, rest, memory = step(params, rest, memory, moving, values)
            losses.append(float(value))
    after = nnx.merge_state(params, rest)
    return Trained(np.array(losses), runner.state_after(after))


def _port_loss(outputs: Sequence[jax.Array]) -> Any:
    targets = [cotangent(1, i, value.shape) for i, value in enumerate(outputs)]
    return sum(jnp.mean((value - t) ** 2) for value, t in zip(outputs, targets, strict=True))
