"""What the rounds of a loop tell one another: a name that one branch binds in a round and another reads in the next."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        {before}
        for t in range(3):
            {body}
        return {result}
"""


def _source(before: str, body: str, result: str = "x") -> str:
    lines = body.strip("\n").replace("\n", "\n            ")
    return SOURCE.format(before=before, body=lines, result=result)


@pytest.mark.parametrize(
    ("before", "body", "result"),
    [
        ("y = x * 2", "if t == 0:\n    u = x > 0\nelse:\n    y[~u] = 1.\n    u = u & (y < 1)", "y"),
        ("y, u = x * 2, None", "if u is None:\n    u = x > 0\nelse:\n    y[~u] = 1.", "y"),
        ("u = None", "u = x > 0 if u is None else u & (x > .5)\nx[u] = 0.", "x"),
        ("x = x * 1", "if t == 0:\n    h = torch.zeros_like(x)\nelse:\n    h[t] = x[t - 1]", "h"),
        ("h = None", "if h is None:\n    h = x * 2\nelse:\n    h[:, 1] += 1", "h"),
        ("h = None", "if h is not None:\n    h[:, 1] += 1\n    continue\nh = x * 2", "h"),
        ("x = x * 1", "if t == 0:\n    h = x * 2\n    continue\nh[t - 1] = 1", "h"),
        ("x = x * 1", "if t > 0:\n    h += 1\n    h[0] = 7\nif t == 0:\n    h = x * 2", "h"),
        (
            "x = x * 1",
            "if t == 0:\n    h = x * 2\n    g = h + 1\nelse:\n    g = g * h\n    g[0] = 2",
            "g",
        ),
        (
            "x = x * 1",
            "if t == 0:\n    h = x * 2\nelse:\n    x = x + h.std() + h.max(1)[0][:, None]",
            "x",
        ),
        (
            "x = x * 1",
            "for s in range(2):\n    if t + s == 0:\n        h = x * 2\n    else:\n        h[s] = 1",
            "h",
        ),
        (
            "x = x * 1",
            "try:\n    if t == 0:\n        h = x * 2\n    else:\n        h[0] = 2\nfinally:\n    pass",
            "h",
        ),
        ("x = x * 1", "if t == 1:\n    h = x * 2\n    break", "h.std(0)"),
    ],
)
def test_a_name_of_another_branch(before: str, body: str, result: str) -> None:
    check(_source(before, body, result))


@pytest.mark.parametrize(
    "body",
    [
        "if t == 0:\n    h = x\nelse:\n    h += 1\n    x = x * h",
        "if t == 0:\n    h = x[0]\nelse:\n    h[0] = 1\nx = x + x",
    ],
)
def test_another_name_for_the_tensor_is_seen(body: str) -> None:
    assert rules_of(_source("x = x * 1", body, "x, h"))[:1] == ["MUT001"]


def test_what_is_none_for_other_reasons_is_not_passed_over() -> None:
    """A function that another one gives its value to runs on, whatever the name is in the file."""
    source = """
KNOWN = None


def learn(x):
    global KNOWN
    KNOWN = x


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        for t in range(2):
            if KNOWN is None:
                x = x + 1
            else:
                x = KNOWN.std() + x
        return x
"""
    code = convert(source).code
    assert ".std()" not in code or not convert(source).complete


ITEMS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def part(self, x, d, m):
        x = torch.relu(x)
        {line}
        return x

    def forward(self, x):
        d = {{"m": x > 0.2, "i": torch.tensor([0, 2])}}
        return self.part(x, dict(list(d.items())), d["m"])
"""


@pytest.mark.parametrize(
    "line",
    [
        'x[d["m"]] = 2.',
        'x[~d["m"]] = 2.',
        'x[d["m"] & ~d["m"]] = 2.',
        'x[d["m"] * d["m"]] += 1',
        'x[d["i"]] = 2.',
        'x[:, d["i"]] = 2.',
        'x[0, ~d["m"][0]] = 2.',
        'x[d["i"]] -= 1',
        'y = x * d["m"]; y[d["m"]] = 2.; x = x + y',
    ],
)
def test_an_index_of_unknown_kind_may_be_a_mask(line: str) -> None:
    check(ITEMS.format(line=line))
