"""Code that asks whether what it is handed is a class or a function: torch's layers are classes."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import both, check, convert, loaded, rules_of

DEFAULT = """from inspect import isfunction

def default(value, other):
    if value is not None:
        return value
    return other() if isfunction(other) else other

"""
MADE = """class M(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        act = default(act, nn.GELU)
        self.act = act()
        self.drop = default(None, nn.Dropout)(0.5)
        self.l = nn.Linear(4, default(None, lambda: 3))

    def forward(self, x):
        return self.act(self.drop(self.l(x)))
"""


def test_a_layer_that_is_a_default_is_no_function() -> None:
    code = check(DEFAULT + MADE)
    assert "@layer_class\ndef GELU(" in code


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(act, type)",
        "inspect.isclass(act)",
        "isinstance(act, type) and issubclass(act, nn.Module)",
        "not inspect.isfunction(act)",
    ],
)
def test_what_is_handed_is_built_where_it_is_a_class(question: str) -> None:
    code = check(f"""import inspect

class M(nn.Module):
    def __init__(self, act=nn.GELU, other=nn.Tanh, plain=lambda x: x * 2, own=None):
        super().__init__()
        self.a, self.b, self.c = self.make(act), self.make(other), self.make(plain)
        self.l = nn.Linear(4, 4)

    def make(self, act):
        return act() if {question} else act

    def forward(self, x):
        return self.a(self.l(self.b(self.l(self.c(self.l(x))))))
""")
    assert "class LayerClass" in code


def test_code_that_asks_only_of_its_own_functions_carries_nothing() -> None:
    code = convert(DEFAULT + "y = default(None, lambda: 3)\n").code
    assert "layer_class" not in code


DIMENSIONS = """from torch.nn.modules.conv import _ConvNd

class Own(nn.Conv2d):
    pass

def dimensions(conv):
    if issubclass(conv, nn.Conv1d):
        return 1
    if issubclass(conv, (nn.Conv2d, nn.ConvTranspose2d)):
        return 2
    if not issubclass(conv, _ConvNd):
        return 0
    return 3

def scalars(conv, number):
    return number if isinstance(number, (tuple, list)) else [number] * dimensions(conv)

class Block(nn.Module):
    def __init__(self, conv, norm=None, act=nn.ReLU):
        super().__init__()
        self.conv = conv(3, 3, scalars(conv, 3), padding=1)
        self.norm = norm(3, affine=True) if norm is not None else nn.Identity()
        self.scale = 2 if norm is not None and issubclass(norm, nn.BatchNorm2d) else 1
        self.act = act(inplace=True) if issubclass(act, (nn.ReLU, nn.LeakyReLU)) else act()

    def forward(self, x):
        return self.act(self.norm(self.conv(x))) * self.scale

"""


def test_what_a_class_of_layers_derives_from() -> None:
    model, port, code = both(
        DIMENSIONS
        + """class M(nn.Module):
    def __init__(self):
        super().__init__()
        classes = (nn.Conv1d, nn.Conv2d, nn.Conv3d, Own, nn.ConvTranspose2d, nn.Linear)
        self.numbers = [dimensions(c) for c in classes]
        self.a = Block(nn.Conv2d, nn.BatchNorm2d)
        self.b = Block(Own, nn.InstanceNorm2d, nn.GELU)
        self.c = Block(nn.Conv3d, None, nn.LeakyReLU)

    def forward(self, x):
        y = self.c(self.b(self.a(x))[:, :, None].repeat(1, 1, 4, 1, 1))
        for i, n in enumerate(self.numbers):
            y = y + n * 10.0 ** -i
        return y
"""
    )
    x = torch.randn(2, 3, 8, 8)
    port.eval()
    want = model.eval()(x).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), want, atol=1e-5)
    assert "class LayerClass" in code


def test_a_base_class_that_is_not_known_is_a_finding() -> None:
    asked = "def plain(layer):\n    return issubclass(layer, nn.modules.lazy.LazyModuleMixin)\n"
    assert [f.rule for f in convert(asked).findings if f.blocks] == ["API011"]


CHOSEN = """def conv_factory(dim):
    types = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
    return types[dim - 1]

TABLE = {"conv": conv_factory, "norm": lambda d: (nn.BatchNorm1d, nn.BatchNorm2d)[d - 1]}

class M(nn.Module):
    def __init__(self, act=nn.ReLU):
        super().__init__()
        conv_type: type[nn.Conv1d | nn.Conv2d] = TABLE["conv"](2)
        norm_type = TABLE["norm"](2)
        self.net = nn.Sequential(conv_type(3, 4, 3), norm_type(4), nn.Conv1d(4, 4, 1), act())
        for m in self.modules():
            if isinstance(m, conv_type):
                nn.init.constant_(m.weight, 0.25)
            elif isinstance(m, norm_type):
                nn.init.constant_(m.weight, 0.75)
            elif isinstance(m, act):
                raise ValueError

    def forward(self, x):
        return self.net[1](self.net[0](x))
"""


def test_instances_of_a_class_that_is_chosen_at_run_time() -> None:
    theirs, ours, _ = loaded(
        CHOSEN.replace("act=nn.ReLU", "act=nn.PReLU").replace("raise ValueError", "m.seen = 1")
    )
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    want = {key: value.numpy() for key, value in model.state_dict().items() if "weight" in key}
    got = migrator.to_state_dict(port)
    for key in ("net.0.weight", "net.1.weight"):
        np.testing.assert_allclose(got[key], want[key])
    assert np.std(got["net.2.weight"]) > 0  # a Conv1d is none of a Conv2d's
    assert model.net[3].seen == port.net.layers[3].seen == 1
    with pytest.raises(ValueError, match=r"^$"):
        loaded(CHOSEN.replace("act=nn.ReLU", "act=nn.PReLU"))[1]["M"](rngs=nnx.Rngs(0))


def test_a_script_module_is_a_module_of_its_own() -> None:
    source = """
class A(torch.jit.ScriptModule):
    __constants__ = ["n"]

    def __init__(self):
        super().__init__()
        self.n = 2
        self.fc = nn.Linear(4, 4)

    @torch.jit.script_method
    def forward(self, x):
        return self.fc(x) * self.n
"""
    assert not rules_of(source)
    asked = "class B(nn.Module):\n    def forward(self, x):\n        return x * (1 + isinstance(self, torch.jit.ScriptModule))\n"
    assert rules_of(asked), "which of the two it is, nothing in the output tells"
