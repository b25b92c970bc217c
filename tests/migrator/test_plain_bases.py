"""Plain classes of one file that a module of another derives from, and containers handed from one file to another."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.convert.tools import check, rules_of
from tests.migrator.test_package_modules import compare
from tests.migrator.test_packages import blocking, convert

PLAIN = """
import torch
from torch import nn
import torch.nn.functional as F


class Part:
    def build(self, given=True):
        {build}

    def run(self, x):
        {run}
"""
NET = """
from torch import nn

from .part import Part


class Net(Part, nn.Module):
    def __init__(self):
        super().__init__()
        self.build()

    def forward(self, x):
        return self.run(x)
"""


def lines(text: str) -> str:
    return "\n        ".join(text.split("; "))


MADE = "self.a = nn.Linear(4, 4); self.b = nn.Linear(4, 4); "
KEPT = [
    (MADE + "self.pair = (self.a, self.b)", "return self.pair[1](self.pair[0](x))"),
    (
        "for i in range(2):;     setattr(self, f'l{i}', nn.Linear(4, 4) if i else nn.Identity()); "
        "self.seq = [getattr(self, f'l{i}') for i in range(2)]",
        "for m in self.seq:;     x = m(x); return x",
    ),
    (
        MADE + "self.c = None; if given:;     self.c = nn.Linear(4, 4)",
        "return self.c(self.b(self.a(x))) if self.c is not None else x",
    ),
    (
        MADE + "self.t = None",
        "if self.t is None:;     self.t = torch.ones(4); return self.b(self.a(x)) + self.t",
    ),
    (MADE + "self.t = [torch.ones(4), torch.zeros(4)]", "return self.b(self.a(x)) + self.t[0]"),
    (
        MADE + "self.t = {'a': torch.ones(4), 'b': (torch.zeros(4),)}",
        "return self.b(self.a(x)) + self.t['a'] * self.t['b'][0]",
    ),
    (
        MADE + "self.act = None; if given:;     self.act = nn.ReLU()",
        "return self.act(self.b(self.a(x))) if self.act else x",
    ),
    (MADE + "self.apply(self.reset)", "return self.b(self.a(x))"),
]
RESET = """

    def reset(self, m):
        if isinstance(m, nn.Linear):
            nn.init.constant_(m.weight, 0.1)
"""


@pytest.mark.parametrize(("build", "run"), KEPT)
def test_what_a_plain_base_keeps(build: str, run: str, tmp_path: Path) -> None:
    text = PLAIN.format(build=lines(build), run=lines(run)) + RESET
    compare(tmp_path, {"part.py": text, "net.py": NET})


def test_a_table_of_layers_is_told(tmp_path: Path) -> None:
    text = PLAIN.format(build=lines(MADE + "self.t = {'a': self.a}"), run="return self.t['a'](x)")
    assert any(
        "API008" in one for one in blocking(convert(tmp_path, {"part.py": text, "net.py": NET}))
    )


ROOT = """
from torch import nn


