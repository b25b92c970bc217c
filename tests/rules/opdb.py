"""Runs every op definition straight against torch on the sample inputs of torch's own op database.

``python -m tests.rules.opdb NAME…`` reports on single names, without a name on all of them; see ``--help``.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import re
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import torch

from rules.registry import OPS, Unsupported
from tests.rules.database import (
    DTYPES,
    Call,
    definitions_of,
    entries,
    forms,
    load,
    missing_forms,
    samples_of,
    tied_samples,
)
from tests.rules.dispatch import call, is_random
from tests.rules.judge import (
    Outcome,
    Trial,
    described,
    judge,
    recorded,
    sample_text,
    status_of,
    usable,
)
from tests.rules.values import leaves, replace, to_jax

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "opdb"


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
    # A wrapper may give a part of what it computes, or several results.
    returned = calls[-1].returned if calls else None
    if returned is not None and all(id(t) in known for t in leaves(returned)):
        return replace(returned, known)
    return result


def check_sample(function: Callable[..., Any], sample: Any, info: Any, gradients: bool) -> None:
    """Compare one sample: values, shapes, dtypes, structure and gradients.

    Raises Wrong, Unsupported (the definition says so) or Outcome (cannot be compared).
    """
    args, kwargs, calls = recorded(function, sample, info)
    inputs = list({id(t): t for t in leaves((args, kwargs))}.values())
    usable(inputs, [*args, *kwargs.values()])

    def run_torch(tensors: list[torch.Tensor]) -> Any:
        swap = dict(zip(map(id, inputs), tensors, strict=True))
        new_args, new_kwargs = replace((args, kwargs), swap)
        return function(*new_args, **new_kwargs)

    # The recorded call itself: the wrapper around it seeds torch anew each time.
    last = calls[-1]
    random = any(is_random(d) for c in calls for d in definitions_of(c.names))
    draw = (lambda: last.function(*last.args, **last.kwargs)) if random else None
    compute = functools.partial(replay, calls, inputs)
    judge(Trial(info, sample, inputs, run_torch, compute, draw), gradients)


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
                    outcome, note = "wrong", described(error)
                counts[outcome] += 1
                if note:
                    notes.setdefault(
                        f"{outcome}: {note}"[:300], f"{form} #{number} {sample_text(sample)}"
                    )
                if outcome == "verified" and random_left < 0:
                    break
    return counts, notes


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
        "status": status_of(found),
        "dtypes": found,
        "absent": absent,
        "seconds": round(time.time() - started, 1),
    }


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
    for path in sorted(paths | set((ROOT / "tests" / "rules").glob("[dfjov][aipru]*.py"))):
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
        shown = [n for n in one["notes"].items() if verbose or n[0].startswith(("wrong", "raises"))]
        for note, where in shown if verbose else shown[:4]:
            print(f"    {dtype} {note}\n        {where}")


if __name__ == "__main__":
    sys.exit(main())
