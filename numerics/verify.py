"""verify: draw examples, run both sides, compare, confirm, shrink and localise."""

from __future__ import annotations

import gc
import random
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import hypothesis
import jax
import numpy as np
import torch
from flax import nnx
from hypothesis.errors import NoSuchExample

from numerics import inputs as drawing
from numerics.compare import Difference
from numerics.double import without_rounding
from numerics.emulation import tpu_errors
from numerics.health import examine, memory_now, peak_memory, shared
from numerics.inputs import Example
from numerics.localize import first_divergence, layer_errors
from numerics.localize_draws import compare_draws, first_unshared
from numerics.pair import Outcome, Pair, TorchRaises, one_line
from numerics.parameters import VARIANTS
from numerics.precision import PRECISIONS, lowered
from numerics.recipes import as_numpy
from numerics.report import Check, Failure, Report
from numerics.runners import Dump, Load, Rest
from numerics.sharding import Placement, parse_mesh
from numerics.spec import FLOATS, Array, Choice, Constant, Group, InputSpec, Item, size_choices
from numerics.statements import first_statement

INITIAL = "initial values"


@dataclass(frozen=True)
class Settings:
    """How much to try.

    Args:
      examples: runs per module; each compares every check.
      shapes: assignments of the named dimensions, a compilation each.
      seed: of the whole verification; another seed draws other examples.
      train, grad: whether train mode and gradients are compared.
      noise: runs of torch with random rounding that measure its own error.
      shrink_seconds: time to make a failing example smaller.
      layers: measure every submodule's error too, on the failing example or the first.
      budget: seconds after which no further example is started.
      train_steps: length of a training run with SGD and one with Adam, on one example; 0 for none.
      precision: ``"f32"``, or ``"bf16"`` or ``"f16"`` for both modules and their inputs.
      emulate_tpu: measure the error of a matrix unit's products too, on the first example.
      health: trace the port for what it does besides computing (``numerics.health``).
      memory: bytes in use after which no further example is started.
      first: examples to begin with, such as those that failed before.
      mesh: spread the port over simulated devices, as ``"data=4,model=2"``.
      ulps: count how many ulps every number is off, too.
      vmap, second_order: compare the port mapped over several calls, and second derivatives, on one example.
      tell: called with what is computed next (``"train outputs and gradients (B=2, normal values, …)"``).
    """

    examples: int = 12
    shapes: int = 3
    seed: int = 0
    train: bool = True
    grad: bool = True
    noise: int = 2
    shrink_seconds: float = 15.0
    budget: float | None = None
    layers: bool = False
    train_steps: int = 0
    vmap: bool = False
    second_order: bool = False
    precision: str = "f32"
    emulate_tpu: bool = False
    mesh: str = ""
    health: bool = False
    ulps: bool = False
    memory: float | None = None
    first: tuple[Example, ...] = ()
    tell: Callable[[str], None] = field(default=lambda what: None)


def as_spec(inputs: Any) -> InputSpec:
    """Arrays (numpy, torch, jax), ``Array`` descriptions and plain values as one spec.

    A sequence holds the arguments in call order, a mapping those passed by name; an array alone is the only
    argument.
    """
    if isinstance(inputs, InputSpec):
        return inputs
    if hasattr(inputs, "dtype") or isinstance(inputs, Array):
        inputs = [inputs]
    if isinstance(inputs, Mapping):
        return InputSpec(tuple(_as_item(value, name) for name, value in inputs.items()))
    return InputSpec(tuple(_as_item(value, None) for value in inputs))


def _as_item(value: Any, name: str | None) -> Item:
    if isinstance(value, Array | Constant | Choice | Group):
        return value if name is None else replace(value, name=name)
    return Constant(as_numpy(value), name)


