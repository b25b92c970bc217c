"""``nn.ModuleList([attention, feed_forward])``: which of them a target of ``for a, f in self.layers`` is."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

HEAD = """
class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, plain=False):
        if plain:
            return self.fc(x)
        return self.fc(x) * 2


class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x, y):
        return self.fc(x) * y

"""
MODEL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList({begins})
        for i in range(2):
            self.layers.append({entry})
        {more}

    def forward(self, x):
        {loop}
        return x
"""
LOOP = "for a, b in self.layers:\n            x = b(x, a(x))"


def _model(
    entry: str = "nn.ModuleList([A(), B()])", loop: str = LOOP, more: str = "", begins: str = ""
) -> str:
    return HEAD + MODEL.format(entry=entry, loop=loop, more=more, begins=begins)


@pytest.mark.parametrize(
    ("entry", "loop"),
    [
        ("nn.ModuleList([A(), B()])", LOOP),
        ("nn.ModuleList((A(), B()))", LOOP),
        ("nn.ModuleList([A(), B()]) if i else nn.ModuleList([A(), B()])", LOOP),
        (
            "nn.ModuleList([A(), B() if i == 0 else None])",
            "for a, b in self.layers:\n            y = a(x)\n            if b is not None:\n                x = b(x, y)",
        ),
        (
            "nn.ModuleList([A(), B()])",
            "for i, (a, b) in enumerate(self.layers):\n            x = b(x, a(x))",
        ),
        (
            "nn.ModuleList([A(), B()])",
            "for layer in self.layers:\n            x = layer[1](x, layer[0](x))",
        ),
    ],
)
def test_each_target_has_the_class_at_its_place(entry: str, loop: str) -> None:
    # else `plain` of A would be given what B is called with, a tensor
    check(_model(entry, loop))


def test_different_entries_at_one_place() -> None:
    entry = "nn.ModuleList([A(), B() if i else A()])"
    assert "DYN002" in rules_of(
        _model(entry, "for a, b in self.layers:\n            x = b(x, a(x))")
    )


@pytest.mark.parametrize(
    "more",
    [
        "self.layers[0][0], self.layers[0][1] = self.layers[0][1], self.layers[0][0]",
        "for layer in self.layers:\n            layer[0], layer[1] = layer[1], layer[0]",
        "for layer in self.layers:\n            layer.append(layer.pop(0))",
        "for layer in self.layers:\n            layer.insert(0, A())\n            layer.pop(2)",
        "for layer in self.layers:\n            del layer[0]\n            layer.append(A())",
        "for layer in self.layers:\n            setattr(layer, '0', A())",
    ],
)
def test_entries_that_are_changed_are_at_no_known_place(more: str) -> None:
    assert "DYN002" in rules_of(_model(more=more))


@pytest.mark.parametrize(
    "made",
    [
        "two = nn.ModuleList([B(), A()])\n        two[0], two[1] = A(), B()",
        "two = nn.ModuleList([A(), A(), B()])\n        two.pop(0)",
        "two = nn.ModuleList([A(), A(), B()])\n        del two[0]",
        "two = nn.ModuleList([A(), *[B()]])",
        "two = nn.ModuleList([A()])\n        two.append(B())",
        "two = nn.ModuleList([B()])\n        two.insert(0, A())",
    ],
)
def test_changed_by_a_name(made: str) -> None:
    source = _model().replace(
        "super().__init__()\n        self.layers",
        f"super().__init__()\n        {made}\n        self.layers",
        1,
    )
    source = source.replace(
        "self.layers.append(nn.ModuleList([A(), B()]))", "self.layers.append(two)"
    )
    assert "DYN002" in rules_of(source)


def test_a_list_in_a_list_that_holds_itself() -> None:
    check(
        HEAD
        + """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        layers = nn.ModuleList([A(), A()])
        for i in range(3):
            layers = nn.ModuleList([layers, A()])
        self.last = layers[1]

    def forward(self, x):
        return self.last(x)
"""
    )
