"""Weights to verify with: near the model's own, but with nothing at a value that hides a difference."""

from __future__ import annotations

import copy
import math
import types
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

VARIANTS = ("fresh", "small", "other")
"""``fresh`` and ``other`` perturb the module's parameters with two seeds; ``small`` also shrinks matrices by
twenty, so that an epsilon beside a variance shows however deep it sits."""


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A deep copy, also of a module that keeps a computed tensor (as ``torch.nn.utils.weight_norm`` does, or a buffer
    that is made from a parameter), or a function that reads parts of it, which Python's copy would go on reading in the
    original."""
    memo: dict[int, Any] = {
        id(value): value.detach().clone()
        for part in module.modules()
        for value in (*vars(part).values(), *part._buffers.values())
        if isinstance(value, torch.Tensor) and not value.is_leaf
    }
    made = copy.deepcopy(module, memo)
    for part in made.modules():
        for name, value in list(vars(part).items()):
            if isinstance(value, types.FunctionType) and (value.__closure__ or value.__defaults__):
                vars(part)[name] = _reading(value, memo)
    return made


def _reading(function: types.FunctionType, memo: Mapping[int, Any]) -> types.FunctionType:
    """A function as it is, but for what it holds of a copied object: that is the copy's."""
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(types.CellType(memo.get(id(cell.cell_contents), cell.cell_contents)))
        except ValueError:  # nothing is in it yet
            cells.append(cell)
    defaults = tuple(memo.get(id(one), one) for one in function.__defaults__ or ())
    made = types.FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        defaults or None,
        tuple(cells) or None,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def perturbed(
    module: torch.nn.Module, variant: str, jitter: int = 0, balanced: bool = False
) -> torch.nn.Module:
    """A copy whose parameters are noisy: biases that start at zero and scales that start at one do not stay.

    Running means and variances take values a trained model would have, small variances among them. Other
    buffers (masks, tables) stay. ``jitter`` moves every parameter by about 1e-5 of itself. ``balanced`` scales the
    weights of a normalisation by the deviations that its statistics claim, as training does.
    """
    module = copied(module)
    generator = torch.Generator().manual_seed(VARIANTS.index(variant) + 1)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dtype.is_floating_point:
                _perturb(parameter, variant, generator)
        for name, buffer in module.named_buffers():
            _perturb_statistics(name.rpartition(".")[2], buffer, generator)
        if balanced:
            _balance(module)
        if jitter:
            _jitter(module, jitter)
    return module


def grows(module: torch.nn.Module, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether what a module computes in eval mode leaves float32's range, or comes near the root of it.

    Statistics drawn at random are not those of the layer's input: each normalisation may raise the scale, fifty of
    them beyond anything. What a square of such numbers is, no two libraries agree on. A module without running
    statistics is not run.
    """
    if not any(name.endswith("running_var") for name, _ in module.named_buffers()):
        return False
    module = copied(module)
    module.eval()
    largest = [0.0]

    def look(part: torch.nn.Module, args: Any, output: Any) -> None:
        for value in tree_leaves(output):
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
                peak = float(value.abs().max())
                largest[0] = max(largest[0], peak) if math.isfinite(peak) else math.inf

    for part in module.modules():
        if not isinstance(part, torch.jit.ScriptModule):  # which takes no hooks
            part.register_forward_hook(look)
    with torch.no_grad(), torch.random.fork_rng():
        try:
            module(*args, **kwargs)
        except Exception:  # whoever runs it in earnest says so
            return False
    return largest[0] > _LARGE


_LARGE = 1e15
"""Squares of larger numbers, summed, come near the end of float32's range."""


def _balance(module: torch.nn.Module) -> None:
    for part in module.modules():
        variance, weight = getattr(part, "running_var", None), getattr(part, "weight", None)
        if isinstance(variance, torch.Tensor) and isinstance(weight, torch.Tensor):
            if variance.shape == weight.shape:
                weight.mul_(variance.sqrt().to(weight.dtype))


def _noise(like: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    return torch.randn(like.shape, generator=generator).to(like.dtype)


def _perturb(parameter: torch.Tensor, variant: str, generator: torch.Generator) -> None:
    if not parameter.numel():
        return
    spread = float(parameter.float().std()) if parameter.numel() > 1 else 0.0
    if spread == 0.0:
        spread = float(parameter.abs().max()) or 0.5
    parameter.mul_(1 + 0.1 * _noise(parameter, generator))
    parameter.add_(0.2 * spread * _noise(parameter, generator))
    if variant == "small" and parameter.ndim > 1:
        parameter.mul_(0.05)


def _perturb_statistics(name: str, buffer: torch.Tensor, generator: torch.Generator) -> None:
    if name == "running_mean":
        buffer.copy_(0.3 * _noise(buffer, generator))
    elif name == "running_var":
        buffer.copy_(10 ** (-3 + 3.5 * torch.rand(buffer.shape, generator=generator)))
    elif name == "num_batches_tracked":
        buffer.fill_(3)


def _jitter(module: torch.nn.Module, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    for parameter in module.parameters():
        if parameter.dtype.is_floating_point:
            step = max(1e-5, 2 * torch.finfo(parameter.dtype).eps)
            parameter.mul_(1 + step * _noise(parameter, generator))