def verify(
    torch_module: torch.nn.Module,
    flax_module: nnx.Module,
    inputs: InputSpec | Sequence[Any],
    *,
    load: Load,
    dump: Dump,
    train: bool = False,
    grad: bool = True,
    settings: Settings | None = None,
    example: Example | None = None,
    name: str = "",
    setup: str = "",
    initial: Sequence[Difference] = (),
    rest: Rest | None = None,
) -> Report:
    """Compare a torch module with its Flax port.

    Weights are carried from torch to the port by ``load``; neither module is changed, except that the port
    keeps the last weights it was given.

    Args:
      inputs: the call's arguments: arrays, ``Array`` descriptions with named dimensions, or an ``InputSpec``.
      load, dump: see ``numerics.runners.FlaxRunner``.
      train: compare train mode too (outputs, buffers afterwards, gradients).
      settings: how much to try; overrides ``train`` and ``grad``.
      example: run this one only (a failure's example, to see it again).
      setup: Python lines that define ``torch_module``, ``flax_module`` and ``inputs`` in a failure's snippet.
      rest: gives the port's arrays that are in no state_dict, to be compared after the call.
      initial: what both modules start from, compared already (``numerics.initial``).
    """
    settings = settings or Settings(train=train, grad=grad)
    alike = shared(flax_module) if settings.health else []
    dtype = PRECISIONS[settings.precision]
    torch_module, flax_module, spec = lowered(torch_module, flax_module, as_spec(inputs), dtype)
    pair = Pair(torch_module, flax_module, spec, load, dump, settings, rest=rest)
    if settings.mesh:
        pair.flax.placement = Placement(parse_mesh(settings.mesh))
    report = verify_pair(pair, settings, name, setup, example, initial)
    report.health += alike
    placement = pair.flax.placement
    if placement is not None and (unused := placement.unused()):
        report.notes.append(f"--mesh: nothing divides, to be spread over {', '.join(unused)}")
        if report.verdict == "equal" and len(unused) == sum(n > 1 for n in placement.axes.values()):
            report.verdict = "not compared"
    return report


def verify_pair(
    pair: Pair,
    settings: Settings,
    name: str = "",
    setup: str = "",
    example: Example | None = None,
    initial: Sequence[Difference] = (),
) -> Report:
    """``verify`` for modules already paired; a second call reuses what the first compiled."""
    return _Verification(pair, settings, name, setup, initial).run(example)


def profiles_for(spec: InputSpec) -> tuple[str, ...]:
    """The profiles that make a difference to the spec's inputs."""
    if spec.profiles:
        return spec.profiles
    arrays = spec.arrays()
    if spec.hook is not None or any(a.dtype in FLOATS and a.high is None for a in arrays):
        return drawing.PROFILES
    return ("normal", "zeros", "ties", "large") if arrays else ("normal",)


_OF_OUTPUTS = (" outputs", " distribution")
_AT_LEAST = 3
"""Examples that a check in doubt is given, whatever time they take."""


