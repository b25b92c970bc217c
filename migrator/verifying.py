"""Loads cases, runs both sides, reports: what ``migrate verify`` and ``migrator.verify`` do."""

from __future__ import annotations

import contextlib
import math
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from migrator import failures
from migrator.building import PortError, build_flax, build_torch, require, spec_of, target_file
from migrator.config import Case, Config, load_config
from migrator.errors import UserError
from migrator.unasked import unasked_methods
from migrator.usercode import UserCode, describe

if TYPE_CHECKING:
    from numerics.compare import Difference
    from numerics.inputs import Example
    from numerics.lowering import Lowered
    from numerics.report import Report
    from numerics.spec import InputSpec

Progress = Callable[[str, str], None]


def verify(
    torch_module: Any,
    flax_module: Any,
    inputs: InputSpec | Sequence[Any],
    train: bool = False,
    *,
    grad: bool = True,
    example: Example | None = None,
    settings: Any = None,
    name: str = "",
    setup: str = "",
) -> Report:
    """Compare a torch module with its Flax port on many inputs.

    Args:
      torch_module, flax_module: the two modules; the port is given torch's weights.
      inputs: the call's arguments in order: arrays of any framework, used as they are, or
        ``numerics.spec.Array`` descriptions with named dimensions to draw from, or an ``InputSpec``.
      train: compare train mode too: outputs, buffers afterwards, gradients.
      grad: compare gradients with respect to float inputs and every parameter.
      example: run one example of an earlier report again.
      settings: a ``numerics.verify.Settings`` with all there is to choose.

    Returns:
      A report; ``report.ok`` tells whether the port is equal, ``report.max_error`` the largest error relative
      to its tensor, ``report.first_divergence`` the submodule where a difference starts.

    Raises:
      KeyError: a weight has no place in the port, or a place no weight; the message names them.
    """
    return _engine()(
        torch_module,
        flax_module,
        inputs,
        train=train,
        grad=grad,
        example=example,
        settings=settings,
        name=name,
        setup=setup,
    )


def _engine() -> Callable[..., Report]:
    """numerics' verify with our weight mapping; taken before the user's modules hide ours."""
    from migrator.weights import load_state_dict, to_state_dict, unstored
    from numerics.verify import verify as compare

    return partial(compare, load=load_state_dict, dump=to_state_dict, rest=unstored)


@dataclass(frozen=True)
class LoadedCase:
    """A case with both modules built; unpacks as ``torch_module, flax_module, inputs``.

    ``initial`` compares what they start from; ``notes`` say what of that is not compared. What torch draws when it is
    built and keeps out of its state_dict the port has been given.
    """

    torch_module: Any
    flax_module: Any
    inputs: InputSpec
    code: UserCode
    initial: tuple[Difference, ...] = ()
    notes: tuple[str, ...] = ()

    def __iter__(self) -> Any:
        return iter((self.torch_module, self.flax_module, self.inputs))


def load_case(
    case: Case | str,
    config: Config | Path | str | None = None,
    tell: Callable[[str], None] | None = None,
) -> LoadedCase:
    """Import and build both sides of a case, given by name or as a ``Case``; ``tell`` is called before each step.

    Raises:
      UserError: no such case, file, class; or what importing or constructing raised.
    """
    if not isinstance(config, Config):
        config = load_config(None if config is None else Path(config))
    if isinstance(case, str):
        case = select(config, [case])[0]
    if case.problem is not None:
        raise UserError(case.problem)
    require("torch")
    tell = tell or (lambda what: None)
    code = UserCode(config.root, target_file(case.torch, config).parent)
    tell("building the torch module")
    torch_module = build_torch(case, config, code)
    tell("building the port")
    port = build_flax(case, config)
    tell("the initial values of both sides")
    initial: list[Difference] = []
    try:
        initial, notes = _started(case, config, code, torch_module, port)
    except Exception as error:
        notes = [
            f"initial values: not compared ({describe(error, target_file(case.torch, config))})"
        ]
    inputs = spec_of(case, config, code)
    notes += [f"{left}: does not convert, not compared" for left in case.outside]
    unasked = unasked_methods(torch_module, port)
    if unasked:
        notes.append(f"not compared, as a call of the model does not run it: {', '.join(unasked)}")
    return LoadedCase(torch_module, port, inputs, code, tuple(initial), tuple(notes))


