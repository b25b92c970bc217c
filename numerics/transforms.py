"""What JAX can do with a function besides calling it: ``vmap`` over whole calls, and second derivatives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import torch
from flax import nnx

from numerics.compare import Difference, compare_all
from numerics.inputs import Example, alike
from numerics.randomness import NotInTorch, Recorder
from numerics.runners import (
    FlaxRunner,
    TorchMode,
    as_real,
    call_tensors,
    cotangent,
    is_float,
    is_inexact,
    leaf_names,
    prepared,
    run_torch,
    to_numpy,
    torch_context,
)
from numerics.spec import InputSpec
from numerics.tree import flatten

CALLS = 3


def compare_vmapped(
    module: torch.nn.Module, runner: FlaxRunner, spec: InputSpec, example: Example, noise: int
) -> list[Difference]:
    """The port mapped over ``CALLS`` calls at once against torch call by call, in eval mode."""
    calls = alike(spec, example, CALLS)
    modes = [TorchMode(float64=True), TorchMode(), *(TorchMode(noise=i) for i in range(noise))]
    reference, *own = (
        _stacked([run_torch(module, *call, mode).outputs for call in calls]) for mode in modes
    )
    runner.module.eval()
    graphdef, state = nnx.split(runner.module)
    flat = [jax.tree.leaves(call, is_leaf=lambda x: x is None) for call in calls]
    treedef = jax.tree.structure(calls[0], is_leaf=lambda x: x is None)
    moving = {
        i: jnp.stack([leaves[i] for leaves in flat])
        for i, leaf in enumerate(flat[0])
        if isinstance(leaf, np.ndarray)
    }

    def call(moving: Any) -> Any:
        given = [moving.get(i, leaf) for i, leaf in enumerate(flat[0])]
        args, kwargs = jax.tree.unflatten(treedef, given)
        outputs = flatten(nnx.merge(graphdef, state, copy=True)(*args, **kwargs))
        return {path: jnp.asarray(value) for path, value in outputs.items()}

    with jax.default_matmul_precision("highest"):
        port = jax.jit(jax.vmap(call))(moving)
    return compare_all(reference, own, {path: to_numpy(value) for path, value in port.items()})


def _stacked(runs: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {path: np.stack([run[path] for run in runs]) for path in runs[0]}


# --- second derivatives --------------------------------------------------------------------------


def compare_second_order(
    module: torch.nn.Module, runner: FlaxRunner, args: Sequence[Any], kwargs: Any, noise: int
) -> list[Difference]:
    """The Hessian of a random weighted sum of the outputs, times a random vector, in eval mode.

    With respect to every float input and every parameter, by torch's names. Nothing where there is no output
    that has a gradient.

    Raises:
      NotInTorch: torch has no second derivative of an operation, as of fused attention.
    """
    modes = [
        TorchMode(grad=True),
        TorchMode(grad=True, float64=True),
        *(TorchMode(grad=True, noise=i) for i in range(noise)),
    ]
    try:
        plain = _torch_products(module, args, kwargs, modes[0])
    except RuntimeError as error:
        raise NotInTorch(str(error)) from error
    if not plain:
        return []
    reference, *noisy = (_torch_products(module, args, kwargs, mode) for mode in modes[1:])
    frozen = [n for n, p in module.named_parameters() if not p.requires_grad]
    port = _port_products(runner, args, kwargs, list(plain), frozen)
    return compare_all(reference, [plain, *noisy], port)


def _torch_products(
    module: torch.nn.Module, args: Sequence[Any], kwargs: Any, mode: TorchMode
) -> dict[str, np.ndarray]:
    module = prepared(module, mode)
    leaves: dict[str, torch.Tensor] = {}
    call_args, call_kwargs = call_tensors(args, kwargs, mode, leaves)
    wanted = dict(leaves)
    wanted |= {n: p for n, p in module.named_parameters() if p.requires_grad}
    with torch_context(mode, Recorder()):
        floats = [
            as_real(value)
            for value in flatten(module(*call_args, **call_kwargs)).values()
            if is_inexact(value)
        ]
        outputs = {i: value for i, value in enumerate(floats) if value.requires_grad}
        if not outputs or not wanted:
            return {}
        first = torch.autograd.grad(
            sum((value * _weights(0, i, value)).sum() for i, value in outputs.items()),
            list(wanted.values()),
            create_graph=True,
            allow_unused=True,
        )
        terms = [
            (gradient * _weights(1, i, gradient)).sum()
            for i, gradient in enumerate(first)
            if gradient is not None and gradient.requires_grad
        ]
        second = (
            torch.autograd.grad(sum(terms), list(wanted.values()), allow_unused=True)
            if terms
            else [None] * len(wanted)
        )
    return {
        name: np.zeros(tuple(leaf.shape)) if value is None else to_numpy(value)
        for (name, leaf), value in zip(wanted.items(), second, strict=True)
    }


def _weights(seed: int, index: int, like: torch.Tensor) -> torch.Tensor:
    return torch.from_numpy(cotangent(seed, index, tuple(like.shape))).to(like)


def _port_products(
    runner: FlaxRunner,
    args: Sequence[Any],
    kwargs: Any,
    names: Sequence[str],
    frozen: Sequence[str],
) -> dict[str, np.ndarray]:
    """Forward over reverse: the derivative of the gradient along the vector that torch's side used."""
    runner.module.eval()
    graphdef, params, rest = nnx.split(runner.module, nnx.Param, ...)
    leaves, treedef = jax.tree.flatten((tuple(args), dict(kwargs)), is_leaf=lambda x: x is None)
    arrays = {i: jnp.asarray(x) for i, x in enumerate(leaves) if isinstance(x, np.ndarray)}
    floats = {i: x for i, x in arrays.items() if is_float(x)}
    input_names = leaf_names(args, kwargs)

    def weighted(params: Any, floats: Any) -> Any:
        given = [floats.get(i, arrays.get(i, leaf)) for i, leaf in enumerate(leaves)]
        call_args, call_kwargs = jax.tree.unflatten(treedef, given)
        outputs = flatten(nnx.merge(graphdef, params, rest, copy=True)(*call_args, **call_kwargs))
        arrays_out = [as_real(x) for x in outputs.values() if isinstance(x, jax.Array)]
        differentiable = [x for x in arrays_out if is_float(x)]
        return sum(jnp.sum(x * cotangent(0, i, x.shape)) for i, x in enumerate(differentiable))

    shapes = runner.named(params) | {input_names[i]: x for i, x in floats.items()}
    vector = {name: cotangent(1, i, shapes[name].shape) for i, name in enumerate(names)}
    along_inputs = {i: jnp.asarray(vector.pop(input_names[i]), x.dtype) for i, x in floats.items()}
    still = {name: np.zeros(shapes[name].shape, np.float32) for name in frozen}
    along = runner.params_from({**vector, **still})

    @jax.jit
    def products(params: Any, floats: Any) -> Any:
        gradient = jax.grad(weighted, argnums=(0, 1))
        return jax.jvp(gradient, (params, floats), (along, along_inputs))[1]

    with jax.default_matmul_precision("highest"):
        of_params, of_inputs = products(params, floats)
    found = {name: to_numpy(value) for name, value in runner.named(of_params).items()}
    found |= {input_names[i]: to_numpy(value) for i, value in of_inputs.items()}
    return {name: value for name, value in found.items() if name in names}
