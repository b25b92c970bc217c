"""Both sides in bfloat16 or float16: parameters, buffers and inputs, as ``model.bfloat16()`` has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import torch
from flax import nnx

from numerics.parameters import copied
from numerics.spec import Array, Constant, Group, InputSpec, Item
from numerics.states import put
from numerics.tree import mapped

PRECISIONS = {"f32": "float32", "bf16": "bfloat16", "f16": "float16"}
"""Short names, as the command line has them."""


def lowered(
    module: torch.nn.Module, port: nnx.Module, spec: InputSpec, dtype: str
) -> tuple[torch.nn.Module, nnx.Module, InputSpec]:
    """Copies of both modules and the inputs, every float of which has ``dtype``."""
    if dtype == "float32":
        return module, port, spec
    module = copied(module).to(getattr(torch, dtype))
    port = nnx.clone(port)
    state = nnx.state(port, nnx.Not(nnx.RngState))
    put(port, jax.tree.map(lambda value: _cast(value, jnp.dtype(dtype)), state))
    for _, layer in nnx.iter_modules(port):
        if getattr(layer, "dtype", None) in _WIDE:  # nnx.Embed keeps what it was built in
            layer.dtype = jnp.dtype(dtype)
    items = tuple(_item(item, dtype) for item in spec.items)
    hook = None if spec.hook is None else _cast_hook(spec.hook, dtype)
    return module, port, replace(spec, items=items, hook=hook)


_WIDE = (jnp.float32, np.dtype("float32"))


def _cast(value: Any, dtype: Any) -> Any:
    return value.astype(dtype) if jnp.issubdtype(value.dtype, jnp.floating) else value


def _item(item: Item, dtype: str) -> Item:
    if isinstance(item, Group):
        return replace(item, items=tuple(_item(part, dtype) for part in item.items))
    if isinstance(item, Array):
        return replace(item, dtype=dtype) if item.dtype in ("float32", "float64") else item
    if isinstance(item, Constant):
        return replace(item, value=_cast_array(item.value, dtype))
    return item


def _cast_array(value: Any, dtype: str) -> Any:
    def leaf(value: Any) -> Any:
        wide = isinstance(value, np.ndarray) and value.dtype in (np.float32, np.float64)
        return value.astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) if wide else value

    return mapped(leaf, value)


def _cast_hook(hook: Any, dtype: str) -> Any:
    def call(rng: np.random.Generator, sizes: Mapping[str, int], profile: str) -> Any:
        return _cast_array(hook(rng, sizes, profile), dtype)

    return call
