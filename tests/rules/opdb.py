"""Runs every op definition straight against torch on the sample inputs of torch's own op database.

``python -m tests.rules.opdb NAME…`` reports on single names, without a name on all of them; see ``--help``.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import functools
import hashlib
import importlib
import json
import math
import os
import pkgutil
import re
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Thousands of tiny programs are compiled once each: compile time is all that counts here.
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[2] / "build" / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")

import jax
import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.opinfo.core import gradcheck_wrapper_hermitian_input

import rules.ops
from rules.registry import OPS, Definition, Unsupported
from tests.rules.dispatch import call, is_random
from tests.rules.freedom import UP_TO_SIGN, hermitian_part, settled
from tests.rules.values import compare, leaves, replace, to_jax

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "opdb"
DTYPES = {
    "float32": torch.float32,
    "int64": torch.int64,
    "bool": torch.bool,
    "bfloat16": torch.bfloat16,
    "complex64": torch.complex64,
    "float64": torch.float64,
}
UNINITIALISED = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
    "resize_",
    "resize_as_",
}
ANY_INDEX = {"mode"}
"""Torch gives the index of any of the equal elements: only the values are compared."""
NAMESPACES = {
    "torch": torch,
    "Tensor": torch.Tensor,
    "torch.nn.functional": torch.nn.functional,
    "torch.linalg": torch.linalg,
    "torch.fft": torch.fft,
    "torch.special": torch.special,
    "torch.signal.windows": torch.signal.windows,
    "torch.masked": torch.masked,
}


def load(strict: bool = True) -> None:
    """Import every module of definitions; unless ``strict``, go on without those that do not import."""
    for module in pkgutil.iter_modules(rules.ops.__path__):
        try:
            importlib.import_module(f"rules.ops.{module.name}")
        except (ImportError, SyntaxError) as error:
            if strict:
                raise
            print(f"rules.ops.{module.name}: {error}", file=sys.stderr)


@functools.cache
def entries() -> dict[str, list[Any]]:
    """The database by name (one name may have several variants)."""
    table: dict[str, list[Any]] = {}
    for info in op_db:
        table.setdefault(info.name, []).append(info)
    return table


@functools.cache
def public_names() -> dict[int, list[str]]:
    """id of a torch callable → the public names it goes by."""
    names: dict[int, list[str]] = {}
    for prefix, namespace in NAMESPACES.items():
        for attribute in dir(namespace):
            with contextlib.suppress(AttributeError, RuntimeError):
                value = getattr(namespace, attribute)
                names.setdefault(id(value), []).append(f"{prefix}.{attribute}")
                # properties such as Tensor.T reach a function mode as their getter
                if prefix == "Tensor" and hasattr(value, "__get__") and not callable(value):
                    names.setdefault(id(value.__get__), []).append(f"{prefix}.{attribute}")
    return names


def names_of(function: Any) -> list[str]:
    """The public names of a torch callable, of a getter, or of an ``operator`` function."""
    owner = getattr(function, "__self__", None)
    if getattr(function, "__name__", "") == "__get__" and owner is not None:
        return [f"Tensor.{owner.__name__}"]
    if getattr(function, "__module__", "") in ("_operator", "operator"):
        return [f"Tensor.__{function.__name__.strip('_')}__"]
    return public_names().get(id(function), [])


@dataclasses.dataclass
class Call:
    """One call of a torch function with its arguments and its result."""

    names: list[str]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    function: Callable[..., Any]
    result: Any = None


class Recorder(TorchFunctionMode):
    """Notes the torch functions a wrapper calls, outermost calls only."""

    def __init__(self) -> None:
        self.calls: list[Call] = []

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        result = function(*args, **(kwargs or {}))
        self.calls.append(Call(names_of(function), args, kwargs or {}, function, result))
        return result


def record(function: Callable[..., Any], args: Any, kwargs: Any) -> list[Call]:
    """The torch calls made by ``function(*args, **kwargs)`` that produce tensors, the last one always."""
    if names := names_of(function):
        return [Call(names, args, kwargs, function)]
    with Recorder() as recorder:
        function(*args, **kwargs)
    calls = [c for c in recorder.calls if "Tensor.device" not in c.names]
    return [c for i, c in enumerate(calls) if i == len(calls) - 1 or list(leaves(c.result))]


def definitions_of(names: list[str]) -> tuple[Definition, ...]:
    """The definitions of the first of these names that has any."""
    return next((tuple(OPS[name]) for name in names if name in OPS), ())


def forms(info: Any, only: str | None) -> Iterator[tuple[str, Callable[..., Any]]]:
    """The distinct ways to call an entry for which there are definitions.

    Names that share their definitions count once; a wrapper without a public name is taken as it is, its
    torch calls are looked up when it runs.
    """
    candidates = [info.op, info.method_variant, info.operator_variant]
    for alias in info.aliases:
        candidates += [alias.op, alias.method_variant]
    seen: set[Any] = set()
    for function in candidates:
        if function is None:
            continue
        names = names_of(function)
        key = tuple(map(id, definitions_of(names))) if names else id(function)
        if key and key not in seen and (only is None or only in names):
            seen.add(key)
            yield (next((n for n in names if n in OPS), names[0]) if names else info.name), function


def missing_forms(info: Any) -> list[str]:
    """Names the entry documents, as function, method or operator, that no definition covers."""
    candidates = [info.op, info.method_variant, info.operator_variant]
    names = [names_of(f) for f in candidates if f is not None]
    return [found[0] for found in names if found and not definitions_of(found)]


class Outcome(Exception):
    """Why a sample was not compared."""


class Wrong(Exception):
    """The definition and torch disagree."""


def _tied(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with its values rounded to 0 and ±2, so that many are equal and many lie on a bound."""
    return (
        tensor.detach().mul(0.25).round().clamp(-1, 1) * 2 if tensor.is_floating_point() else tensor
    )


