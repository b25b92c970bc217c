"""Walks over parameters: what goes by the axes of a weight is a finding, since a Linear's is transposed in Flax."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from tests.convert.tools import X, both, check, convert, loaded, rules_of

WALK = (
    "def f(model, other):\n    for p, q in zip(model.parameters(), other.parameters()):\n        "
)


@pytest.mark.parametrize(
    "line",
    [
        "p.data.renorm_(2, 0, 1.0)",
        "p.data.mul_(1 / p.data.norm(2, dim=1, keepdim=True))",
        "w = p.data\n        w.div_(w.sum(0))",
        "w = nn.init.kaiming_normal_(p)",
        "print(p.shape)",
        "print(p.size(0))",
        "print(p[0])",
        "from functools import reduce\n        print(reduce(lambda a, b: a - b, p.shape))",
        "from functools import reduce\n        print(reduce(lambda a, b: a * 2 + b, p.shape))",
        "print(p.shape + (2,))",
        "print((2,) if p.is_complex() else p.size())",
        "print((p @ q.t()).sum())",
        "print(torch.matmul(p, q))",
        "print(torch.sum(p, 0))",
        "print(p.view(-1))",
        "print(p.reshape(p.numel() // 4, 4).sum())",
        "if p.dim() > 1:\n            print(p.argmax(1))",
    ],
)
def test_what_goes_by_axes_is_a_finding(line: str) -> None:
    assert "API006" in rules_of(WALK + line + "\n")


@pytest.mark.parametrize(
    "line",
    [
        "q.data.copy_(0.9 * q.data + 0.1 * p.data)",
        "q.data.lerp_(p.data, 0.1)",
        "p.data.clamp_(-1, 1)",
        "print(p.data.norm(2), p.abs().sum(), torch.norm(p, 2), p.view(-1).abs().max())",
        "print(p.numel(), p.dim(), len(p.shape), p.shape == q.shape)",
        "p.data.add_(torch.zeros(p.size()))",
        "import numpy as np\n        print(np.prod(list(p.size())), p.data.view(-1).size(0))",
        "import operator, functools\n        print(functools.reduce(operator.mul, list(p.size())))",
        "from functools import reduce\n        print(reduce(lambda a, b: a * b, p.shape))",
        "import operator\n        from functools import reduce\n        "
        "print(reduce(operator.mul, list(p.size() + (2,) if p.is_complex() else p.size())))",
        "p.data[p.data.abs() < 0.1] = 0",
        "nn.init.xavier_uniform_(p)",
        "if p.dim() == 4:\n            print(p.sum(0), p.shape)",
    ],
)
def test_what_is_the_same_in_both_layouts_converts(line: str) -> None:
    assert "API006" not in rules_of(WALK + line + "\n")


def test_a_module_without_linear_layers_has_its_parameters_as_in_torch() -> None:
    source = (
        "class M(nn.Sequential):\n    def __init__(self):\n"
        "        super().__init__(nn.Conv1d(1, 2, 1), nn.ReLU(), {last})\n"
        "        for name, p in self.named_parameters():\n            if 'weight' in name:\n"
        "                print(p.sum(0))\n"
    )
    assert convert(source.format(last="nn.Conv1d(2, 1, 1)")).complete
    assert not convert(source.format(last="nn.Linear(2, 1)")).complete


def test_the_sum_of_squares_and_a_moving_average_are_those_of_torch() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.b = nn.Linear(4, 3)
        for p, q in zip(self.a.parameters(), self.b.parameters()):
            q.data.copy_(0.25 * p.data + q.data)

    def forward(self, x):
        return self.b(x) + sum(p.pow(2).sum() for p in self.b.parameters())
"""
    model, port, _ = both(source)
    got = port(jnp.asarray(X.numpy()))
    np.testing.assert_allclose(got, model(X).detach().numpy(), rtol=1e-5)


def test_parameters_walked_side_by_side_may_be_the_same_ones() -> None:
    polyak = (
        "def polyak(net, target, rho):\n"
        "    for p, q in zip(net.parameters(), target.parameters()):\n        {line}\n"
        "        q.data.mul_(rho)\n        q.data.add_((1 - rho) * {value})\n"
    )
    assert rules_of(polyak.format(line="pass", value="p.data")) == []
    assert set(rules_of(polyak.format(line="d = p.data", value="d"))) == {"MUT001"}
    names: dict = {}
    exec(convert(polyak.format(line="pass", value="p.data")).code, names)
    net = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    want = 0.25 * net.kernel[...] * (1 + 0.75)
    names["polyak"](net, net, 0.25)
    np.testing.assert_allclose(net.kernel[...], want, rtol=1e-6)


GATED = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 400)
        self.conv = nn.Conv1d(4, 400, 3)
        self.cell = nn.LSTMCell(4, 100)
        self.begin()

    def begin(self):
        for name, p in self.named_parameters():
            if "bias" in name:
                nn.init.zeros_(p)
            else:
                nn.init.kaiming_normal_(p, mode="fan_in", nonlinearity="relu")

    def forward(self, x):
        return self.fc(x)
"""


def test_an_initialiser_that_goes_by_axes_sees_torchs() -> None:
    """A Linear's fan_in is 4 in torch; of the kernel as Flax stores it, it would be 400."""
    model, *_ = both(GATED)
    model.begin()
    fresh = loaded(GATED)[1]["M"](rngs=nnx.Rngs(3))
    for got, want in (
        (fresh.fc.kernel[...], model.fc.weight),
        (fresh.conv.weight[...], model.conv.weight),
    ):
        assert abs(np.std(np.asarray(got)) / want.std().item() - 1) < 0.1
    assert not np.asarray(fresh.fc.bias[...]).any()