@dataclass
class _Verification:
    """The state of one verification: what was compared so far, which examples fail."""

    pair: Pair
    settings: Settings
    name: str
    setup: str
    initial: Sequence[Difference] = ()
    checks: dict[str, Check] = field(default_factory=dict)
    outcomes: dict[Example, Outcome | None] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    unconfirmed: list[Outcome] = field(default_factory=list)
    _real: set[str] = field(default_factory=set)
    """The checks that were seen to differ in float64 as well."""

    drawn: list[Difference] | None = None
    unasked: frozenset[str] = frozenset()
    """The modes that the pair was told to leave out."""

    def run(self, only: Example | None) -> Report:
        started = time.perf_counter()
        self.unasked = frozenset(self.pair.skipped)
        self.deadline = started + (self.settings.budget or float("inf"))
        self.sizes = size_choices(self.pair.spec, self.settings.shapes)
        self.profiles = profiles_for(self.pair.spec)
        self.pair.eval_gradients_at = tuple(self.sizes[0].items())
        failing = self._fails(only, confirm=False) if only else self._search()
        failure = self._failure(failing, shrink=only is None) if failing else self._started()
        report = Report(
            name=self.name,
            verdict=self._verdict(failure),
            checks=list(self.checks.values()),
            failure=failure,
            examples=sum(outcome is not None for outcome in self.outcomes.values()),
            rejected=sum(outcome is None for outcome in self.outcomes.values()),
            shapes=self.sizes,
            compiles=self.pair.flax.compiles,
            compilations=list(self.pair.flax.compilations),
            notes=list(dict.fromkeys([*self.notes, *self.pair.notes])),
            seconds=time.perf_counter() - started,
            ulps=self.pair.ulps,
        )
        if self.settings.layers and self.outcomes:
            report.layers = self._layers(failing)
        report.peak_memory = peak_memory()
        if self.settings.health and self.outcomes:
            report.health = self._health(next(iter(self.outcomes)))
        if self.settings.emulate_tpu and report.ok and self.outcomes:
            report.tpu_errors = tpu_errors(self.pair, next(iter(self.outcomes)))
        extra = report.compiles - len(self.pair.flax.signatures)
        if extra > 0:
            causes = ": ".join(["", *dict.fromkeys(self.pair.flax.retraces)][:2])
            report.notes.append(f"the port compiles again for shapes it has seen, {extra}x{causes}")
        for check in report.checks:
            if check.name.endswith("outputs"):
                report.notes += check.doubts()
            elif check.name.endswith("gradients") and not check.values:
                report.notes.append(f"{check.name}: not compared, torch has none that is a number")
        if self.unconfirmed:
            report.notes.append(_boundary_note(self.unconfirmed))
        if report.rejected and not report.examples:
            report.notes = [f"torch itself raises on every example: {self.pair.refused}"]
        elif report.rejected:
            tried = len(self.outcomes)
            report.notes.append(f"torch itself raises on {report.rejected} of {tried} examples")
        report.notes += [note] if (note := self.pair.arguments.note()) else []
        return report

    def _started(self) -> Failure | None:
        """What the modules start from: the port computes the same with torch's numbers, but makes others itself."""
        if not self.initial:
            return None
        self._count_check(INITIAL, self.initial)
        wrong = [difference for difference in self.initial if not difference.ok]
        if not wrong:
            return None
        return Failure(INITIAL, Example(), wrong, submodule=wrong[0].name.rpartition(".")[0])

    def _health(self, example: Example) -> list[str]:
        args, kwargs = drawing.materialise(self.pair.spec, example)
        try:
            return examine(self.pair.flax.module, args, kwargs)
        except Exception as error:
            return [f"it cannot be traced: {type(error).__name__}"]

    def _layers(self, failing: Outcome | None) -> list[Difference]:
        if failing is not None and failing.error is not None:
            return []
        example = failing.example if failing is not None else next(iter(self.outcomes))
        train = bool(failing and failing.failed.startswith("train"))
        try:
            return layer_errors(self.pair, example, train)
        except Exception as error:
            self.notes.append(f"layers cannot be watched: {one_line(error)}")
            return []

    # --- examples ---------------------------------------------------------------------------------

    def _search(self) -> Outcome | None:
        """The first failing outcome: a covering schedule, then what hypothesis draws."""
        for example in self._replayed():
            if (failing := self._fails(example)) is not None:
                return failing
        for number, example in enumerate(self._schedule()):
            if number == 0:
                self.pair.extras_on = example
            if (failing := self._fails(example)) is not None:
                return failing
        if not self.pair.spec.arrays() and self.pair.spec.hook is None:
            return None  # nothing to draw: the schedule has tried all weights
        rest = self.settings.examples - len(self.outcomes)
        return self._find(lambda outcome: True, rest) if rest > 0 else None

    def _replayed(self) -> Iterator[Example]:
        """The examples to begin with that the spec still allows."""
        for example in self.settings.first:
            fits = self.pair.spec.allows(dict(example.sizes))
            if fits and example.profile in drawing.ALL_PROFILES:
                yield example

    def _schedule(self) -> Iterator[Example]:
        """One example for each profile, with sizes and weights taking turns, the largest size first."""
        rng = np.random.default_rng(self.settings.seed)
        sizes = [tuple(assignment.items()) for assignment in reversed(self.sizes)]
        count = max(len(self.profiles), len(sizes), len(VARIANTS))
        for index in range(min(count, self.settings.examples)):
            yield Example(
                sizes=sizes[index % len(sizes)],
                profile=self.profiles[index % len(self.profiles)],
                seed=int(rng.integers(2**16)),
                weights=VARIANTS[(index + index // len(VARIANTS)) % len(VARIANTS)],
            )

    def _find(self, wanted: Callable[[Outcome], bool], count: int) -> Outcome | None:
        """The simplest failing example hypothesis finds in ``count`` draws, shrunk."""
        strategy = drawing.examples(self.sizes, self.profiles, VARIANTS)
        give_up: list[float] = []

        def fails(example: Example) -> bool:
            if example not in self.outcomes and give_up and time.perf_counter() > give_up[0]:
                return False
            outcome = self._fails(example)
            if outcome is None or not wanted(outcome):
                return False
            if not give_up:
                give_up.append(time.perf_counter() + self.settings.shrink_seconds)
            return True

        options = hypothesis.settings(
            max_examples=count,
            deadline=None,
            database=None,
            phases=[hypothesis.Phase.generate, hypothesis.Phase.shrink],
            suppress_health_check=list(hypothesis.HealthCheck),
        )
        try:
            found = hypothesis.find(
                strategy, fails, settings=options, random=random.Random(self.settings.seed)
            )
        except NoSuchExample:
            return None
        return self.outcomes[found]

    def _fails(self, example: Example, confirm: bool = True) -> Outcome | None:
        """The outcome of an example when it shows a difference that lasts, else None."""
        if example not in self.outcomes:
            if self._is_late() or self._is_full():
                return None
            self.outcomes[example] = self._outcome(example, confirm)
        outcome = self.outcomes[example]
        return outcome if outcome is not None and outcome.failed else None

    def _is_late(self) -> bool:
        """Whether the time for examples is over."""
        if time.perf_counter() <= self.deadline or self._is_undecided():
            return False
        self._cut_short(f"the budget of {self.settings.budget:g} s is used up")
        return True

    def _is_undecided(self) -> bool:
        """Whether one example or two are too few: a check differed on a boundary, and agreed nowhere yet."""
        return 0 < len(self.outcomes) < _AT_LEAST and bool(self._never())

    def _never(self) -> set[str]:
        """The checks that differed on a boundary and agree in no example."""
        agreed = {name for name, c in self.checks.items() if c.values and c.conditioned}
        return {outcome.failed for outcome in self.unconfirmed} - agreed

    def _is_full(self) -> bool:
        """Whether memory is used up even when nothing is kept that can be made again."""
        limit = self.settings.memory
        if limit is None or memory_now() <= limit:
            return False
        jax.clear_caches()
        gc.collect()
        if memory_now() <= limit:
            return False
        self._cut_short(f"{memory_now() / 2**30:.1f} GiB of memory are in use")
        return True

    def _cut_short(self, why: str) -> None:
        """Say that the verdict rests on fewer examples than were asked for."""
        asked = self.settings.examples
        self.notes.append(f"only {len(self.outcomes)} of {asked} examples tried: {why}")

    def _outcome(self, example: Example, confirm: bool) -> Outcome | None:
        try:
            outcome = self.pair.run(example, self.settings.noise)
        except TorchRaises:
            return None  # noted by the pair
        dropout_alone = self.pair.without_dropout and "train" not in self.pair.skipped
        if dropout_alone and not outcome.failed:
            outcome = self._with_draws(outcome)
        if outcome.failed and confirm and not self._lasts(outcome):
            self.unconfirmed.append(outcome)
            outcome = replace(outcome, checks=outcome.passed(), error=None)
        elif outcome.failed and confirm and not outcome.structural:
            outcome = self._without_rounding(outcome)
        self._count(outcome)
        return outcome

    def _with_draws(self, outcome: Outcome) -> Outcome:
        """With dropout switched off, whether both sides draw as much when it is on: told by one example."""
        if self.drawn is None:
            try:
                self.drawn = compare_draws(self.pair, outcome.example, True)
                if not self.drawn:
                    self.notes.append("not compared: how many random numbers a training call draws")
            except (
                Exception
            ) as error:  # torch draws inside an operation, or the port cannot be traced alone
                self.drawn = []
                self.notes.append(
                    f"not compared: how many random numbers a training call draws ({type(error).__name__})"
                )
        found = {"train draws": self.drawn} if self.drawn else {}
        return replace(outcome, checks={**outcome.checks, **found})

    def _lasts(self, outcome: Outcome) -> bool:
        """Whether the difference stays with torch's error measured better, and in the neighbourhood.

        A value that lies on a boundary (a ReLU at zero, two equal maxima, a floor) may fall to either side by
        rounding alone. Moving every number in its fifth digit moves the value off the boundary.
        """
        if outcome.structural:
            return True
        example, failed = outcome.example, outcome.failed
        if failed not in self._failed(self.pair.run(example, 4 * self.settings.noise)):
            return False
        if not all(self._fails_beside(failed, replace(example, jitter=i)) for i in (1, 2, 3)):
            return False
        return not (failed.endswith("gradients") and self._is_lost(outcome))

    def _is_lost(self, outcome: Outcome) -> bool:
        """Whether JAX's derivative of a quotient underflows here, in this port as in any."""
        train = outcome.failed.startswith("train")
        try:
            lost = self.pair.loses_by_division(outcome.example, train, self.settings.noise)
        except Exception:
            return False  # the difference stands
        if lost:
            self.notes.append(
                f"{outcome.failed}: JAX differentiates x / y by y ** -2, which is zero in float32 for y beyond"
                f" 1e19, as with {outcome.example}; torch has a gradient there"
            )
        return lost

    def _without_rounding(self, outcome: Outcome) -> Outcome:
        """The outcome without what only the order of adding makes, as float64 tells."""
        if outcome.failed in self._real:
            return outcome
        try:
            found = without_rounding(self.pair, outcome, self.settings.noise)
        except Exception:
            found = outcome  # the port does not run in float64: the difference stands
        if found.failed:
            self._real.add(outcome.failed)
        else:
            worst = max(outcome.checks[outcome.failed], key=lambda d: d.ratio)
            self.notes.append(
                f"{outcome.failed}: rounded in another order, as float64 shows, where both agree: {worst}"
            )
        return found

    def _fails_beside(self, failed: str, neighbour: Example) -> bool:
        try:
            return failed in self._failed(self.pair.run(neighbour, self.settings.noise))
        except TorchRaises:
            return True  # outside of what torch takes, so it tells nothing

    @staticmethod
    def _failed(outcome: Outcome) -> list[str]:
        return [name for name, found in outcome.checks.items() if not all(d.ok for d in found)]

    def _count(self, outcome: Outcome) -> None:
        for name, differences in outcome.checks.items():
            self._count_check(name, differences)

    def _count_check(self, name: str, differences: Sequence[Difference]) -> None:
        check = self.checks.setdefault(name, Check(name))
        check.add(differences)
        check.ok = check.ok and all(difference.ok for difference in differences)

    # --- the verdict ------------------------------------------------------------------------------

    def _verdict(self, failure: Failure | None) -> str:
        if failure is not None:
            return "raises" if failure.traceback else "different"
        outputs = [check for name, check in self.checks.items() if name.endswith("outputs")]
        if not sum(check.values for check in outputs):
            self.notes += ["no number of any output could be compared"] if outputs else []
            return "not compared"
        if never := self._never():
            self.notes.append(f"{', '.join(sorted(never))}: agree in no example")
            return "not compared"
        if left_out := self._left_out():
            self.notes += map(self._left_out_note, left_out)
            return "not compared"
        return "ill-conditioned" if any(check.meaningless for check in outputs) else "equal"

    def _left_out(self) -> list[str]:
        """The modes that were asked for and of which no output was compared, not in distribution either."""
        modes = ["eval", "train"] if self.settings.train else ["eval"]
        seen = {name.partition(" ")[0] for name in self.checks if name.endswith(_OF_OUTPUTS)}
        return [mode for mode in modes if mode not in seen | self.unasked]

    def _left_out_note(self, mode: str) -> str:
        """What to say of a mode of which nothing is known: why, and how to ask about the other alone."""
        refusal = self.pair.refusals.get(mode)
        why = f": torch itself raises on every one ({refusal})" if refusal else ""
        advice = "; `train = false` in a case asks about eval mode alone" if mode == "train" else ""
        return f"{mode} mode: not compared in any example{why}{advice}"

    def _failure(self, outcome: Outcome, shrink: bool) -> Failure:
        kind = outcome.failed
        if shrink:
            smaller = self._find(lambda other: other.failed == kind, self.settings.examples)
            outcome = min(
                (other for other in (outcome, smaller) if other is not None),
                key=lambda other: (
                    other.example.sizes,
                    drawing.ALL_PROFILES.index(other.example.profile),
                ),
            )
        differences = sorted(
            (d for d in outcome.checks.get(kind, []) if not d.ok), key=lambda d: -d.ratio
        )
        failure = Failure(kind, outcome.example, differences)
        if outcome.error is not None:
            failure.reason = f"{type(outcome.error).__name__}: {outcome.error}".splitlines()[0]
            failure.traceback = "".join(traceback.format_exception(outcome.error))
        try:
            failure.submodule = _where(self.pair, outcome)
            if failure.submodule is not None and outcome.error is None:
                failure.statement = first_statement(self.pair, outcome, failure.submodule)
            failure.origin = _origin(self.pair, outcome.example, kind, differences)
        except Exception as error:  # the difference stands; only its place is not known
            self.notes.append(f"where it starts cannot be told more closely: {one_line(error)}")
        failure.snippet = snippet(self.setup, outcome.example)
        return failure


def _where(pair: Pair, outcome: Outcome) -> str | None:
    """The submodule where a failing example starts to differ."""
    mode, _, kind = outcome.failed.partition(" ")
    if kind == "vmap":
        return None
    if kind not in ("distribution", "draws"):
        return first_divergence(pair, outcome)
    return first_unshared(pair, outcome.example, mode == "train")


def _origin(
    pair: Pair, example: Example, failed: str, differences: Sequence[Difference]
) -> str | None:
    """Where the NaN or infinity comes from that the port has instead of a number."""
    values = [d.problem.partition(" at ")[0] for d in differences]
    tests = {"nan": np.isnan, "inf": np.isinf, "-inf": np.isinf}
    mode, _, kind = failed.partition(" ")
    test = next((tests[value] for value in values if value in tests), None)
    if test is None or kind not in ("outputs", "gradients", "state"):
        return None
    return pair.origin(example, test, train=mode == "train", grad=kind == "gradients")


def _boundary_note(outcomes: Sequence[Outcome]) -> str:
    """What to say of examples whose difference did not last."""
    first = outcomes[0]
    worst = max(first.checks[first.failed], key=lambda d: (bool(d.problem), d.ratio))
    return (
        f"{len(outcomes)} example(s) differ at a value on a rounding boundary and not beside it,"
        f" such as {first.failed} with {first.example}: {worst}"
    )


def snippet(setup: str, example: Example) -> str:
    """A program that runs one example again."""
    setup = setup or "# torch_module, flax_module and inputs as given to migrator.verify"
    return (
        f"import migrator\nfrom numerics.inputs import Example\n\n{setup}\n"
        f"example = {example!r}\n"
        "report = migrator.verify(\n"
        "    torch_module, flax_module, inputs=inputs, train=True, example=example\n"
        ")\n"
        "print(report)\n"
    )