def _started(
    case: Case, config: Config, code: UserCode, torch_module: Any, port: Any
) -> tuple[list[Difference], list[str]]:
    """What the sides start from, compared; and a note on values that the port is given."""
    from migrator.weights import set_unstored, to_state_dict, unstored
    from numerics.initial import compare_initial, drawn
    from numerics.tree import tensors

    def build(again: int) -> Any:
        return build_torch(case, config, code, again)

    random = drawn(torch_module, build)
    own = unstored(port)
    found: list[Difference] = []
    if case.initial:
        found = compare_initial(torch_module, random, build, to_state_dict(port) | own)
    shared = {k: v for k, v in random.items() if k in own and own[k].shape == tuple(v.shape)}
    carried = ", ".join(set_unstored(port, shared)) if shared else ""
    notes = []
    if carried:
        why = "drawn when the module is built and in no state_dict"
        notes.append(f"{carried}: {why}; the port was given torch's")
    alike = {one.name for one in found if one.ok and one.error > 0} - random.keys()
    rounded = {n: v for n, v in tensors(torch_module).items() if n in own and n in alike}
    if rounded and (carried := ", ".join(set_unstored(port, rounded))):
        # an ulp of what a module computes for itself is no error of the call, which may magnify it
        why = "equal but for rounding when the module is built, and in no state_dict"
        notes.append(f"{carried}: {why}; the port was given torch's")
    return found, notes


def select(config: Config, names: Sequence[str]) -> list[Case]:
    """The cases of these names, all when there are none.

    Raises:
      UserError: no case has the name, with the nearest ones.
    """
    by_name = {case.name: case for case in config.cases}
    for name in names:
        if name not in by_name:
            near = get_close_matches(name, by_name, 3) or sorted(by_name)
            raise UserError(
                f"no case {name!r} in {config.root / 'pyproject.toml'};"
                f" there is {', '.join(near) or 'none: add a [[tool.migrate.case]]'}"
            )
    return [by_name[name] for name in names] if names else list(config.cases)


def verify_cases(
    config: Config,
    names: Sequence[str] = (),
    *,
    examples: int | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    lower_for: Sequence[str] = (),
    platform: str | None = None,
    **settings: Any,
) -> list[Report]:
    """Verify cases one after the other.

    A case that cannot run (a missing class, torch fails to build it) gives a report whose verdict is ``error``
    and whose note says why; a port that cannot be imported or built gives ``raises``.

    Args:
      examples, seed: override what the case says.
      progress: called with the case's name and what is done with it, as ``"train outputs and gradients"``.
      platform: where the port runs, ``"tpu"`` or ``"gpu"``; on the CPU unless JAX has been told otherwise.
      lower_for: generations of TPU to compile for; left out with a note where libtpu is not installed.
      settings: more fields of ``numerics.verify.Settings``, for every case.

    Raises:
      UserError: no such case or platform, or torch or jax cannot be imported.
    """
    cases = select(config, names)
    if settings.get("mesh"):
        _simulate(settings["mesh"])
    device = _libraries(platform) if any(case.expect == "equal" for case in cases) else None
    reports = []
    for case in cases:
        tell = partial(progress, case.name) if progress is not None else None
        case = replace(
            case,
            examples=case.examples if examples is None else examples,
            seed=case.seed if seed is None else seed,
        )
        budget = settings.get("budget") or case.budget
        reports.append(verify_case(case, config, **settings | {"budget": budget, "tell": tell}))
        if device is not None:
            reports[-1].notes.append(f"ran on {device}")
        if lower_for:
            _lower(reports[-1], case, config, lower_for)
    return reports


def _libraries(platform: str | None) -> str | None:
    """Import what a verification runs with; the device that is asked for.

    Raises:
      UserError: a library or the platform is missing.
    """
    # the verdict is on the program, not on this machine's accelerator
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    for package in ("torch", "jax", "flax", "hypothesis"):
        require(package)
    device = None if platform is None else _device(platform)
    keep_compilations()
    return device


def _device(platform: str) -> str:
    """The name of the platform's device, which everything runs on from here.

    Raises:
      UserError: JAX has none.
    """
    import jax

    if platform == "gpu":
        _share_gpu()
    before = jax.config.jax_platforms
    jax.config.update("jax_platforms", {"cpu": "cpu", "tpu": "tpu,cpu"}.get(platform))
    try:
        device = jax.devices(platform)[0]
    except RuntimeError as error:
        jax.config.update("jax_platforms", before)
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"--platform {platform}: JAX has no such device here ({reason}); `pip install 'jax[tpu]'`"
            " or 'jax[cuda]' on a machine that has one"
        ) from None
    if jax.devices()[0].platform != device.platform:
        jax.config.update("jax_default_device", device)
    return f"{platform} ({device.device_kind})"


def _share_gpu() -> None:
    """Take of a GPU what is used, not three quarters of it, and compile without timing every product.

    Several models may be verified at a time, and each compiles hundreds of small programs that run once. What the
    user has said of either stays.
    """
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    flags = os.environ.get("XLA_FLAGS", "")
    if "--xla_gpu_autotune_level" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --xla_gpu_autotune_level=0".strip()


def keep_compilations() -> None:
    """Let XLA's compilations outlive the process, unless the user has told JAX what to do about that."""
    import jax

    if jax.config.jax_compilation_cache_dir or not jax.config.jax_enable_compilation_cache:
        return
    directory = failures.cache_directory() / "xla"
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:
        return  # a home that cannot be written to costs time, nothing else
    jax.config.update("jax_compilation_cache_dir", str(directory))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def verify_case(case: Case, config: Config, **settings: Any) -> Report:
    """Verify one case; errors of the user's files end up in the report.

    ``settings`` are fields of ``numerics.verify.Settings`` that the case has no say in.
    """
    from numerics.report import Report

    try:
        with contextlib.redirect_stdout(
            sys.stderr
        ):  # what the user's code prints is no part of a report
            if case.problem is None and case.expect == "flagged":
                return _flagged(case, config)
            return _verified(case, config, settings)
    except UserError as error:
        return Report(name=case.name, verdict="error", notes=[str(error)])


