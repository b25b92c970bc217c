"""Converts the source a user would write for each entry of torch's op database and runs both on its samples.

``python -m tests.rules.converted NAME…`` reports on single names; ``--show`` prints the conversion.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import functools
import hashlib
import inspect
import itertools
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jax
import torch
from flax import nnx

from migrator.convert import convert_source
from tests.rules import opdb
from tests.rules.database import (
    DTYPES,
    entries,
    load,
    names_of,
    samples_of,
)
from tests.rules.judge import (
    Outcome,
    Trial,
    Wrong,
    described,
    judge,
    recorded,
    sample_text,
    status_of,
    usable,
)
from tests.rules.tracing import traced_again
from tests.rules.values import leaves, to_jax
from tests.rules.written import Unwritable, body, parameters, shapes_told

HEADER = "import torch\nimport torch.nn.functional as F\n\n"
_TOLD = re.compile(r"\(?d0,.* = a\d+\.shape$")
LIMIT = 6
"""Most keyword arguments of one call of jax.lax in converted code."""


@dataclass
class Written:
    """One function of the source and the samples that it was written for."""

    name: str
    text: str
    form: str
    samples: list[tuple[int, Any, list[torch.Tensor]]] = field(default_factory=list)
    """Number of the sample, the sample, its tensors."""


@dataclass
class Pair:
    """The functions of a converted file beside the original's; ``flagged`` says why one was left."""

    code: str
    original: dict[str, Any]
    port: dict[str, Any]
    flagged: dict[str, str]

    @functools.cached_property
    def bodies(self) -> dict[str, str]:
        """What each function does, whatever its name and however its parameters are annotated."""
        found = {}
        for node in ast.parse(self.code).body:
            if isinstance(node, ast.FunctionDef):
                names = ", ".join(a.arg for a in (*node.args.args, *node.args.kwonlyargs))
                lines = [ast.unparse(one) for one in node.body]
                found[node.name] = "\n".join([names, *(x for x in lines if not _TOLD.match(x))])
        return found


def variants(info: Any) -> Iterator[tuple[Callable[..., Any], bool]]:
    """Every way to call an entry, with whether it works in place."""
    seen: set[str] = set()
    ways = [(info.op, False), (info.method_variant, False), (info.operator_variant, False)]
    for alias in info.aliases:
        ways += [(alias.op, False), (alias.method_variant, False), (alias.inplace_variant, True)]
    ways += [(info.inplace_variant, True), (info.inplace_operator_variant, True)]
    for function, mutates in ways:
        if function is None:
            continue
        names = names_of(function)
        key = names[0] if names else f"{id(function)}"
        if key not in seen:
            seen.add(key)
            yield function, mutates


def write(info: Any, dtype: str, limit: int | None) -> tuple[list[Written], Counter[str]]:
    """The functions of an entry's source in one dtype; equal texts share one.

    Each stands there twice: with parameters that are tensors, and with dtypes and ranks told.
    """
    functions: dict[str, Written] = {}
    skipped: Counter[str] = Counter()
    for function, mutates in variants(info):
        for number, sample in enumerate(samples_of(info, DTYPES[dtype])):
            if number == limit:
                break
            try:
                args, kwargs, calls = recorded(function, sample, info)
                inputs = list({id(t): t for t in leaves((args, kwargs))}.values())
                usable(inputs, [*args, *kwargs.values()])
                lines = body(calls, inputs, mutates)
            except (Outcome, Unwritable) as reason:
                skipped[str(reason)] += 1
                continue
            for told in (False, True):
                known = shapes_told(inputs) if told else []
                text = "".join(f"    {line}\n" for line in [*known, *lines])
                key = f"({parameters(inputs, told)}):\n{text}"
                one = functions.setdefault(
                    key, Written(f"f{len(functions)}", key, calls[-1].names[0])
                )
                one.samples.append((number, sample, inputs))
    return list(functions.values()), skipped


def source_of(functions: list[Written]) -> str:
    """One file with all functions."""
    return HEADER + "\n\n".join(f"def {one.name}{one.text}" for one in functions)


