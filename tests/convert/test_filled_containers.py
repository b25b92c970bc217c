"""Containers that a constructor fills: Flax must find the arrays in them."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, check, convert, module, rules_of


def test_lists_and_dicts_of_tensors_that_are_filled_one_by_one() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.tables = {}
        self.steps = []
        self.names = []
        self.fill(2)

    def fill(self, n):
        for i in range(n):
            self.tables[f"t{i}"] = torch.ones(3) * i
            self.steps.append(torch.arange(3.0) + i)
            self.names.append(str(i))

    def forward(self, x):
        return self.fc(x) + self.tables["t1"] * self.steps[1] + torch.stack(self.steps).sum()
"""
    model, port, code = both(source)
    assert "self.names = []" in code
    x = torch.randn(2, 3)
    found = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x.numpy()))
    np.testing.assert_allclose(np.asarray(found), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "line",
    [
        "self.held.append((torch.ones(2), 1))",
        "self.held.append((self.fc.weight, 0.1))",
        "self.add(self.fc.weight)",
        "self.add(self.fc.parameters())",
    ],
)
def test_tensors_in_entries_are_not_found(line: str) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.fc = nn.Linear(2, 2)\n        self.held = []\n"
        f"        {line}\n\n    def add(self, w, l=0.0):\n"
        "        if isinstance(w, nn.Parameter):\n            w = [w]\n"
        "        else:\n            w = list(w)\n        self.held.append((w, l))\n"
    )
    assert rules_of(source) == ["API008"]


def test_what_only_the_forward_pass_fills_with_tensors_is_data_from_the_start() -> None:
    text = module("self.seen = []", "self.seen.append((x, 1))\nreturn x")
    assert "self.seen = nnx.data([])" in text


def test_each_of_several_containers_goes_by_what_it_is_given_itself() -> None:
    lines = (
        "self.names = []",
        "self.rows = {}",
        "self.rows['a'] = torch.ones(dim)",
        "self.names.append('a')",
        "self.sizes = {}",
        "self.sizes['a'] = dim",
        "more = self.more = []",
        "self.more = self.rest = []",
        "self.rest += [torch.ones(dim)]",
    )
    text = module("\n".join(lines), "return x + self.rows['a'] + self.rest[0]")
    assert "self.names = []" in text
    assert "self.sizes = {}" in text
    assert "self.rows = nnx.data({})" in text


def test_arrays_added_as_a_list() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = []
        for i in range(3):
            self.rows += [torch.ones(4) * i]
        self.more = []
        self.more.extend([torch.ones(4) * 2, torch.zeros(4)])

    def forward(self, x):
        for row in self.rows:
            x = x + row
        return x * self.more[0]
"""
    model, port, _ = both(source)
    x = torch.randn(2, 4)
    np.testing.assert_allclose(port(x.numpy()), model(x), rtol=1e-6)


KEPT = """
import collections


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {0}

    def forward(self, x):
        return self.fc(x) * {1}
"""


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ("self.t = {}; self.t.update(w=torch.arange(4.0))", 'self.t["w"]'),
        ('self.t = {}; self.t.update({"w": torch.arange(4.0)})', 'self.t["w"]'),
        ('self.t = dict(); self.t.setdefault("w", torch.arange(4.0))', 'self.t["w"]'),
        ('self.t = {}; t = self.t; t["w"] = torch.arange(4.0)', 'self.t["w"]'),
        ('self.t = {}; self.t |= {"w": torch.arange(4.0)}', 'self.t["w"]'),
        ('self.t = {}; self.t.__setitem__("w", torch.arange(4.0))', 'self.t["w"]'),
        ('self.t = collections.OrderedDict(); self.t["w"] = torch.arange(4.0)', 'self.t["w"]'),
        (
            'self.t = {}; self.t.setdefault("w", torch.arange(4.0)); self.t.update(v=torch.ones(4))',
            "sum(v for k, v in self.t.items())",
        ),
        ('self.t = {}; self.t |= {"w": torch.arange(4.0)}', "sum(self.t[k] for k in self.t)"),
        ("self.t = []; chunk = [torch.arange(4.0)]; self.t.extend(chunk)", "self.t[0]"),
        ("self.t = list(); t = self.t; t.append(torch.arange(4.0))", "self.t[0]"),
        ("self.t = collections.deque(maxlen=3); self.t.append(torch.arange(4.0))", "self.t[0]"),
    ],
)
def test_other_ways_to_fill_one(lines: str, read: str) -> None:
    check(KEPT.format("\n        ".join(line.strip() for line in lines.split(";")), read))


@pytest.mark.parametrize(
    "lines",
    [
        'self.t = {}; self.t["a"] = {}; self.t["a"]["w"] = torch.arange(4.0)',
        'self.t = {"l": []}; self.t["l"].append(torch.arange(4.0))',
        "self.t = [[] for _ in range(2)]; self.t[0].append(torch.arange(4.0))",
        "self.t = [None] * 2; self.t[0] = torch.arange(4.0)",
        'self.t = collections.defaultdict(list); self.t["w"].append(torch.arange(4.0))',
    ],
)
def test_tensors_beside_or_below_what_is_none_are_a_finding(lines: str) -> None:
    source = KEPT.format("\n        ".join(line.strip() for line in lines.split(";")), "1.0")
    assert "API008" in rules_of(source)


RECORD = """
from dataclasses import dataclass, field
from typing import NamedTuple, Optional


