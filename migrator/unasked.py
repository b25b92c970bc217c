"""Methods of a model that its forward pass does not call, which verify does not compare."""

from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any

_ALWAYS = frozenset("__init__ __call__ forward __getattr__ __setattr__".split())


def unasked_methods(module: Any, port: Any) -> list[str]:
    """The public methods of a model's own classes that neither building nor calling it names, and that its port has.

    Args:
      module: the torch module.
      port: its port.
    """
    import torch

    found: dict[str, types.FunctionType] = {}
    for cls in reversed(type(module).__mro__):
        if not cls.__module__.startswith("torch."):
            own = vars(cls).items()
            found |= {n: f for n, v in own if isinstance(f := _function(v), types.FunctionType)}
    reached, pending = set(_ALWAYS), [found[name] for name in _ALWAYS & found.keys()]
    while pending:
        for name in _names(pending.pop().__code__):
            if name in found and name not in reached:
                reached.add(name)
                pending.append(found[name])
    return sorted(
        name
        for name in found.keys() - reached
        if not name.startswith("_") and hasattr(port, name) and not hasattr(torch.nn.Module, name)
    )


def _function(value: Any) -> Any:
    """What a class holds under a method's name, a static method or the class's own too."""
    return value.__func__ if isinstance(value, (staticmethod, classmethod)) else value


def _names(code: types.CodeType) -> Iterator[str]:
    """The names and texts that a function mentions, functions within it too."""
    yield from code.co_names
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _names(one)
        elif isinstance(one, str):  # getattr(self, "encode")
            yield one
