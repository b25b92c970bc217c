"""Programs that go by their dtype: ``x.dtype in {torch.float32}``, ``torch.finfo(x.dtype)``.

Their float64 is another program than their float32, and says nothing of a port, which computes in float32. Where torch's
float32 lies far from its float64, either float32 has lost the digits, or the program goes by its dtype. In float64 with
every result rounded to float32 the digits are lost as well, while the program takes the branch of float64.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from numerics.compare import ILL_CONDITIONED
from numerics.runners import Run

_NEAR = 1e-3
"""How much nearer to float64 the rounded run lies than float32, where it takes another branch."""


def far_apart(reference: Run, own: Sequence[Run]) -> bool:
    """Whether torch's float32 keeps fewer than two digits of some tensor of float64, in all of its runs."""
    return next(_apart(reference, own), None) is not None


def goes_by_dtype(reference: Run, own: Sequence[Run], single: Run) -> bool:
    """Whether rounding does not explain that.

    Args:
      reference: torch in float64.
      own: torch in float32, as it runs and with random rounding.
      single: torch in float64 with every result rounded to float32.
    """
    for kind, name, distance in _apart(reference, own):
        expected, rounded = getattr(reference, kind)[name], getattr(single, kind).get(name)
        if rounded is None or rounded.shape != expected.shape:
            continue
        if _distance(expected, rounded) <= _NEAR * distance:
            return True
    return False


def _apart(reference: Run, own: Sequence[Run]) -> Iterator[tuple[str, str, float]]:
    """The kind and name of the tensors that are far from float64 in every run, and the least distance."""
    for kind in ("outputs", "gradients", "state"):
        for name, expected in getattr(reference, kind).items():
            others = [getattr(run, kind).get(name) for run in own]
            if any(one is None or one.shape != expected.shape for one in others):
                continue
            if not expected.size or not np.issubdtype(expected.dtype, np.inexact):
                continue
            scale = max(float(np.abs(one).max()) for one in (expected, others[0]))
            distance = min(_distance(expected, one) for one in others)
            if np.isfinite(scale) and distance > ILL_CONDITIONED * scale:
                yield kind, name, distance


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.abs(a - b).max())
