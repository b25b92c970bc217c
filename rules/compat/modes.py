"""Training and evaluation mode as values: Flax's ``train()`` and ``eval()`` take no mode and return nothing."""

from __future__ import annotations

from flax import nnx


def set_training(module, mode=True):
    """``module.train(mode)`` of torch: the module itself, with all that is below it in one of the modes.

    A layer without state is a plain function and has no mode.
    """
    if isinstance(module, nnx.Module):
        module.train() if mode else module.eval()
    return module
