"""children() of containers: each module once, in the order they stand, also in a forward pass."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from migrator import convert_source
from tests.convert.tools import check, rules_of

HEAD = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"

SHARED = [
    """
        act, lin = nn.ReLU(), nn.Linear(4, 4)
        self.net = nn.Sequential(lin, act, nn.Linear(4, 4), act, lin)

    def forward(self, x):
        n = 0
        for layer in self.net.children():
            x = layer(x)
            n += 1
        return x * n
""",
    """
        act = nn.Tanh()
        self.first = act
        self.linear = nn.Linear(4, 4)
        self.second = act

    def forward(self, x):
        return self.second(self.linear(self.first(x * len(list(self.children())))))
""",
    """
        act = nn.Tanh()
        self.net = nn.Sequential(nn.Linear(4, 4), act, nn.Linear(4, 4), act)
        self.head = nn.Sequential(*list(self.net.children())[:-1])

    def forward(self, x):
        return self.head(x)
""",
    """
        linear = nn.Linear(4, 4)
        self.net = nn.ModuleList([linear, nn.Linear(4, 4), linear])

    def forward(self, x):
        for name, layer in self.net.named_children():
            x = layer(x) * (int(name) + 1)
        return x
""",
    """
        self.table = nn.ModuleDict({"z": nn.Linear(4, 4), "a": nn.ReLU(), "c": nn.Linear(4, 4)})
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(12)])

    def forward(self, x):
        for name, layer in self.table.named_children():
            x = layer(x) if name != "a" else -layer(x)
        for i, layer in enumerate(self.layers.children()):
            x = layer(x) * 0.5 + i
        return x + next(self.layers.children())(x)
""",
]


@pytest.mark.parametrize("body", SHARED)
def test_children_are_those_of_torch(body: str) -> None:
    source = HEAD + body.lstrip("\n")
    made: dict[str, type] = {}
    exec(source, made)
    torch.manual_seed(0)
    original = made["M"]()
    result = convert_source(source)
    assert result.complete
    converted: dict[str, type] = {}
    exec(result.code, converted)
    port = converted["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, original.state_dict())
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)
    got = nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x))
    np.testing.assert_allclose(
        got, original(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-5
    )


def test_layers_made_for_one_container_are_read_from_its_list() -> None:
    body = """        self.net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))

    def forward(self, x):
        for layer in self.net.children():
            x = layer(x)
        return x
"""
    assert "for layer in self.net.layers:" in convert_source(HEAD + body).code
    shared = body.replace("nn.ReLU()", "relu").replace("nn.Linear(4, 4))\n", "relu)\n")
    assert ".net.layers" not in convert_source(HEAD + shared).code


GETTER = """from collections import OrderedDict


class Getter(nn.ModuleDict):
    def __init__(self, model: nn.Module, wanted: {hint}):
        layers = OrderedDict()
        left = dict(wanted)
        for name, module in model.named_children():
            layers[name] = module
            left.pop(name, None)
            if not left:
                break
        super().__init__(layers)
        self.wanted = wanted{more}

    def forward(self, x):
        out = OrderedDict()
        for name, module in self.named_children():
            x = module(x)
            if name in self.wanted:
                out[self.wanted[name]] = x
        return out


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.z = nn.Linear(4, 4)
        self.b = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
        self.a = nn.Linear(4, 2)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Getter(Body(), {{"z": "first", "b": "second"}})

    def forward(self, x):
        found = self.body(x)
        return found["first"] * 2 + found["second"]
"""


def test_children_of_what_derives_from_a_dict_of_modules() -> None:
    check(GETTER.format(hint="dict[str, str]", more=""))


@pytest.mark.parametrize(
    ("hint", "more"),
    [
        ("nn.ModuleDict", ""),
        ("dict[str, str]", "\n        self.last = nn.Linear(4, 4)"),
        ("dict[str, str]", "\n        setattr(self, 'last' + str(len(wanted)), nn.Linear(4, 4))"),
    ],
)
def test_a_dict_of_modules_that_may_have_other_children(hint: str, more: str) -> None:
    assert "API007" in rules_of(GETTER.format(hint=hint, more=more))


def test_the_number_of_children_one_of_which_has_two_names() -> None:
    check(
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)
        self.alias = self.first

    def forward(self, x):
        for layer in self.children():
            x = layer(x)
        return self.alias(x) + sum(1 for _ in self.children())
"""
    )
