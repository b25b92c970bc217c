"""Layers with ``inplace=True`` that are taken up by ``*layers`` and run side by side, or one after another."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

HEAD = """
class Many(nn.Module):
    def __init__(self, *layers):
        super().__init__()
        self.layers = KEEP

    def forward(self, x):
        return RUN


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        layers = LAYERS
        self.many = CALL

    def forward(self, x):
        return self.many(self.fc(x))
"""
FIRST = "[nn.ReLU(inplace=True), nn.Linear(4, 4)]"
SECOND = "[nn.Linear(4, 4), nn.ReLU(inplace=True)]"
BESIDE = "sum(layer(x) for layer in self.layers)"
CONTAINER = """
class Many(nn.Sequential):
    INIT
    def forward(self, x):
        return sum(layer(x) for layer in self)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.many = Many(nn.ReLU(inplace=True), nn.Linear(4, 4))

    def forward(self, x):
        return self.many(self.fc(x))
"""
KEPT = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        layers = LAYERS
        self.layers = KEEP

    def forward(self, x):
        x = self.fc(x)
        return RUN
"""


def _source(layers: str, keep: str, run: str, call: str = "Many(*layers)") -> str:
    parts = {"LAYERS": layers, "KEEP": keep, "RUN": run, "CALL": call}
    text = HEAD
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


@pytest.mark.parametrize(
    "call", ["Many(*layers)", "Many(layers[0], *layers[1:])", "Many(*[*layers])"]
)
@pytest.mark.parametrize("layers", [FIRST, SECOND])
def test_one_sees_what_the_other_wrote(call: str, layers: str) -> None:
    for keep in ("nn.ModuleList(layers)", "nn.ModuleList([*layers])"):
        assert rules_of(_source(layers, keep, BESIDE, call)) == ["MUT002"]


def test_what_comes_after_reads_it() -> None:
    run = "self.layers(x) + x"
    assert rules_of(_source(FIRST, "nn.Sequential(*layers)", run)) == ["MUT002"]
    assert rules_of(
        KEPT.replace("LAYERS", FIRST)
        .replace("KEEP", "nn.ModuleList([*layers])")
        .replace("RUN", BESIDE)
    )
    named = KEPT.replace("LAYERS", "{'a': nn.ReLU(inplace=True), 'b': nn.Linear(4, 4)}")
    named = named.replace("KEEP", "nn.ModuleDict({**layers})")
    assert rules_of(named.replace("RUN", "self.layers['a'](x) + self.layers['b'](x)")) == ["MUT002"]


@pytest.mark.parametrize(
    "init", ["", "def __init__(self, *layers):\n        super().__init__(*layers)\n"]
)
def test_children_of_a_container_are_seen(init: str) -> None:
    assert rules_of(CONTAINER.replace("INIT", init)) == ["MUT002"]


@pytest.mark.parametrize(
    "init", ["pass", "def __init__(self, *layers):\n        super().__init__(*layers)"]
)
@pytest.mark.parametrize("begins", [True, False])
def test_what_a_container_of_the_file_begins_with(init: str, begins: bool) -> None:
    layers = (
        "nn.ReLU(inplace=True), nn.Linear(4, 4)" if begins else "nn.Linear(4, 4), nn.ReLU(True)"
    )
    source = f"class Many(nn.Sequential):\n    {init}\n" + KEPT.replace("LAYERS", "()")
    source = source.replace("KEEP", f"Many({layers})").replace("RUN", "self.layers(x) + x")
    assert ("MUT002" in rules_of(source)) is begins
    if not begins:
        check(source)


@pytest.mark.parametrize(
    ("layers", "keep", "run"),
    [
        (SECOND, "nn.Sequential(*layers)", "self.layers(x) + x"),
        (FIRST, "nn.Sequential(*layers)", "self.layers(x)"),
        ("[nn.Tanh(), nn.Linear(4, 4)]", "nn.ModuleList(layers)", BESIDE),
        (f"[nn.Sequential(*{SECOND}), nn.Linear(4, 4)]", "nn.ModuleList(layers)", BESIDE),
    ],
)
def test_what_nobody_sees_is_converted(layers: str, keep: str, run: str) -> None:
    check(_source(layers, keep, run))


HEIRS = """
class Act(nn.Module):
    def forward(self, x):
        return F.relu(x, inplace=True)


class Many(nn.Sequential):
    def __init__(self, *layers):
        BODY


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = Many(LAYERS)

    def forward(self, x):
        h = x * 2
        return self.layers(h) + h
"""
HANDED = "super().__init__(*layers)"


@pytest.mark.parametrize(
    ("body", "layers", "begins"),
    [
        (HANDED, "nn.Identity(), nn.ReLU(inplace=True)", True),
        (HANDED, "nn.Identity(), nn.Linear(4, 4), nn.ReLU(inplace=True)", False),
        (HANDED, "nn.Sequential(nn.Dropout(0.1), nn.ReLU(True)), nn.Linear(4, 4)", True),
        (HANDED, "Act(), nn.Linear(4, 4)", True),
        (HANDED, "nn.Linear(4, 4), Act()", False),
        (f"{HANDED}\n        self.append(nn.ReLU(inplace=True))", "", True),
        (f"{HANDED}\n        self.append(nn.ReLU(inplace=True))", "nn.Linear(4, 4)", False),
        ("super().__init__(*reversed(layers))", "nn.Linear(4, 4), nn.ReLU(inplace=True)", True),
        ("super().__init__(*reversed(layers))", "nn.Linear(4, 4), nn.ReLU()", False),
        (
            "layers = layers[::-1]\n        super().__init__(*layers)",
            "nn.Linear(4, 4), nn.ReLU(inplace=True)",
            True,
        ),
    ],
)
def test_what_an_heir_of_a_container_hands_on(body: str, layers: str, begins: bool) -> None:
    source = HEIRS.replace("BODY", body).replace("LAYERS", layers)
    assert ("MUT002" in rules_of(source)) is begins
    if not begins:
        check(source)


@pytest.mark.parametrize("part", ["[1:]", "[:1]", "[:2]", "[2:]", "[::2]", "[1:2]"])
def test_what_a_slice_begins_with(part: str) -> None:
    source = HEIRS.replace("BODY", HANDED).replace("Many(LAYERS)", f"nn.Sequential(LAYERS){part}")
    check(source.replace("LAYERS", "nn.Linear(4, 4), nn.ReLU(inplace=True), nn.Linear(4, 4)"))