def tied_samples(info: Any, dtype: torch.dtype) -> Iterator[Any]:
    """The sample inputs with zeros and equal values, where subgradients must be chosen as torch does."""
    for sample in samples_of(info, dtype):
        yield sample.transform(lambda v: _tied(v) if isinstance(v, torch.Tensor) else v)


def samples_of(info: Any, dtype: torch.dtype) -> Iterator[Any]:
    """The sample inputs of an entry, reproducibly."""
    torch.manual_seed(0)
    np.random.seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield from info.sample_inputs("cpu", dtype, requires_grad=False)


def replay(calls: list[Call], inputs: list[torch.Tensor], arrays: list[Any]) -> Any:
    """The result of recorded torch calls, computed by the definitions from ``arrays`` for ``inputs``."""
    known = {id(t): a for t, a in zip(inputs, arrays, strict=True)}
    result = None
    for one in calls:
        definitions = definitions_of(one.names)
        if not definitions:
            raise Outcome(f"missing {one.names[0] if one.names else one.function}")
        args, kwargs = to_jax((one.args, one.kwargs), known)
        result = call(definitions, args, kwargs)
        if one.result is not None:
            known.update(
                (id(t), a) for t, a in zip(leaves(one.result), leaves(result), strict=False)
            )
    return result


