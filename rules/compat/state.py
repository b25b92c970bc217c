"""What of a module's state torch keeps in a ``state_dict``."""

from __future__ import annotations

from flax import nnx


def is_stored(path, value):
    """Whether a ``state_dict`` has this: a parameter or a persistent buffer, no generator and no plain attribute."""
    if not isinstance(value, nnx.Variable) or isinstance(value, nnx.RngState):
        return False
    return value.get_metadata("persistent", default=True)
