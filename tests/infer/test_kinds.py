"""What inference settles: shapes, methods that strings and tensors share, attributes, calls, containers."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest

import migrator
from migrator.infer import infer
from migrator.infer import kinds as k
from migrator.source import Source
from migrator.syntax import walk

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\nfrom functools import partial\n\n"


def kind_of(source: str, name: str) -> k.Kind:
    """The kind of the last assignment to a name."""
    parsed = Source(HEAD + textwrap.dedent(source))
    facts = infer(parsed)
    targets = [n.target for n in walk(parsed.tree) if isinstance(n, cst.AssignTarget)]
    found = [n for t in targets for n in walk(t) if isinstance(n, cst.Name) and n.value == name]
    return facts.kind(found[-1])


FUNCTION = "def f(x: torch.Tensor, s: str, n: int):\n"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("r = x.size(0)", k.INT),
        ("r, T, C = x.shape", k.INT),
        ("r = x.shape[1] // 2", k.INT),
        ("r = s.split(',')", k.Sequence(k.STR)),
        ("r = x.dtype", k.DType()),
        ("r = x.device", k.Device()),
        ("r = x > 0", k.Tensor(dtype="bool")),
        ("r = x.view(n, -1)", k.Tensor(rank=2)),
        ("r = torch.zeros(2, 3)[0]", k.Tensor(rank=1)),
        ("r = n / 2", k.FLOAT),
        ("r = [x, x]", k.Sequence(k.TENSOR)),
        ("r = None if n else x", k.Optional(k.TENSOR)),
    ],
)
def test_expressions(line: str, expected: k.Kind) -> None:
    found = kind_of(f"{FUNCTION}    {line}\n", "r")
    if isinstance(expected, k.Tensor):
        assert isinstance(found, k.Tensor)
        assert expected.rank in (None, found.rank)
        assert expected.dtype in (None, found.dtype)
    else:
        assert found == expected


@pytest.mark.parametrize(
    "line",
    [
        "r = x.split(2, dim=1)[0]",
        "q, r, v = x.chunk(3, -1)",
        "r = x.max(1)[0]",
        "r = x.max(1).values",
    ],
)
def test_pieces_are_tensors(line: str) -> None:
    assert isinstance(kind_of(f"{FUNCTION}    {line}\n", "r"), k.Tensor)


MODULE = """
class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.fc = nn.Linear(d, d)

    def forward(self, x):
        return self.fc(x), 1

class Net(nn.Module):
    def __init__(self, d, norm=nn.LayerNorm, blocks=(1, 2)):
        super().__init__()
        self.layers = nn.ModuleList([Block(d) for _ in blocks])
        stages = []
        for _ in blocks:
            stages.append(nn.Linear(d, d))
        self.stages = nn.Sequential(*stages)
        self.lstm = nn.LSTM(d, d, batch_first=True)
        self.norm = norm(d)
        self.down = None
        if d > 3:
            self.down = nn.Linear(d, d)
        self.register_buffer("mask", torch.ones(d))

    def forward(self, x, hidden=None):
        {line}
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("r, _ = self.layers[0](x)", k.Tensor),
        ("r = self.stages(x)", k.Tensor),
        ("out, (r, c) = self.lstm(x)", k.Tensor),
        ("r = self.norm", k.Module),
        ("r = self.norm(x)", k.Tensor),
        ("r = self.mask", k.Tensor),
        ("r = self.down", k.Optional),
        ("r = [layer(x)[0] for layer in self.layers]", k.Sequence),
        ("r = self.training", k.Scalar),
    ],
)
def test_attributes_across_methods(line: str, expected: type) -> None:
    assert isinstance(kind_of(MODULE.format(line=line), "r"), expected)


def test_a_function_learns_from_the_calls_it_makes_and_gets() -> None:
    source = """
    def loss(logits, target):
        r = target
        return F.cross_entropy(logits, target)

    def helper(a):
        s = a
        return a

    def main(x: torch.Tensor):
        t = helper(x)
    """
    for name in ("r", "s", "t"):
        assert isinstance(kind_of(source, name), k.Tensor)


def test_an_unknown_stays_unknown() -> None:
    assert kind_of("def f(a, b):\n    r = a.max(b)\n", "r") == k.UNKNOWN


LINEAR, RELU = k.Module("torch.nn.Linear"), k.Module("torch.nn.ReLU")


