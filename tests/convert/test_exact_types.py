"""``type(m) == nn.Linear`` and its relatives, which ask for one class exactly."""

from __future__ import annotations

import pytest
from flax import nnx

import migrator
from tests.convert.tools import both, rules_of

MODEL = """
KINDS = (nn.Conv1d, nn.Linear)


class Own(nn.Linear):
    pass


def init(m):
    if {test}:
        m.weight.data.fill_(0.25)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = nn.Conv1d(4, 4, 1, padding_mode="{mode}")
        self.c = Own(4, 4)
        self.apply(init)

    def forward(self, x):
        return self.a(x)
"""


@pytest.mark.parametrize(
    "test",
    [
        "type(m) == nn.Linear",
        "type(m) is not nn.Linear and m.__class__ in {nn.Conv1d, Own}",
        "m.__class__ in [nn.Linear, nn.Conv1d]",
        "type(m) in KINDS",
        "isinstance(m, KINDS)",
        "type(m) == Own",
    ],
)
def test_layers_of_one_class_are_initialised(test: str) -> None:
    model, port, _ = both(MODEL.format(test=test, mode="reflect"))
    ours = migrator.to_state_dict(type(port)(rngs=nnx.Rngs(1)))
    for name in ("a.weight", "b.weight", "c.weight"):
        theirs = model.state_dict()[name].numpy()
        assert ((theirs == 0.25).all()) == ((ours[name] == 0.25).all()), name


@pytest.mark.parametrize(
    "line",
    [
        "self.table[type(m)]",
        "self.table.get(m.__class__)",
        "type(m) in self.table",
        "type(m) == nn.Linear and nn.MultiheadAttention(4, 2)",
    ],
)
def test_what_cannot_be_told_is_said(line: str) -> None:
    source = f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = {{nn.Linear: 1, nn.Conv2d: 2}}

    def value(self, m):
        return {line}
"""
    assert "API011" in rules_of(source)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ("KINDS = {nn.Linear, nn.Conv2d}", "type(m) in self.KINDS"),
        ("KINDS = (nn.Linear, nn.Conv2d)", "type(m) in self.KINDS"),
        ("KINDS = {nn.Linear: 1, nn.Conv2d: 2}", "self.KINDS.get(type(m), 0)"),
        ("KINDS: set = frozenset([nn.Linear, nn.Tanh])", "type(m) in M.KINDS"),
        ("KINDS = None", "type(m) in kinds"),
    ],
)
def test_classes_that_a_class_or_a_default_lists(table: str, line: str) -> None:
    source = f"""
class M(nn.Module):
    {table}

    def value(self, m, kinds=frozenset([nn.Linear, nn.Conv2d])):
        return {line}
"""
    assert "API011" in rules_of(source)
