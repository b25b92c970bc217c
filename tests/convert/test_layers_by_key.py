"""Layers that a module keeps in plain dicts and lists beside the containers that register them."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

DICT = """
from collections import OrderedDict


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.depth = 2
        self.convs = MADE
        FILLED
        self.act = nn.ReLU(True)
        REGISTERED
        MORE

    def forward(self, x):
        LINES
        return x
"""
MADE = ["{}", "OrderedDict()", "dict()"]
FILLED = {
    "a loop": "for i in range(2): self.convs[('up', i)] = nn.Linear(4, 4)",
    "texts and tuples": "self.convs[('up')] = nn.Linear(4, 4); "
    "for i in range(1, 2): self.convs[('up', i)] = nn.Linear(4, 4); self.convs['up', 0] = nn.Linear(4, 4)",
    "one twice": "for i in (0, 0, 1): self.convs['up', i] = nn.Linear(4, 4)",
    "its length": "for i in range(2): self.convs['up', len(self.convs)] = nn.Linear(4, 4)",
    "a choice": "for i in range(3): if i < self.depth: self.convs['up', i] = nn.Linear(4, 4)",
}
REGISTERED = [
    "self.net = nn.ModuleList(list(self.convs.values()))",
    "self.net = nn.ModuleList(self.convs.values())",
    "self.net = nn.Sequential(*self.convs.values())",
    "self.net = nn.Sequential(*list(self.convs.values()))",
]
LINES = {
    "looked up": "for i in range(2): x = self.act(self.convs[('up', i)](x))",
    "asked for": "for i in range(3): if ('up', i) in self.convs: x = self.act(self.convs[('up', i)](x))",
    "values": "for layer in self.convs.values(): x = self.act(layer(x))",
    "keys": "for key in self.convs.keys(): x = torch.tanh(self.convs[key](x))",
    "counted": "for i in range(len(self.convs)): x = torch.tanh(self.net[i](x))",
}


def _under(text: str) -> str:
    made, depth = [], 0
    for line in text.split("; "):
        depth = 0
        while line.startswith(("for ", "if ")):
            head, _, line = line.partition(": ")
            made.append("    " * depth + head + ":")
            depth += 1
        made.append("    " * depth + line)
    return "\n        ".join(made)


def _source(made: str, filled: str, registered: str, lines: str, more: str = "") -> str:
    source = DICT.replace("MADE", made).replace("FILLED", _under(filled))
    source = source.replace("REGISTERED", registered).replace("MORE", more or "pass")
    return source.replace("LINES", _under(lines))


@pytest.mark.parametrize("made", MADE)
def test_what_a_dict_begins_as(made: str) -> None:
    code = check(_source(made, FILLED["a loop"], REGISTERED[0], LINES["looked up"]))
    assert "self.convs = tuple(convs.keys())" in code


@pytest.mark.parametrize("filled", FILLED)
def test_how_a_dict_is_filled(filled: str) -> None:
    check(_source(MADE[0], FILLED[filled], REGISTERED[0], LINES["looked up"]))


@pytest.mark.parametrize("registered", REGISTERED)
@pytest.mark.parametrize("lines", LINES)
def test_how_a_dict_is_registered_and_read(registered: str, lines: str) -> None:
    check(_source(MADE[1], FILLED["a loop"], registered, LINES[lines]))


@pytest.mark.parametrize(
    "more",
    [
        "self.convs['up', 0] = nn.Linear(4, 4)",
        "self.convs.pop(('up', 0))",
        "self.net.append(nn.Linear(4, 4))",
        "self.net[0] = nn.Linear(4, 4)",
    ],
)
def test_a_dict_or_list_that_changes_later_is_refused(more: str) -> None:
    parts = (MADE[0], FILLED["a loop"], REGISTERED[0], LINES["looked up"])
    assert rules_of(_source(*parts, more=more))


def test_a_dict_that_others_read_is_refused() -> None:
    source = _source(MADE[0], FILLED["a loop"], REGISTERED[0], LINES["looked up"])
    assert rules_of(source + "\n\ndef first(net: M):\n    return net.convs[('up', 0)]\n")


@pytest.mark.parametrize(
    "filled",
    [
        "self.convs.update({0: nn.Linear(4, 4)})",
        "self.fill()",
        "self.convs.setdefault(0, nn.Linear(4, 4))",
    ],
)
def test_layers_that_come_into_a_dict_otherwise_are_refused(filled: str) -> None:
    source = _source(MADE[0], filled, REGISTERED[0], "x = self.net[0](x)")
    method = "    def fill(self):\n        self.convs[0] = nn.Linear(4, 4)\n\n    def forward"
    assert "API008" in rules_of(source.replace("    def forward", method))


RESULTS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])

    def outputs(self, x):
        BODY

    def forward(self, x):
        found = self.outputs(x)
        return torch.cat([found[key] for key in found], 1)
"""
BUILT = {
    "a loop": "self.kept = {}; for i in range(3): self.kept['disp', i] = self.heads[i](x); return self.kept",
    "read on the way": "y = x * 2; self.kept = dict(); self.kept['a'] = self.heads[0](y); "
    "self.kept['b'] = self.kept['a'] + 1; return self.kept",
    "a choice": "self.kept = {}; for i in range(3): if i != 1: self.kept[f'{i}'] = self.heads[i](x); "
    "return dict(self.kept)",
}
NOT_BUILT = {
    "keys of two kinds": "self.kept = {}; self.kept['a'] = self.heads[0](x); "
    "self.kept['b', 1] = x; return self.kept",
    "two returns": "self.kept = {}; self.kept['a'] = self.heads[0](x); if x.ndim == 3: return {}; "
    "self.kept['b'] = x; return self.kept",
}


