"""What verification found, as data, which a process that computes nothing can read: neither torch nor jax is loaded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from numerics.compare import Difference
from numerics.example import Example
from numerics.lowering import Lowered
from numerics.ulps import Histogram


@dataclass
class Check:
    """One thing compared (``"eval outputs"``, ``"train gradients"``) over all examples.

    ``error`` and ``torch_error`` belong to the tensor nearest to its allowance, ``worst``. ``note`` says why
    something was not compared; ``ill_conditioned`` counts the examples in which a tensor was noise in torch;
    ``values`` is how many numbers were held against each other in all.
    """

    name: str
    examples: int = 0
    tensors: int = 0
    values: int = 0
    error: float = 0.0
    torch_error: float = 0.0
    ratio: float = 0.0
    worst: str = ""
    conditioned: int = 0
    zeros: int = 0
    ill_conditioned: Counter[str] = field(default_factory=Counter)
    note: str = ""
    ok: bool = True

    def add(self, differences: Sequence[Difference]) -> None:
        """Take the differences of one more example into account."""
        self.examples += 1
        self.tensors = max(self.tensors, len(differences))
        self.values += sum(difference.values for difference in differences)
        for difference in differences:
            if difference.ill_conditioned:
                self.ill_conditioned[difference.name] += 1
                continue
            self.conditioned += 1
            self.zeros += difference.zero
            if difference.ratio >= self.ratio:
                self.ratio, self.worst = difference.ratio, difference.name
                self.error, self.torch_error = difference.error, difference.torch_error

    def doubts(self) -> list[str]:
        """Tensors that were noise in torch itself in more than half of the examples, a line each."""
        return [
            f"{self.name}: {name} is noise in torch itself in {count} of {self.examples} examples,"
            " which say nothing of the port"
            for name, count in self.ill_conditioned.items()
            if 2 * count > self.examples
        ]

    @property
    def meaningless(self) -> bool:
        """Whether every tensor of every example was noise in torch itself, or nothing but zeros beside those that were."""
        if not self.examples or not self.tensors:
            return False
        said = self.conditioned - (self.zeros if self.ill_conditioned else 0)
        return said == 0


@dataclass(frozen=True)
class Value:
    """One side of a difference: where the variable got its value, and what that looks like."""

    file: str
    line: int
    source: str
    statistics: str


@dataclass(frozen=True)
class Statement:
    """The first variable that differs, on both sides."""

    variable: str
    torch: Value
    port: Value
    difference: str

    def __str__(self) -> str:
        sides = [
            f"{name:<5} {value.file}:{value.line}: {value.source}  ({value.statistics})"
            for name, value in (("torch", self.torch), ("port", self.port))
        ]
        return "\n".join([f"first value that differs: {self.variable}: {self.difference}", *sides])


@dataclass
class Failure:
    """A difference that stayed when the example was perturbed, shrunk by hypothesis.

    ``submodule`` is the first whose inputs agree and whose outputs do not (``""`` is the module itself, None
    when it could not be told), ``statement`` the first statement in it; ``snippet`` is a program that shows the
    difference again; ``origin`` is the operation of the port that a NaN or an infinity comes from.
    """

    check: str
    example: Example
    differences: list[Difference]
    submodule: str | None = None
    reason: str = ""
    snippet: str = ""
    traceback: str = ""
    statement: Statement | None = None
    origin: str | None = None

    def __str__(self) -> str:
        return str(self.differences[0]) if self.differences else self.reason


@dataclass
class Report:
    """The verdict on one pair of modules.

    ``verdict`` is ``"equal"``, ``"different"``, ``"raises"`` (the port fails where torch runs),
    ``"ill-conditioned"`` (torch's own outputs are noise), ``"not compared"``, or for a case that expects it
    ``"flagged"`` / ``"not flagged"``; ``"does not lower"`` when a TPU's compiler refuses it. ``layers`` holds each
    submodule's error, ``rejected`` counts the examples that torch itself raises on, ``compilations`` tells what made each
    of ``compiles`` necessary, ``health`` what the port does besides computing, ``tpu_errors`` the errors to
    expect of a matrix unit, ``lowered`` what compiling for TPUs gave, ``ulps`` how far off every number is, each
    where that was asked for.
    """

    name: str = ""
    verdict: str = "not compared"
    checks: list[Check] = field(default_factory=list)
    failure: Failure | None = None
    examples: int = 0
    rejected: int = 0
    shapes: list[dict[str, int]] = field(default_factory=list)
    compiles: int = 0
    compilations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    layers: list[Difference] = field(default_factory=list)
    seconds: float = 0.0
    peak_memory: int = 0
    health: list[str] = field(default_factory=list)
    tpu_errors: dict[str, float] = field(default_factory=dict)
    lowered: list[Lowered] = field(default_factory=list)
    ulps: dict[str, Histogram] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Whether the port computes what torch computes, as the case expects."""
        return self.verdict in ("equal", "flagged")

    @property
    def worst(self) -> Check | None:
        """The check whose tensor is nearest to its allowance, or furthest beyond; None where nothing was compared."""
        compared = [check for check in self.checks if check.conditioned]
        return max(compared, key=lambda check: check.ratio, default=None)

    @property
    def max_error(self) -> float:
        """The port's error in the tensor nearest to its allowance, of all checks, relative to the tensor's largest value."""
        return self.worst.error if self.worst else 0.0

    @property
    def torch_error(self) -> float:
        """torch's own float32 error in the tensor ``max_error`` speaks of."""
        return self.worst.torch_error if self.worst else 0.0

    def errors(self) -> str:
        """Both errors in words, and which check they are of."""
        of = f" ({self.worst.name})" if self.worst else ""
        return f"error {self.max_error:.1e}{of}  torch's own {self.torch_error:.1e}"

    @property
    def first_divergence(self) -> str | None:
        """Path of the first submodule that differs (``""``: the module itself), None when nothing does."""
        return self.failure.submodule if self.failure else None

    def to_dict(self) -> dict[str, Any]:
        """A JSON-ready mapping."""
        checks = []
        for check in self.checks:
            entry = asdict(check)
            entry["ill_conditioned"] = sorted(check.ill_conditioned)
            checks.append(entry)
        return {
            "name": self.name,
            "verdict": self.verdict,
            "ok": self.ok,
            "max_error": self.max_error,
            "torch_error": self.torch_error,
            "worst_check": self.worst.name if self.worst else None,
            "first_divergence": self.first_divergence,
            "checks": checks,
            "failure": asdict(self.failure) if self.failure else None,
            "examples": self.examples,
            "rejected": self.rejected,
            "shapes": self.shapes,
            "compiles": self.compiles,
            "compilations": self.compilations,
            "notes": self.notes,
            "peak_memory": self.peak_memory,
            "health": self.health,
            "tpu_errors": self.tpu_errors,
            "lowered": [asdict(result) for result in self.lowered],
            "ulps": {name: histogram.to_dict() for name, histogram in self.ulps.items()},
            "seconds": round(self.seconds, 3),
        }

    def __str__(self) -> str:
        text = f"{self.name or 'model'}: {self.verdict}, {self.errors()}"
        if self.failure:
            where = self.failure.submodule
            at = "" if where is None else f" at {where or 'the module itself'}"
            text += f"\n{self.failure.check}{at}: {self.failure}\nexample: {self.failure.example}"
        return text
