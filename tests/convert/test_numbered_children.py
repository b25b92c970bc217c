"""Children of a Sequential by the names that torch has for them, their numbers."""

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import check, convert, loaded

MODEL = """
import functools

def convert(module):
    for name, child in module.named_children():
        if isinstance(child, nn.LayerNorm):
            {change}
        else:
            convert(child)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(4, 4), nn.LayerNorm(4), nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 4))
        )
        self.act = nn.LayerNorm(4)
        convert(self)
        {more}
    def forward(self, x):
        return self.act(self.net(x))
"""


@pytest.mark.parametrize(
    "change",
    [
        "setattr(module, name, nn.Linear(4, 4))",
        "setattr(module, name, nn.Identity())",
        "setattr(module, name, nn.Sequential(child, nn.Linear(4, 4)))",
        "module._modules[name] = nn.Linear(4, 4)",
    ],
)
def test_layers_are_replaced_by_their_names(change: str) -> None:
    assert "set_child" in check(MODEL.format(change=change, more="pass"))


@pytest.mark.parametrize(
    "more",
    [
        "setattr(self.net, '1', nn.Linear(4, 4, bias=False))",
        "setattr(self.net, str(len(self.net)), nn.Linear(4, 4))",
        "nn.init.zeros_(getattr(self.net, '0').weight)",
        "nn.init.zeros_(self.net._modules['0'].bias)",
        "nn.init.zeros_(self.get_submodule('net.2.1').bias)",
        "self.factor = float(hasattr(self.net, '1')) + float(hasattr(self.net, '7'))",
        """path = 'net.2.1'.split('.')
        part = self
        for one in path[:-1]:
            part = getattr(part, one)
        setattr(part, path[-1], nn.Linear(4, 4, bias=False))""",
        "setattr(functools.reduce(getattr, 'net.2'.split('.'), self), '0', nn.Linear(4, 4))",
    ],
)
def test_layers_are_found_by_their_names(more: str) -> None:
    check(MODEL.format(change="pass", more=more))


@pytest.mark.parametrize(
    ("more", "written"),
    [
        ("setattr(self, 'fc%d' % 1, nn.Linear(4, 4))", "set_child"),
        ("for i in range(2):\n            setattr(self, f'fc{i}', nn.Linear(4, 4))", "set_child"),
        ("for k, v in {'a': 1}.items():\n            setattr(self, k, v)", "set_child"),
    ],
)
def test_modules_without_numbers_are_asked_plainly(more: str, written: str) -> None:
    assert written not in check(MODEL.format(change="pass", more=more))


def test_a_layer_that_is_taken_out_by_its_name() -> None:
    result = convert(MODEL.format(change="pass", more="delattr(self.net, '1')"))
    assert [one.rule for one in result.findings if one.blocks] == ["API007"]


def test_a_forward_pass_that_goes_by_a_path() -> None:
    source = """
import functools

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.Linear(4, 4)))
        self.path = "net.1.0"
    def forward(self, x):
        part = functools.reduce(getattr, self.path.split("."), self)
        return part(x)
"""
    theirs, ours, _ = loaded(source)
    x = torch.randn(2, 4)
    model, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    migrator.load_state_dict(port, model.state_dict())
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).detach().numpy(), atol=1e-6)
