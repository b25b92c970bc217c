"""Calls of what may or may not make a layer."""

from __future__ import annotations

import functools
import inspect

import jax
from flax import nnx


def build(make, *args, rngs, **kwargs):
    """``make(*args, **kwargs)``, with ``rngs`` where ``make`` takes it: a class, a function, a partial of either."""
    target = make
    while isinstance(target, functools.partial):
        target = target.func
    try:
        signature = inspect.signature(target.__init__ if isinstance(target, type) else target)
    except ValueError:  # a builtin
        return make(*args, **kwargs)
    if "rngs" in signature.parameters:
        kwargs["rngs"] = rngs
    return make(*args, **kwargs)


class LayerClass:
    """What classes of torch derive from where functions make the layers."""


def layer_class(make):
    """A class that makes what a function makes: a layer of torch is a class, which code may ask for."""
    names = {
        "__new__": lambda cls, *args, **kwargs: make(*args, **kwargs),
        "__init__": make,
        "__signature__": inspect.signature(make),
        "__doc__": make.__doc__,
        "__module__": make.__module__,
    }
    return type(make.__name__, (LayerClass,), names)


def made_by(value, make):
    """``isinstance(value, make)`` where functions, too, stand for torch's classes of layers."""
    if isinstance(make, tuple):
        return any(made_by(value, one) for one in make)
    if not inspect.isfunction(make) and not hasattr(make, "__signature__"):
        return isinstance(value, make)
    function = make if inspect.isfunction(make) else make.__init__
    made = inspect.signature(function, eval_str=True).return_annotation
    if isinstance(made, type) and made is not inspect.Signature.empty:
        return isinstance(value, made)
    if not isinstance(value, nnx.Module) or type(value).__name__ == "Stateless":
        raise NotImplementedError(
            f"nothing tells whether {make.__name__} made a layer without state"
        )
    return False


def declared(layer):
    """What is assigned where an attribute may be None: Flax asks that a layer which comes later is declared."""
    return nnx.data(layer) if nnx.is_data(layer) else layer


def kept(value):
    """What a forward pass keeps in its module, declared as data where it holds arrays."""
    leaves = jax.tree.leaves(value)
    return nnx.data(value) if any(isinstance(one, jax.Array) for one in leaves) else value


def static_or_data(value):
    """What an attribute holds that is a number at times and an array, or holds some, at others: data then."""
    leaves = jax.tree.leaves(value)
    held = any(isinstance(one, jax.Array) for one in leaves)
    return nnx.data(value) if held else nnx.static(value)


def signature_of(make):
    """``inspect.signature`` without ``rngs``; of a class that of its constructor, not of Flax's metaclass."""
    target = make.func if isinstance(make, functools.partial) else make
    if isinstance(target, type) and issubclass(target, nnx.Module):
        if target.__module__.startswith("flax."):
            raise NotImplementedError(
                f"{target.__name__} of Flax takes other arguments than torch's"
            )
        found = inspect.signature(target.__init__)
        taken = len(make.args) if isinstance(make, functools.partial) else 0
        own = list(found.parameters.values())[1 + taken :]
    else:
        found = inspect.signature(make)
        own = list(found.parameters.values())
    return found.replace(parameters=[one for one in own if one.name != "rngs"])


def argspec_of(make):
    """``inspect.getfullargspec`` without ``rngs``; of a module, which torch calls through a wrapper, any arguments."""
    if isinstance(make, nnx.Module):
        return inspect.FullArgSpec(["self"], "args", "kwargs", None, [], None, {})
    kinds: dict = {}
    for one in signature_of(make).parameters.values():
        kinds.setdefault(one.kind, []).append(one)
    names = {kind: [one.name for one in found] for kind, found in kinds.items()}
    one = inspect.Parameter
    plain = [*kinds.get(one.POSITIONAL_ONLY, []), *kinds.get(one.POSITIONAL_OR_KEYWORD, [])]
    only = kinds.get(one.KEYWORD_ONLY, [])
    defaults = tuple(p.default for p in plain if p.default is not one.empty)
    given = {p.name: p.default for p in only if p.default is not one.empty}
    hints = {p.name: p.annotation for p in (*plain, *only) if p.annotation is not one.empty}
    first = ["self"] if isinstance(make, type) else []
    return inspect.FullArgSpec(
        [*first, *(p.name for p in plain)],
        (names.get(one.VAR_POSITIONAL) or [None])[0],
        (names.get(one.VAR_KEYWORD) or [None])[0],
        defaults or None,
        [p.name for p in only],
        given or None,
        hints,
    )