class Root(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return {run}(self.fc(x))
"""
DRAWS = """
import torch


class Part:
    def run(self, x):
        return x + torch.rand_like(x)
"""
HEIR = "from .root import Root\nfrom .part import Part\n\n\nclass Net(Part, Root):\n    pass\n"


@pytest.mark.parametrize("run", ["self.run", "getattr(self, 'r' + 'un')", "getattr(self, 'run')"])
def test_a_method_that_another_base_calls_without_a_generator(run: str, tmp_path: Path) -> None:
    files = {"root.py": ROOT.format(run=run), "part.py": DRAWS, "net.py": HEIR}
    assert any("API003" in one for one in blocking(convert(tmp_path, files)))
    still = DRAWS.replace("torch.rand_like(x)", "x")
    compare(tmp_path / "still", {**files, "part.py": still})


BEGINS = """
from torch import nn


class Part:
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fc = nn.Linear(4, 4)
"""
OWN = """
from torch import nn

from .part import Part
from .root import Root


class Net(Part, {base}):
    {init}

    def forward(self, x):
        return self.fc(x)
"""
INIT = "def __init__(self):\n        super().__init__()\n        self.more = nn.Linear(4, 4)"


def test_a_constructor_of_a_plain_base(tmp_path: Path) -> None:
    files = {"root.py": ROOT.format(run="self.fc"), "part.py": BEGINS}
    compare(tmp_path, {**files, "net.py": OWN.format(base="nn.Module", init=INIT)})


@pytest.mark.parametrize("init", [INIT, "pass"])
def test_one_before_a_constructor_that_needs_the_generator_too(init: str, tmp_path: Path) -> None:
    files = {"root.py": ROOT.format(run="self.fc"), "part.py": BEGINS}
    files["net.py"] = OWN.format(base="Root", init=init)
    assert any("API005" in one for one in blocking(convert(tmp_path, files)))


RUNNER = """
from torch import nn


class Runner(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = {kept}

    def forward(self, x):
        for m in self.layers:
            x = m(x)
        return x
"""
HANDS = """
import torch
from torch import nn

from .runner import Runner


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l0 = nn.Linear(4, 4)
        self.l1 = nn.Linear(4, 4)
        self.run = Runner({given})

    def forward(self, x):
        return self.run(x)
"""


@pytest.mark.parametrize(
    "given",
    [
        "[self.l0, self.l1]",
        "(self.l0, self.l1)",
        "{'a': self.l0}",
        "[getattr(self, f'l{i}') for i in range(2)]",
        "[nn.Linear(4, 4) for _ in range(2)]",
        "[torch.ones(4)]",
    ],
)
def test_what_another_file_keeps_as_it_is(given: str, tmp_path: Path) -> None:
    files = {"runner.py": RUNNER.format(kept="layers"), "net.py": HANDS.format(given=given)}
    assert any("API008" in one for one in blocking(convert(tmp_path, files)))


@pytest.mark.parametrize(
    ("kept", "given"),
    [
        ("layers", "nn.ModuleList([self.l0, self.l1])"),
        ("nn.ModuleList(layers)", "[self.l0, self.l1]"),
        ("nn.Sequential(*layers)", "[nn.Linear(4, 4) for _ in range(2)]"),
        ("layers", "[torch.tanh, torch.sin]"),
        ("layers", "[nn.ReLU(), nn.Tanh()]"),
    ],
)
def test_what_another_file_may_keep(kept: str, given: str, tmp_path: Path) -> None:
    files = {"runner.py": RUNNER.format(kept=kept), "net.py": HANDS.format(given=given)}
    compare(tmp_path, files)


NESTED = """
from torch import nn


class Space:
    class Inner(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.fc = nn.Linear(dim, dim)

        def forward(self, x):
            return self.fc(x)


class Other:
    class Inner:
        dim = 4
"""
USES = """
from torch import nn

from .spaces import Other, Space


class Own(Space.Inner):
    def forward(self, x):
        return super().forward(x) * 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Space.Inner(Other.Inner.dim)
        self.b = Own(4)

    def forward(self, x):
        return self.b(self.a(x))
"""


def test_classes_in_the_body_of_one_of_another_file(tmp_path: Path) -> None:
    compare(tmp_path, {"spaces.py": NESTED, "net.py": USES})


WRAPS = """
from torch import nn


class Wrap(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(self.inner, name)

    def forward(self, x):
        return self.inner(x)
"""
ASKS = """
from torch import nn

from .wraps import Wrap


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = Wrap(nn.Linear(4, 4))

    def forward(self, x):
        return self.fc(x) * self.fc.{name}.sum()
"""


def test_what_a_wrapper_looks_up_in_a_layer(tmp_path: Path) -> None:
    found = convert(tmp_path, {"wraps.py": WRAPS, "net.py": ASKS.format(name="weight")})
    assert any("API005" in one for one in blocking(found))
    compare(tmp_path / "bias", {"wraps.py": WRAPS, "net.py": ASKS.format(name="bias")})


ADDS = """
def add_to(t, other):
    t += other


def both(t, other):
    t += other
    return t


def widths(n, by):
    n += by
    return [n, n]
"""
CALLS = """
from torch import nn

from .adds import add_to, both, widths


class Net(nn.Module):
    def __init__(self, layers=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        n = 3
        wide = widths(n, 1)
        self.n = n + wide[0]

    def forward(self, x):
        y = self.fc(x)
        z = [y][int(self.n) - 7]{copied}
        {line}
        return z * y
"""
PLAIN_FORWARD = """
from .adds import add_to


class Part:
    def forward(self, x):
        y = self.fc(x)
        z = y + 0
        add_to(z, x)
        return z * y
"""


@pytest.mark.parametrize("line", ["add_to(z, x)", "w = both(z, x)"])
def test_what_a_function_of_another_file_may_write_to(line: str, tmp_path: Path) -> None:
    files = {"adds.py": ADDS, "net.py": CALLS.format(line=line, copied=".foo()")}
    assert any("MUT003" in one for one in blocking(convert(tmp_path, files)))


def test_what_it_writes_to_is_taken_back(tmp_path: Path) -> None:
    compare(
        tmp_path,
        {"adds.py": ADDS, "net.py": CALLS.format(line="z = both(z, x)", copied=" + 0")},
    )


def test_a_plain_class_with_a_forward_pass_calls_it(tmp_path: Path) -> None:
    net = "from torch import nn\n\nfrom .part import Part\n\n\nclass Net(Part, nn.Module):\n"
    net += (
        "    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(4, 4)\n"
    )
    files = {"adds.py": ADDS, "part.py": PLAIN_FORWARD, "net.py": net}
    assert any("MUT003" in one for one in blocking(convert(tmp_path, files)))


LEFT_OPEN = """
from torch import nn


class Part(nn.Module):
    def __init__(self, act=nn.ReLU, head=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = act()
        self.first = nn.ReLU()
        self.head = head
        self.scale = 1.0

    def forward(self, x):
        x = self.act(self.first(self.fc(x)))
        x = x if self.head is None else self.head(x)
        return x * self.scale
"""
GIVES = """
import torch
from torch import nn

from .part import Part


class Own(Part):
    def __init__(self):
        super().__init__()
        self.first = nn.PReLU()
        self.scale = nn.Parameter(torch.tensor(2.0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Part(nn.Tanh, nn.Linear(4, 4))
        self.b = Part()
        self.b.head = nn.Linear(4, 4, bias=False)
        self.b.act = nn.PReLU()
        self.c = Own()

    def forward(self, x):
        return self.c(self.b(self.a(x)))
"""


def test_layers_in_the_place_of_what_another_file_puts_there(tmp_path: Path) -> None:
    compare(tmp_path, {"part.py": LEFT_OPEN, "net.py": GIVES})


OPTIONS = RUNNER.format(kept="layers").replace("layers)", "*, layers=(), **options)")
OPTIONS = OPTIONS.replace("self.layers =", "self.options = options\n        self.layers =")


@pytest.mark.parametrize("given", ["norm=nn.LayerNorm(4)", "bias=torch.ones(4)"])
def test_layers_that_are_kept_in_a_dict_of_options(given: str, tmp_path: Path) -> None:
    files = {"runner.py": OPTIONS, "net.py": HANDS.format(given=given)}
    assert any("API008" in one for one in blocking(convert(tmp_path, files)))


def test_what_classes_of_one_file_keep_and_are_given() -> None:
    head = LEFT_OPEN.replace("from torch import nn", "")
    body = GIVES.replace("from .part import Part", "").replace("class Net", "class M")
    check(head + "\n".join(body.splitlines()[4:]))
    kept = RUNNER.format(kept="layers").replace("layers)", "layers=())")
    uses = HANDS.format(given="(nn.PReLU(),)").replace("class Net", "class M")
    uses = uses.replace("from .runner import Runner", "")
    assert "API008" in rules_of(kept + uses)