class P(NamedTuple):
    v: torch.Tensor = torch.as_tensor(2.0)
    n: float = 3.0


class Q(NamedTuple):
    v: torch.Tensor
    name: str = "q"


@dataclass
class R:
    v: torch.Tensor = field(default=torch.as_tensor(2.0), repr=False)
    w: torch.Tensor = torch.as_tensor(2.0)
    n: int = 3


class M(nn.Module):
    def __init__(self, p: P = P(), r: R = R()):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {0}

    def forward(self, x):
        return self.fc(x) * self.p.v + self.p.n
"""


@pytest.mark.parametrize(
    "line", ["self.p = p", "self.p = P()", "self.p = None or P()", "self.p = r", "self.p = R()"]
)
def test_records_of_tensors(line: str) -> None:
    check(RECORD.format(line))


@pytest.mark.parametrize(
    "line", ["self.p = Q(torch.ones(4))", "self.p = (p, p)", 'self.p = {"p": P()}']
)
def test_records_that_hold_more_or_are_held_are_a_finding(line: str) -> None:
    assert "API008" in rules_of(RECORD.format(line))


NUMPY = "import numpy as np\n" + KEPT


@pytest.mark.parametrize(
    ("lines", "read"),
    [
        ("self.t = {}; self.t[-1] = np.arange(4.0)", "torch.as_tensor(self.t[-1]).float()"),
        ("self.t = [np.ones(4) for _ in range(2)]", "torch.as_tensor(self.t[1]).float()"),
        ("self.t = [np.ones(4) * i for i in range(3)]", "torch.as_tensor(self.t[2]).float()"),
        (
            "self.t = {}; self.t['w'] = np.exp(-np.arange(4) / 2).astype('float32')",
            "torch.as_tensor(self.t['w'])",
        ),
        ("self.t = []; self.t.append(('a', np.float64(2.0)))", "self.t[0][1]"),
        ("self.t = (np.log(2.0), 'a')", "float(self.t[0])"),
        ('self.t = {"n": 6, "m": np.mean([1, 2])}', 'self.t["n"]'),
        ("self.t = [np.prod((2, 3)), np.sqrt(4.0)]", "int(self.t[0])"),
    ],
)
def test_arrays_and_numbers_of_numpy(lines: str, read: str) -> None:
    check(NUMPY.format("\n        ".join(line.strip() for line in lines.split(";")), read))


def test_arrays_of_numpy_beside_what_is_none_are_a_finding() -> None:
    assert "API008" in rules_of(NUMPY.format('self.t = {"w": np.ones(4), "n": 2}', "1.0"))


@pytest.mark.parametrize(
    ("field", "rule"),
    [
        ("v: torch.Tensor = torch.randn(2)", "API008"),
        ("v: ClassVar[torch.Tensor] = torch.ones(2)", ""),
    ],
)
def test_defaults_of_dataclasses(field: str, rule: str) -> None:
    head = (
        "from dataclasses import dataclass\nfrom typing import ClassVar\n\n\n@dataclass\nclass P:\n"
    )
    source = f"{head}    {field}\n    n: int = 2\n"
    assert rules_of(source) == ([rule] if rule else [])
    assert rule or "v: ClassVar[jax.Array] = jnp.ones((2,))" in convert(source).code


LAYERS = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = list()
        self.layers.append(nn.Linear(4, 4))
        {0}

    def forward(self, x):
        return {1}
"""


def test_layers_in_a_list_made_by_its_name() -> None:
    check(LAYERS.format("self.net = nn.Sequential(*self.layers)", "self.net(x)"))
    assert rules_of(LAYERS.format("self.n = 1", "self.layers[0](x)")) == ["API008"]
