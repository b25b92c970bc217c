"""Lists and dicts of layers that lose some, gain some in the middle, or get others in their place."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, check, convert, rules_of

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
    "line",
    [
        "del self.s[1]",
        "self.s.pop(-1)",
        "self.s.append(nn.Linear(4, 4)); del self.s[:1]",
        "last = self.s.pop(0); self.s.append(last)",
    ],
)
def test_layers_with_names_are_numbered_when_one_is_taken_out(line: str) -> None:
    """torch numbers all of them anew, so that the keys of the state change."""
    check(NAMED.format(line=line))


@pytest.mark.parametrize("line", ["self.s.insert(0, nn.ReLU())", "self.s.extend([])"])
def test_layers_with_names_that_get_some_by_place(line: str) -> None:
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


CUT = """
class Stages(nn.Sequential):
    def __init__(self, twice=False):
        super().__init__()
        self.twice = twice

    def forward(self, x):
        outs = []
        for module in self._modules.values():
            x = module(x)
            if hasattr(module, "kept") and module.kept:
                outs.append(x)
        return [x] + outs


def stages():
    net = Stages()
    net.add_module("first", nn.Linear(4, 5))
    net.first.kept = True
    net.add_module("second", nn.Linear(5, 5))
    net.add_module("third", nn.Linear(5, 6))
    return net


class M(nn.Module):
    def __init__(self):
        super().__init__()
        net = stages()
        {line}
        self.net = net

    def forward(self, x):
        x, kept = self.net(x)
        return x.sum() + kept
"""


@pytest.mark.parametrize("line", ["del net[-1]", "net.pop(1); net.append(nn.Linear(6, 2))"])
def test_a_sequential_of_its_own_with_names_loses_a_layer(line: str) -> None:
    check(CUT.format(line=line.replace("pop(1)", "pop(2)").replace("6, 2", "5, 2")))


WRAPPED = """
class Enc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.LayerNorm(6), nn.Linear(6, 3))
        self.many = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
        self.dims = [3, 4]


class Wrap(nn.Module):
    def __init__(self, enc):
        super().__init__()
        self.enc = enc
        self.first = enc.net[0]
        self.rest = nn.Sequential(*enc.net[1:])
        self.tail = enc.net[1:]
        self.whole = nn.Sequential(*enc.net)
        self.each = nn.ModuleList(enc.net)
        self.lists = nn.Sequential(*enc.many)
        self.some = nn.ModuleList(enc.many[:1])
        width, high = enc.net[0].weight.shape[-1], enc.net[2].weight.shape[0]
        self.out = nn.Linear(high, width + enc.dims[0])

    def forward(self, x):
        y = self.rest(self.first(x)) + self.tail(self.first(x))
        y = y + self.whole(x) + self.lists(self.whole(x)) + self.enc.net[0](x)[:, :3]
        for one in [*self.some, *self.enc.many]:
            y = y + one(y)
        for one in self.each:
            x = one(x)
        return self.out(y + x)
"""
KNOWN = "\n\nclass M(Wrap):\n    def __init__(self):\n        super().__init__(Enc())\n"


@pytest.mark.parametrize("known", [True, False])
def test_parts_of_a_container_that_another_module_takes(known: bool) -> None:
    """Those of one whose class nothing tells too; a slice of a Sequential keeps its numbers."""
    source = HEADER + WRAPPED + (KNOWN if known else "")
    result = convert(WRAPPED + (KNOWN if known else ""))
    assert result.complete, result.findings
    assert ("= items_of(enc.net)" in result.code) is not known
    names: dict[str, Any] = {}
    exec(result.code, names)
    theirs: dict[str, Any] = {}
    exec(source, theirs)
    rngs = nnx.Rngs(0)
    model = theirs["Wrap"](theirs["Enc"]())
    port = names["Wrap"](names["Enc"](rngs=rngs), rngs=rngs)
    assert set(migrator.to_state_dict(port)) == set(model.state_dict())
    migrator.load_state_dict(port, model.state_dict())
    report = migrator.verify(model, port, inputs=[torch.ones(2, 4)])
    assert report.ok, report.failure


def test_what_is_no_layer_is_indexed_as_it_is() -> None:
    source = "class M(nn.Module):\n    def __init__(self, cfg):\n        super().__init__()\n        self.width = cfg.dims[0]\n"
    source += "        self.fc = nn.Linear(cfg.dims[1], self.width)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    assert "items_of" not in convert(source).code


MADE = """
from collections import OrderedDict


def plain():
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


def by_name():
    return nn.Sequential(OrderedDict([("a", nn.Linear(4, 4)), ("b", nn.Tanh()), ("c", nn.Linear(4, 4))]))


class M(nn.Module):
    def __init__(self):
        super().__init__()
        features = {make}()
        {line}
        self.features = features

    def forward(self, x):
        return self.features(x)
