"""A torch module and its port side by side: one example run on both, every check compared."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from flax import nnx

from numerics.arguments import Arguments
from numerics.compare import Difference, compare_all, missing
from numerics.dtype_branches import far_apart, goes_by_dtype
from numerics.inputs import Example, materialise
from numerics.nans import Test
from numerics.parameters import copied, grows, perturbed
from numerics.randomness import NotInTorch, ReplayMismatch
from numerics.runners import (
    Dump,
    FlaxRunner,
    Load,
    Rest,
    Run,
    TorchMode,
    call_tensors,
    run_torch,
    to_numpy,
)
from numerics.spec import InputSpec
from numerics.spread import compare_distributions
from numerics.training import OPTIMISERS, compare_training
from numerics.transforms import compare_second_order, compare_vmapped
from numerics.tree import same_dtype
from numerics.ulps import Histogram


class TorchRaises(RuntimeError):
    """torch itself fails on an example, which then says nothing about the port."""


class Wanted(Protocol):
    """The settings a pair looks at."""

    @property
    def train(self) -> bool: ...
    @property
    def grad(self) -> bool: ...
    @property
    def train_steps(self) -> int: ...
    @property
    def vmap(self) -> bool: ...
    @property
    def second_order(self) -> bool: ...
    @property
    def ulps(self) -> bool: ...
    @property
    def tell(self) -> Callable[[str], None]: ...


@dataclass(frozen=True)
class Outcome:
    """One example's comparisons by check, in order; ``error`` is what the port raised."""

    example: Example
    checks: dict[str, list[Difference]]
    error: Exception | None = None

    @property
    def failed(self) -> str:
        """The first check that differs, ``""`` when all agree."""
        for name, differences in self.checks.items():
            if not all(difference.ok for difference in differences):
                return name
        return ""

    @property
    def structural(self) -> bool:
        """Whether the difference is one no rounding explains: the port raises, or shapes or names differ."""
        return self.error is not None or any(d.structural for d in self.checks.get(self.failed, []))

    def passed(self) -> dict[str, list[Difference]]:
        """The checks that agree."""
        return {name: found for name, found in self.checks.items() if all(d.ok for d in found)}


@dataclass
class Runs:
    """All runs of one example in one mode: torch's float64, torch's own precision, the port."""

    reference: Run
    own: list[Run]
    port: Run


