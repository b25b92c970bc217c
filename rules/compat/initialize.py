"""Initial values for layers whose class is known only at run time."""

from __future__ import annotations

from flax import nnx


def initialize(module, name, init):
    """Give a layer's ``weight`` or ``bias`` the value ``init(array)``; the array has torch's layout."""
    names = ("kernel", "embedding", "scale", "weight") if name == "weight" else (name,)
    found = next(getattr(module, n) for n in names if hasattr(module, n))
    if not isinstance(found, nnx.Variable):
        return  # a value computed from other parameters keeps nothing that is written to it
    transposed = isinstance(module, nnx.Linear) and name == "weight"
    found[...] = init(found[...].T).T if transposed else init(found[...])
