"""Layers that get another bias than they were made with, and weights shared between layers that are not known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import both, check, rules_of

MODEL = """def give(layer, bias):
    layer.bias = bias

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 8)
        self.bias = nn.Parameter(torch.linspace(-1, 1, 9))
        LINES

    def forward(self, x):
        return self.head(self.embed(x))
"""
BARE = "self.head = nn.Linear(8, 9, bias=False)\n        "
FORMS = {
    "none": "self.head = nn.Linear(8, 9)\n        self.head.bias = None",
    "registered none": 'self.head = nn.Linear(8, 9)\n        self.head.register_parameter("bias", None)',
    "made": BARE + "self.head.bias = nn.Parameter(torch.ones(9))",
    "shared": BARE + "self.head.bias = self.bias",
    "instead": "self.head = nn.Linear(8, 9)\n        self.head.bias = self.bias",
    "before the weight is tied": BARE
    + "self.head.bias = self.bias\n        self.head.weight = self.embed.weight",
    "after the weight is tied": BARE
    + "self.head.weight = self.embed.weight\n        self.head.bias = self.bias",
    "by a function": BARE + "give(self.head, nn.Parameter(torch.ones(9)))",
    "none by a function": "self.head = nn.Linear(8, 9)\n        give(self.head, None)",
    "a convolution's": "self.head = nn.Conv1d(2, 9, 1, bias=False)\n        give(self.head, nn.Parameter(torch.ones(9)))",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_layer_gets_another_bias(form: str) -> None:
    model, port, _ = both(MODEL.replace("LINES", FORMS[form]))
    with torch.no_grad():
        model.bias.mul_(3)
    x = torch.tensor([[1, 5], [0, 8]])
    if model.head.bias is model.bias:
        port.bias[...] = port.bias[...] * 3
    want = model(x)
    np.testing.assert_allclose(
        nnx.jit(lambda m, x: m(x))(port, jnp.asarray(x.numpy())),
        want.detach(),
        rtol=1e-5,
        atol=1e-6,
    )
    want.square().sum().backward()
    grads = nnx.grad(lambda m: jnp.square(m(jnp.asarray(x.numpy()))).sum())(port)
    assert len(jax.tree.leaves(grads)) == len(list(model.parameters()))
    if model.head.bias is model.bias:
        np.testing.assert_allclose(grads["bias"][...], model.bias.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "line", ["head.weight = embed.weight", "self.made().weight = embed.weight"]
)
def test_a_weight_shared_between_layers_that_are_not_known_is_a_finding(line: str) -> None:
    source = f"class M(nn.Module):\n    def tie(self, head, embed):\n        {line}\n"
    assert rules_of(source) == ["API009"]


def test_a_method_that_only_classes_derived_from_this_one_have() -> None:
    model, port, _ = both(
        """class Base(nn.Module):
    def begin(self):
        head = self.get_head()
        if head is not None:
            self.fill(head)

    def fill(self, layer):
        nn.init.constant_(layer.weight, 0.5)

class M(Base):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)
        self.begin()

    def get_head(self):
        return self.head

    def forward(self, x):
        return self.head(x)
"""
    )
    np.testing.assert_allclose(port.head.kernel[...].T, model.head.weight.detach())


KEPT = """class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.zeros(3, 4))

    def set_w(self, w):
        self.w = w

def give(head, w):
    head.w = w

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3, 4))
        self.head = Head()
        CALL
"""


@pytest.mark.parametrize("call", ["self.head.set_w(self.w)", "give(self.head, self.w)"])
def test_a_parameter_handed_to_what_keeps_it_is_a_finding(call: str) -> None:
    assert rules_of(KEPT.replace("CALL", call)) in (["API009"], ["MUT001"])


@pytest.mark.parametrize(
    "lines",
    [
        "self.seq.add_module('last', nn.Linear(4, 4)); self.seq[0].bias = None",
        "self.seq[0] = nn.Sequential(self.seq[0]) if dim > 9 else self.seq[0]; self.seq[0].bias = None",
        "self.seq.append(nn.ReLU()); self.seq[2].register_parameter('bias', None)",
    ],
)
def test_no_bias_of_a_layer_whose_class_the_run_tells(lines: str) -> None:
    body = "".join(f"        {line.strip()}\n" for line in lines.split(";"))
    check(f"""
class M(nn.Module):
    def __init__(self, dim=4):
        super().__init__()
        self.seq = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))
{body}
    def forward(self, x):
        return self.seq(x)
""")
