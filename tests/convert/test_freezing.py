"""Parameters that are not trained: the same ones in the port as in torch, and findings where that is not known."""

from __future__ import annotations

import pytest
import torch
from flax import nnx

import migrator
from migrator.weights import slots
from tests.convert.tools import HEADER, convert, function, module, rules_of

NET = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4)
        self.layers = nn.ModuleList([nn.Linear(4, 4), nn.Conv1d(4, 4, 1)])
        self.scale = nn.Parameter(torch.ones(4), requires_grad=False)


def freeze(layer, trained=False):
    for p in layer.parameters():
        p.requires_grad = trained


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.z = Block()
        self.a = Block()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.BatchNorm1d(4))
        {0}

    def _freeze(self):
        self.a.norm.weight.requires_grad = False
"""


@pytest.mark.parametrize(
    "lines",
    [
        "self._freeze()\nself.z.layers[0].weight.requires_grad = False\n"
        "self.z.layers[1].bias.requires_grad_(False)",
        "self.requires_grad_(False)\nself.a.requires_grad_()",
        "freeze(self.net)\nfreeze(self.z, True)",
        "for p in self.net.parameters():\n    setattr(p, 'requires_grad', False)\n"
        "for i, p in enumerate(self.parameters()):\n    if i < 4:\n        p.requires_grad = False",
        "for n, p in self.named_parameters():\n    if 'layers.0' in n or n in ('net.2.bias', 'z.scale'):\n"
        "        p.requires_grad_(not p.requires_grad)",
        "for p, q in zip(self.z.parameters(), self.a.parameters()):\n"
        "    q.data.copy_(p.data)\n    q.requires_grad = False",
        "for m in self.modules():\n    if isinstance(m, (nn.BatchNorm1d, nn.LayerNorm)):\n"
        "        m.weight.requires_grad = False",
        "self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU()).requires_grad_(False)\n"
        "self.w = nn.Parameter(torch.ones(2), requires_grad=self.z is None)\n"
        "self.a.norm.weight = self.z.norm.weight\nself.a.requires_grad_(False)",
    ],
)
def test_the_same_parameters_are_trained(lines: str) -> None:
    source = HEADER + NET.replace("{0}", lines.replace("\n", "\n        "))
    result = migrator.convert_source(source)
    assert result.complete, result.findings
    theirs: dict = {}
    exec(source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    pairs = model.named_parameters(remove_duplicate=False)
    trained = {name for name, p in pairs if p.requires_grad}
    assert {s.key for s in slots(port) if isinstance(s.variable, nnx.Param)} == trained
    migrator.load_state_dict(port, model.state_dict())
    back = migrator.to_state_dict(port)
    for key, value in model.state_dict().items():
        assert torch.equal(torch.from_numpy(back[key]), value)


def test_a_tensor_that_is_no_parameter_needs_no_freezing() -> None:
    code = module("pe = torch.zeros(dim)\npe.require_grad = False\npe.requires_grad = False")
    assert "grad" not in code
    assert function("x.requires_grad_()", "return x") == "return x"
    written = "pe = torch.zeros(9, dim)\npe[:, 0::2] = 1\npe /= 2\nself.pe = pe\nself.pe.requires_grad = False"
    assert "grad" not in module(written, "return x + self.pe[:3]")
    buffer = "self.register_buffer('pe', torch.zeros(9, dim))"
    assert "x + self.pe[:3]" in module(
        buffer, "return x + self.pe[:3].requires_grad_(False)"
    ).replace("self.pe[...]", "self.pe").replace("lax.stop_gradient(self.pe[:3])", "self.pe[:3]")
    assert "grad" not in module("self.p = 1", "x.requires_grad = True\nreturn x")


@pytest.mark.parametrize(
    "lines",
    [
        "w = self.l.weight\nw.requires_grad = False",
        "w = nn.Parameter(torch.ones(2))\nw.requires_grad = False\nself.w = w",
        "w, b = self.l.weight, self.l.bias\nw.requires_grad_(False)",
        "self.w = self.l.bias if dim else torch.ones(2)\nself.w.requires_grad = False",
        "w = torch.ones(2)\nw = self.l.bias\nself.w = w\nself.w.requires_grad = False",
        "w = torch.as_tensor(self.l.bias)\nself.w = w\nself.w.requires_grad = False",
    ],
)
def test_what_may_be_a_parameter_under_another_name_is_a_finding(lines: str) -> None:
    head = "class M(nn.Module):\n    def __init__(self, dim):\n        super().__init__()\n"
    head += "        self.l = nn.Linear(2, 2)\n        "
    assert rules_of(head + lines.replace("\n", "\n        "))


def test_freezing_in_the_forward_pass_is_a_finding() -> None:
    source = "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
    source += "        self.l = nn.Linear(2, 2)\n\n    def forward(self, x):\n"
    source += "        self.l.weight.requires_grad = False\n        return self.l(x)\n"
    assert rules_of(source) == ["API001"]
    assert "requires_grad" in convert(source).code


@pytest.mark.parametrize(
    "lines",
    [
        "self.requires_grad = False",
        "self.a.requires_grad = False\nself.net[0].requires_grad = trained",
        "for layer in self.net:\n    layer.requires_grad = False",
        "setattr(self.z, 'requires_grad', False)\nself.z.layers[0].weight.requires_grad = False",
    ],
)
def test_requires_grad_of_a_module_is_an_attribute_like_any_other(lines: str) -> None:
    body = lines.replace("\n", "\n        ").replace("trained", "1 > 2")
    source = NET.format(body)
    result = migrator.convert_source(HEADER + source)
    assert result.complete, result.findings
    assert any(one.rule == "API015" for one in result.findings)
    theirs: dict = {}
    exec(HEADER + source, theirs)
    ours: dict = {}
    exec(result.code, ours)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    trained = {n for n, p in model.named_parameters() if p.requires_grad}
    found = {s.key for s in slots(port) if isinstance(s.variable, nnx.Param)}
    assert found == trained


def test_an_option_called_requires_grad_stays() -> None:
    code = module("self.requires_grad = dim > 3", "return x if self.requires_grad else x * 2")
    assert "self.requires_grad = dim > 3" in code


HANDED = """
def scaled(w, x):
    w.requires_grad_(False)
    n = w.norm()
    w.requires_grad_(True)
    return x @ w / n


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.eye(4))

    def forward(self, x):
        return scaled({}, x)
"""


def test_a_function_that_freezes_what_it_is_handed() -> None:
    assert set(rules_of(HANDED.format("self.w"))) == {"API001"}  # n has no gradient in torch
    assert (
        rules_of(HANDED.format("x.T")) == []
    )  # a value: torch's line changes nothing of what is trained


def test_a_function_whose_calls_do_not_show_what_it_is_handed() -> None:
    for call in ("list(map(scaled, [self.w], [x]))[0]", "scaled(*(self.w, x))"):
        assert "API001" in rules_of(HANDED.replace("scaled({}, x)", call))