@dataclass
class Pair:
    """Two modules, the inputs they take, and how weights go from one to the other."""

    torch: torch.nn.Module
    port: nnx.Module
    spec: InputSpec
    load: Load
    dump: Dump
    wanted: Wanted
    notes: list[str] = field(default_factory=list)
    refused: str = ""
    """What torch said of the first example that it raises on."""
    refusals: dict[str, str] = field(default_factory=dict)
    """The same for each mode."""
    skipped: set[str] = field(default_factory=set)
    without_dropout: bool = False
    eval_gradients_at: tuple[tuple[str, int], ...] | None = None
    """Sizes at which gradients are compared in eval mode too, though train mode has them: a compilation."""

    extras_on: Example | None = None
    """The example on which training runs, ``vmap`` and second derivatives are compared."""

    rest: Rest | None = None
    """Gives the port's arrays that are in no state_dict."""

    def __post_init__(self) -> None:
        self.original = self.torch, self.port
        self.arguments = Arguments(self.torch.forward)
        self._distributions: dict[str, list[Difference]] = {}
        self._trainable: list[Difference] | None = None
        self.flax = FlaxRunner(self.port, self.load, self.dump, self.rest)
        self._variants: dict[tuple[str, int], torch.nn.Module] = {}
        self._balanced: dict[str, bool] = {}
        self._loaded: tuple[str, int] | None = None
        self._returned: list[Difference] = []
        self.ulps: dict[str, Histogram] = {}
        self._torch_runs: dict[tuple[Example, bool, int], tuple[Run, list[Run]]] = {}

    def weighted(self, example: Example) -> torch.nn.Module:
        """The torch module with the example's weights, which the port is given too."""
        key = (example.weights, example.jitter)
        if key not in self._variants:
            if len(self._variants) > 8:
                self._variants.clear()
            self._variants[key] = perturbed(self.torch, *key, self._is_balanced(example))
        if self._loaded != key:
            state = self._variants[key].state_dict()
            self.flax.load(state)
            self._loaded, self._returned = key, _returned(state, self.dump(self.port))
        return self._variants[key]

    def _is_balanced(self, example: Example) -> bool:
        """Whether the weights of normalisations make up for the statistics drawn: where numbers would grow without end."""
        if example.weights not in self._balanced:
            tensors = call_tensors(*materialise(self.spec, example), TorchMode(), {})
            made = perturbed(self.torch, example.weights)
            self._balanced[example.weights] = grows(made, *tensors)
        return self._balanced[example.weights]

    def _compare_trainable(self) -> list[Difference]:
        """Which parameters an optimiser would change, on each side."""
        own = {
            name: parameter.requires_grad
            for name, parameter in self.torch.named_parameters(remove_duplicate=False)
            if parameter.dtype.is_floating_point
        }
        if own and not any(own.values()):
            return []  # frozen as a whole, for a run: that is no property of the model
        buffers = {name for name, _ in self.torch.named_buffers(remove_duplicate=False)}
        port = set(self.dump(nnx.state(self.port, nnx.Param), like=self.port))
        found = []
        for name in [*own, *sorted(buffers & port)]:
            problem = ""
            if own.get(name, False) and name not in port:
                problem = "torch trains it, the port does not"
            elif not own.get(name, False) and name in port:
                what = "a buffer" if name in buffers else "frozen"
                problem = f"the port trains it, in torch it is {what}"
            found.append(Difference(name, problem=problem, structural=bool(problem)))
        return found

    def modes(self, example: Example) -> list[tuple[bool, bool]]:
        """(train, grad) to run: gradients in train mode where that is compared, else in eval mode."""
        train = self.wanted.train and "train" not in self.skipped
        eval_too = not train or example.sizes == self.eval_gradients_at
        modes = [] if "eval" in self.skipped else [(False, self.wanted.grad and eval_too)]
        return modes + ([(True, self.wanted.grad)] if train else [])

    def run(self, example: Example, noise: int) -> Outcome:
        """Compare one example in every mode.

        Raises:
          TorchRaises: torch fails in every mode.
        """
        args, kwargs = materialise(self.spec, example)
        self.arguments.see(args, kwargs)
        self.weighted(example)  # weights that do not fit are the caller's error, not the port's
        checks = {"state_dict round trip": self._returned} if self._returned else {}
        if self._trainable is None:
            self._trainable = self._compare_trainable()
        if self._trainable:
            checks["trainable parameters"] = self._trainable
        failures: list[TorchRaises] = []
        for train, grad in self.modes(example):
            mode = "train" if train else "eval"
            self.wanted.tell(f"{mode} outputs{' and gradients' if grad else ''} ({example})")
            try:
                runs = self._runs_shared(example, args, kwargs, train, grad, noise)
            except TorchRaises as error:
                failures.append(error)
                self.refused = self.refused or str(error)
                self.refusals.setdefault(mode, str(error))
                self.notes.append(f"{mode} mode: torch itself raises on some inputs: {error}")
                continue
            except ReplayMismatch as mismatch:
                self._skip(mode, mismatch)
                checks |= self._distribution(mode, example, args, kwargs)
                continue
            except Exception as error:
                checks[f"{mode} outputs"] = [Difference("output", problem=with_place(error))]
                return Outcome(example, checks, error)
            checks.update(_compared(mode, runs, grad))
            if runs.own[0].writes_inputs:
                self.notes.append(
                    "torch changes an argument in place, which its caller sees; a port cannot do that"
                )
            if self.rest is not None:
                self._note_lost(mode, runs)
            if self.wanted.ulps:
                self._count_ulps(mode, runs)
            if train and self.without_dropout:
                checks |= self._distribution(mode, example, args, kwargs)
            if Outcome(example, checks).failed:
                break  # what follows from a difference need not be compiled to be known
        self._torch_runs.clear()  # they may be large
        outcome = Outcome(example, checks)
        if len(failures) == len(self.modes(example)) and failures and not outcome.failed:
            raise failures[0]
        return self._with_extras(outcome, args, kwargs, noise)

    def _note_lost(self, mode: str, runs: Runs) -> None:
        """What torch's call changes outside of the state_dict and the port has not got."""
        lost = sorted(runs.own[0].changed - set(runs.port.rest) - set(runs.port.state))
        if lost:
            self.notes.append(
                f"{mode} state: the call changes {', '.join(lost)} in torch, the port has no such array"
            )

    def _count_ulps(self, mode: str, runs: Runs) -> None:
        """Every number's error in ulps, where that was asked for."""
        plain = runs.own[0]
        for kind, dtypes in (("outputs", plain.dtypes), ("gradients", plain.leaf_dtypes)):
            reference, own, port = (
                getattr(run, kind) for run in (runs.reference, plain, runs.port)
            )
            if reference:
                histogram = self.ulps.setdefault(f"{mode} {kind}", Histogram())
                histogram.add_all(reference, own, port, dtypes)

    def _with_extras(self, outcome: Outcome, args: Any, kwargs: Any, noise: int) -> Outcome:
        """The checks that were asked for, on the one example they are made on."""
        example = outcome.example
        if outcome.failed or replace(example, jitter=0) != self.extras_on:
            return outcome
        module, checks = self.weighted(example), dict(outcome.checks)
        wanted: dict[str, Callable[[], list[Difference]]] = {}
        if self.wanted.vmap:
            wanted["eval vmap"] = lambda: compare_vmapped(
                module, self.flax, self.spec, example, noise
            )
        if self.wanted.second_order:
            wanted["eval second order"] = lambda: compare_second_order(
                module, self.flax, args, kwargs, noise
            )
        if self.wanted.train_steps and "train" not in self.skipped:
            for name in OPTIMISERS:
                wanted[f"training with {name}"] = partial(self._trained, name, example, noise)
        for name, compare in wanted.items():
            self.wanted.tell(f"{name} ({example})")
            try:
                found = compare()
                if found:
                    checks[name] = found
                else:
                    self.notes.append(f"{name}: torch has nothing there to compare")
            except ReplayMismatch as mismatch:
                self.notes.append(f"{name}: random, not compared ({mismatch})")
            except NotInTorch as error:
                self.notes.append(f"{name}: torch cannot do it itself ({one_line(error)})")
            except Exception as error:
                checks[name] = [Difference("", problem=one_line(error), structural=True)]
        return Outcome(example, checks)

    def _trained(self, optimiser: str, example: Example, noise: int) -> list[Difference]:
        module, steps = self.weighted(example), self.wanted.train_steps
        return compare_training(module, self.flax, self.spec, example, optimiser, steps, noise)

    def _runs_shared(self, example: Example, *call: Any) -> Runs:
        """Both sides with the same random numbers; where that fails, once more without dropout."""
        try:
            return self.runs(example, *call)
        except ReplayMismatch:
            train = call[2]
            if self.without_dropout or not train:
                raise
            self._switch_dropout_off()
            return self.runs(example, *call)

    def _distribution(
        self, mode: str, example: Example, args: Any, kwargs: Any
    ) -> dict[str, list[Difference]]:
        """How random outputs are distributed, measured on the first example that comes here."""
        name = f"{mode} distribution"
        if name not in self._distributions:
            balanced = self._is_balanced(example)
            module = perturbed(self.original[0], example.weights, balanced=balanced)
            port = self.original[1]
            self.load(port, module.state_dict())
            try:
                found = compare_distributions(module, port, args, kwargs, mode == "train")
            except Exception as error:
                self.notes.append(f"{name}: not compared ({one_line(error)})")
                found = []
            self._distributions[name] = found
            self._loaded = None
        found = self._distributions[name]
        return {name: found} if found else {}

    def _skip(self, mode: str, mismatch: ReplayMismatch) -> None:
        self.skipped.add(mode)
        self.notes.append(f"{mode} mode: random, not compared ({mismatch})")

    def _switch_dropout_off(self) -> None:
        self.without_dropout = True
        self.torch, self.port = copied(self.torch), nnx.clone(self.port)
        _zero_dropout(list(self.torch.modules()))
        _zero_dropout(
            [node for _, node in nnx.iter_graph(self.port) if isinstance(node, nnx.Module)]
        )
        placement = self.flax.placement
        self.flax = FlaxRunner(self.port, self.load, self.dump, self.rest)
        self.flax.placement = placement
        self._variants.clear()
        self._loaded = None
        self.notes.append("train mode: compared with dropout switched off on both sides")

    def runs(
        self,
        example: Example,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        train: bool,
        grad: bool,
        noise: int,
    ) -> Runs:
        """Run both sides.

        Raises:
          TorchRaises, ReplayMismatch, and whatever the port raises.
        """
        module = self.weighted(example)
        plain, mode = self._plain(module, args, kwargs, TorchMode(train, grad))
        if plain.unknown_draws:
            raise ReplayMismatch(f"torch draws by {', '.join(sorted(set(plain.unknown_draws)))}")
        mode = replace(mode, replay=tuple(plain.raw_draws))
        finish = self.flax.start(
            args,
            kwargs,
            train=train,
            grad=mode.grad,
            inputs=mode.inputs,
            cotangents=plain.cotangents,
            draws=plain.draws,
        )
        known = self._torch_runs.pop(key := (example, grad, noise), None)
        if known is not None and _identical(plain, known[1][0]):
            reference, own = known  # what the mode changes, this module does not look at
        else:
            with _a_core_less():
                reference, own = self._measured(module, args, kwargs, mode, plain, noise)
            self._torch_runs = {key: (reference, own)}
        return Runs(reference, own, finish())

    def _measured(
        self,
        module: torch.nn.Module,
        args: Any,
        kwargs: Any,
        mode: TorchMode,
        plain: Run,
        noise: int,
    ) -> tuple[Run, list[Run]]:
        """torch in float64, and in its own precision as it runs and with random rounding."""
        without = "torch does not run in float64 ({}): its float32 is the reference"
        reference = self._again(module, args, kwargs, replace(mode, float64=True), without)
        own = [plain]
        without = "torch does not run with random rounding ({}): its error is measured without"
        for seed in range(noise):
            run = self._again(module, args, kwargs, replace(mode, noise=seed), without)
            own += [] if run is None else [run]
        if reference is not None and far_apart(reference, own):
            without = "not measured: whether torch goes by its dtype ({})"
            rounded = replace(mode, float64=True, single=True)
            single = self._again(module, args, kwargs, rounded, without)
            if single is not None and goes_by_dtype(reference, own, single):
                self.notes.append("torch goes by its dtype: its float32 is the reference")
                reference = None
        return reference or plain, own

    def loses_by_division(self, example: Example, train: bool, noise: int) -> bool:
        """Whether the port has the gradients that torch has when it differentiates quotients as JAX does."""
        args, kwargs = materialise(self.spec, example)
        usual = self.runs(example, args, kwargs, train, True, noise)
        module, draws = self.weighted(example), tuple(usual.own[0].raw_draws)
        mode = TorchMode(train, True, replay=draws, divides_as_jax=True)
        modes = [mode, *(replace(mode, noise=seed) for seed in range(noise))]
        own = [run_torch(module, args, kwargs, mode) for mode in modes]
        if _same_gradients(own[0], usual.own[0]):
            return False  # no quotient in it loses anything
        name = "train gradients" if train else "eval gradients"
        found = _compared("train" if train else "eval", Runs(own[0], own, usual.port), True)
        return all(difference.ok for difference in found.get(name, ()))

    def origin(self, example: Example, test: Test, *, train: bool, grad: bool) -> str | None:
        """The port's operation that a NaN (or what ``test`` tells) comes from; None where it has none."""
        args, kwargs = materialise(self.spec, example)
        like = run_torch(self.weighted(example), args, kwargs, TorchMode(train, grad))
        return self.flax.origin(args, kwargs, like, test, train=train, grad=grad)

    def _plain(
        self, module: torch.nn.Module, args: Any, kwargs: Any, mode: TorchMode
    ) -> tuple[Run, TorchMode]:
        """torch as it runs, with the gradients that it can take.

        Raises:
          TorchRaises: it fails without gradients too.
        """
        attempts = [(mode, "")]
        if mode.grad:
            attempts.append((replace(mode, inputs=False), "gradients for inputs"))
            attempts.append((replace(mode, grad=False), "gradients"))
        first: Exception | None = None
        for attempt, left_out in attempts:
            try:
                run = run_torch(module, args, kwargs, attempt)
            except Exception as error:
                first = first or error
                continue
            if first is not None:
                name = "train" if mode.train else "eval"
                self.notes.append(
                    f"{name} {left_out}: not compared, torch cannot take them ({one_line(first)})"
                )
            return run, attempt
        assert first is not None
        raise TorchRaises(one_line(first)) from first

    def _again(
        self, module: torch.nn.Module, args: Any, kwargs: Any, mode: TorchMode, without: str
    ) -> Run | None:
        """Another run of torch; where it fails, the note ``without`` and None."""
        try:
            return run_torch(module, args, kwargs, mode)
        except ReplayMismatch:
            raise
        except Exception as error:
            self.notes.append(without.format(one_line(error)))
            return None


