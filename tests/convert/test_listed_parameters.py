"""Lists and dicts of a module's parameters: what is written to an entry, the module has."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import check, loaded, rules_of

NET = """
class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, n))
        self.fc = nn.Linear(n, 2)
        self.bn = nn.BatchNorm1d(2)

    def forward(self, x):
        return self.bn(self.fc(x)) @ self.weight


def update(ema, model, decay=0.9):
"""


@pytest.mark.parametrize(
    "lines",
    [
        """
        a = dict(ema.named_parameters())
        b = dict(model.named_parameters())
        for k in a.keys():
            a[k].data.mul_(decay).add_(b[k].data, alpha=1 - decay)
        """,
        """
        a = {n: p for n, p in ema.named_parameters()}
        b = {n: p.data.clone() for n, p in model.named_parameters()}
        for k, p in a.items():
            p.data = p.data * decay + b[k] * (1 - decay)
        """,
        """
        b = dict(model.named_parameters())
        for k, p in ema.named_parameters():
            p.data.copy_(p.data * decay + b[k].data * (1 - decay))
        """,
        """
        a, b = list(ema.parameters()), [p for p in model.parameters()]
        with torch.no_grad():
            for i in range(len(a)):
                a[i] *= decay
                a[i] += b[i] * (1 - decay)
        """,
        """
        a = [p for n, p in ema.named_parameters() if "fc" not in n]
        b = list(filter(lambda p: p.requires_grad, model.parameters()))
        with torch.no_grad():
            for p in a:
                p.zero_()
            a[0].copy_(b[0] * 3)
        """,
        """
        a = list(ema.parameters())
        b = list(model.parameters())
        for p, q in zip(a, b):
            p.data.copy_(q.data)
        """,
        """
        a: dict = dict(ema.named_parameters())
        if "weight" in a:
            nn.init.constant_(a["weight"], 0.5)
        """,
    ],
)
def test_written_entries(lines: str) -> None:
    theirs, ours, _ = loaded(NET + "\n".join("    " + line[8:] for line in lines.split("\n")))
    torch.manual_seed(0)
    model, ema = theirs["Net"](), theirs["Net"]()
    ports = ours["Net"](rngs=nnx.Rngs(0)), ours["Net"](rngs=nnx.Rngs(1))
    for one, port in zip((ema, model), ports, strict=True):
        migrator.load_state_dict(port, one.state_dict())
    theirs["update"](ema, model)
    ours["update"](*ports)
    for one, port in zip((ema, model), ports, strict=True):
        got = migrator.to_state_dict(port)
        for name, value in one.state_dict().items():
            np.testing.assert_allclose(got[name], value, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize(
    "lines",
    [
        "    a = [p for p in ema.parameters()]\n    torch.stack(a)\n    a[0].data.zero_()\n",
        "    a = [p for p in ema.parameters()]\n    torch.stack(a)\n    for p in a:\n        p.data.zero_()\n",
        "    a = {n: p for n, p in ema.named_parameters()}\n    torch.stack(list(a.values())[:2])\n"
        '    b = dict(a)\n    a["weight"].data += 1\n',
    ],
)
def test_what_else_reads_the_list_wants_arrays(lines: str) -> None:
    assert "MUT001" in rules_of(NET + lines)


@pytest.mark.parametrize(
    "lines",
    [
        '    a = dict(ema.named_parameters())\n    return a["fc.weight"].shape\n',
        '    a = dict(ema.named_parameters())\n    a["fc.weight"].data[0] = 1\n',
        "    return list(ema.parameters())[1][0]\n",
        '    a = dict(ema.named_parameters())\n    return a.get("fc.weight").shape\n',
        '    a = dict(ema.named_parameters())\n    return torch.zeros_like(a["fc.weight"]).shape\n',
        "    a = [p for p in ema.parameters()]\n    return a[1][0]\n",
    ],
)
def test_axes_of_an_entry(lines: str) -> None:
    assert "API006" in rules_of(NET + lines)


@pytest.mark.parametrize(
    "lines",
    [
        '    w = dict(ema.named_parameters())["weight"]\n    d = dict(model.named_parameters())\n    w = d["weight"]\n    w.data.mul_(3)\n',
        "    ps = list(ema.parameters())\n    keep = ps[0]\n    with torch.no_grad():\n        ps[0].add_(1)\n    return keep\n",
        "    ps = list(ema.parameters())\n    pair = ps[0], ps[1].detach()\n    ps[0].data.add_(1)\n    return pair\n",
        "    d = dict(ema.named_parameters())\n    same = {k: v for k, v in d.items()}\n    d['weight'].data += 1\n    return same\n",
    ],
)
def test_another_name_of_an_entry_that_is_written(lines: str) -> None:
    assert "MUT001" in rules_of(NET + lines)


def test_other_names_where_nothing_is_written() -> None:
    lines = "    d = dict(ema.named_parameters())\n    w, v = d['weight'], d['bn.bias'].detach()\n    return w.sum() + v.sum()\n"
    theirs, ours, _ = loaded(NET + lines)
    model, port = theirs["Net"](), ours["Net"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    want = theirs["update"](model, model).detach().numpy()
    np.testing.assert_allclose(ours["update"](port, port), want)


def test_pairs_that_are_asked_whether_they_are_trained() -> None:
    lines = "    ema.fc.bias.requires_grad = False\n    return [n for n, _ in filter(lambda x: x[1].requires_grad, ema.named_parameters())]\n"
    theirs, ours, _ = loaded(NET + lines)
    model, port = theirs["Net"](), ours["Net"](rngs=nnx.Rngs(0))
    assert ours["update"](port, port) == theirs["update"](model, model)


@pytest.mark.parametrize(
    "line",
    [
        'dict(ema.named_parameters())["fc.weight"].data.copy_(torch.arange(6.0).view(2, 3))',
        "for p in ema.parameters():\n        p.data.copy_(torch.eye(3)[:2])",
        "for p in ema.parameters():\n        p.data += torch.arange(6.0).view(2, 3) - p.data",
        "for p in ema.parameters():\n        p.data = torch.tensor([[1.0, 2.0, 3.0]]) * p.data",
    ],
)
def test_numbers_in_the_layout_of_torch(line: str) -> None:
    assert "API006" in rules_of(f"{NET}    {line}\n")


def test_numbers_without_a_layout() -> None:
    lines = "    for p in ema.parameters():\n        p.data.mul_(torch.tensor(0.5)).add_(torch.randn_like(p) * 0, alpha=2)\n"
    assert not rules_of(NET + lines)


NESTED = """
def run(x, params):
    for w, b in zip(params["weights"], params["biases"]):
        x = F.relu(F.linear(x, w, b))
    return F.linear(x, params["last"]["w"])

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.params = nn.ParameterDict()
        weights, biases = nn.ParameterList(), nn.ParameterList()
        for _ in range(2):
            weights.append(nn.Parameter(torch.randn(4, 4)))
            biases.append(nn.Parameter(torch.randn(4)))
        self.params["weights"] = weights
        self.params["biases"] = biases
        last = nn.ParameterDict()
        last["w"] = nn.Parameter(torch.randn(2, 4))
        self.params["last"] = last

    def forward(self, x, fn=run):
        return fn(x, self.params)
"""


def test_containers_of_parameters_in_one() -> None:
    check(NESTED)


def test_parameters_and_containers_of_them_in_one_are_told() -> None:
    source = NESTED.replace(
        'self.params["last"] = last', 'self.params["last"] = nn.Parameter(torch.ones(2))'
    ).replace('params["last"]["w"]', 'params["last"][None].expand(2, 4)')
    assert "API005" in rules_of(source)
