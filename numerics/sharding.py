"""The port spread over a mesh of (simulated) devices, while everything else is verified as usual."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

DATA = "data"
"""The mesh axis that the leading axis of every input is spread over; parameters are spread over the others."""


def parse_mesh(text: str) -> dict[str, int]:
    """``"data=4,model=2"`` → ``{"data": 4, "model": 2}``.

    Raises:
      ValueError: anything else.
    """
    axes: dict[str, int] = {}
    for part in text.split(","):
        found = re.fullmatch(r"\s*([A-Za-z_]\w*)\s*=\s*([1-9]\d*)\s*", part)
        if found is None or found[1] in axes:
            raise ValueError(f"a mesh is written as data=4,model=2, not {text!r}")
        axes[found[1]] = int(found[2])
    return axes


def simulate_devices(count: int) -> None:
    """Give the CPU that many devices; has to come before JAX first runs anything."""
    flag = "--xla_force_host_platform_device_count"
    others = [f for f in os.environ.get("XLA_FLAGS", "").split() if not f.startswith(flag)]
    os.environ["XLA_FLAGS"] = " ".join([*others, f"{flag}={count}"])


class Placement:
    """Where arrays go on a mesh.

    A parameter goes where its own sharding metadata says (``nnx.with_partitioning``), as far as the mesh has
    those axes; without any, its longest axis that divides is spread over the mesh's axis that is not ``data``.

    Raises:
      ValueError: JAX has fewer devices than the mesh.
    """

    def __init__(self, axes: Mapping[str, int]) -> None:
        self.axes = dict(axes)
        count = math.prod(axes.values())
        if len(jax.devices()) < count:
            raise ValueError(f"the mesh has {count} devices, JAX has {len(jax.devices())}")
        shape = tuple(axes.values())
        self.mesh = Mesh(np.array(jax.devices()[:count]).reshape(shape), tuple(axes))
        self._used: set[str] = set()

    def unused(self) -> list[str]:
        """The axes of more than one device over which nothing was spread, as nothing divides."""
        return [name for name, size in self.axes.items() if size > 1 and name not in self._used]

    def state(self, state: Any) -> Any:
        """A state of variables, placed."""
        return jax.tree.map(
            self._variable, state, is_leaf=lambda value: isinstance(value, nnx.Variable)
        )

    def inputs(self, value: Any) -> Any:
        """Input arrays, the leading axis spread over ``data`` where it divides."""
        return jax.tree.map(self._input, value)

    def _put(self, value: Any, *names: Any) -> Any:
        for name in names:
            self._used.update((name,) if isinstance(name, str) else name or ())
        return jax.device_put(value, NamedSharding(self.mesh, PartitionSpec(*names)))

    def _input(self, value: Any) -> Any:
        size = self.axes.get(DATA, 1)
        spread = np.ndim(value) > 0 and value.shape[0] % size == 0
        return self._put(value, DATA) if spread and size > 1 else self._put(value)

    def _variable(self, variable: Any) -> Any:
        if not isinstance(variable, nnx.Variable):
            return self._put(variable)
        value = variable.get_raw_value()
        names = getattr(variable, "out_sharding", None) or getattr(variable, "sharding_names", None)
        if names:
            names = tuple(name if name in self.axes else None for name in names)
        elif isinstance(variable, nnx.Param):
            names = self._guess(np.shape(value))
        return variable.replace(self._put(value, *(names or ())))

    def _guess(self, shape: tuple[int, ...]) -> tuple[Any, ...]:
        others = [(name, size) for name, size in self.axes.items() if name != DATA and size > 1]
        if len(shape) < 2 or not others:
            return ()
        name, size = others[0]
        dividing = [i for i, length in enumerate(shape) if length % size == 0]
        if not dividing:
            return ()
        chosen = max(dividing, key=lambda i: shape[i])
        return tuple(name if i == chosen else None for i in range(len(shape)))
