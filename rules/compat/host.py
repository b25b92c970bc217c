"""numpy arrays in attributes of modules."""

from __future__ import annotations

import numpy as np


class HostArray:
    """A numpy array as part of a module's structure: under jit it stays one, which numpy may work with."""

    def __init__(self, value: np.ndarray) -> None:
        self.value = value
        self._key = (value.shape, value.dtype.str, value.tobytes())

    def __hash__(self) -> int:
        return hash(self._key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, HostArray) and self._key == other._key
