"""Runs every definition, and every conversion, over torch's whole op and module databases.

``python -m tests.rules.sweep`` runs in parallel, shows progress and goes on where it was interrupted: a result is
kept in ``build/sweep`` until what it rests on changes. ``--write`` notes the outcomes in ``tests/rules/results.json``,
from which ``docs/coverage.md`` is made.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import json
import multiprocessing
import os
import sys
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import flax
import jax
import torch

from tests.rules import (
    converted,
    convertedmodules,
    database,
    judge,
    moduledb,
    opdb,
)
from tests.rules.coverage import RECORD, save_record

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "sweep"
ORACLES = ("definitions", "conversions", "layers", "converted layers")


@dataclass(frozen=True)
class Task:
    """One name of a database in one dtype, for one oracle."""

    oracle: str
    name: str
    dtype: str

    @property
    def file(self) -> Path:
        """Where its result is kept."""
        folder = self.oracle.replace(", ", "-").replace(" ", "-")
        return RESULTS / folder / f"{self.name}-{self.dtype}.json"


def tasks(oracles: list[str], dtypes: list[str], names: list[str]) -> Iterator[Task]:
    """What there is to do, the slow and the fast well mixed."""
    found = []
    for oracle in oracles:
        if "layers" in oracle:
            found += [Task(oracle, name, "float32") for name in moduledb.infos()]
            continue
        for name, infos in database.entries().items():
            for dtype in dtypes:
                if any(database.DTYPES[dtype] in info.dtypes for info in infos):
                    found.append(Task(oracle, name, dtype))
    found = [task for task in found if not names or task.name.removeprefix("nn.") in names]
    yield from sorted(found, key=lambda task: zlib.crc32(repr(task).encode()))


def run(task: Task, limit: int | None = None) -> tuple[Task, dict[str, Any], bool]:
    """The result of a task, kept or new, and whether it is new."""
    known = json.loads(task.file.read_text()) if task.file.exists() else None
    result = _result(task, known, limit)
    fresh = known is None or result["fingerprint"] != known["fingerprint"]
    if fresh:
        task.file.parent.mkdir(parents=True, exist_ok=True)
        partial = task.file.with_suffix(f".{os.getpid()}")
        partial.write_text(json.dumps(result, indent=1))
        partial.replace(task.file)
    return task, result, fresh


def _result(task: Task, known: dict[str, Any] | None, limit: int | None) -> dict[str, Any]:
    limit = limit or depth(task.dtype)
    if task.oracle == "conversions":
        return converted.sweep(task.name, [task.dtype], limit, known=known)
    if task.oracle == "converted layers":
        return convertedmodules.sweep(task.name, known)
    if task.oracle == "layers":
        return moduledb.sweep(task.name, known)
    mark = opdb.fingerprint(task.name)
    if known is not None and known["fingerprint"] == mark:
        return known
    return {**opdb.sweep(task.name, [task.dtype], limit), "fingerprint": mark}


def depth(dtype: str) -> int | None:
    """Samples of each form: all in float32, elsewhere only dtype and sign make a difference."""
    return None if dtype == "float32" else 40


def _start() -> None:
    torch.set_num_threads(1)
    database.load()


def main(argv: list[str] | None = None) -> int:
    """Command line: 0 when nothing is wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="python -m tests.rules.sweep", description=__doc__)
    parser.add_argument("names", nargs="*", help="names of the databases; all by default")
    parser.add_argument("--oracle", action="append", choices=ORACLES, help="all by default")
    parser.add_argument("--dtype", default=",".join(database.DTYPES), help="comma separated")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    parser.add_argument("--write", action="store_true", help=f"note the outcomes in {RECORD.name}")
    parser.add_argument("--limit", type=int, help="samples of each form, for a quick look")
    parser.add_argument("--fill", action="store_true", help="only what has no kept result")
    parser.add_argument("--kept", action="store_true", help="note what was kept, run nothing")
    options = parser.parse_args(argv)
    todo = list(tasks(options.oracle or list(ORACLES), options.dtype.split(","), options.names))
    if options.names and not todo:
        parser.error(
            f"no database holds {' or '.join(options.names)} (layers go by their names without 'nn.')"
        )
    if options.kept:
        _start()
        write_record({t: json.loads(t.file.read_text()) for t in todo if t.file.exists()})
        return 0
    if options.fill:
        todo = [task for task in todo if not task.file.exists()]
    results: dict[Task, dict[str, Any]] = {}
    started = time.time()
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs, _start, maxtasksperchild=15) as pool:
        for task, result, fresh in pool.imap_unordered(
            functools.partial(run, limit=options.limit), todo
        ):
            results[task] = result
            done = len(results)
            rate = (time.time() - started) / done
            if fresh or done == len(todo):
                left = int(rate * (len(todo) - done) / 60)
                where = f"[{done}/{len(todo)}, {left} min left]"
                print(
                    f"{where} {result['status']:9} {task.oracle}: {task.name} {task.dtype}",
                    flush=True,
                )
                _show_trouble(result)
    for oracle in ORACLES:
        if counts := Counter(r["status"] for t, r in results.items() if t.oracle == oracle):
            print(f"{oracle}: {dict(counts)}")
    if options.write:
        write_record(results)
    return int(any(result["status"] == "wrong" for result in results.values()))


def _show_trouble(result: dict[str, Any]) -> None:
    for one in result["dtypes"].values():
        for note, where in one["notes"].items():
            if note.startswith(("wrong", "raises")):
                print(f"    {note}\n        " + where.strip().replace("\n", "\n        "))


def versions() -> dict[str, str]:
    """What the outcomes were measured with."""
    return {"torch": torch.__version__, "jax": jax.__version__, "flax": flax.__version__}


def write_record(results: dict[Task, dict[str, Any]]) -> None:
    """Note status, number of samples and reason of every task, compactly."""
    record: dict[str, Any] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    record["versions"] = versions()
    record["forms"] = {name: reached(name) for name in sorted(database.entries())}
    for task, result in sorted(results.items(), key=lambda item: repr(item[0])):
        outcomes = record.setdefault(task.oracle, {}).setdefault(task.name, {})
        outcomes[task.dtype] = brief(result)
    save_record(record)


def reached(name: str) -> list[str]:
    """The public names an entry is about; those that its wrapper calls where it has none itself."""
    found: set[str] = set()
    for info in database.entries()[name]:
        for function, _ in converted.variants(info):
            found.update(database.names_of(function))
        if not found:
            dtype = min(
                info.dtypes, key=lambda d: (d != torch.float32, str(d)), default=torch.float32
            )
            for sample in itertools.islice(database.samples_of(info, dtype), 1):
                with contextlib.suppress(judge.Outcome):
                    found.update(judge.recorded(info.op, sample, info)[2][-1].names)
    return sorted(found)


def brief(result: dict[str, Any]) -> str:
    """``"verified 40"``, ``"flagged 3 of 40: why"``."""
    status = result["status"]
    counts: Counter[str] = Counter()
    reasons = []
    for one in result["dtypes"].values():
        counts.update(one["counts"])
        reasons += [n for n in one["notes"] if n.startswith(status)]
    compared = sum(number for outcome, number in counts.items() if outcome != "skipped")
    if status in ("verified", "not applicable") or not reasons:
        return f"{status} {counts[status]}"
    return f"{status} {counts[status]} of {compared}: {reasons[0].partition(': ')[2][:160]}"


if __name__ == "__main__":
    sys.exit(main())
