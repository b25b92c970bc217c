"""numpy arrays in attributes of modules."""

from __future__ import annotations

from typing import Any

import numpy as np


class HostArray:
    """A numpy array, or a tuple or list of them, as part of a module's structure: under jit it stays one, which
    numpy may work with."""

    def __init__(self, value: Any) -> None:
        arrays = [
            np.asarray(one) for one in (value if isinstance(value, (tuple, list)) else [value])
        ]
        self.value = value
        self._key = tuple((one.shape, one.dtype.str, one.tobytes()) for one in arrays)

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostArray) and self._key == other._key
