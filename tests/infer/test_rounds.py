"""Rounds of inference that go in a circle are left out, and nothing is known less or otherwise for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.infer import infer
from migrator.infer import kinds as k
from migrator.infer.definitions import Definitions
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.rounds import Rounds, _alike
from migrator.source import Source

CIRCLE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, build, size):
        super().__init__()
        self.last = self.head
        self.head = build(size)
        self.head = nn.Identity()
        self.size = True
        self.size = 1

    def forward(self, x):
        return self.head(x), self.size


def make(build, size: int):
    return Net(build, size)
"""


def shown(facts: Facts) -> list[object]:
    kinds = [repr(facts.kinds.get(node)) for node in facts.tree.nodes]
    functions = [
        (f.name, repr(f.params), repr(f.returns), f.dirty) for f in facts.functions.values()
    ]
    return [kinds, functions, [(c.name, repr(c.attributes)) for c in facts.classes.values()]]


@pytest.mark.parametrize(
    "text",
    [
        CIRCLE,
        *(
            path.read_text()
            for path in sorted((Path(__file__).parents[2] / "samples").glob("*.py"))
        ),
    ],
)
def test_what_is_left_out_changes_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few = shown(infer(Source(text)))
    monkeypatch.setattr(Rounds, "circle", lambda self, walker=None: False)
    assert shown(infer(Source(text))) == few


def test_a_circle_ends_the_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    walked: list[str] = []
    real = Definitions.enter

    def noted(self: Definitions, info: FunctionInfo, env: dict[str, k.Kind]) -> None:
        walked.append(info.name)
        real(self, info, env)

    monkeypatch.setattr(Definitions, "enter", noted)
    infer(Source(CIRCLE))
    few = len(walked)
    monkeypatch.setattr(Rounds, "circle", lambda self, walker=None: False)
    infer(Source(CIRCLE))
    assert few < (len(walked) - few) / 2


def test_kinds_that_are_written_otherwise_are_not_alike() -> None:
    one, other = k.Tuple((k.Const(1),)), k.Tuple((k.Const(True),))
    assert one == other
    assert not _alike({"x": [one]}, {"x": [other]})
    assert not _alike(k.Const(0.0), k.Const(-0.0))
    assert _alike({"x": (k.Const(1.5), {1})}, {"x": (k.Const(1.5), {1})})
