"""State that one part of an expression reads and another writes: refused, or torch's results."""

from __future__ import annotations

import datetime
import os
import random

import pytest

from tests.convert.test_kept_state import agree
from tests.convert.tools import HEADER, sides

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
STATE = """class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("s", torch.arange(4.0))

    def get(self):
        return self.s

    def up(self, x):
        self.s += x.mean(0)
        return self.s

    def quiet(self, x):
        self.s += x.mean(0)
        return x[0]

    def put(self, x):
        self.s = self.s + x.mean(0)
        return self.s

    def forward(self, x):
        return self.up(x)


def up(m, x):
    m.s += x.mean(0)
    return m.s


def get(m):
    return m.s


def first(a, b):
    return a


"""
MAIN = """class M{number}({base}):
    def __init__(self):
        super().__init__()
        {begin}

    def forward(self, x):
        {lines}


"""
BEGINS = {
    "a base": ("Part", "pass", "self"),
    "a part": ("nn.Module", "self.part = Part()", "self.part"),
    "one of several": (
        "nn.Module",
        "self.parts = nn.ModuleList([Part(), Part()])",
        "self.parts[0]",
    ),
}
READS = [
    "O.s",
    "O.get()",
    "get(O)",
    "O.up(x)",
    "up(O, x)",
    "(O.s * 1)",
    "O.get()[:2].repeat(2)",
    "O.put(x)",
]
WRITES = ["O.up(2 * x)", "O.quiet(2 * x)", "up(O, 2 * x)", "O.put(2 * x)", "O(2 * x)"]
FORMS = [
    "return x + (READ + WRITE)",
    "return x + READ + WRITE",
    "return x + (WRITE + READ)",
    "return x + torch.stack([READ, WRITE]).sum(0)",
    "return x + sum((READ, WRITE))",
    "return x + torch.add(READ, WRITE)",
    "return x + torch.add(input=READ, other=WRITE)",
    "return x + READ.add(WRITE)",
    "return x + first(READ, WRITE)",
    "return x + [READ, WRITE][0]",
    "return x + {'a': READ, 'b': WRITE}['a']",
    "return x + (READ if WRITE is not None else x)",
    "return x + torch.stack([READ * 1 + WRITE for i in range(3)]).sum(0)",
    "return x + torch.stack([READ for i in range(3) if WRITE is not None]).sum(0)",
    "return x + torch.stack([WRITE for i in range(3)]).sum(0)",
    "return x + sum(WRITE for i in range(3))",
    "return x + torch.stack(list(map(lambda i: WRITE, range(3)))).sum(0)",
    "a, b = READ, WRITE; return x + a + b",
    "a = READ; b = WRITE; return x + a + b",
    "a = [READ, WRITE]; return x + a[0]",
    "x = x * 1; x += WRITE; return x + READ",
    "return x + torch.where(READ < 1, READ, WRITE)",
    "return x + (READ < WRITE)",
    "out = []; for i in range(3): out.append(WRITE); return x + torch.stack(out).sum(0)",
    "for t in (READ, WRITE): x = x + t; return x",
]
PROGRAMS = [
    (begin, form.replace("READ", read).replace("WRITE", write))
    for begin in BEGINS
    for form in FORMS
    for read in READS
    for write in WRITES
]


def _compare(programs: list[tuple[str, str]]) -> int:
    """How many forward passes are converted; each of them has torch's results."""
    text, places = HEADER + STATE, []
    for number, (name, form) in enumerate(programs):
        base, begin, holder = BEGINS[name]
        form = form.replace("; return", "\n        return").replace("; ", "\n        ")
        form = form.replace(": out", ":\n            out").replace(": x =", ":\n            x =")
        first = text.count("\n")
        text += MAIN.format(number=number, base=base, begin=begin, lines=form.replace("O", holder))
        places.append((first, text.count("\n")))
    told, theirs, ours = sides(text)
    found = 0
    for number, (first, last) in enumerate(places):
        if not any(first < line <= last for line in told):
            name = f"M{number}"
            found += agree(theirs[name], ours[name], str(programs[number]))
    return found


def test_state_in_expressions_today() -> None:
    _compare(random.Random(SEED).sample(PROGRAMS, 40))


@pytest.mark.sweep
@pytest.mark.parametrize("form", FORMS)
def test_all_state_in_expressions(form: str) -> None:
    size = len(READS) * len(WRITES)
    for begin in range(len(BEGINS)):
        first = (begin * len(FORMS) + FORMS.index(form)) * size
        _compare(PROGRAMS[first : first + size])


def test_what_is_used_up_before_is_converted() -> None:
    lines = [
        "return x + READ + WRITE",
        "return x + (READ * 1 + WRITE)",
        "return x + (READ.clone() + WRITE)",
    ]
    made = [one.replace("READ", "O.s").replace("WRITE", "O.up(2 * x)") for one in lines]
    assert _compare([(begin, line) for begin in BEGINS for line in made]) == 9