@contextmanager
def _a_core_less() -> Iterator[None]:
    """While active, torch leaves a core to XLA: its threads wait for each other in a loop, which takes all of it."""
    threads = torch.get_num_threads()
    torch.set_num_threads(max(1, threads - 1))
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def one_line(error: Exception) -> str:
    """The class of an error and the first line of its message."""
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else ''}"[:300]


_TOOL = Path(__file__).resolve().parents[1]


def with_place(error: Exception) -> str:
    """The line of the user's code that an error comes from, with its text, and the error in one line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if _is_users(Path(frame.filename))]
    if not own:
        return one_line(error)
    last = own[-1]
    text = f" `{last.line}`" if last.line else ""
    return f"{Path(last.filename).name}:{last.lineno}{text}: {one_line(error)}"


def _is_users(path: Path) -> bool:
    installed = "site-packages" in path.parts or not path.is_file()
    ours = any(path.is_relative_to(_TOOL / name) for name in ("numerics", "migrator"))
    return not (installed or ours or path.is_relative_to(sysconfig.get_path("stdlib")))


def _compared(mode: str, runs: Runs, grad: bool) -> dict[str, list[Difference]]:
    plain = runs.own[0]
    outputs = compare_all(
        runs.reference.outputs, [run.outputs for run in runs.own], runs.port.outputs, plain.dtypes
    )
    outputs += [
        Difference(
            path, problem=f"dtype {runs.port.dtypes[path]} where torch has {dtype}", structural=True
        )
        for path, dtype in plain.dtypes.items()
        if path in runs.port.dtypes and not same_dtype(dtype, runs.port.dtypes[path])
    ]
    checks = {f"{mode} outputs": outputs}
    state = compare_all(
        runs.reference.state, [run.state for run in runs.own], runs.port.state, plain.leaf_dtypes
    )
    state += _compared_rest(runs)
    if state:
        checks[f"{mode} state"] = state
    if grad and plain.gradients and all(difference.ok for difference in outputs):
        names = set(plain.gradients)
        port = {name: value for name, value in runs.port.gradients.items() if name in names}
        checks[f"{mode} gradients"] = compare_all(
            runs.reference.gradients,
            [run.gradients for run in runs.own],
            port,
            plain.leaf_dtypes,
            undefined=True,
        )
    return checks


def _compared_rest(runs: Runs) -> list[Difference]:
    """Buffers and attributes in no state_dict that a side changes and both have: caches, the last of something."""
    sides = [run.rest for run in (runs.reference, *runs.own, runs.port)]
    names = sorted(runs.own[0].changed | runs.port.changed)
    names = [name for name in names if all(name in side for side in sides)]
    reference, *own, port = ({name: side[name] for name in names} for side in sides)
    return compare_all(reference, own, port)


def _identical(a: Run, b: Run) -> bool:
    """Whether two runs gave the same numbers, bit for bit, and drew and changed nothing."""
    if a.draws or b.draws or a.changed or b.changed:
        return False
    return all(
        x.keys() == y.keys() and all(x[name].tobytes() == y[name].tobytes() for name in x)
        for x, y in ((a.outputs, b.outputs), (a.gradients, b.gradients), (a.state, b.state))
    )


def _same_gradients(a: Run, b: Run) -> bool:
    return all(
        np.array_equal(a.gradients[name], b.gradients[name], equal_nan=True) for name in a.gradients
    )


def _returned(given: Mapping[str, Any], back: Mapping[str, Any]) -> list[Difference]:
    """torch's state_dict against what the port gives back after loading it, bit for bit."""
    found = []
    for name, value in given.items():
        if not isinstance(value, torch.Tensor):
            continue
        expected = to_numpy(value.float() if value.dtype == torch.float64 else value)
        if name not in back:
            found.append(missing(name))
        elif not np.array_equal(
            to_numpy(back[name]), expected, equal_nan=expected.dtype.kind in "fc"
        ):
            found.append(Difference(name, problem="it does not come back as it was loaded"))
        else:
            found.append(Difference(name))
    return found


def _zero_dropout(modules: Sequence[Any]) -> None:
    """Set every dropout rate to zero: ``p`` and ``rate`` of dropout layers, ``dropout`` of others."""
    for module in modules:
        for name in ("dropout", "dropout_p", "dropout_rate", "attn_dropout"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)
        if "dropout" in type(module).__name__.lower():
            for name in ("p", "rate"):
                if isinstance(getattr(module, name, None), float):
                    setattr(module, name, 0.0)