def check_sample(function: Callable[..., Any], sample: Any, info: Any, gradients: bool) -> None:
    """Compare one sample: values, shapes, dtypes, structure and gradients.

    Raises Wrong, Unsupported (the definition says so) or Outcome (cannot be compared).
    """
    hermitian = info.gradcheck_wrapper is gradcheck_wrapper_hermitian_input
    if hermitian:
        sample.input = (sample.input + sample.input.mH) / 2
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    try:
        calls = record(function, args, kwargs)
    except Exception as error:
        raise Outcome(f"torch: {str(error)[:80]}") from None
    if not calls:
        raise Outcome("not a torch function")
    inputs = list({id(t): t for t in leaves((args, kwargs))}.values())
    if any(t.layout != torch.strided or t.is_quantized for t in inputs):
        raise Outcome("sparse or quantised sample")
    if any(isinstance(a, torch.nn.Module) for a in (*args, *kwargs.values())):
        raise Outcome("a torch module as argument")
    arrays = [to_jax(t) for t in inputs]
    random = any(is_random(d) for c in calls for d in definitions_of(c.names))
    compute = functools.partial(replay, calls, inputs)
    # A call may update its arguments, so the definitions run first.
    got = compute(arrays)
    moved = [i for i, t in enumerate(inputs) if t.is_floating_point() or t.is_complex()]
    differentiable = gradients and bool(moved) and not random

    def run_torch(tensors: list[torch.Tensor]) -> Any:
        swap = dict(zip(map(id, inputs), tensors, strict=True))
        new_args, new_kwargs = replace((args, kwargs), swap)
        return function(*new_args, **new_kwargs)

    def attempt(moved: list[int]) -> tuple[list[torch.Tensor], Any]:
        tensors = [
            t.detach().clone().requires_grad_(differentiable and i in moved)
            for i, t in enumerate(inputs)
        ]
        return tensors, run_torch(list(tensors))

    try:
        try:
            tensors, want = attempt(moved)
        except RuntimeError as error:
            if "not differentiable with respect to" not in str(error):
                raise
            moved = moved[:1]  # weights and targets that torch takes as constants
            tensors, want = attempt(moved)
    except Exception as error:
        raise Outcome(f"torch: {str(error)[:80]}") from None

    @functools.cache
    def precise() -> Any:
        return run_torch([_double(t) for t in inputs])

    if info.name in ANY_INDEX:
        got, want = got[:1], want[:1]
    defined = not random and info.name not in UNINITIALISED
    problem = compare(got, want, precise if defined else None, values=defined)
    if problem and (
        compare(got, want, values=False)
        or compare(
            settled(info.name, sample, got), settled(info.name, sample, want), values=defined
        )
    ):
        raise Wrong(problem)
    if problem and info.name in UP_TO_SIGN:  # other signs, other gradients
        return
    if random:
        # The recorded call itself: the wrapper around it seeds torch anew each time.
        last = calls[-1]
        check_moments(lambda: compute(arrays), lambda: last.function(*last.args, **last.kwargs))
    elif differentiable:
        project = hermitian_part if hermitian else (lambda gradient: gradient)
        check_gradients(compute, arrays, want, tensors, moved, run_torch, project)


