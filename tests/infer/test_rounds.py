"""Rounds of inference that go in a circle are left out, and nothing is known less or otherwise for it."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest

from migrator.infer import infer, infer_together
from migrator.infer import kinds as k
from migrator.infer.definitions import Definitions
from migrator.infer.facts import Facts, FunctionInfo
from migrator.infer.rounds import Rounds, _alike, _State
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


def test_what_is_left_out_of_files_together_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def known() -> list[object]:
        texts = {"a": CIRCLE, "b": CIRCLE.replace("Net", "Other")}
        sources = [Source(text, module=module) for module, text in texts.items()]
        return [shown(facts) for facts in infer_together(sources)]

    few = known()
    monkeypatch.setattr(Rounds, "circle", lambda self, walker=None: False)
    assert known() == few


def test_what_several_hold_is_compared_as_well() -> None:
    sources = [Source(CIRCLE, module="a"), Source("x = 1\n", module="b")]
    every = infer_together(sources)
    before = _State(every, None)
    assert before.same(_State(every, None))
    node = every[0].tree.of_type(cst.Call)[0]
    known, every[0].kinds[node] = every[0].kinds[node], k.Other("new")
    assert not before.same(_State(every, None))
    every[0].kinds[node] = known
    assert before.same(_State(every, None))
    every[0].classes["a.Net"].attributes["new"] = k.INT
    assert not before.same(_State(every, None))
    del every[0].classes["a.Net"].attributes["new"]
    assert before.same(_State(every, None))
    every[1].classes = dict(every[1].classes)  # no longer what the other one holds
    assert not before.same(_State(every, None))
