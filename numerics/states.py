"""Writing a whole state into a module, and what is left of one behind a call."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flax import nnx


def put(module: nnx.Module, state: nnx.State) -> None:
    """``nnx.update``, also of arrays that a plain tuple holds: Flax cannot write into one, so it is made anew."""
    rest: list[tuple[Any, Any]] = []
    tuples: dict[tuple[Any, ...], dict[tuple[Any, ...], Any]] = {}
    for path, leaf in nnx.to_flat_state(state):
        at = None if isinstance(leaf, nnx.Variable) else _first_tuple(module, path)
        if at is None:
            rest.append((path, leaf))
        else:
            tuples.setdefault(path[:at], {})[path[at:]] = leaf
    nnx.update(module, nnx.from_flat_state(rest))
    for path, leaves in tuples.items():
        holder: Any = module
        for key in path[:-1]:
            holder = _part(holder, key)
        made = _with_leaves(_part(holder, path[-1]), leaves, ())
        if isinstance(holder, nnx.Module):
            setattr(holder, path[-1], nnx.data(made))
        else:
            holder[path[-1]] = made


def _first_tuple(module: nnx.Module, path: tuple[Any, ...]) -> int | None:
    """How many keys of a path lead to a tuple that is on it."""
    holder: Any = module
    for i, key in enumerate(path):
        if isinstance(holder, tuple):
            return i
        if not isinstance(holder, (nnx.Module, list, dict)):
            return None
        holder = _part(holder, key)
    return None


def _part(holder: Any, key: Any) -> Any:
    if isinstance(holder, nnx.Module) and isinstance(key, str):
        return getattr(holder, key)
    return holder[key]


def _with_leaves(value: Any, leaves: dict[tuple[Any, ...], Any], path: tuple[Any, ...]) -> Any:
    """A tuple with other arrays at these paths; what else it holds stays."""
    if path in leaves:
        return leaves[path]
    if not isinstance(value, tuple):
        return value
    fields = getattr(value, "_fields", range(len(value)))
    parts = [
        _with_leaves(part, leaves, (*path, key)) for key, part in zip(fields, value, strict=True)
    ]
    return value._make(parts) if hasattr(value, "_make") else tuple(parts)


def ended(after: Any, before: Any) -> list[tuple[Any, ...]]:
    """Paths of the variables of a state that a call has put something else in the place of, or removed."""
    there = {path for path, value in nnx.to_flat_state(after) if isinstance(value, nnx.Variable)}
    held = [path for path, value in nnx.to_flat_state(before) if isinstance(value, nnx.Variable)]
    return [path for path in held if path not in there]


def names_left(
    module: nnx.Module,
    paths: Sequence[tuple[Any, ...]],
    dump: Callable[[nnx.Module], Mapping[str, Any]],
) -> set[str]:
    """The names that a module's state_dict has without some of its variables.

    torch's state_dict keeps a buffer that a call gives a new tensor; an array in the place of a Variable is no state.

    Args:
      module: the module, which is left as it was.
      paths: where the variables are.
      dump: gives a module's state_dict.
    """
    copy = nnx.clone(module)
    for path in paths:
        owner: Any = copy
        for key in path[:-1]:
            owner = _part(owner, key)
        if isinstance(owner, nnx.Module):
            setattr(owner, path[-1], None)
        else:
            owner[path[-1]] = None
    return set(dump(copy))
