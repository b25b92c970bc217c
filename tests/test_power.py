"""verify's power, and that it does not cry wolf: faults planted in the samples' ports, and the ports as they are.

The whole table is a sweep. Each day a few of the faults and another seed of two samples are taken along.
"""

from __future__ import annotations

import datetime
import random
from pathlib import Path

import pytest

from benchmarks.false_alarms import alarms
from migrator.config import load_config
from tests.faults import ELSEWHERE, FAULTS, ROOT, Fault, found, placed, planted

CASES = load_config(ROOT / "pyproject.toml").cases
TODAY = datetime.date.today().toordinal()
_QUICK = [fault for fault in FAULTS if fault.case in ("mlp", "graph_net", "lstm_tagger")]
TODAYS = random.Random(TODAY).sample(_QUICK, 3)


def name(fault: Fault) -> str:
    return f"{fault.case}-{fault.name}"


def check(fault: Fault, directory: Path) -> None:
    report = planted(fault, directory, load_config(ROOT / "pyproject.toml"))
    assert found(report), str(report)
    if (fault.case, fault.name) not in ELSEWHERE:
        assert placed(report, fault), report.first_divergence


def test_nearly_all_faults_are_named_where_they_are() -> None:
    assert {(fault.case, fault.name) for fault in FAULTS} >= ELSEWHERE
    assert len(FAULTS) >= 60
    assert len(ELSEWHERE) <= 0.1 * len(FAULTS)


@pytest.mark.parametrize("fault", FAULTS, ids=name)
def test_the_text_to_change_stands_in_the_port(fault: Fault) -> None:
    (case,) = (case for case in CASES if case.name == fault.case)
    text = (ROOT / "samples" / "flax" / Path(case.torch.partition(":")[0]).name).read_text()
    assert fault.plant(text) != text


@pytest.mark.sweep
@pytest.mark.parametrize("fault", FAULTS, ids=name)
def test_a_planted_fault_is_found_at_its_submodule(fault: Fault, tmp_path: Path) -> None:
    check(fault, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("fault", TODAYS, ids=name)
def test_todays_faults_are_found_at_their_submodules(fault: Fault, tmp_path: Path) -> None:
    check(fault, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("sample", ["mlp", "graph_net"])
def test_a_right_port_is_equal_with_todays_seeds(sample: str) -> None:
    assert all(run["verdict"] == "equal" for run in alarms(sample, 4, TODAY, 8))


@pytest.mark.sweep
@pytest.mark.parametrize("sample", [c.name for c in CASES if c.expect == "equal"])
def test_no_false_alarm(sample: str) -> None:
    assert all(run["verdict"] == "equal" for run in alarms(sample, 91, 10_000, 8))
