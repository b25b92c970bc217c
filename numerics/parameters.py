"""Weights to verify with: near the model's own, but with nothing at a value that hides a difference."""

from __future__ import annotations

import copy

import torch

VARIANTS = ("fresh", "small", "other")
"""``fresh`` and ``other`` perturb the module's parameters with two seeds; ``small`` also shrinks matrices by
twenty, so that an epsilon beside a variance shows however deep it sits."""


def copied(module: torch.nn.Module) -> torch.nn.Module:
    """A deep copy, also of a module that keeps a computed tensor (as ``torch.nn.utils.weight_norm`` does, or a buffer
    that is made from a parameter)."""
    computed = {
        id(value): value.detach().clone()
        for part in module.modules()
        for value in (*vars(part).values(), *part._buffers.values())
        if isinstance(value, torch.Tensor) and not value.is_leaf
    }
    return copy.deepcopy(module, computed)


def perturbed(module: torch.nn.Module, variant: str, jitter: int = 0) -> torch.nn.Module:
    """A copy whose parameters are noisy: biases that start at zero and scales that start at one do not stay.

    Running means and variances take values a trained model would have, small variances among them. Other
    buffers (masks, tables) stay. ``jitter`` moves every parameter by about 1e-5 of itself.
    """
    module = copied(module)
    generator = torch.Generator().manual_seed(VARIANTS.index(variant) + 1)
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dtype.is_floating_point:
                _perturb(parameter, variant, generator)
        for name, buffer in module.named_buffers():
            _perturb_statistics(name.rpartition(".")[2], buffer, generator)
        if jitter:
            _jitter(module, jitter)
    return module


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