def convert(source: str, names: list[str]) -> Pair:
    """Convert a file and load both versions; ``names`` are its functions or classes."""
    result = convert_source(source)
    flagged: dict[str, str] = {}
    starts = [
        (number, re.split(r"[ (]", line)[1])
        for number, line in enumerate(source.split("\n"), 1)
        if line.startswith(("def ", "class "))
    ]
    for finding in result.findings:
        if finding.blocks:
            within = [name for number, name in starts if number <= finding.line]
            for name in within[-1:] or names:
                flagged.setdefault(name, f"{finding.rule} {finding.message}")
    if result.complete == bool(flagged):
        raise Wrong("complete, with a blocking finding" if flagged else "not complete, no finding")
    original: dict[str, Any] = {}
    port: dict[str, Any] = {}
    exec(compile(source, "<original>", "exec"), original)
    exec(compile(result.code, "<converted>", "exec"), port)
    return Pair(result.code, original, port, flagged)


_draws = iter(range(10**9))


def runner(function: Callable[..., Any]) -> tuple[Callable[[list[Any]], Any], bool]:
    """A converted function of a list of arrays, and whether it draws random numbers."""
    draws = "rngs" in inspect.signature(function).parameters
    if draws:
        return lambda arrays: function(*arrays, rngs=nnx.Rngs(next(_draws))), True
    return lambda arrays: function(*arrays), False


def check_function(
    info: Any,
    one: Written,
    pair: Pair,
    gradients: bool,
    seen: Callable[[str, str, str], None],
    done: dict[tuple[int, str], str],
) -> None:
    """Run one converted function on its samples, except on those that ``done`` says a like one ran on."""
    function = pair.original[one.name]
    compute, draws = runner(pair.port[one.name])
    for count, (number, sample, inputs) in enumerate(one.samples):
        key = (number, pair.bodies[one.name])
        if key in done:
            seen(done[key], "", "")
            continue
        done[key] = "wrong"
        where = f"{one.form} {sample_text(sample)}"
        try:
            if count == 0 and not draws:
                check_traces(compute, inputs)
            draw = (lambda inputs=inputs: function(*inputs)) if draws else None
            run_torch = lambda tensors: function(*tensors)
            judge(Trial(info, sample, inputs, run_torch, compute, draw), gradients)
            seen("verified", "", where)
            done[key] = "verified"
        except Outcome as reason:
            seen("skipped", str(reason), where)
            done[key] = "skipped"
        except Wrong as error:
            seen("wrong", str(error), f"{where}\n{one.text}")
        except Exception as error:
            outcome = "odd" if any(map(odd, inputs)) else "raises"
            seen(outcome, described(error), f"{where}\n{one.text}")
            done[key] = outcome
        if draws and count >= 2:
            break


def odd(tensor: torch.Tensor) -> bool:
    """A tensor without axes, of which torch takes one, or without elements: there JAX may raise."""
    return tensor.ndim == 0 or tensor.numel() == 0


def check_traces(compute: Callable[[list[Any]], Any], inputs: list[torch.Tensor]) -> None:
    """Raise unless the function can be traced, as ``jit`` does, and is traced once for equal shapes."""
    if (why := traced_again(compute, [to_jax(t) for t in inputs])) is not None:
        raise Wrong(why)


def crowded(code: str) -> str | None:
    """A call of jax.lax with more keyword arguments than a reader takes in, or None."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            owner = ast.unparse(node.func.value)
            if owner in ("lax", "jax.lax") and len(node.keywords) > LIMIT:
                return ast.unparse(node)[:120]
    return None


@dataclass
class Prepared:
    """An entry's source in one dtype, converted and loaded; ``problem`` says why it could not be."""

    info: Any
    functions: list[Written]
    skipped: Counter[str]
    pair: Pair | None = None
    problem: str = ""

    @property
    def text(self) -> str:
        """What the outcome depends on besides the samples: the source and what became of it."""
        source = source_of(self.functions)
        return source + (self.pair.code + repr(self.pair.flagged) if self.pair else self.problem)


def prepare(info: Any, dtype: str, limit: int | None = None) -> Prepared:
    """Write and convert the source of an entry."""
    functions, skipped = write(info, dtype, limit)
    made = Prepared(info, functions, skipped)
    if functions:
        try:
            made.pair = convert(source_of(functions), [one.name for one in functions])
        except Exception as error:  # a conversion that fails is the worst result there is
            made.problem = f"conversion: {described(error)}"
    return made


