"""What a Sequential begins with whose layers a list is filled with: one that works in place overwrites the input."""

from __future__ import annotations

from textwrap import indent

import pytest

from tests.convert.tools import check, rules_of

NET = """
def fill(made):
    made.append(nn.ReLU(inplace=True))


def count(made):
    return len(made)


class M(nn.Module):
    def __init__(self, times=2):
        super().__init__()
{lines}
        self.net = nn.Sequential(*{name})

    def fill(self, made):
        made.append(nn.ReLU(inplace=True))

    def forward(self, x):
        x = x * 1.5
        return self.net(x) + x
"""
LOOP = """layers = {0}
for _ in range(times):
    layers.append({1})
    layers.append({2})"""
IN_PLACE, LINEAR = "nn.ReLU(inplace=True)", "nn.Linear(4, 4)"
LISTS = ["[]", "list()", "nn.ModuleList()", "nn.ModuleList([])"]


def _net(lines: str, own: bool = False) -> str:
    if own:
        lines = lines.replace("layers", "self.layers")
    body = "\n".join(" " * 8 + line for line in lines.splitlines())
    return NET.format(lines=body, name="self.layers" if own else "layers")


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("made", LISTS)
def test_what_a_list_is_filled_with(made: str, own: bool) -> None:
    assert "MUT002" in rules_of(_net(LOOP.format(made, IN_PLACE, LINEAR), own))
    if not own or "ModuleList" in made:  # a plain list is no child, and is not converted as one
        check(_net(LOOP.format(made, LINEAR, IN_PLACE), own))


@pytest.mark.parametrize(
    "line",
    [
        "fill(layers)",
        "self.fill(layers)",
        "other = layers; other.append(nn.ReLU(inplace=True))",
        "other = layers; other += [nn.ReLU(inplace=True)]",
        "self.made = layers; self.made.append(nn.ReLU(inplace=True))",
        "pair = [layers, 2]; pair[0].append(nn.ReLU(inplace=True))",
        "[layers.append(nn.ReLU(inplace=True)) for _ in range(times)]",
        "layers.append(nn.ReLU(inplace=True)) if times else None",
        "for one in (layers, []):\n    one.append(nn.ReLU(inplace=True))",
        "def more():\n    layers.append(nn.ReLU(inplace=True))\n\nmore()",
    ],
)
def test_what_else_may_fill_it(line: str) -> None:
    source = _net(f"layers = []\n{line}\nlayers.append(nn.Linear(4, 4))")
    assert "MUT002" in rules_of(source)


@pytest.mark.parametrize(
    "line",
    [
        "n = count(layers)",
        "print(layers)",
        "other = layers",
        "layers = list(layers)",
        "def more():\n    return nn.ReLU(inplace=True)\n\nlayers.append(nn.Linear(4, 4))\nlayers.append(more())",
    ],
)
def test_what_only_reads_it(line: str) -> None:
    check(_net(f"layers = []\n{line}\nlayers.append(nn.Linear(4, 4))"))


def test_a_list_that_another_method_fills() -> None:
    lines = "self.layers = nn.ModuleList()\nself.more()\nself.layers.append(nn.Linear(4, 4))"
    more = "\n\n    def more(self):\n        self.layers.append(nn.ReLU(inplace=True))\n"
    assert "MUT002" in rules_of(_net(lines).replace("*layers", "*self.layers") + more)


def test_two_towers_of_lists_that_are_kept() -> None:
    check(
        """
class M(nn.Module):
    def __init__(self, times=2):
        super().__init__()
        self.a = nn.ModuleList()
        self.b = nn.ModuleList()
        for i in range(times):
            self.a.append(nn.Linear(4 if i == 0 else 6, 6, bias=False))
            self.b.append(nn.Linear(4 if i == 0 else 6, 6))
            self.a.append(nn.ReLU(inplace=True))
            self.b.append(nn.ReLU(inplace=True))
        self.left, self.right = nn.Sequential(*self.a), nn.Sequential(*self.b)

    def forward(self, x):
        made = []
        for one in (x, x + 1):
            a = self.left(one)
            b = self.right(one)
            made.append(a * b)
        return made[0] - made[1]
"""
    )


