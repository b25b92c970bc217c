"""Children, modules and parameters of a module in torch's order and with torch's names."""

from __future__ import annotations

import copy

import jax.numpy as jnp
from flax import nnx
from jax import lax

_TORCH_NAMES = {"kernel": "weight", "scale": "weight", "embedding": "weight"}
_NO_CHILD = (type, nnx.Variable, nnx.Rngs, nnx.RngStream)


class Frozen(nnx.Variable):
    """A parameter that is not trained: torch's ``requires_grad=False``."""


def named_children(module):
    """Yield (name, child) in the order of assignment, each module once; a layer without state is a plain function.

    Flax itself sorts attributes by name, and does not count functions.
    """
    seen = set()
    for name, child in named_layers(module):
        if id(child) not in seen:
            yield name, child
        if isinstance(child, nnx.Pytree):
            seen.add(id(child))


def named_layers(module):
    """Yield (name, child) in the order of assignment, a child that has two names twice."""
    mro = type(module).__mro__
    if any(cls.__module__.startswith("flax.nnx.nn.") for cls in mro):
        if hasattr(module, "parametrizations"):
            yield "parametrizations", module.parametrizations
        return  # a layer of Flax: the functions it holds are no layers
    bases = {cls.__name__ for cls in mro}
    if bases & {"NamedSequential", "ModuleDict"}:
        yield from ((name, getattr(module, name)) for name in module.names)
        return
    listed = isinstance(getattr(module, "layers", None), nnx.List)  # own classes are called so, too
    if ("Sequential" in bases and listed) or type(module) is nnx.List:
        layers = module if type(module) is nnx.List else module.layers
        yield from ((str(i), layer) for i, layer in enumerate(layers))
        return
    for name, value in vars(module).items() if isinstance(module, nnx.Pytree) else ():
        if name.startswith("_pytree__") or isinstance(value, _NO_CHILD):
            continue
        if type(value).__name__ == "Unregistered" or name == "_dropping":
            continue  # its modules are children under other names; torch's attention has no child that drops out
        if isinstance(value, nnx.Pytree) or callable(value):
            yield name, value


def children(module):
    """Yield the children of a module in the order of assignment."""
    return (child for _, child in named_children(module))


def named_modules(module, prefix="", seen=None):
    """Yield (dotted name, module) for a module and all below it, those above first, each once."""
    seen = set() if seen is None else seen
    if isinstance(module, nnx.Pytree):
        if id(module) in seen:
            return
        seen.add(id(module))
    yield prefix, module
    for name, child in named_children(module):
        yield from named_modules(child, f"{prefix}.{name}" if prefix else name, seen)


def modules(module):
    """Yield a module and all below it, those above first, each once."""
    return (found for _, found in named_modules(module))


def named_parameters(module, prefix=""):
    """Yield (dotted torch name, Variable) for every parameter of a module, each once."""
    seen = set()
    for path, owner in named_modules(module, prefix):
        native = any(cls.__module__.startswith("flax.nnx.nn.") for cls in type(owner).__mro__)
        for name, value in vars(owner).items() if isinstance(owner, nnx.Pytree) else ():
            if isinstance(value, (nnx.Param, Frozen)) and id(value) not in seen:
                seen.add(id(value))
                name = _TORCH_NAMES.get(name, name) if native else name
                yield f"{path}.{name}" if path else name, value


def parameters(module):
    """Yield every parameter of a module once."""
    return (value for _, value in named_parameters(module))


def state_variables(module):
    """Dotted torch name → Variable of all that torch's ``state_dict()`` holds, in its order."""
    found = {}
    for path, owner in named_modules(module):
        native = any(cls.__module__.startswith("flax.nnx.nn.") for cls in type(owner).__mro__)
        own = vars(owner).items() if isinstance(owner, nnx.Pytree) else ()
        kept = [(n, v) for n, v in own if isinstance(v, nnx.Variable)]
        kept = [(n, v) for n, v in kept if not isinstance(v, nnx.RngState)]
        kept = [(n, v) for n, v in kept if v.get_metadata("persistent", True)]
        for name, value in sorted(kept, key=lambda p: not isinstance(p[1], (nnx.Param, Frozen))):
            name = _TORCH_NAMES.get(name, name) if native else name
            found[f"{path}.{name}" if path else name] = value
    return found