def check(made: Prepared, dtype: str) -> tuple[Counter[str], dict[str, str]]:
    """Run what was prepared: counts of outcomes, an example of each kind of trouble."""
    counts: Counter[str] = Counter()
    notes: dict[str, str] = {}

    def seen(outcome: str, note: str, where: str) -> None:
        counts[outcome] += 1
        if note:
            notes.setdefault(f"{outcome}: {note}"[:300], where)

    gradients = made.info.supports_autograd and dtype in ("float32", "float64", "complex64")
    for reason, number in made.skipped.items():
        counts["skipped"] += number
        notes.setdefault(f"skipped: {reason}", "")
    if made.problem:
        seen("wrong", made.problem, source_of(made.functions)[:400])
    if made.pair is None:
        return counts, notes
    if (call := crowded(made.pair.code)) is not None:
        seen("wrong", f"{call} has more than {LIMIT} keyword arguments", made.info.name)
    done: dict[tuple[int, str], str] = {}
    for one in made.functions:
        if one.name in made.pair.flagged:
            counts["flagged"] += len(one.samples)
            notes.setdefault(f"flagged: {made.pair.flagged[one.name]}"[:300], one.text)
        else:
            check_function(made.info, one, made.pair, gradients, seen, done)
    return counts, notes


def sweep(
    name: str,
    dtypes: list[str],
    limit: int | None = None,
    show: bool = False,
    known: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """All variants of one name in all dtypes: its status and what was seen.

    Args:
      show: print what the source became.
      known: an earlier result, which still stands if source and conversion are what they were.
    """
    started = time.time()
    found: dict[str, Any] = {}
    digest = hashlib.sha256(harness())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        variants_of = {
            dtype: [
                prepare(info, dtype, limit)
                for info in entries()[name]
                if DTYPES[dtype] in info.dtypes
            ]
            for dtype in dtypes
        }
        for made in itertools.chain.from_iterable(variants_of.values()):
            digest.update(made.text.encode())
            if show and made.pair:
                print(made.pair.code)
        if known is not None and known.get("fingerprint") == digest.hexdigest():
            return dict(known)
        for dtype, prepared in variants_of.items():
            counts: Counter[str] = Counter()
            notes: dict[str, str] = {}
            wide = jax.enable_x64(True) if dtype == "float64" else contextlib.nullcontext()
            with wide:
                for made in prepared:
                    more, text = check(made, dtype)
                    counts.update(more)
                    notes.update(text)
            if counts:
                found[dtype] = {"counts": dict(counts), "notes": notes}
    return {
        "status": status_of(found),
        "dtypes": found,
        "absent": [],
        "fingerprint": digest.hexdigest(),
        "seconds": round(time.time() - started, 1),
    }


@functools.cache
def harness() -> bytes:
    """The files that decide what is compared, and how."""
    names = (
        "database",
        "freedom",
        "judge",
        "values",
        "written",
        "tracing",
        "converted",
        "convertedmodules",
    )
    return b"".join(Path(__file__).with_name(f"{name}.py").read_bytes() for name in names)


def main(argv: list[str] | None = None) -> int:
    """Command line: 0 when nothing is wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.rules.converted", description=__doc__)
    parser.add_argument("names", nargs="*", help="op_db names; all by default")
    parser.add_argument("--dtype", default="float32", help="comma separated, or 'all'")
    parser.add_argument("--limit", type=int, help="samples per form and variant")
    parser.add_argument("--show", action="store_true", help="print the converted source")
    parser.add_argument("--verbose", action="store_true", help="flagged and skipped samples too")
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    load()
    dtypes = list(DTYPES) if options.dtype == "all" else options.dtype.split(",")
    totals: Counter[str] = Counter()
    for name in options.names or sorted(entries()):
        result = sweep(name, dtypes, options.limit, show=options.show)
        totals[result["status"]] += 1
        opdb.show(name, result, options.verbose)
    print(dict(totals))
    return int(totals["wrong"] > 0)


if __name__ == "__main__":
    sys.exit(main())
