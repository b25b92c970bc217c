"""Children of modules by the names that torch has for them: those of a Sequential are numbered."""

from __future__ import annotations

from flax import nnx


def is_numbered(module, name):
    """Whether ``name`` is the number of a layer of a Sequential, which keeps its layers in a list."""
    named = isinstance(module, nnx.List) or name in getattr(module, "names", ())
    return not named and name.isdigit() and isinstance(getattr(module, "layers", None), nnx.List)


def child_named(module, name, *default):
    """What ``getattr`` gives in torch, ``"0"`` of a Sequential as well."""
    if is_numbered(module, name) and int(name) < len(module.layers):
        return module.layers[int(name)]
    return getattr(module, name, *default)


def submodule(module, path):
    """The module that is found by a path of names: ``"encoder.0"``."""
    for name in path.split(".") if path else ():
        module = child_named(module, name)
    return module


def has_child(module, name):
    """What ``hasattr`` says in torch, of ``"0"`` of a Sequential as well."""
    if is_numbered(module, name) and int(name) < len(module.layers):
        return True
    return hasattr(module, name)


def set_child(module, name, value):
    """What ``setattr`` does in torch, to ``"0"`` of a Sequential as well; a number behind the last adds a layer."""
    if not is_numbered(module, name):
        setattr(module, name, value)
    elif int(name) == len(module.layers):
        module.layers.append(value)
    else:
        module.layers[int(name)] = value
