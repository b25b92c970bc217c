"""What a LightningModule keeps of the arguments that it was made with."""

from __future__ import annotations

import jax
from flax import nnx


class Hyperparameters:
    """Arguments by name, as attributes or items; layers and arrays among them are not kept, for the module has them."""

    def __init__(self, **given):
        kept = {k: v for k, v in given.items() if not isinstance(v, (nnx.Module, jax.Array))}
        self.__dict__.update(kept)

    def __getitem__(self, name):
        return self.__dict__[name]

    def __contains__(self, name):
        return name in self.__dict__

    def get(self, name, default=None):
        return self.__dict__.get(name, default)

    def keys(self):
        return self.__dict__.keys()

    def items(self):
        return self.__dict__.items()
