"""Errors counted in units in the last place."""

from __future__ import annotations

import numpy as np
from flax import nnx

from numerics.ulps import EDGES, Histogram
from numerics.verify import Settings, verify
from tests.numerics.models import NET, FlaxNet, TorchNet

EPS = 2.0**-23


def test_each_number_counts_by_its_own_last_place() -> None:
    reference = np.array([1.0, 1.5, 1024.0, 1e-45, np.nan, 3.0])
    port = reference + np.array([0, EPS, 3 * 1024 * EPS, 0, 0, np.inf])
    found = Histogram()
    found.add(reference, reference, port, "float32")
    counts = dict(zip((*EDGES, np.inf), found.port.tolist(), strict=True))
    assert (counts[0.0], counts[1.0], counts[4.0], sum(counts.values())) == (2, 1, 1, 4)
    assert found.port_most == 3
    assert found.torch.tolist()[0] == 4
    head, line, _ = found.lines()
    assert head.split()[-1] == "4"
    assert line.split()[1:6] == ["50.00", "0.00", "25.00", "0.00", "25.00"]
    assert "half within 0, 99 % within 4, at most 3" in line


def test_bfloat16_has_larger_ones() -> None:
    found = Histogram()
    found.add(np.ones(1), np.ones(1), np.ones(1) + 2.0**-7, "bfloat16")
    assert found.port_most == 1


def test_they_are_part_of_the_report_where_asked_for() -> None:
    settings = Settings(examples=2, train=False, ulps=True)
    x, port = np.ones((2, 8), np.float32), FlaxNet(rngs=nnx.Rngs(0))
    report = verify(TorchNet(), port, [x], load=NET.load, dump=NET.dump, settings=settings)
    assert set(report.ulps) == {"eval outputs", "eval gradients"}
    outputs = report.to_dict()["ulps"]["eval outputs"]
    assert sum(outputs["port"]) == sum(outputs["torch"]) >= 8
