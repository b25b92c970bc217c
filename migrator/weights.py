"""torch state_dict ↔ Flax state: by attribute path and layer rule, never by guess."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from flax import nnx

from rules import definitions

_NOT_STORED = (nnx.RngState, nnx.Intermediate, nnx.Perturbation)
_WIDE = frozenset(np.dtype(name) for name in ("float64", "int64", "uint64", "complex128"))
_INT32_IN_TORCH = "torch_int32"
"""Metadata of a Variable that torch keeps in int32; any other int32 array stands for torch's int64."""


_SECOND_NAMES = "_second_names"
"""The attribute of a module that says which others are buffers under another name, which torch does not save."""
_UNREGISTERED = "Unregistered"
"""The class of a list whose modules are children under other names (``rules/compat/containers.py``)."""


@dataclass(frozen=True)
class Slot:
    """One array of a Flax module under its torch name.

    ``path`` is the attribute path in the module; ``transposed`` says that torch stores the transpose; ``hidden``
    that torch's state_dict has the array under another name only.
    """

    key: str
    path: tuple[str, ...]
    variable: nnx.Variable
    transposed: bool
    hidden: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in torch's layout."""
        shape = tuple(np.shape(self.variable.get_raw_value()))
        return shape[::-1] if self.transposed else shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype the module keeps."""
        return np.dtype(jnp.result_type(self.variable.get_raw_value()))


# --- what the layer rules say about names and layouts ---------------------------------------------


def _flax_class(rule: definitions.Rule) -> str:
    """``"nnx.Linear"`` for a rule that returns it or a helper class derived from it."""
    name, file = rule.returns, rule.file
    while not name.startswith("nnx."):
        if name in file.imports:
            module, attribute = file.imports[name]
            if not module.startswith("rules.") or attribute is None:
                break
            name, file = attribute, definitions.module_file(module)
        node = file.definitions.get(name)
        if not isinstance(node, ast.ClassDef) or not node.bases:
            break
        base = ast.unparse(node.bases[0])
        if base == "nnx.Module":
            break
        name = base
    return name


@cache
def _layouts() -> dict[str, dict[str, tuple[str, bool]]]:
    """Flax class → attribute → (torch name, stored transposed), from the ``weights=`` of the layer rules."""
    found: dict[str, dict[str, tuple[str, bool]]] = {}
    for rules in definitions.index("layer").values():
        for rule in rules:
            table = found.setdefault(_flax_class(rule), {}) if rule.weights else {}
            for torch_name, attribute in rule.weights.items():
                entry = (torch_name, attribute.endswith(".T"))
                if table.setdefault(attribute.removesuffix(".T"), entry) != entry:
                    raise ValueError(f"{rule.name}: two layouts for {attribute} of {rule.returns}")
    return found


def _layout(module: nnx.Module) -> Mapping[str, tuple[str, bool]]:
    for cls in type(module).__mro__:
        native = cls.__module__.startswith("flax.nnx.")
        table = _layouts().get(f"nnx.{cls.__name__}" if native else cls.__name__)
        if table is not None:
            return table
    return {}


# --- the walk ------------------------------------------------------------------------------------


def _is_sequence_of_layers(module: nnx.Pytree, name: str) -> bool:
    """Whether attribute ``name`` is the list of a Sequential (nnx's or the copied one), not in torch's names."""
    if name != "layers" or not isinstance(vars(module)[name], nnx.List):
        return False
    return any(cls.__name__ == "Sequential" for cls in type(module).__mro__)


def _is_stored(variable: nnx.Variable) -> bool:
    persistent = variable.get_metadata("persistent", True)
    return persistent and not isinstance(variable, _NOT_STORED)


def _walk(
    module: nnx.Pytree, prefix: str, path: tuple[str, ...], above: tuple, hidden: bool = False
) -> Iterator[Slot]:
    layout = _layout(module)
    children = [(name, value) for name, value in vars(module).items() if value is not module]
    for name, value in children:
        if isinstance(value, nnx.Variable) and _is_stored(value):
            torch_name, transposed = layout.get(name, (name, False))
            apart = hidden or name in getattr(module, _SECOND_NAMES, ())
            yield Slot(prefix + torch_name, (*path, name), value, transposed, apart)
    for name, value in children:
        if isinstance(value, nnx.Pytree) and not any(value is a for a in above):
            inner = prefix if _is_sequence_of_layers(module, name) else f"{prefix}{name}."
            apart = hidden or type(value).__name__ == _UNREGISTERED
            yield from _walk(value, inner, (*path, name), (*above, value), apart)


def slots(module: nnx.Module) -> list[Slot]:
    """Every array of ``module`` that has a place in torch's state_dict, parameters first in each module.

    A tied array appears under each of its torch names.
    """
    if not isinstance(module, nnx.Pytree):
        raise TypeError(f"expected a flax.nnx.Module, got {type(module).__name__}")
    return [slot for slot in _every_slot(module) if not slot.hidden]


def _every_slot(module: nnx.Module) -> list[Slot]:
    return list(_walk(module, "", (), (module,)))


# --- what no state_dict has ------------------------------------------------------------------------


def _unstored(
    node: Any, prefix: str, above: tuple[Any, ...]
) -> Iterator[tuple[str, Any, Any, nnx.Variable | None]]:
    """(torch name, container, key, Variable or None for a plain array) of arrays outside of torch's state_dict."""
    layout = _layout(node) if isinstance(node, nnx.Module) else {}
    pytree = isinstance(node, nnx.Pytree)
    items = vars(node) if pytree else node if isinstance(node, dict) else dict(enumerate(node))
    for key, value in list(items.items()):
        name = f"{prefix}{layout.get(key, (key,))[0]}"
        if isinstance(value, nnx.Variable):
            if not _is_stored(value) and not isinstance(value, _NOT_STORED):
                yield name, node, key, value
        elif isinstance(value, jax.Array | np.ndarray):
            if not jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
                yield name, node, key, None
        elif isinstance(value, nnx.Pytree | list | tuple | dict):
            if not any(value is a for a in above) and not isinstance(value, nnx.Rngs):
                inlined = pytree and _is_sequence_of_layers(node, key)
                inner = prefix if inlined else f"{name}."
                yield from _unstored(value, inner, (*above, value))


def unstored(module: nnx.Module) -> dict[str, np.ndarray]:
    """Buffers that are not persistent and arrays in plain attributes, by the name torch's module has them under."""
    return {
        name: np.asarray(items[key] if variable is None else variable.get_value())
        for name, node, key, variable in _unstored(module, "", (module,))
        for items in [vars(node) if isinstance(node, nnx.Pytree) else node]
    }


def set_unstored(module: nnx.Module, values: Mapping[str, Any]) -> list[str]:
    """Set those of ``unstored`` that ``values`` has, in place; returns the names set (one in a tuple stays)."""
    found = []
    for name, node, key, variable in list(_unstored(module, "", (module,))):
        if name not in values or isinstance(node, tuple):
            continue
        array = as_numpy(values[name])
        if variable is not None:
            variable.set_value(jnp.asarray(fit(name, array, variable.get_value().dtype)))
        elif isinstance(node, nnx.Pytree):
            setattr(node, str(key), jnp.asarray(fit(name, array, vars(node)[key].dtype)))
        else:
            node[key] = jnp.asarray(fit(name, array, node[key].dtype))
        found.append(name)
    return found


# --- arrays --------------------------------------------------------------------------------------


def as_numpy(value: Any) -> np.ndarray:
    """A torch tensor (any device, bfloat16 and float8 included) or array as numpy, without a copy on CPU."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return np.asarray(value)
    tensor = value.detach().cpu().resolve_conj().resolve_neg()
    name = str(tensor.dtype).removeprefix("torch.")
    if hasattr(ml_dtypes, name):
        bits = {1: torch.uint8, 2: torch.int16}[tensor.element_size()]
        return tensor.contiguous().view(bits).numpy().view(getattr(ml_dtypes, name))
    return tensor.numpy()


def _category(dtype: np.dtype) -> str:
    for category in ("floating", "bool_", "integer", "complexfloating"):
        if jnp.issubdtype(dtype, getattr(jnp, category)):
            return category
    return str(dtype)


def fit(key: str, array: np.ndarray, dtype: Any) -> np.ndarray:
    """``array`` in the dtype in which a module whose own is ``dtype`` keeps it.

    The stored dtype is kept (a bfloat16 checkpoint stays bfloat16), except that 64-bit values go to the module's
    width and values of another category to its dtype.

    Raises:
      ValueError: integers or booleans that do not fit.
    """
    dtype = np.dtype(dtype)
    same = _category(array.dtype) == _category(dtype)
    if array.dtype == dtype or (same and array.dtype not in _WIDE and dtype not in _WIDE):
        return array
    with np.errstate(over="ignore"):
        cast = array.astype(dtype)
    inexact = same and _category(dtype) in ("floating", "complexfloating")
    if not inexact and not np.array_equal(cast.astype(array.dtype), array):
        raise ValueError(f"{key}: values of dtype {array.dtype} do not fit into {dtype}")
    return cast


def _set(variable: nnx.Variable, array: np.ndarray, was_int32: bool) -> None:
    if was_int32:
        variable.set_metadata(_INT32_IN_TORCH, True)
    elif variable.has_metadata(_INT32_IN_TORCH):
        variable.del_metadata(_INT32_IN_TORCH)
    sharding = getattr(variable.get_raw_value(), "sharding", None)
    own = np.array(array)  # now: JAX copies later, and torch may have written to it by then
    if sharding is not None and len(sharding.device_set) > 1:
        variable.set_value(jax.device_put(own, sharding))
    else:
        variable.set_value(jnp.asarray(own))


# --- torch to Flax -------------------------------------------------------------------------------


def check_keys(wanted: Iterable[Slot], given: Iterable[str]) -> None:
    """Every array has a value under one of its names, and every key has an array.

    Raises:
      KeyError: names all leftovers on both sides.
    """
    wanted, given = list(wanted), list(given)
    satisfied = {id(slot.variable) for slot in wanted if slot.key in set(given)}
    missing = [slot.key for slot in wanted if id(slot.variable) not in satisfied]
    known = {slot.key for slot in wanted}
    surplus = [key for key in given if key not in known]
    parts = []
    for prefix in ("module.", "_orig_mod.", "model."):
        if surplus and {k.removeprefix(prefix) for k in given} == known:
            raise KeyError(f"every key starts with {prefix!r}: strip it first")
    if missing:
        parts.append(f"the state_dict has no {', '.join(missing)}")
    if surplus:
        parts.append(f"the Flax module has no {', '.join(surplus)}")
    if parts:
        raise KeyError("; ".join(parts))


def check_shapes(wanted: Iterable[Slot], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Every array given has the module's shape.

    Raises:
      ValueError: names all keys that differ, with both shapes.
    """
    wrong = [
        f"{slot.key}: the state_dict has {tuple(shapes[slot.key])}, the Flax module {slot.shape}"
        for slot in wanted
        if slot.key in shapes and tuple(shapes[slot.key]) != slot.shape
    ]
    if wrong:
        raise ValueError("shapes differ: " + "; ".join(wrong))


def same_array(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays agree bit for bit."""
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def load_state_dict(flax_module: nnx.Module, state_dict: Mapping[str, Any]) -> None:
    """Set every parameter and buffer of ``flax_module`` from a torch state_dict, in place.

    Names map by attribute path; the layer rules say which arrays Flax names or lays out differently. Dtypes are
    kept as stored, but for float64 and int64, which go to the width the module has. A tied array may appear
    under any or all of its names. Nothing is changed when an error is raised.

    Args:
      flax_module: the converted module; arrays may be abstract (``nnx.eval_shape``).
      state_dict: torch tensors or numpy arrays by torch name.

    Raises:
      KeyError: keys left over on either side; the message names them all.
      ValueError: shapes that differ, values that do not fit, or two different values for one tied array.
    """
    wanted = slots(flax_module)
    check_keys(wanted, state_dict)
    check_shapes(wanted, {key: np.shape(value) for key, value in state_dict.items()})
    chosen: dict[int, tuple[Slot, np.ndarray, bool]] = {}
    for slot in wanted:
        if slot.key not in state_dict:
            continue
        stored = as_numpy(state_dict[slot.key])
        array = fit(slot.key, stored, slot.dtype)
        array = array.T if slot.transposed else array
        first, other, _ = chosen.setdefault(
            id(slot.variable), (slot, array, stored.dtype == np.int32)
        )
        if first is not slot and not same_array(array, other):
            raise ValueError(f"{first.key} and {slot.key} are one array in Flax, but differ here")
    for slot, array, was_int32 in chosen.values():
        _set(slot.variable, array, was_int32)


# --- Flax to torch -------------------------------------------------------------------------------


def _leaves(tree: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(attribute path, array) for a State, module, or nested dict."""
    if isinstance(tree, nnx.Variable):
        if _is_stored(tree):
            yield path, tree.get_value()
    elif isinstance(tree, nnx.Module):
        for found, variable in nnx.to_flat_state(nnx.state(tree)):
            yield from _leaves(variable, (*path, *map(str, found)))
    elif isinstance(tree, Mapping):
        for name, value in tree.items():
            yield from _leaves(value, (*path, str(name)))
    elif tree is not None:
        yield path, tree


def _held_at(module: Any, path: tuple[str, ...]) -> Any:
    """What a module holds at an attribute path; None where it has no such place."""
    for name in path:
        try:
            if isinstance(module, Mapping):
                module = module[name]
            elif isinstance(module, (list, tuple, nnx.List)):
                module = module[int(name)]
            else:
                module = getattr(module, name)
        except (AttributeError, KeyError, IndexError, ValueError):
            return None
    return module


def _export(slot: Slot, value: Any) -> np.ndarray:
    array = np.array(value.T if slot.transposed else value, order="C", copy=True)
    if array.dtype == np.int32 and not slot.variable.has_metadata(_INT32_IN_TORCH):
        return array.astype(np.int64)
    return array


def to_state_dict(flax_module: Any, like: nnx.Module | None = None) -> dict[str, np.ndarray]:
    """Every parameter and buffer as numpy arrays under torch's names, in torch's layouts.

    ``torch_module.load_state_dict({k: torch.from_numpy(v) for k, v in state.items()})`` takes the result.
    bfloat16 arrays have the ``ml_dtypes.bfloat16`` dtype.

    Args:
      flax_module: a converted module, or, with ``like``, a tree with the same attribute paths: what
        ``nnx.grad`` returns, a moment of an optimiser, ``nnx.state(module, nnx.Param)``.
      like: the module that gives such a tree its names and layouts.

    Returns:
      torch name → array; a tied array appears under each of its names. With ``like``, the names present in the
      tree.

    Raises:
      KeyError: the tree holds arrays that ``like`` has no torch name for.
    """
    if like is None:
        return {slot.key: _export(slot, slot.variable.get_value()) for slot in slots(flax_module)}
    wanted = _every_slot(like)
    by_path = dict(_leaves(flax_module))
    values: dict[int, Any] = {}
    for slot in wanted:
        if slot.path in by_path:
            values[id(slot.variable)] = by_path.pop(slot.path)
    known = {id(slot.variable) for slot in wanted}
    for path in list(by_path):  # of what has two names Flax may tell another than torch
        held = id(_held_at(like, path))
        if held in known:
            values[held] = by_path.pop(path)
    if by_path:
        names = ", ".join(".".join(path) for path in by_path)
        raise KeyError(f"arrays without a torch name in the module: {names}")
    return {
        s.key: _export(s, values[id(s.variable)]) for s in slots(like) if id(s.variable) in values
    }
