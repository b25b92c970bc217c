"""How many units in the last place each number is off, on both sides: statistics and a histogram, on request.

The verdict does not look at them. A number near zero is many of its own ulps off in any implementation that adds
larger ones up; what tells is whether the port's histogram lies where torch's does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from numerics.compare import EPS

EDGES = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1024.0)
"""Upper bounds of the histogram's bins; a last one holds what lies beyond."""
_SMALLEST = 2.0**-126
"""The smallest normal float32: below it an ulp does not become smaller."""


@dataclass
class Histogram:
    """Counts by bin for the port and for torch as it runs, and the largest errors, in ulps of each number."""

    port: np.ndarray = field(default_factory=lambda: np.zeros(len(EDGES) + 1, np.int64))
    torch: np.ndarray = field(default_factory=lambda: np.zeros(len(EDGES) + 1, np.int64))
    port_most: float = 0.0
    torch_most: float = 0.0

    def add(self, reference: np.ndarray, torch: np.ndarray, port: np.ndarray, dtype: str) -> None:
        """Count one tensor; what is not finite on a side is left out, and so are integers."""
        if not np.issubdtype(reference.dtype, np.floating) or reference.shape != port.shape:
            return
        usable = np.isfinite(reference) & np.isfinite(torch) & np.isfinite(port)
        if not usable.any():
            return
        reference, torch, port = reference[usable], torch[usable], port[usable]
        ulp = 2.0 ** np.floor(np.log2(np.maximum(np.abs(reference), _SMALLEST)))
        ulp *= EPS.get(dtype, EPS["float32"])
        ours, theirs = np.abs(port - reference) / ulp, np.abs(torch - reference) / ulp
        self.port += _counts(ours)
        self.torch += _counts(theirs)
        self.port_most = max(self.port_most, float(ours.max()))
        self.torch_most = max(self.torch_most, float(theirs.max()))

    def add_all(
        self,
        reference: Mapping[str, np.ndarray],
        torch: Mapping[str, np.ndarray],
        port: Mapping[str, np.ndarray],
        dtypes: Mapping[str, str],
    ) -> None:
        """Count every tensor that both sides have."""
        for name in reference:
            if name in port and name in torch:
                self.add(reference[name], torch[name], port[name], dtypes.get(name, "float32"))

    def to_dict(self) -> dict[str, object]:
        """A JSON-ready mapping; ``bins`` are upper bounds, the last without one."""
        return {
            "bins": list(EDGES),
            "port": self.port.tolist(),
            "torch": self.torch.tolist(),
            "port_most": self.port_most,
            "torch_most": self.torch_most,
        }

    def lines(self) -> list[str]:
        """The bins that hold something, in per cent, and for both sides what half and 99 % of the numbers stay within."""
        last = int(np.flatnonzero(self.port + self.torch).max(initial=0))
        heads = [*(f"{edge:g}" for edge in EDGES), "more"][: last + 1]
        rows = [f"{'ulps up to':<10} " + " ".join(f"{head:>6}" for head in heads)]
        for name, counts, most in (
            ("port", self.port, self.port_most),
            ("torch", self.torch, self.torch_most),
        ):
            shares = " ".join(f"{100 * share:6.2f}" for share in _shares(counts)[: last + 1])
            half, nearly = (_within(counts, part) for part in (0.5, 0.99))
            rows.append(
                f"{name:<10} {shares}  half within {half}, 99 % within {nearly}, at most {most:.3g}"
            )
        return rows


def _counts(ulps: np.ndarray) -> np.ndarray:
    return np.bincount(np.searchsorted(EDGES, ulps), minlength=len(EDGES) + 1)


def _shares(counts: np.ndarray) -> Sequence[float]:
    return list(counts / max(int(counts.sum()), 1))


def _within(counts: np.ndarray, part: float) -> str:
    """The bound of the bin below which ``part`` of the numbers lie."""
    place = int(np.searchsorted(np.cumsum(counts), part * counts.sum()))
    return f"{EDGES[place]:g}" if place < len(EDGES) else "more"
