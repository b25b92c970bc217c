"""torch's op database as both oracles read it: entries, the forms an op is called in, sample inputs, names."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import os
import pkgutil
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import jax
import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal.common_methods_invocations import op_db

import rules.ops
from rules.registry import OPS, Definition
from tests.rules.values import leaves

# Thousands of tiny programs are compiled once each: compile time is all that counts here. On a GPU XLA without
# optimisation gives wrong slopes of a cumulative sum (jaxlib 0.11.2), so that a GPU gets what its users get.
if "cuda" not in os.environ.get("JAX_PLATFORMS", "cpu"):
    os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
# as a rule on the CPU; JAX_PLATFORMS=cuda,cpu judges what a GPU computes
jax.config.update("jax_platforms", os.environ.get("JAX_PLATFORMS", "cpu"))
# products of float32 as verify asks for them: a GPU's default rounds their factors to 10 bits (TF32)
jax.config.update("jax_default_matmul_precision", "highest")
jax.config.update("jax_compilation_cache_dir", str(Path(__file__).parents[2] / "build" / "jax"))
jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)

DTYPES = {
    "float32": torch.float32,
    "int64": torch.int64,
    "bool": torch.bool,
    "bfloat16": torch.bfloat16,
    "complex64": torch.complex64,
    "float64": torch.float64,
}
NAMESPACES = {
    "torch": torch,
    "Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
    "torch.special": torch.special,
    "torch.signal.windows": torch.signal.windows,
    "torch.masked": torch.masked,
}


def load(strict: bool = True) -> None:
    """Import every module of definitions; unless ``strict``, go on without those that do not import."""
    for module in pkgutil.iter_modules(rules.ops.__path__):
        try:
            importlib.import_module(f"rules.ops.{module.name}")
        except (ImportError, SyntaxError) as error:
            if strict:
                raise
            print(f"rules.ops.{module.name}: {error}", file=sys.stderr)


@functools.cache
def entries() -> dict[str, list[Any]]:
    """The database by name (one name may have several variants)."""
    table: dict[str, list[Any]] = {}
    for info in op_db:
        table.setdefault(info.name, []).append(info)
    return table


@functools.cache
def public_names() -> dict[int, list[str]]:
    """id of a torch callable → the public names it goes by."""
    names: dict[int, list[str]] = {}
    for prefix, namespace in NAMESPACES.items():
        for attribute in dir(namespace):
            with contextlib.suppress(AttributeError, RuntimeError):
                value = getattr(namespace, attribute)
                names.setdefault(id(value), []).append(f"{prefix}.{attribute}")
    return names


def names_of(function: Any) -> list[str]:
    """The public names of a torch callable, of a getter, or of an ``operator`` function."""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") == "__get__" and owner is not None:
        return [f"Tensor.{owner.__name__}"]
    if getattr(function, "__module__", "") in ("_operator", "operator"):
        return [f"Tensor.__{function.__name__.strip('_')}__"]
    return public_names().get(id(function), [])


@dataclasses.dataclass
class Call:
    """One call of a torch function with its arguments and its result.

    ``returned`` is, for the last call of a wrapper, the tuple or list that the wrapper gave.
    """

    names: list[str]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: Callable[..., Any]
    result: Any = None
    returned: Any = None


class Recorder(TorchFunctionMode):
    """Notes the torch functions a wrapper calls, outermost calls only."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        self.calls.append(Call(names_of(function), args, kwargs or {}, function, result))
        return result


def record(function: Callable[..., Any], args: Any, kwargs: Any) -> list[Call]:
    """The torch calls made by ``function(*args, **kwargs)`` that produce tensors, the last one always."""
    if names := names_of(function):
        return [Call(names, args, kwargs, function)]
    # a wrapper that sets a seed would keep and restore a GPU's as well, by calls that are none of the function's
    with mock.patch("torch.cuda.is_available", return_value=False), Recorder() as recorder:
        returned = function(*args, **kwargs)
    if recorder.calls and type(returned) in (tuple, list):
        recorder.calls[-1].returned = returned
    calls = [c for c in recorder.calls if "Tensor.device" not in c.names]
    return [c for i, c in enumerate(calls) if i == len(calls) - 1 or list(leaves(c.result))]


def definitions_of(names: list[str]) -> tuple[Definition, ...]:
    """The definitions of the first of these names that has any."""
    return next((tuple(OPS[name]) for name in names if name in OPS), ())


def forms(info: Any, only: str | None) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The distinct ways to call an entry for which there are definitions.

    Names that share their definitions count once; a wrapper without a public name is taken as it is, its
    torch calls are looked up when it runs.
    """
    candidates = [info.op, info.method_variant, info.operator_variant]
    for alias in info.aliases:
        candidates += [alias.op, alias.method_variant]
    seen: set[Any] = set()
    for function in candidates:
        if function is None:
            continue
        names = names_of(function)
        key = tuple(map(id, definitions_of(names))) if names else id(function)
        if key and key not in seen and (only is None or only in names):
            seen.add(key)
            yield (next((n for n in names if n in OPS), names[0]) if names else info.name), function


def missing_forms(info: Any) -> list[str]:
    """Names the entry documents, as function, method or operator, that no definition covers."""
    candidates = [info.op, info.method_variant, info.operator_variant]
    names = [names_of(f) for f in candidates if f is not None]
    return [found[0] for found in names if found and not definitions_of(found)]


def _tied(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its values rounded to 0 and ±2, so that many are equal and many lie on a bound."""
    return (
        tensor.detach().mul(0.25).round().clamp(-1, 1) * 2 if tensor.is_floating_point() else tensor
    )


def tied_samples(info: Any, dtype: torch.dtype) -> Iterator[Any]:
    """The sample inputs with zeros and equal values, where subgradients must be chosen as torch does."""
    for sample in samples_of(info, dtype):
        yield sample.transform(lambda v: _tied(v) if isinstance(v, torch.Tensor) else v)


def samples_of(info: Any, dtype: torch.dtype) -> Iterator[Any]:
    """The sample inputs of an entry, reproducibly."""
    torch.manual_seed(0)
    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from info.sample_inputs("cpu", dtype, requires_grad=False)
