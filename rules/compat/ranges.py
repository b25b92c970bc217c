"""Ranges of whole numbers."""

from __future__ import annotations

from fractions import Fraction

import numpy as np


def whole_linspace(start, end, steps):
    """``steps`` values from start to end, cut to whole numbers, which torch counts from the nearer end.

    A step is rounded to double precision, its multiples are not before they are added.
    """
    start, end = int(start), int(end)
    step = Fraction((end - start) / max(steps - 1, 1))
    low = [start + step * i for i in range(steps // 2 if steps > 1 else steps)]
    high = [end - step * i for i in reversed(range(steps - len(low)))]
    return np.array([int(float(value)) for value in low + high], dtype=np.int64)