def any_parameters(module):
    """Yield the float arrays of a module's state in any order, for those who ask for their type."""
    values = (value for _, value in nnx.iter_graph(module) if isinstance(value, nnx.Variable))
    return (value for value in values if jnp.issubdtype(value.dtype, jnp.floating))


def deepcopy(value):
    """``copy.deepcopy`` of a module, or of a list of them, whose parts stay in the order of assignment.

    Flax's own copy has them sorted by name, so that it and the original could not be walked side by side.
    """
    made = copy.deepcopy(value)
    _order_as(value, made, set())
    return made


def is_torchs(module):
    """Whether the class of a module is one that stands for a layer of torch's, and none that a program derives."""
    file = type(module).__module__
    return file.startswith("flax.") or file.rpartition(".")[2] == __name__.rpartition(".")[2]


def detached_copy(module):
    """``copy.deepcopy`` of a module that is run: its parameters are new leaves, and the original gets no gradient."""
    made = deepcopy(module)
    if isinstance(made, nnx.Pytree):
        for _, part in nnx.iter_graph(made):
            if isinstance(part, nnx.Variable):
                part.set_value(lax.stop_gradient(part.get_value()))
    return made


def _order_as(value, made, seen):
    if isinstance(value, (list, tuple, nnx.List)):
        for one, other in zip(value, made, strict=True):
            _order_as(one, other, seen)
    elif isinstance(value, nnx.Pytree) and id(value) not in seen:
        seen.add(id(value))
        own = vars(made)
        ordered = {name: own[name] for name in vars(value) if name in own}
        own.clear()
        own.update(ordered)
        for name, part in vars(value).items():
            if not name.startswith("_pytree__"):
                _order_as(part, own[name], seen)


def set_trainable(target, trainable):
    """Let training change a parameter, or all parameters of a module, or keep it from that; returns ``target``."""
    for variable in [target] if isinstance(target, nnx.Variable) else parameters(target):
        if isinstance(variable, (nnx.Param, Frozen)):
            variable.__class__ = nnx.Param if trainable else Frozen
    return target


def weight_of(module, name):
    """The ``weight`` or ``bias`` of a layer whose class is known only at run time."""
    names = ("kernel", "embedding", "scale", "weight") if name == "weight" else (name,)
    return next(getattr(module, n) for n in names if hasattr(module, n))


def set_attribute(holder, name, value):
    """``setattr``, also of a parameter, whose attributes Flax calls metadata."""
    if isinstance(holder, nnx.Variable):
        holder.set_metadata(name, value)
    else:
        setattr(holder, name, value)


def held(value):
    """What an attribute holds: the array of a parameter or buffer, anything else as it is."""
    return value[...] if isinstance(value, nnx.Variable) else value


def put(module, name, value, in_place=False):
    """``setattr`` as torch does it: a tensor takes the place of a buffer's and is one, too.

    What holds on to the old one keeps it, unless it is written ``in_place``, in its own dtype.
    """
    held = getattr(module, name, None)
    tensor = isinstance(value, (jnp.ndarray, nnx.Variable))
    if in_place and tensor and isinstance(held, (jnp.ndarray, nnx.Variable)):
        value = value.astype(held.dtype)
    if in_place and isinstance(held, nnx.Variable):
        held[...] = value
    elif isinstance(held, nnx.Variable) and isinstance(value, jnp.ndarray):
        setattr(module, name, type(held)(value, **held.get_metadata()))
    else:
        setattr(module, name, value)
