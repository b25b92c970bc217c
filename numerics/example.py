"""One run of a verification, small enough to print."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Example:
    """One run, small enough to print: what to draw rather than what was drawn.

    ``weights`` names a variant of the parameters (see ``numerics.parameters``), ``jitter`` a perturbation of
    all numbers in the fifth digit that keeps zeros and ties.
    """

    sizes: tuple[tuple[str, int], ...] = ()
    profile: str = "normal"
    seed: int = 0
    weights: str = "fresh"
    jitter: int = 0

    def __str__(self) -> str:
        sizes = ", ".join(f"{name}={size}" for name, size in self.sizes)
        words = [sizes] if sizes else []
        return ", ".join(
            [*words, f"{self.profile} values", f"{self.weights} weights", f"seed {self.seed}"]
        )
