"""How often verify calls a right port wrong: the samples with many seeds, each compiled once.

    python -m benchmarks.false_alarms --runs 91 --log build/false_alarms.jsonl [CASE]...

A run is one verification with its own examples. Every line printed is a run that was not ``equal`` or had something to
note; the last gives the count. With ``--log`` every run is a line of that file, and runs it has are not made again.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch

from migrator.config import load_config
from migrator.verifying import keep_compilations, load_case, select
from migrator.weights import load_state_dict, to_state_dict
from numerics.pair import Pair
from numerics.report import Report
from numerics.verify import Settings, verify_pair

ROOT = Path(__file__).resolve().parents[1]


def verifications(name: str, seeds: Sequence[int], examples: int) -> Iterator[Report]:
    """Verify one sample once for each seed."""
    config = load_config(ROOT / "pyproject.toml")
    torch_module, flax_module, inputs = load_case(select(config, [name])[0], config)
    settings = Settings(examples=examples, train=True, shrink_seconds=0)
    pair = Pair(torch_module, flax_module, inputs, load_state_dict, to_state_dict, settings)
    for seed in seeds:
        pair.notes.clear()
        yield verify_pair(pair, Settings(examples, 3, seed, shrink_seconds=0), name)


def entry(report: Report, seed: int) -> dict[str, Any]:
    """What the log keeps of a run; ``ratio`` is that of the tensor nearest to its allowance."""
    return {
        "case": report.name,
        "seed": seed,
        "verdict": report.verdict,
        "examples": report.examples,
        "ratio": max((check.ratio for check in report.checks if check.ok), default=0.0),
        "seconds": round(report.seconds, 2),
        "notes": report.notes,
        "failure": str(report.failure or ""),
    }


def alarms(
    name: str, runs: int, first_seed: int, examples: int, log: Path | None = None
) -> list[dict[str, Any]]:
    """The entries of one sample's runs, those in the log among them; prints the ones that are not silent."""
    done = {}
    if log is not None and log.is_file():
        logged = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
        done = {line["seed"]: line for line in logged if line["case"] == name}
    seeds = range(first_seed, first_seed + runs)
    left = [seed for seed in seeds if seed not in done]
    started = time.perf_counter()
    for seed, report in zip(left, verifications(name, left, examples) if left else (), strict=True):
        done[seed] = entry(report, seed)
        if log is not None:
            with log.open("a", encoding="utf-8") as file:
                print(json.dumps(done[seed]), file=file)
        if report.verdict != "equal" or report.notes:
            words = f"{report.verdict} {report.notes} {report.failure or ''}"
            print(f"{name} seed {seed}: {words}", flush=True)
    found = [done[seed] for seed in seeds]
    wrong = sum(line["verdict"] != "equal" for line in found)
    nearest = max(line["ratio"] for line in found)
    seconds = (time.perf_counter() - started) / max(len(left), 1)
    print(
        f"{name}: {wrong} of {runs} runs not equal, {seconds:.2f} s a run, nearest to the allowance {nearest:.2f}",
        flush=True,
    )
    return found


def main(argv: Sequence[str] | None = None) -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000)
    parser.add_argument("--examples", type=int, default=8)
    parser.add_argument("--log", type=Path)
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    keep_compilations()
    config = load_config(ROOT / "pyproject.toml")
    names = options.cases or [case.name for case in config.cases if case.expect == "equal"]
    found = []
    for name in names:
        found += alarms(name, options.runs, options.seed, options.examples, options.log)
    wrong = sum(line["verdict"] != "equal" for line in found)
    print(f"{wrong} of {len(found)} runs not equal")


if __name__ == "__main__":
    main()