def _verified(case: Case, config: Config, options: Mapping[str, Any]) -> Report:
    from numerics.verify import Settings

    try:
        loaded = load_case(case, config, options.get("tell"))
    except PortError as error:
        return _port_raises(case, error)
    names = ("examples", "shapes", "seed", "train", "grad", "train_steps", "vmap", "second_order")
    chosen = {name: getattr(case, name) for name in (*names, "precision")}
    chosen |= {name: value for name, value in options.items() if value is not None}
    settings = Settings(**{"first": failures.load(case), **chosen})
    setup = ""
    if config.path is not None and any(c.name == case.name for c in load_config(config.path).cases):
        setup = (
            "from migrator.verifying import load_case\n\n"
            f"case = load_case({case.name!r}, {str(config.path)!r})\n"
            "torch_module, flax_module, inputs = case"
        )
    engine = _engine()
    with loaded.code.active():
        try:
            report = engine(
                *loaded, settings=settings, name=case.name, setup=setup, initial=loaded.initial
            )
        except (KeyError, ValueError) as error:
            return _port_raises(case, error)
    if report.verdict == "not compared" and report.rejected and not report.examples:
        raise UserError(f"{case.name}: {report.notes[0]}{_given(loaded.inputs)}")
    report.notes += loaded.notes
    failures.save(case, report)
    return report


def _given(inputs: InputSpec) -> str:
    """What every example of a case is called with: most often that is what does not fit."""
    shapes = [f"[{', '.join(map(str, array.shape))}]" for array in inputs.arrays()]
    return f" (called with {', '.join(shapes)}; does that fit?)" if shapes else ""


def _simulate(mesh: str) -> None:
    from numerics.sharding import parse_mesh, simulate_devices

    try:
        simulate_devices(math.prod(parse_mesh(mesh).values()))
    except ValueError as error:
        raise UserError(f"--mesh: {error}") from None


def _lower(report: Report, case: Case, config: Config, chips: Sequence[str]) -> None:
    """Add to an equal case's report what a TPU's compiler makes of its port."""
    from numerics.lowering import available

    if report.verdict != "equal":
        return
    if not available():
        report.notes.append(
            "not compiled for a TPU: libtpu is missing; pip install 'migrator[tpu]'"
        )
        return
    try:
        report.lowered = lower_case(case, config, chips)
    except RuntimeError as error:
        report.notes.append(f"not compiled for a TPU: {error}")
        report.verdict = "does not lower"
    if any(result.error for result in report.lowered):
        report.verdict = "does not lower"


def lower_case(case: Case, config: Config, chips: Sequence[str]) -> list[Lowered]:
    """Compile the port at its largest sizes for TPUs, in a process of its own (see ``numerics.lowering``)."""
    from numerics.lowering import in_own_process

    return in_own_process(_lower_here, case, config, tuple(chips))


def _lower_here(case: Case, config: Config, chips: Sequence[str]) -> list[Lowered]:
    from numerics.inputs import Example, materialise
    from numerics.lowering import lower
    from numerics.spec import size_choices

    loaded = load_case(replace(case, initial=False), config)
    with loaded.code.active():
        sizes = tuple(size_choices(loaded.inputs, case.shapes)[-1].items())
        args, kwargs = materialise(loaded.inputs, Example(sizes))
        return lower(loaded.flax_module, args, kwargs, chips)


def _port_raises(case: Case, error: Exception) -> Report:
    from numerics.inputs import Example
    from numerics.report import Failure, Report

    reason = str(error) if isinstance(error, PortError) else describe(error)
    trace = "".join(traceback.format_exception(error))
    failure = Failure("load", Example(), [], reason=reason, traceback=trace)
    return Report(name=case.name, verdict="raises", failure=failure)


def _flagged(case: Case, config: Config) -> Report:
    """A case that must not convert whole: the converter leaves findings behind, and says so."""
    from migrator.convert import convert_source
    from numerics.report import Report

    path = target_file(case.torch, config)
    result = convert_source(_read(path), path=str(path))
    blocking = [finding for finding in result.findings if finding.blocks]
    lines = ", ".join(f"line {finding.line} {finding.rule}" for finding in blocking[:8])
    if result.complete:
        return Report(
            name=case.name,
            verdict="not flagged",
            notes=[f"{case.torch} converts whole, the case expects a finding"],
        )
    return Report(name=case.name, verdict="flagged", notes=[f"left as they were: {lines}"])


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except UnicodeDecodeError:
        raise UserError(f"{path}: not UTF-8 text") from None
