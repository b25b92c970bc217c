"""Children of modules in a package whose layers are all modules: functions are none."""

from __future__ import annotations

from flax import nnx

from rules.compat.by_name import activation_layer, padding_layer
from rules.compat.factories import LayerClass
from rules.compat.layer_functions import identity, is_layer_of
from rules.compat.named import named_children, named_layers, named_modules


class Stateless(nnx.Module):
    """A layer without parameters as a module; the function it holds is no child of it."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def as_layer(layer):
    """What takes the place of a module: a function is held by one, as Flax tells once whether an attribute is a part."""
    return Stateless(layer) if callable(layer) and not isinstance(layer, nnx.Module) else layer


def is_identity_layer(layer):
    """Whether a layer is what ``nn.Identity`` became."""
    return isinstance(layer, Stateless) and layer.function is identity


def is_stateless_of(layer, *makers):
    """Whether a layer is what a class of torch became that has no parameters; a function is none."""
    return isinstance(layer, Stateless) and is_layer_of(layer, *makers)


def stateless(layer):
    """A layer's constructor whose results are modules: a class, as it is in torch."""
    made = {"__new__": lambda cls, *args, **kwargs: Stateless(layer(*args, **kwargs))}
    return type(
        layer.__name__, (LayerClass,), {**made, "__init__": layer, "__doc__": layer.__doc__}
    )


def activation_module(name):
    """What makes the activation layer of that name in torch.nn, a module; it takes torch's options by their names."""
    make = activation_layer(name)

    def made(**options):
        layer = make(**options)
        return layer if isinstance(layer, nnx.Module) else Stateless(layer)

    return made


def padding_module(name):
    """What makes the padding layer of that name in torch.nn, a module."""
    make = padding_layer(name)
    return lambda padding, **options: Stateless(make(padding, **options))


def named_child_modules(module):
    """Yield (name, child) in the order of assignment, where functions are no layers."""
    if not isinstance(module, Stateless):
        for name, child in named_children(module):
            if isinstance(child, nnx.Pytree):
                yield name, child


def child_modules(module):
    """Yield the children of a module in the order of assignment, where functions are no layers."""
    return (child for _, child in named_child_modules(module))


def child_order(module):
    """The names of a module's children in the order of assignment, which is lost on the way through jit."""
    return tuple(name for name, _ in named_child_modules(module))


def ordered_named_children(module):
    """Yield (name, child) in the order that the constructor noted."""
    every = [(n, c) for n, c in named_layers(module) if isinstance(c, nnx.Pytree)]
    found = dict(every)  # of a child's two names either may come first: they are sorted by now
    noted = {id(found[name]) for name in module._child_order if name in found}
    if set(module._child_order) - set(found) or noted != {id(child) for _, child in every}:
        raise RuntimeError("children came or went after the module was built")
    return ((name, found[name]) for name in module._child_order)


def ordered_children(module):
    """Yield the children of a module in the order that the constructor noted."""
    return (child for _, child in ordered_named_children(module))


def child_names(module):
    """The names of a module's children in the order of assignment, those of one that has two twice."""
    found = [name for name, child in named_layers(module) if isinstance(child, nnx.Pytree)]
    noted = [name for name in getattr(module, "_child_order", ()) if name in found]
    return (*noted, *(name for name in found if name not in noted))


def child_table(module):
    """Name → child in the order that the constructor noted, as torch's ``_modules``."""
    names = child_names(module)
    if len(names) > len(getattr(module, "_child_order", names)):
        raise RuntimeError("children came after the module was built")
    return {name: getattr(module, name) for name in names}


def named_submodules(module, prefix=""):
    """Yield (dotted name, module) for a module and all below it, where functions are no layers."""
    return ((n, m) for n, m in named_modules(module, prefix) if isinstance(m, nnx.Pytree))


def submodules(module):
    """Yield a module and all below it, where functions are no layers."""
    return (found for _, found in named_submodules(module))
