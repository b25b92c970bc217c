"""How often verify calls a right port wrong: the samples with many seeds, each compiled once.

    python benchmarks/false_alarms.py --runs 100 mlp gpt

Every line is a run that was not ``equal``; the last gives the count. A run is one verification with its own
examples.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from migrator.config import load_config
from migrator.verifying import keep_compilations, load_case, select
from migrator.weights import load_state_dict, to_state_dict
from numerics.pair import Pair
from numerics.verify import Settings, verify_pair

ROOT = Path(__file__).resolve().parents[1]


def alarms(name: str, runs: int, first_seed: int, examples: int) -> int:
    """Verify one sample ``runs`` times; returns how many runs were not equal."""
    config = load_config(ROOT / "pyproject.toml")
    case = select(config, [name])[0]
    torch_module, flax_module, inputs = load_case(case, config)
    settings = Settings(examples=examples, train=True, shrink_seconds=0)
    pair = Pair(torch_module, flax_module, inputs, load_state_dict, to_state_dict, settings)
    found, ratio, started = 0, 0.0, time.perf_counter()
    for seed in range(first_seed, first_seed + runs):
        pair.notes.clear()
        report = verify_pair(pair, Settings(examples, 3, seed, shrink_seconds=0), name)
        ratio = max([ratio, *(check.ratio for check in report.checks if check.ok)])
        if report.verdict != "equal" or report.notes:
            print(
                f"{name} seed {seed}: {report.verdict} {report.notes} {report.failure or ''}",
                flush=True,
            )
        found += report.verdict != "equal"
    seconds = time.perf_counter() - started
    print(
        f"{name}: {found} of {runs} runs not equal, {seconds / runs:.2f} s a run,"
        f" nearest to the allowance {ratio:.2f}",
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
    options = parser.parse_args(argv)
    torch.set_num_threads(1)
    keep_compilations()
    config = load_config(ROOT / "pyproject.toml")
    names = options.cases or [case.name for case in config.cases if case.expect == "equal"]
    total = sum(alarms(name, options.runs, options.seed, options.examples) for name in names)
    print(f"{total} of {options.runs * len(names)} runs not equal")


if __name__ == "__main__":
    main()