def _double(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor in double precision."""
    if tensor.is_complex():
        return tensor.detach().to(torch.complex128)
    return tensor.detach().double() if tensor.is_floating_point() else tensor


def _cotangents(outputs: list[Any]) -> list[np.ndarray]:
    """Fixed cotangents for torch outputs."""
    rng = np.random.default_rng(0)
    result = []
    for out in outputs:
        value = rng.uniform(-1, 1, tuple(out.shape))
        result.append(value + 1j * rng.uniform(-1, 1, value.shape) if out.is_complex() else value)
    return result


def check_gradients(
    compute: Callable[[list[Any]], Any],
    arrays: list[Any],
    want: Any,
    tensors: list[torch.Tensor],
    moved: list[int],
    run_torch: Callable[[list[torch.Tensor]], Any],
    project: Callable[[Any], Any],
) -> None:
    """Compare vector-Jacobian products; torch's complex gradient is the conjugate of JAX's."""
    outputs = list(leaves(want))
    which = [i for i, out in enumerate(outputs) if out.requires_grad]
    if not which:
        return
    outputs = [outputs[i] for i in which]
    cotangents = _cotangents(outputs)

    def grad(outs: list[torch.Tensor], ins: list[torch.Tensor]) -> list[torch.Tensor]:
        cts = [torch.as_tensor(c).to(o.dtype) for c, o in zip(cotangents, outs, strict=True)]
        grads = torch.autograd.grad(outs, ins, cts, allow_unused=True)
        found = [torch.zeros_like(i) if g is None else g for g, i in zip(grads, ins, strict=True)]
        return [project(g.to_dense() if g.is_sparse else g) for g in found]

    try:
        expected = grad(outputs, [tensors[i] for i in moved])
    except RuntimeError:  # torch refuses a derivative of this use
        return

    def forward(part: list[Any]) -> list[Any]:
        full = list(arrays)
        for i, value in zip(moved, part, strict=True):
            full[i] = value
        found = list(leaves(compute(full)))
        return [found[i] for i in which]

    values, pull = jax.vjp(forward, [arrays[i] for i in moved])
    cts = [np.conj(c).astype(v.dtype) for c, v in zip(cotangents, values, strict=True)]
    (got,) = pull(cts)

    def precise() -> Any:
        ins = [_double(t.detach()).requires_grad_(t.requires_grad) for t in tensors]
        outs = list(leaves(run_torch(list(ins))))
        return grad([outs[i] for i in which], [ins[i] for i in moved])

    if problem := compare([project(jax.numpy.conj(g)) for g in got], expected, precise):
        raise Wrong(f"gradient: {problem}")


def check_moments(draw: Callable[[], Any], draw_torch: Callable[[], Any]) -> None:
    """Mean and spread of a random result agree within six standard errors."""
    first = next(iter(leaves(draw())), None)
    if first is None or first.size == 0:
        return
    count = min(max(4000 // first.size, 24), 60)

    def pool(one: Callable[[], Any]) -> np.ndarray:
        return np.stack(
            [
                np.asarray(to_jax(next(iter(leaves(one())))), np.complex128).ravel()
                for _ in range(count)
            ]
        )

    ours, theirs = pool(draw), pool(draw_torch)
    if not (np.isfinite(ours).all() and np.isfinite(theirs).all()):
        return
    center = np.median(theirs.real)
    for name, value in (("median", lambda a: a.real > center), ("mean", lambda a: a)):
        a, b = value(ours), value(theirs)
        # elements of one draw may hang together (whole channels dropped)
        alone = (a.std() ** 2 + b.std() ** 2) / a.size
        together = (a.mean(1).std() ** 2 + b.mean(1).std() ** 2) / count
        error = math.sqrt(max(alone, together))
        if abs(a.mean() - b.mean()) > 6 * error + 1e-6:
            raise Wrong(f"{name} of the draws: {a.mean():.4g}, torch {b.mean():.4g}")


def check(
    info: Any,
    dtype: str,
    only: str | None = None,
    limit: int | None = None,
    ties: bool = False,
) -> tuple[Counter[str], dict[str, str]]:
    """Run one entry in one dtype; returns counts of outcomes and an example of each kind of trouble."""
    counts: Counter[str] = Counter()
    notes: dict[str, str] = {}
    random_left = 8
    wide = jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()
    gradients = info.supports_autograd and dtype in ("float32", "float64", "complex64")
    with wide, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for form, function in forms(info, only):
            samples = (tied_samples if ties else samples_of)(info, DTYPES[dtype])
            for number, sample in enumerate(samples):
                if number == limit:
                    break
                try:
                    check_sample(function, sample, info, gradients)
                    outcome, note = "verified", ""
                except Unsupported as error:
                    outcome, note = "flagged", str(error)
                except Outcome as error:
                    outcome = "missing" if str(error).startswith("missing") else "skipped"
                    note = str(error)
                except Exception as error:
                    outcome, note = "wrong", _describe(error)
                counts[outcome] += 1
                if note:
                    notes.setdefault(
                        f"{outcome}: {note}"[:300], f"{form} #{number} {sample_text(sample)}"
                    )
                if outcome == "verified" and random_left < 0:
                    break
    return counts, notes


def _describe(error: Exception) -> str:
    if isinstance(error, Wrong):
        return str(error)
    where = traceback.extract_tb(error.__traceback__)
    ours = [f for f in where if "/rules/" in f.filename and "/tests/" not in f.filename]
    line = f" ({Path(ours[-1].filename).name}:{ours[-1].lineno})" if ours else ""
    return (
        f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200] + line
    )


def sample_text(sample: Any) -> str:
    """A sample in one short line."""

    def show(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"
        if isinstance(value, (list, tuple)):
            return "(" + ", ".join(map(show, value)) + ")"
        return repr(value)

    parts = [show(v) for v in (sample.input, *sample.args)]
    return ", ".join(parts + [f"{k}={show(v)}" for k, v in sample.kwargs.items()])[:300]


def sweep(
    name: str, dtypes: list[str], limit: int | None = None, ties: bool = False
) -> dict[str, Any]:
    """All variants of one name in all dtypes: its status and what was seen."""
    started = time.time()
    found: dict[str, Any] = {}
    absent: list[str] = []
    for dtype in dtypes:
        counts: Counter[str] = Counter()
        notes: dict[str, str] = {}
        for info in entries()[name]:
            if DTYPES[dtype] not in info.dtypes:
                continue
            absent += [form for form in missing_forms(info) if form not in absent]
            more, text = check(info, dtype, limit=limit, ties=ties)
            counts.update(more)
            notes.update(text)
        if counts:
            found[dtype] = {"counts": dict(counts), "notes": notes}
    return {
        "status": _status(found),
        "dtypes": found,
        "absent": absent,
        "seconds": round(time.time() - started, 1),
    }


def _status(found: dict[str, Any]) -> str:
    total: Counter[str] = Counter()
    for one in found.values():
        total.update(one["counts"])
    for status in ("wrong", "missing", "flagged", "verified"):
        if total[status]:
            return status
    return "not applicable" if total else "missing"


@functools.cache
def _text(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def fingerprint(name: str) -> str:
    """A hash of everything the result for a name depends on: definitions, compat files, this harness."""
    modules = {
        one.function.__module__
        for info in entries()[name]
        for form, _ in forms(info, None)
        for one in OPS.get(form, [])
    }
    paths = {ROOT.joinpath(*m.split(".")).with_suffix(".py") for m in modules}
    for path in list(paths):
        for compat in re.findall(rb"from (rules\.compat\.\w+) import", _text(path)):
            paths.add(ROOT.joinpath(*compat.decode().split(".")).with_suffix(".py"))
    digest = hashlib.sha256()
    for path in sorted(paths | set((ROOT / "tests" / "rules").glob("[dov][aip]*.py"))):
        digest.update(_text(path))
    return digest.hexdigest()


def main(argv: list[str] | None = None) -> int:
    """Command line: 0 when nothing is wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.rules.opdb", description=__doc__)
    parser.add_argument("names", nargs="*", help="op_db names; all by default")
    parser.add_argument("--dtype", default="float32", help="comma separated, or 'all'")
    parser.add_argument("--limit", type=int, help="samples per form and variant")
    parser.add_argument("--ties", action="store_true", help="zeros and equal values in all inputs")
    parser.add_argument("--resume", action="store_true", help="keep results of unchanged rules")
    parser.add_argument("--table", type=Path, help="write all results to one JSON file")
    parser.add_argument("--missing", action="store_true", help="only list names without definition")
    parser.add_argument(
        "--verbose", action="store_true", help="show flagged and skipped samples too"
    )
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    load(strict=False)
    names = options.names or sorted(entries())
    if options.missing:
        print("\n".join(n for n in names if not any(list(forms(i, None)) for i in entries()[n])))
        return 0
    dtypes = list(DTYPES) if options.dtype == "all" else options.dtype.split(",")
    RESULTS.mkdir(parents=True, exist_ok=True)
    table: dict[str, Any] = {}
    for name in names:
        mark = fingerprint(name)
        cached = RESULTS / f"{name}-{'-'.join(dtypes)}{'-ties' * options.ties}.json"
        if options.resume and cached.exists():
            result = json.loads(cached.read_text())
            if result.get("fingerprint") == mark:
                table[name] = result
                continue
        result = sweep(name, dtypes, options.limit, options.ties)
        table[name] = result
        cached.write_text(json.dumps({**result, "fingerprint": mark}, indent=1))
        show(name, result, options.verbose)
    print(dict(Counter(result["status"] for result in table.values())))
    if options.table:
        options.table.write_text(json.dumps(table, indent=1, sort_keys=True))
    return int(any(result["status"] == "wrong" for result in table.values()))


def show(name: str, result: dict[str, Any], verbose: bool) -> None:
    """Print one result, with an example of each kind of trouble."""
    counts = {dtype: one["counts"] for dtype, one in result["dtypes"].items()}
    absent = f" no definition: {', '.join(result['absent'])}" if result["absent"] else ""
    if result["status"] != "missing" or verbose:
        print(f"{result['status']:9} {name} {counts} {result['seconds']}s{absent}", flush=True)
    for dtype, one in result["dtypes"].items():
        shown = [n for n in one["notes"].items() if verbose or n[0].startswith("wrong")]
        for note, where in shown if verbose else shown[:4]:
            print(f"    {dtype} {note}\n        {where}")


if __name__ == "__main__":
    sys.exit(main())
