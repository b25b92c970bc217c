"""Which of its arguments a function may return: what is written in place afterwards changes those, and no others."""

from pathlib import Path

import pytest

from tests.convert.tools import check, rules_of
from tests.migrator.test_packages import blocking
from tests.migrator.test_packages import convert as convert_package

FUNCTIONS = """
def first(a, b):
    return a.view(-1)


def either(a, b, c=True):
    return a if c else b


def sized(a, b):
    size = list(a.shape)
    size[0] = 1
    return a.view(size[0], -1)[0]


def put(xs, y):
    xs.append(y)
    return xs[1]


def kept(xs, y):
    xs[0] = y
    return xs[0]


def handed(a, *others):
    return a.view(-1) if not others else others[0]


class Box:
    def __init__(self):
        self.inside = None


def boxed(box, y):
    box.inside = y
    return box.inside
"""
MODULE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        y = self.l(x)[0] * 1
        h = {call}
        h.add_(1)
        return h + y
"""


@pytest.mark.parametrize(
    "call", ["first(x * 1, y)[:4]", "first(b=y, a=x * 1)[:4]", "sized(x * 2, y)[:4]"]
)
def test_what_the_function_does_not_return_stays(call: str) -> None:
    assert "h = h + 1" in check(FUNCTIONS + MODULE.format(call=call))


@pytest.mark.parametrize(
    "call",
    [
        "either(x[0] * 1, y)",
        "first(b=x * 1, a=y)",
        "put([x], y)",
        "kept([x], y)",
        "handed(x * 1, y)",
        "first(*[y, x])",
        "boxed(Box(), y)",
    ],
)
def test_what_the_function_may_return_changes(call: str) -> None:
    found = rules_of(FUNCTIONS + MODULE.format(call=call))
    assert found, call
    assert found[0].startswith(("MUT", "API"))


@pytest.mark.parametrize(
    ("call", "blocks"), [("first(x * 1, y)[:4]", False), ("first(y, x)", True)]
)
def test_a_function_of_another_file(tmp_path: Path, call: str, blocks: bool) -> None:
    head = "from torch import nn\nfrom .functions import first\n\n"
    files = {
        "functions.py": "import torch\n" + FUNCTIONS,
        "net.py": head + MODULE.format(call=call),
    }
    found = [one for one in blocking(convert_package(tmp_path, files)) if one.startswith("net.py")]
    assert ["MUT001" in one for one in found] == [True] * blocks


RESULTS = """
def shared(n):
    v = torch.ones(n)
    return [v], v


def apart(n, start=None):
    rows = [torch.arange(n) if start is None else start]
    return [(rows[0] > i).float() for i in range(2)], rows[0]


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("kept", torch.arange(4))
        {init}

    def forward(self, x):
        {forward}
        return x
"""


def test_a_list_that_a_function_makes_beside_what_it_is_handed() -> None:
    """MADE's masks are made of the degrees that a layer is handed, but share no memory with them."""
    init = 'masks, self.order = apart(4, self.kept); self.register_buffer("mask", masks[1])'
    code = check(RESULTS.format(init=init, forward="self.mask += 1; x = x * self.mask + self.kept"))
    assert "apart(4, self.kept" in code
    forward = "masks, row = apart(4, x[0]); masks[0] += 1; x = x + masks[0] + row"
    check(RESULTS.format(init="", forward=forward))


@pytest.mark.parametrize(
    ("init", "forward"),
    [
        (
            'a, v = shared(4); self.register_buffer("a", a[0]); self.register_buffer("v", v)',
            "self.a += 1; x = x + self.v",
        ),
        ("", "a, v = shared(4); a[0] += 1; x = x + v"),
        ("", "a, v = apart(4, x[0]); a.append(v); a[2] += 1"),
    ],
)
def test_a_list_that_a_function_makes_of_what_it_gives_beside(init: str, forward: str) -> None:
    assert "MUT001" in rules_of(RESULTS.format(init=init, forward=forward))
