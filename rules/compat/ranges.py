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


def exact_linspace(start, end, steps):
    """``steps`` values from start to end, rounded as torch rounds: to cut them gives the same whole numbers.

    torch counts from the nearer end, and rounds a step and what is added of it, not its multiples.
    """
    start, end = np.float32(start), np.float32(end)
    step = np.float64((end - start) / np.float32(max(steps - 1, 1)))
    place = np.arange(steps)
    low, high = start + step * place, end - step * (steps - 1 - place)
    return np.where((place < steps // 2) | (steps == 1), low, high).astype(np.float32)
