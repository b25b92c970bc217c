"""What of a module's state torch keeps in a ``state_dict``."""

from __future__ import annotations

from flax import nnx


def is_stored(path, value):
    """Whether a ``state_dict`` has this: a parameter or a persistent buffer, no generator and no plain attribute."""
    if not isinstance(value, nnx.Variable) or isinstance(value, nnx.RngState):
        return False
    return value.get_metadata("persistent", default=True)


def set_dtype(module, name, dtype):
    """Give what a module holds under a name another dtype; a Variable stays the same, an array is replaced."""
    held = getattr(module, name)
    if isinstance(held, nnx.Variable):
        held.set_value(held[...].astype(dtype))
    else:
        setattr(module, name, held.astype(dtype))