@pytest.mark.parametrize(
    ("a", "b", "joined"),
    [
        (k.INT, k.INT, k.INT),
        (k.Const(1), k.Const(2), k.INT),
        (k.NONE, k.TENSOR, k.Optional(k.TENSOR)),
        (k.Tensor(2, "float"), k.Tensor(3, "float"), k.Tensor(None, "float")),
        (k.TENSOR, k.INT, k.UNKNOWN),
        (k.NumberOrTensor(k.TENSOR), k.NONE, k.UNKNOWN),
        (k.NumberOrTensor(k.TENSOR), k.STR, k.UNKNOWN),
        (LINEAR, RELU, k.Module("torch.nn.Module", among=(LINEAR, RELU))),
        (LINEAR, k.Module("torch.nn.Module"), k.Module("torch.nn.Module")),
        (k.Class("a.A"), k.Class("a.B"), k.Class("", ("a.A", "a.B"))),
        (k.Class("a.A"), k.Class("torch.nn.Linear"), k.Class("")),
        (k.Tuple((k.INT, k.STR)), k.Tuple((k.INT, k.STR)), k.Tuple((k.INT, k.STR))),
    ],
)
def test_join(a: k.Kind, b: k.Kind, joined: k.Kind) -> None:
    assert k.join(a, b) == joined
    assert k.join(b, a) == joined


@pytest.mark.parametrize(
    ("a", "b", "either"),
    [
        (k.TENSOR, k.INT, k.NumberOrTensor(k.TENSOR)),
        (k.NumberOrTensor(k.Tensor(2)), k.Tensor(2, "float"), k.NumberOrTensor(k.Tensor(2))),
        (k.NumberOrTensor(k.TENSOR), k.FLOAT, k.NumberOrTensor(k.TENSOR)),
        (k.TENSOR, k.STR, k.UNKNOWN),
        (k.Tensor(2), k.Tensor(3), k.TENSOR),
    ],
)
def test_what_a_name_is_where_two_ways_meet(a: k.Kind, b: k.Kind, either: k.Kind) -> None:
    assert k.either(a, b) == either
    assert k.either(b, a) == either


@pytest.mark.parametrize("call", ["max(1)[0]", "min(1).values", "amax(0)", "median(2)[0]"])
def test_a_reduction_has_not_the_rank_of_what_it_reduces(call: str) -> None:
    kind = kind_of(f"def f(n: int):\n    x = torch.zeros(n, n, n)\n    r = x.{call}\n", "r")
    assert isinstance(kind, k.Tensor)
    assert kind.rank is None


@pytest.mark.parametrize("call", ["x.max()", "torch.sum(x)", "(x * 2).mean()", "x.std()"])
def test_a_reduction_of_all_has_no_axes(call: str) -> None:
    kind = kind_of(f"def f(x: torch.Tensor):\n    r = {call}\n", "r")
    assert isinstance(kind, k.Tensor)
    assert kind.rank == 0


@pytest.mark.parametrize(
    ("call", "rank"),
    [
        ("torch.clamp(y, min=-1e6, max=1e6)", 0),
        ("y.clamp(0)", 0),
        ("y.clamp_min(n)", 0),
        ("torch.clip(y, None, 3.0)", 0),
        ("torch.clamp(y, x)", None),
        ("y.clamp(max=x)", None),
    ],
)
def test_what_numbers_bound_keeps_its_rank(call: str, rank: int | None) -> None:
    kind = kind_of(f"def f(x: torch.Tensor, n: int):\n    y = x.sum()\n    r = {call}\n", "r")
    assert isinstance(kind, k.Tensor)
    assert kind.rank == rank


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def f(x: torch.Tensor, n: list):\n    r = x.view(-1, *n)\n", k.TENSOR),
        ("def f(x: torch.Tensor):\n    r = x.new_zeros(*x.shape[:3], 1)\n", k.TENSOR),
        ("def f(x: torch.Tensor):\n    r = abs(torch.fft.rfft(x))\n", k.Tensor(dtype="float")),
        ("def g():\n    yield 1\n\ndef f():\n    r = g()\n", k.UNKNOWN),
        (
            "class A:\n    def g(self):\n        raise NotImplementedError\n\nr = A().g()\n",
            k.UNKNOWN,
        ),
        ("class A:\n    def g(self):\n        'For derived classes.'\n\nr = A().g()\n", k.UNKNOWN),
        ("class A:\n    def g(self):\n        print(1)\n\nr = A().g()\n", k.NONE),
        ("class A:\n    n: 'int | str' = 'auto'\n\nr = A().n\n", k.UNKNOWN),
        ("class A:\n    n: int = 3\n\nr = A().n\n", k.INT),
        ("a = [torch.zeros(2, 3)]\na[0] = a[0][None]\nr = a[0]\n", k.TENSOR),
        ("a = [1, 2]\na[0:1] = ['b']\nr = a[0]\n", k.Other("scalar")),
    ],
)
def test_what_is_not_sure_is_left_open(source: str, expected: k.Kind) -> None:
    assert kind_of(source, "r") == expected