def _results(body: str) -> str:
    return RESULTS.replace("BODY", _under(body))


@pytest.mark.parametrize("built", BUILT)
def test_results_that_are_built_in_an_attribute(built: str) -> None:
    code = check(_results(BUILT[built]))
    assert "self.kept = nnx.data(kept)" in code


@pytest.mark.parametrize("built", NOT_BUILT)
def test_results_that_are_not_known_to_be_whole_are_refused(built: str) -> None:
    assert rules_of(_results(NOT_BUILT[built]))


def test_results_that_others_read_stay_where_they_are() -> None:
    other = "\n\ndef peek(model: M):\n    return model.kept\n"
    assert rules_of(_results(BUILT["a loop"]) + other)


def test_a_dict_of_tensors_with_keys_of_two_kinds_is_refused_by_its_name_too() -> None:
    body = "kept = {'a': self.heads[0](x)}; kept['b', 1] = x; self.kept = kept; return kept"
    assert rules_of(_results(body)) == ["API008"]


GATHERED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.every = []
        self.a = nn.Linear(4, 4)
        self.b = nn.Linear(4, 4)
        FILLED

    def names(self):
        return len(self.every)

    def forward(self, x):
        for layer in self.every:
            x = layer(x)
        return x
"""


@pytest.mark.parametrize(
    "filled",
    [
        "self.every += [self.a, self.b]",
        "self.every.append(self.a); self.c = nn.Linear(4, 4); self.every.append(self.c)",
        "self.every.extend([self.b]); self.every += [self.a]",
    ],
)
def test_a_list_of_own_layers(filled: str) -> None:
    check(GATHERED.replace("FILLED", _under(filled)))


@pytest.mark.parametrize(
    "filled",
    [
        "self.every += [self.a]; self.a = nn.Linear(4, 4); self.every += [self.b]",
        "self.every += [self.a]; self.count = self.names(); self.every += [self.b]",
        "self.every += [self.a, nn.Linear(4, 4)]",
    ],
)
def test_a_list_of_which_that_is_not_all_is_refused(filled: str) -> None:
    assert rules_of(GATHERED.replace("FILLED", _under(filled)))


NAMES = """
class Block(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = nn.ReLU(inplace=True) if act else None
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        x = self.fc(x)
        if self.act:
            x = self.act(x)
        return x


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        model = [Block(True)]
        model += [Block(False)]
        self.model = nn.Sequential(*model)

    def forward(self, x):
        residual = x
        out = self.model(x)
        out += residual
        return out


class Residuals(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.model = []
        for i in range(count):
            self.model += [Residual()]
        self.model = nn.Sequential(*self.model)

    def forward(self, x):
        return self.model(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.model = []
        FIRST
        self.model += [Residuals(2)]
        self.model = nn.Sequential(*self.model)

    def forward(self, x):
        return self.model(x * 2)
"""


def test_a_list_that_other_classes_have_by_the_same_name_begins_with_its_own_layers() -> None:
    check(NAMES.replace("FIRST", "self.model += [Block(True)]"))


HEIRS = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = [nn.Linear(4, 4)]
        self.more()
        self.net = nn.Sequential(*self.layers)

    def more(self):
        pass


class M(Base):
    def more(self):
        self.layers.insert(0, nn.ReLU(inplace=True))

    def forward(self, x):
        x = x * 3
        return torch.cat([x, self.net(x)], 1)
"""


def test_a_list_that_an_heir_changes_may_begin_with_another_layer() -> None:
    assert rules_of(HEIRS) == ["MUT002"]