"""


@pytest.mark.parametrize("make", ["plain", "by_name"])
@pytest.mark.parametrize(
    "line",
    ["del features[-1]", "features.pop(0)", "features[2] = nn.LayerNorm(4)", "del features[:1]"],
)
def test_a_sequential_that_a_function_makes(make: str, line: str) -> None:
    """Only a run tells whether its layers have names."""
    check(MADE.format(make=make, line=line))


GAINS = [
    "features.append(nn.Tanh())",
    "features.insert(0, nn.Tanh())",
    "features.extend([nn.Tanh()])",
]


@pytest.mark.parametrize("line", GAINS)
def test_a_sequential_that_a_function_makes_gains_layers(line: str) -> None:
    """How they are named is seen where the function makes it."""
    check(MADE.format(make="plain", line=line))


def test_a_sequential_that_a_function_makes_gains_a_named_layer() -> None:
    check(MADE.format(make="by_name", line=GAINS[0]))
    assert rules_of(MADE.format(make="by_name", line=GAINS[1])) == ["API007"]


def test_a_sequential_of_layers_that_are_handed_over_gains_none() -> None:
    code = MADE.replace("def plain():", "def plain(layers=None):")
    code = code.replace(
        "nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))", "nn.Sequential(layers)"
    )
    assert "API007" in rules_of(code.format(make="plain", line=GAINS[0]))


SLICED = """
from collections import OrderedDict


def plain():
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 4))


def named():
    return nn.Sequential(OrderedDict(a=nn.Linear(4, 4), b=nn.Tanh(), c=nn.Linear(4, 4), d=nn.Linear(4, 4)))


class Enc(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def forward(self, x):
        return self.net(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        net = {make}()
        self.head, self.tail = net[:2], net[2:]
        self.enc = Enc(net[1:3])
        self.list = nn.ModuleList([net[:1], net[1:], *net[2:]])
        self.dict = nn.ModuleDict({"odd": net[1::2], "even": net[::2]})
        self.seq = nn.Sequential(net[:1], nn.ReLU(), net[3:])
        self.rest = self.after(net, 2)
        part = net[1:]
        self.twice = nn.Sequential(net[1:][1:], net[1:][:2], part[:2], part[1:])
        self.made = nn.ModuleDict({str(i): net[i : i + 2] for i in range(2)})
        self.more = nn.ModuleList([net[i:] for i in range(3)])
        self.sum = (net + net[1:] + net)[3:]

    def after(self, net, place):
        return net[place:]

    def forward(self, x):
        for one in self.seq:
            x = one(x)
        for one in self.head[:1]:
            x = one(x)
        return self.tail(self.head(x)) + self.enc(x) + self.list[1](x) + self.dict["odd"](x) + self.rest(self.sum(x))
"""


@pytest.mark.parametrize("make", ["plain", "named"])
def test_a_kept_slice_of_a_sequential_keeps_its_names(make: str) -> None:
    check(SLICED.replace("{make}", make))


SPREAD = """
import functools
import itertools


class M(nn.Module):
    def __init__(self):
        super().__init__()
        net = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.Linear(4, 4))
        self.list = nn.ModuleList([*net[2:], *net])
        self.list.extend(net[:1])
        layers = [*net[:2]]
        layers += net[2:]
        layers.extend(net[::2])
        self.seq = nn.Sequential(*layers)
        first, *rest = net[1:]
        self.rest = nn.Sequential(*rest)
        self.both = nn.Sequential(*itertools.chain(net[:1], self.rest))
        self.sum = net[1:] + nn.Sequential(nn.ReLU(), nn.Linear(4, 4))
        self.given = nn.ModuleList(self.go(net))
        self.net = net

    def go(self, net):
        yield from net

    def forward(self, x):
        x = sum(map(self.net, [x, x])) + sum(itertools.starmap(self.net, [(x,)]))
        for one in itertools.repeat(self.net, 2):
            x = one(x)
        x = functools.reduce(lambda h, layer: layer(h), self.both, self.sum(x))
        for one in [*self.list, self.net[0]]:
            x = one(x)
        first, second = self.net[:2]
        return self.seq(x) + self.rest(x) + second(first(x)) + len(self.net[1:])
"""


def test_the_layers_of_a_sequential_one_by_one() -> None:
    check(SPREAD)


PUT = """
def plain():
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


class Back(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = plain()

    def forward(self, x):
        return self.features(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.back = Back()
        self.back.features[-1] = nn.Identity()
        self.net = plain()
        self.net[0] = nn.Identity()
        self.net[1] = nn.Linear(4, 4)

    def forward(self, x):
        return self.net(self.back(x))
"""


def test_a_function_in_the_place_of_a_layer() -> None:
    check(PUT)


@pytest.mark.parametrize("value", ["2 * net", "net * 2", "net + [nn.Linear(4, 4)]"])
def test_other_operators_of_a_sequential_are_a_finding(value: str) -> None:
    source = f"def f():\n    net = nn.Sequential(nn.Linear(4, 4))\n    return {value}\n"
    assert "API007" in rules_of(source)


TWICE = """
class Twice(nn.Sequential):
    def forward(self, x):
        return super().forward(x) * 2


class M(nn.Module):
    def __init__(self):
        super().__init__()
        net = Twice(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))
        LINES

    def forward(self, x):
        return self.net(x)
"""


def test_a_slice_has_the_forward_pass_of_its_class() -> None:
    assert "API007" in rules_of(TWICE.replace("LINES", "self.net = net[1:]"))
    check(TWICE.replace("LINES", "self.net = nn.Sequential(*net[1:]) + nn.Sequential(*net)"))


def test_a_sequential_that_gains_layers_by_an_operator_is_a_finding() -> None:
    source = "def f():\n    net = nn.Sequential(nn.Linear(4, 4))\n    net += nn.Sequential(nn.ReLU())\n    return net\n"
    assert "API007" in rules_of(source)
