"""Parameters of a module with the names that torch gives them."""

from __future__ import annotations

from flax import nnx

_TORCH_NAMES = {"kernel": "weight", "scale": "weight", "embedding": "weight"}


def named_parameters(module):
    """Yield (dotted torch name, nnx.Param) for every parameter of a module, each once."""
    for path, value in nnx.iter_graph(module):
        if isinstance(value, nnx.Param):
            parts = [str(p) for p in path if p != "layers"]
            parts[-1] = _TORCH_NAMES.get(parts[-1], parts[-1])
            yield ".".join(parts), value


def parameters(module):
    """Yield every nnx.Param of a module once."""
    return (value for _, value in nnx.iter_graph(module) if isinstance(value, nnx.Param))