@pytest.mark.parametrize(
    ("made", "filled", "expected"),
    [
        ("a = []", "a.append(nn.Linear(2, 2))", k.Sequence(k.Module("torch.nn.Linear"), "list")),
        ("a, b = [], []", "a.append(x)", k.Sequence(k.TENSOR, "list")),
        ("a = {}", "a['k'] = x", k.Mapping(k.TENSOR)),
        ("a = other()", "a.append(x)", k.UNKNOWN),
        ("a = [other()]", "a.append(x)", k.Sequence(k.UNKNOWN, "list")),
    ],
)
@pytest.mark.parametrize("around", ["for i in range(3)", "if x.shape[0] > 1", "while n > 0"])
def test_what_is_put_into_an_empty_list(
    made: str, filled: str, expected: k.Kind, around: str
) -> None:
    source = f"def f(x: torch.Tensor, n: int):\n    {made}\n    {around}:\n        {filled}\n    result = a\n"
    found = kind_of(source, "result")
    if isinstance(found, k.Sequence) and isinstance(found.item, k.Module):
        found = k.Sequence(k.Module(found.item.cls), found.type)
    assert found == expected


@pytest.mark.parametrize(
    "line", ["a, b, c = x.shape", "(a, b, _) = x.size()", "[a, b, c] = x.shape"]
)
def test_names_for_all_sizes_tell_the_rank(line: str) -> None:
    kind = kind_of(f"def f(x: torch.Tensor):\n    {line}\n    r = x * 2\n", "r")
    assert kind == k.Tensor(rank=3)


@pytest.mark.parametrize("line", ["a, *b = x.shape", "x, b = x.shape", "a, b = x.shape[-2:]"])
def test_names_for_some_sizes_do_not(line: str) -> None:
    kind = kind_of(f"def f(x: torch.Tensor):\n    {line}\n    r = x * 2\n", "r")
    assert getattr(kind, "rank", None) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("np.random.randint(60, 150, 3)", k.NUMPY),
        ("np.random.randint(60, 150)", k.INT),
        ("np.random.randint(60, 150, None, np.int64)", k.INT),
        ("np.random.randint(0, 5, size=n)", k.NUMPY),
        ("np.random.rand()", k.FLOAT),
        ("np.random.rand(3, 2) * n", k.NUMPY),
        ("np.random.uniform(0.5, 1.5)", k.FLOAT),
        ("np.random.uniform(lows, 1.5)", k.UNKNOWN),
        ("np.random.permutation(n)", k.NUMPY),
        ("np.random.choice(names)", k.UNKNOWN),
        ("np.where(np.arange(n) < 3)[0]", k.NUMPY),
        ("np.nonzero(np.arange(n))[0].max()", k.NUMPY),
    ],
)
def test_functions_of_numpy(value: str, expected: k.Kind) -> None:
    assert (
        kind_of(f"import numpy as np\ndef f(n: int, names, lows):\n    r = {value}\n", "r")
        == expected
    )


LIMITED = """
import torch
import torch.nn as nn


class Positions(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.table = nn.Parameter(torch.randn(1, n, 3))

    def forward(self, length):
        return self.table[:, :length]


class Filter(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.positions = Positions(n)

    def forward(self, x, length, k=None):
        return x + self.positions(length)


class M(nn.Module):
    def __init__(self, most):
        super().__init__()
        self.most = most
        self.filter = Filter(most)

    def forward(self, x):
        n = min(x.size(-2), self.most)
        return self.filter(x[:, :n], n)
"""


@pytest.mark.parametrize(
    ("number", "open_"),
    [
        ("min(x.size(-2), self.most)", False),
        ("max(1, self.most)", False),
        ("max(x.mean(), self.most)", True),
    ],
)
def test_a_number_and_what_it_is_compared_with(number: str, open_: bool) -> None:
    """Where nothing is known of an attribute: Python compares numbers, and a tensor stays one."""
    source = LIMITED.replace("min(x.size(-2), self.most)", number)
    assert migrator.convert_source(source).complete is not open_
