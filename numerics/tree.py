"""Outputs of either framework, and the tensors of a module, as one flat mapping from path to array."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, Sized
from typing import Any

import numpy as np
import torch


def flatten(value: Any, path: str = "") -> dict[str, Any]:
    """``(x, {"loss": y})`` → ``{"[0]": x, "[1].loss": y}``; leaves are left as they are.

    Tuples, lists and named tuples count as the same structure, and so do dicts and dataclasses; an object that says how
    many things it has and gives them one by one, as a cache of keys and values, is a sequence of them. A None, which
    is no number, shows in the path (``"[1] is None"``) with an empty array as its value.
    """
    if value is None:
        return {f"{path or 'output'} is None": np.zeros(0, np.float32)}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        parts = [(f"{path}.{key}".lstrip("."), part) for key, part in value.items()]
    elif isinstance(value, tuple | list):
        parts = [(f"{path}[{index}]", part) for index, part in enumerate(value)]
    elif isinstance(value, str):
        return {f"{path or 'output'} is {value!r}": np.zeros(0, np.float32)}
    elif hasattr(value, "dtype") or isinstance(value, bool | int | float | complex):
        return {path or "output": value}
    elif isinstance(value, Sized) and isinstance(value, Iterable) and not isinstance(value, Set):
        parts = [(f"{path}[{index}]", part) for index, part in enumerate(value)]
    else:
        raise TypeError(f"cannot compare a {type(value).__name__} ({path or 'output'})")
    if not parts:
        return {f"{path or 'output'} is empty": np.zeros(0, np.float32)}
    return {key: leaf for name, part in parts for key, leaf in flatten(part, name).items()}


def mapped(function: Callable[[Any], Any], value: Any) -> Any:
    """``function`` of every leaf of nested tuples, lists and dicts."""
    if isinstance(value, dict):
        return {key: mapped(function, part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*(mapped(function, part) for part in value))
    if isinstance(value, tuple | list):
        return type(value)(mapped(function, part) for part in value)
    return function(value)


def dtype_name(value: Any) -> str:
    """``"float32"``, ``"int64"``, ``"bool"``, for a tensor, an array or a Python number."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int64"
    if isinstance(value, float):
        return "float32"
    return str(value.dtype).removeprefix("torch.")


def same_dtype(of_torch: str, port: str) -> bool:
    """Whether a dtype of the port stands for torch's: 64-bit integers become 32-bit ones without x64."""
    narrow = {"int64": "int32", "float64": "float32", "complex128": "complex64"}
    return port in (of_torch, narrow.get(of_torch))


def tensors(module: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Every parameter, buffer and tensor in a plain attribute by name: ``"block.0.mask"``, ``"anchors.1"``."""
    found: dict[str, torch.Tensor] = {}
    for path, part in module.named_modules(remove_duplicate=False):
        prefix = f"{path}." if path else ""
        own = {**vars(part), **part._parameters, **part._buffers}
        for name, value in own.items():
            if not name.startswith("_"):
                found.update(_leaves(value, prefix + name))
    return found


def _leaves(value: Any, name: str) -> Iterator[tuple[str, torch.Tensor]]:
    if isinstance(value, torch.nn.parameter.UninitializedTensorMixin):
        return
    if isinstance(value, torch.Tensor):
        yield name, value
    elif isinstance(value, tuple | list):
        for index, part in enumerate(value):
            yield from _leaves(part, f"{name}.{index}")
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _leaves(part, f"{name}.{key}")


def leaf_names(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """Names of the call's leaves in the order jax.tree flattens them, as the torch side names them."""

    def walk(value: Any, name: str) -> list[str]:
        if isinstance(value, dict):
            return [n for key in sorted(value) for n in walk(value[key], f"{name}.{key}")]
        if isinstance(value, tuple | list):
            return [n for i, part in enumerate(value) for n in walk(part, f"{name}[{i}]")]
        return [name]

    names = [n for i, arg in enumerate(args) for n in walk(arg, f"input {i}")]
    return names + [n for key in sorted(kwargs) for n in walk(kwargs[key], f"input {key}")]