VALUES = """
def fill(model, values):
    for (name, p), value in zip(model.named_parameters(), values.values()):
        p.data.copy_(value)


class M(nn.Module):
    def __init__(self, given=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        values = {"fc.weight": torch.arange(16.0).reshape(4, 4), "fc.bias": torch.ones(4)}
        LINES

    def forward(self, x):
        return self.fc(x)
"""
NAMED = "for name, p in self.named_parameters():\n            "


@pytest.mark.parametrize(
    "lines",
    [
        NAMED + "p.data = values[name]",
        NAMED + "p.data.copy_(values.get(name))",
        NAMED + "value = values[name].to(p.dtype)\n            p.data.add_(value)",
        NAMED + "p.data.copy_(given[name])",
        "for p, value in zip(self.parameters(), list(values.values())):\n            p.data.copy_(value)",
        "d = dict(self.named_parameters())\n        for name in d:\n            d[name].data = values[name]",
        "d = dict(self.named_parameters())\n        for name, v in given.items():\n            d[name].data.copy_(v)",
        "stored = torch.load('w.pt')\n        " + NAMED + "p.data.copy_(stored[name])",
        "fill(self, values)",
        "fill(model=self, values=values)",
    ],
)
def test_values_that_lie_as_torch_has_them(lines: str) -> None:
    assert "API006" in rules_of(VALUES.replace("LINES", lines))


@pytest.mark.parametrize(
    "lines",
    [
        "kept = {n: p.data.clone() for n, p in self.named_parameters()}\n        "
        + NAMED
        + "p.data.copy_(kept[name])",
        "factor = {'fc.weight': 2.0, 'fc.bias': 3.0}\n        "
        + NAMED
        + "p.data.mul_(factor[name])",
        NAMED + "p.data.mul_(0.5 if given is None else given)",
    ],
)
def test_values_that_lie_as_the_parameters_do(lines: str) -> None:
    source = VALUES[VALUES.index("class M") :]
    assert not rules_of(source.replace("LINES", lines))


@pytest.mark.parametrize(
    ("body", "by_axes"),
    [
        ("return p.sum(0)", True),
        ("q = p * 2\n    return p.size(0)", True),
        ("return first(p)", True),
        ("return p.abs().sum()", False),
        ("return p.sum(0) if p.dim() == 1 else p.sum()", False),
    ],
)
@pytest.mark.parametrize("call", ["f(p)", "f(n=2, p=p)"])
def test_functions_that_parameters_are_handed_to(body: str, by_axes: bool, call: str) -> None:
    source = "def first(w):\n    return w[0]\n\n\n"
    source += f"def f(p, n=1):\n    {body}\n\n\n"
    source += f"def g(model):\n    return [{call} for p in model.parameters()]\n"
    assert ("API006" in rules_of(source)) is by_axes


@pytest.mark.parametrize(
    "line",
    [
        "self.register_buffer(name.replace('.', ''), p.clone().detach().data)",
        "self.register_parameter(name[-1:], nn.Parameter(p.detach().clone()))",
        "setattr(self, name[-1:], p.detach().clone())",
    ],
)
def test_copies_that_are_registered_have_the_shapes_of_torch(line: str) -> None:
    source = "class M(nn.Module):\n    def __init__(self, model):\n        super().__init__()\n"
    source += f"        for name, p in model.named_parameters():\n            {line}\n"
    assert "API006" in rules_of(source)


@pytest.mark.parametrize(
    "lines",
    [
        "z = {n: torch.zeros_like(p) for n, p in self.named_parameters()}\n        self.n = z['fc.weight'].shape[0]",
        "d = dict(self.named_parameters())\n        z = {n: d[n].detach() * 2 for n in d}\n        self.n = z['fc.weight'].size(0)",
        "z = [p.clone() for p in self.parameters()]\n        self.register_buffer('z', z[0])",
    ],
)
def test_what_is_made_of_a_walk_lies_as_the_parameters_do(lines: str) -> None:
    assert "API006" in rules_of(VALUES.replace("LINES", lines))


CHOSEN = """
class M(nn.Module):
    def __init__(self, n=4, kind="batch"):
        super().__init__()
        {line}
        self.norm = made(n)
        for name, param in self.named_parameters():
            bound = 1.0 / param.size(-1)
            nn.init.constant_(param, bound)

    def forward(self, x):
        return self.norm(x)
"""


@pytest.mark.parametrize(
    ("line", "by_axes"),
    [
        ('made = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}.get(kind, None)', False),
        ('made = {"batch": nn.BatchNorm1d, "layer": nn.LayerNorm}[kind]', False),
        ('made = {"batch": nn.BatchNorm1d, "fc": nn.LazyLinear}[kind]', True),
        ('made = {"batch": nn.BatchNorm1d, "fc": lambda n: nn.Linear(n, n)}[kind]', True),
        ('made = {"batch": nn.BatchNorm1d}.get(kind, nn.LazyLinear)', True),
        ('made = {"batch": nn.BatchNorm1d}["batch"]\n        made = kind or made', True),
        (
            'table = {"batch": nn.BatchNorm1d}\n        table["fc"] = nn.LazyLinear\n        made = table[kind]',
            True,
        ),
    ],
)
def test_layers_of_a_table_are_known_to_be_no_linear_ones(line: str, by_axes: bool) -> None:
    source = CHOSEN.format(line=line)
    assert ("API006" in rules_of(source)) == by_axes
    if not by_axes:
        check(source)
