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


def is_training(module):
    """``module.training`` of torch, for a mode that is put back later: that of the layers that have one.

    Raises:
      ValueError: some are in training and some are not, so that one word cannot put them back.
    """
    names = "deterministic", "use_running_average"
    nodes = nnx.iter_graph(module) if isinstance(module, nnx.Module) else ()
    parts = [part for _, part in nodes if isinstance(part, nnx.Module)]
    modes = {not getattr(part, name) for part in parts for name in names if hasattr(part, name)}
    if len(modes) > 1:
        raise ValueError("a part of the module is in training mode and another is not")
    return modes != {False}


class Mode:
    """``deterministic`` of a module with a ``set_mode(mode)`` of its own, which torch calls ``train(mode)``.

    Flax's ``train()`` and ``eval()`` set this attribute of every module below the one they are called on, a module's own
    after those of its layers; ``set_mode`` runs then, as in torch. It does not run while the module is built.
    """

    def __get__(self, module, owner=None):
        if module is None:
            return self
        if "_deterministic" not in vars(module):
            raise AttributeError("deterministic")
        return module._deterministic

    def __set__(self, module, value):
        built = "_deterministic" in vars(module)
        module._deterministic = value
        if built:
            module.set_mode(not value)
