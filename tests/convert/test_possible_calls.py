"""Methods that write to their argument and that no kind says are called: refused, or torch's results."""

from __future__ import annotations

import datetime
import os
import random

import pytest

from tests.convert.test_kept_state import agree
from tests.convert.tools import HEADER, convert, sides

SEED = int(os.environ.get("PROGRAMS_SEED", datetime.date.today().toordinal()))
WRITES = [
    "y += 1; return y",
    "y += 1",
    "v = y[0]; v += 1; return y",
    "v = y[0]; v += 1",
    "z = y; z += 1; return y",
    "for r in y: r += 1",
    "v = y.view(-1); v += 1; return y",
    "y[0] = 1; return y",
    "y[0] += 1",
    "y.add_(1)",
    "return y.add_(1)",
    "for r, s in zip(y, y): r += s * 0 + 1",
    "a, b, c = y; a += 1; return y",
    "a, b = y.chunk(2, 1); a += 1; return y",
    "t = y.T; t += 1; return y",
    "y = y + 0; v = y[0]; v += 1; return y",
    "v = y[0].clone(); v += 1; return y + v",
    "n = 0; n += y.size(0); return y * n",
    "out = 0; for r in y: out += r",
    "out = y[0]; out = out + 1; return y + out",
    "out = y[0]; out += y[1]; return y",
    "s = y[0]; s *= 2; return s",
    "l = [y, y * 2]; l[0] += 1; return y",
    "y[y > 0] = 0; return y",
    "if y.dim() == 2: y += 1",
    "k = y.shape[0]; k += 1; return y * k",
    "m = y.mean(); y -= m; return y",
    "return F.relu(y, inplace=True)",
    "def inner(z): z += 1; inner(y); return y",
]
USES = [
    "z = x * 2; w = CALL; return self.fc(w if w is not None else z)",
    "z = x * 2; w = CALL; return self.fc(z)",
    "z = x * 2; w = CALL; return self.fc(z) + (0 if w is None else w)",
]
OWN = """class M{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.name = "write"
        self.fc = nn.Linear(4, 4)
        nn.init.ones_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
{use}
    def write(self, y):
{write}

"""
HEIR = """class Base{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        nn.init.ones_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)
{own}
    def forward(self, x):
{use}

class M{number}(Base{number}):
    def write(self, y):
{write}

"""
PART = """class Part{number}(nn.Module):
    def forward(self, x):
        return x

    def write(self, y):
{write}

class M{number}(nn.Module):
    def __init__(self, part=None):
        super().__init__()
        self.part = part if part is not None else eval("Part{number}()")
        self.fc = nn.Linear(4, 4)
        nn.init.ones_(self.fc.weight)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
{use}

"""
_ABSTRACT = "\n    def write(self, y):\n        raise NotImplementedError\n"
_OVERRIDDEN = "\n    def write(self, y):\n        return y * 1\n"
WAYS = {
    "by name": (OWN, "getattr(self, self.name)(z)", ""),
    "by a made-up name": (OWN, 'getattr(self, f"wri{self.name[3:]}")(z)', ""),
    "bound": (OWN, "g(z)", ""),
    "of its type": (OWN, "type(self).write(self, z)", ""),
    "of its class": (OWN, "self.__class__.write(self, z)", ""),
    "of an heir": (HEIR, "self.write(z)", ""),
    "of an heir of an abstract one": (HEIR, "self.write(z)", _ABSTRACT),
    "of an heir that overrides it": (HEIR, "self.write(z)", _OVERRIDDEN),
    "of an unknown part": (PART, "self.part.write(z)", ""),
    "as it is": (OWN, "self.write(z)", ""),
}
PROGRAMS = [(way, write, use) for way in WAYS for write in WRITES for use in USES]


def _lines(text: str) -> str:
    return "".join(f"        {one.strip()}\n" for one in text.split(";"))


def _compare(programs: list[tuple[str, str, str]]) -> int:
    """How many forward passes are converted; each of them has torch's results."""
    text, places = HEADER, []
    for number, (way, write, use) in enumerate(programs):
        form, call, own = WAYS[way]
        use = use.replace("CALL", call)
        if way == "bound":
            use = f"g = getattr(self, self.name); {use}"
        first = text.count("\n")
        text += form.format(number=number, use=_lines(use), write=_lines(write), own=own)
        places.append((first, text.count("\n")))
    told, theirs, ours = sides(text)
    found = 0
    for number, (first, last) in enumerate(places):
        if not any(first < line <= last for line in told):
            found += agree(theirs[f"M{number}"], ours[f"M{number}"], str(programs[number]))
    return found


def test_what_may_be_called_today() -> None:
    _compare(random.Random(SEED).sample(PROGRAMS, 30))


@pytest.mark.sweep
@pytest.mark.parametrize("way", WAYS)
def test_all_that_may_be_called(way: str) -> None:
    every = [one for one in PROGRAMS if one[0] == way]
    for first in range(0, len(every), 30):
        _compare(every[first : first + 30])


def test_what_no_function_runs_is_no_write_to_an_argument() -> None:
    source = """
import argparse


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))


args = argparse.ArgumentParser().parse_args([])
args.rate = 0.5
args.rate *= 0.1
nets = {}
for net in nets.values():
    net.count += 1
    net.count = net.count * 2
    net.other += 1
    setattr(net, "count", net.count + 1)
"""
    assert not [f for f in convert(source).findings if f.blocks]


def test_what_writes_to_nothing_is_converted() -> None:
    plain = [
        "v = y[0].clone(); v += 1; return y + v",
        "n = 0; n += y.size(0); return y * n",
        "out = y[0]; out = out + 1; return y + out",
        "k = y.shape[0]; k += 1; return y * k",
    ]
    ways = [one for one in WAYS if one != "of an unknown part"]
    assert _compare([(way, write, USES[2]) for way in ways for write in plain]) == 36
