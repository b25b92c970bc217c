"""Children of modules by the names that torch has for them: those of a Sequential are numbered."""

from __future__ import annotations


def is_numbered(module, name):
    """Whether ``name`` is the number of a layer of a Sequential, which keeps its layers in a list."""
    sequential = "Sequential" in {cls.__name__ for cls in type(module).__mro__}
    return sequential and name.isdigit() and name not in getattr(module, "names", ())


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
    if hasattr(module, "add_module") and name not in module.names:
        module.add_module(name, value)
    elif not is_numbered(module, name):
        setattr(module, name, value)
    else:  # a list anew: a layer may take the place of a function
        layers = list(module.layers)
        layers[int(name) : int(name) + 1] = [value]
        module.layers = type(module.layers)(layers)
