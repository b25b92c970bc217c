"""Containers and stateless layers that nnx spells differently."""

from __future__ import annotations

import functools

from flax import nnx


class Sequential(nnx.Sequential):
    """Calls its layers in turn, each on the one value the last returned (a tuple stays a tuple)."""

    def __init__(self, *layers, rngs: nnx.Rngs | None = None):
        self.layers = nnx.List(layers)

    def __call__(self, input):
        for layer in self.layers:
            input = layer(input)
        return input

    def __len__(self):
        return len(self.layers)

    def __iter__(self):
        return iter(self.layers)

    def __getitem__(self, index):
        found = self.layers[index]
        return Sequential(*found) if isinstance(index, slice) else found

    def __setitem__(self, index, layer):
        self.layers[index] = layer

    def append(self, layer):
        self.layers.append(layer)
        return self


class ModuleList(nnx.List):
    """Modules in a list that loses or gains some in the middle, which ``nnx.List`` gets wrong."""

    def insert(self, index, module):
        after = list(self)[index:]
        del self[index:]
        self.extend([module, *after])

    def __delitem__(self, index):
        kept = list(self)
        del kept[index]
        for i in range(len(self)):
            delattr(self, str(i))
        self._length = 0
        self.extend(kept)

    def __add__(self, other):
        return ModuleList([*self, *other])


class EditedSequential(Sequential):
    """A ``Sequential`` that loses or gains layers in the middle."""

    def __init__(self, *layers, rngs: nnx.Rngs | None = None):
        self.layers = ModuleList(layers)


class NamedSequential(nnx.Sequential):
    """Calls its layers in turn; each is an attribute under its own name, as in torch's state_dict."""

    def __init__(self, layers=(), *, rngs: nnx.Rngs | None = None):
        self.names = ()
        for name, layer in layers.items() if hasattr(layers, "items") else layers:
            self.add_module(name, layer)

    def add_module(self, name, layer):
        if name not in self.names:
            self.names += (name,)
        setattr(self, name, layer)

    def append(self, layer):
        self.add_module(str(len(self.names)), layer)
        return self

    def __len__(self):
        return len(self.names)

    def __getitem__(self, index):
        found = self.layers[index]
        if isinstance(index, int):
            return found
        return NamedSequential(zip(self.names[index], found, strict=True))

    def __setitem__(self, index, layer):
        setattr(self, self.names[index], layer)

    @property
    def layers(self):
        return tuple(getattr(self, name) for name in self.names)

    def __call__(self, input):
        for layer in self.layers:
            input = layer(input)
        return input


def is_filled(layers):
    """Whether there are layers: None and a Sequential without any count as false."""
    return layers is not None and bool(getattr(layers, "layers", layers))


def take_out(sequential, index):
    """``sequential.pop(index)`` of torch: the layers that are left are numbered anew, those with names too."""
    taken, kept = sequential.layers[index], list(sequential.layers)
    del kept[index]
    if not hasattr(sequential, "names"):
        sequential.layers = type(sequential.layers)(kept)
        return taken
    for name in sequential.names:
        delattr(sequential, name)
    sequential.names = ()
    for layer in kept:
        sequential.append(layer)
    return taken


class Unregistered(nnx.List):
    """A list of modules that torch's state_dict does not know: children under other names, or such as keep nothing."""


def put_in(sequential, index, layer):
    """``sequential[index] = layer`` of torch, whether the layers have names or not."""
    # Flax has seen a function or a module here, and holds on to that
    layer = nnx.data(layer) if isinstance(layer, nnx.Module) else nnx.static(layer)
    if hasattr(sequential, "names"):
        sequential[index] = layer
    else:
        sequential.layers[index] = layer


def of_module(module, function):
    """A layer as it is; any other function that a module keeps is handed the module first."""
    return function if isinstance(function, nnx.Module) else functools.partial(function, module)


def nested_list(values):
    """Lists and tuples as ``nnx.List``, those in them too: Flax finds the arrays there."""
    if not isinstance(values, (list, tuple)):
        return values
    return nnx.List([nested_list(v) for v in values])


class ModuleDict(nnx.Module):
    """Modules by name in the order they were added; ``nnx.Dict`` sorts its keys when a module is jitted."""

    def __init__(self, modules=()):
        self.names = ()
        self.update(modules)

    def update(self, modules=(), **named):
        for name, module in modules.items() if hasattr(modules, "items") else modules:
            self[name] = module
        for name, module in named.items():
            self[name] = module

    def __setitem__(self, name, module):
        if name not in self.names:
            self.names += (name,)
        setattr(self, name, module)

    def __getitem__(self, name):
        return getattr(self, name)

    def __delitem__(self, name):
        self.names = tuple(one for one in self.names if one != name)
        delattr(self, name)

    def __ior__(self, modules):
        self.update(modules)
        return self

    def setdefault(self, name, module=None):
        if name not in self.names:
            self[name] = module
        return self[name]

    def pop(self, name):
        module = self[name]
        del self[name]
        return module

    def clear(self):
        for name in self.names:
            del self[name]

    def __contains__(self, name):
        return name in self.names

    def __len__(self):
        return len(self.names)

    def __iter__(self):
        return iter(self.names)

    def keys(self):
        return self.names

    def values(self):
        return [getattr(self, name) for name in self.names]

    def items(self):
        return [(name, getattr(self, name)) for name in self.names]


def items_of(value):
    """What torch indexes and goes over: the layers of a Sequential, anything else as it is."""
    names = {cls.__name__ for cls in type(value).__mro__}
    return value.layers if names & {"Sequential", "NamedSequential"} else value


def slice_of(value, start, stop, step=None):
    """``value[start:stop:step]``; of a Sequential a Sequential, whose layers keep their names or numbers."""
    layers, part = items_of(value), slice(start, stop, step)
    if layers is value:
        return value[part]
    names = getattr(value, "names", None) or [str(i) for i in range(len(layers))]
    return NamedSequential(zip(names[part], layers[part], strict=True))