MADE = """
import itertools

from torch.utils.checkpoint import checkpoint


def layers_of(n):
    yield nn.ReLU(inplace=True)
    yield nn.Linear(n, n)


class M(nn.Module):
    def __init__(self, n=4, times=2):
        super().__init__()
{lines}

    def forward(self, x):
        x = x * 1.5
        a = {call}
        return {left}
"""
SELDOM = [
    ("self.net = nn.Sequential(*layers_of(n))", "self.net(x)"),
    (
        "a, b = [], []\na.append(ACT)\nself.net = nn.Sequential(*itertools.chain(a, b))",
        "self.net(x)",
    ),
    ("self.net = nn.Sequential(nn.Linear(n, n))\nself.net.insert(0, ACT)", "self.net(x)"),
    ("self.net = nn.Sequential(ACT, nn.Linear(n, n))", "self.net.forward(x)"),
    ("self.net = nn.Sequential(ACT, nn.Linear(n, n))", "checkpoint(self.net, x)"),
    ("self.all = nn.ModuleList()\nself.all += [ACT for _ in range(times)]", "self.all[0](x)"),
    ("for i in range(times):\n    setattr(self, f'a{i}', ACT)", "getattr(self, 'a0')(x)"),
    ("for i in range(times):\n    setattr(self, f'a{i}', ACT)", "self.a0(x)"),
    ("for i in range(times):\n    self.add_module('a%d' % i, ACT)", "self._modules['a0'](x)"),
]


def _made(lines: str, call: str, left: str) -> str:
    lines = lines.replace("ACT", IN_PLACE)
    return MADE.format(lines=indent(lines, " " * 8), call=call, left=left)


@pytest.mark.parametrize(("lines", "call"), SELDOM)
def test_layers_that_are_put_in_or_called_in_seldom_ways(lines: str, call: str) -> None:
    """The input is read again, and is another one in torch: that is refused, or written before the call."""
    source = _made(lines, call, "a + x")
    rules = rules_of(source)
    assert set(rules) <= {"MUT002"}
    if not rules:
        check(source)


@pytest.mark.parametrize(("lines", "call"), SELDOM[:-1])
def test_they_are_converted_where_nobody_reads_the_input_again(lines: str, call: str) -> None:
    check(_made(lines, call, "a * 2"))


def test_a_loop_that_may_run_no_time() -> None:
    """What stands behind it may then be first."""
    lines = "ls = []\nfor i in range(times):\n    ls.append(nn.Linear(n, n))\nls.append(ACT)\nself.net = nn.Sequential(*ls)"
    assert "MUT002" in rules_of(_made(lines, "self.net(x)", "a + x"))
    check(_made(lines, "self.net(x)", "a * 2"))
    check(_made(lines.replace("ACT", "nn.Linear(n, n)"), "self.net(x)", "a + x"))
    # of an empty list there is nothing to replace: it ran
    lines = "ls = []\nfor i in range(times):\n    ls.append(ACT)\n    ls.append(nn.Linear(n, n))\nls[0] = nn.ReLU()"
    check(_made(f"{lines}\nself.net = nn.Sequential(*ls)", "self.net(x)", "a + x"))


def test_what_is_put_behind_the_first_is_not_first() -> None:
    lines = "self.net = nn.Sequential(nn.Linear(n, n))\nself.net.insert(1, ACT)"
    check(_made(lines, "self.net(x)", "a + x"))


def test_a_checkpointed_layer_in_a_comprehension() -> None:
    lines = "self.net = nn.Sequential(ACT, nn.Linear(n, n))"
    assert "MUT002" in rules_of(
        _made(lines, "sum([checkpoint(self.net, x) for _ in range(2)])", "a * 2")
    )


CHOSEN = """if times == 2:
    layers = [{0}]
elif times == 3:
    layers = [nn.Linear(4, 4), nn.ReLU()]
for _ in range(times):
    layers.append(nn.Linear(4, 4))
layers.append(nn.ReLU(inplace=True))"""


def test_a_list_that_every_way_to_its_use_makes() -> None:
    """Without an ``else`` the name means nothing: Python raises before the list is used."""
    check(_net(CHOSEN.format(LINEAR)))
    assert "MUT002" in rules_of(_net(CHOSEN.format(IN_PLACE)))


@pytest.mark.parametrize(
    "line",
    [
        "for layers in ([], []):\n    pass",
        "layers, n = [], 1",
        "(layers := [])",
        "with open(times) as layers:\n    pass",
        "try:\n    layers = []\nexcept OSError:\n    pass",
    ],
)
def test_a_list_that_something_else_may_make(line: str) -> None:
    body = "\n".join("    " + part for part in line.splitlines())
    source = f"if times:\n    layers = [nn.Linear(4, 4)]\nelse:\n{body}\n"
    code = _net(source + "layers.append(nn.ReLU(inplace=True))")
    if "MUT002" not in rules_of(code):  # either way is run as it is
        check(code)
        check(code, 0)
