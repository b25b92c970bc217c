"""Lists and dicts of layers that lose some, gain some in the middle, or get others in their place."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

MODEL = """
class Back(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = nn.ReLU()

    def forward(self, x):
        return self.act(self.fc(x))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
        self.l = nn.ModuleList([nn.Linear(4, 4), nn.Tanh(), nn.LayerNorm(4)])
        self.d = nn.ModuleDict({{"a": nn.Linear(4, 4), "b": nn.Linear(4, 4)}})
        self.back = Back()
        {line}

    def forward(self, x):
        x = self.back(self.s(x))
        for layer in self.l:
            x = layer(x)
        for name, layer in self.d.items():
            x = layer(x) + len(name)
        return x * len(self.l) + len(self.d) + len(self.s)
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.s.insert(1, nn.LayerNorm(4)); self.s.pop(0)",
        "del self.s[1]; self.s.extend([nn.Sigmoid(), nn.Linear(4, 4)])",
        "self.l.insert(0, nn.GELU()); self.l.append(nn.Linear(4, 4))",
        "del self.s[2:]; del self.l[:1]",
        "self.l.pop(-1); del self.l[0]; self.l += [nn.Linear(4, 4)]",
        "self.l = nn.ModuleList([nn.Linear(4, 4)]) + self.l[1:]",
        "self.d.pop('a'); self.d.add_module('c', nn.Linear(4, 4))",
        "del self.d['b']; self.d['z'] = nn.Linear(4, 4); self.d['y'] = nn.Linear(4, 4)",
        "self.d['a'] = nn.ReLU(); self.d['b'] = nn.LayerNorm(4)",
        "self.d = nn.ModuleDict({'a': nn.ReLU()}); self.d['a'] = nn.Linear(4, 4)",
        "self.d.clear(); self.d.update({'q': nn.Linear(4, 4)})",
        "self.s[1] = nn.PReLU(); self.l[0] = nn.Identity(); self.l[1] = nn.LayerNorm(4)",
        "self.s[1] = nn.Tanh(); self.l[1] = nn.GELU(); self.l[1] = nn.ReLU()",
        "self.back.fc = nn.Identity(); self.back.act = nn.PReLU()",
    ],
)
def test_the_port_has_the_layers_of_torch(line: str) -> None:
    check(MODEL.format(line=line))


NAMED = """
from collections import OrderedDict


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = nn.Sequential(OrderedDict([("a", nn.Linear(4, 4)), ("b", nn.ReLU())]))
        {line}

    def forward(self, x):
        return self.s(x)
"""


def test_layers_with_names_are_replaced_by_place() -> None:
    check(NAMED.format(line="self.s[1] = nn.LayerNorm(4); self.s.a = nn.Linear(4, 4)"))
    check(NAMED.format(line="self.s[1] = nn.Tanh()"))


@pytest.mark.parametrize(
    "line", ["del self.s[0]", "self.s.insert(0, nn.ReLU())", "self.s.pop(0)", "self.s.extend([])"]
)
def test_layers_with_names_would_be_numbered(line: str) -> None:
    """torch numbers all of them anew, so that the keys of the state change."""
    assert rules_of(NAMED.format(line=line)) == ["API007"]


@pytest.mark.parametrize("layer", ["nn.Linear(4, 4)", "nn.Conv1d(3, 3, 1)"])
def test_a_layer_that_loses_its_bias(layer: str) -> None:
    check(
        f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = {layer}
        self.l.bias = None

    def forward(self, x):
        y = self.l(x)
        return y * 2 if self.l.bias is None else y
"""
    )


OWN = """
class Own({base}):
    def __init__(self):
        super().__init__({layers})
        {line}

    def forward(self, x):
        for layer in self:
            x = layer(x)
        return x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = Own()

    def forward(self, x):
        return self.own(x)
"""


def test_a_list_of_its_own_edits_itself() -> None:
    layers = "[nn.Linear(4, 4), nn.Linear(4, 4)]"
    line = "self.insert(0, nn.LayerNorm(4)); self.pop(1)"
    check(OWN.format(base="nn.ModuleList", layers=layers, line=line))


@pytest.mark.parametrize("line", ["del self[0]", "self[0] = nn.ReLU(); self.append(nn.ReLU())"])
def test_a_sequential_of_its_own_edits_itself(line: str) -> None:
    layers = "nn.Linear(4, 4), nn.Linear(4, 4)"
    source = OWN.format(base="nn.Sequential", layers=layers, line=line)
    assert "API007" in rules_of(
        source.replace("for layer in self:\n            x = layer(x)", "pass")
    )
