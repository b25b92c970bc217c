"""Classes derived from torch's layers that run the layer's own forward pass, and what begins their parameters."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import check, loaded, rules_of

LINEAR = """class Linear(nn.Linear):
    def __init__(self, width, out, bias=True, init="default", init_fn=None):
        super().__init__(width, out, bias=bias)
        if bias:
            with torch.no_grad():
                self.bias.fill_(0)
        if init_fn is not None:
            init_fn(self.weight, self.bias)
        elif init == "gating":
            gating_(self.weight)
            if bias:
                with torch.no_grad():
                    self.bias.fill_(1.0)
        elif init == "rows":
            rows_(self.weight)

def gating_(weights):
    with torch.no_grad():
        weights.fill_(0.0)

def rows_(w):
    with torch.no_grad():
        w.copy_(torch.arange(w.numel()).reshape(w.shape) / 10)

class M(nn.Module):
    def __init__(self, init="rows"):
        super().__init__()
        self.q = Linear(4, 6, init=init)

    def heads(self, x):
        q = self.q(x)
        q = q.view(q.shape[:-1] + (2, -1)).transpose(-2, -3)
        q /= 3.0
        return q

    def forward(self, x):
        return self.heads(x).transpose(-2, -3).flatten(-2) + x.repeat(1, 2)[:, :6]
"""


def test_what_a_derived_layer_makes_is_its_own() -> None:
    check(LINEAR, "rows")


@pytest.mark.parametrize("init", ["gating", "rows"])
def test_a_function_that_fills_the_weight_of_a_derived_layer(init: str) -> None:
    theirs, ours, _ = loaded(LINEAR)
    layer, port = (
        theirs["Linear"](4, 6, init=init),
        ours["Linear"](4, 6, init=init, rngs=nnx.Rngs(0)),
    )
    np.testing.assert_allclose(port.kernel[...].T, layer.weight.detach().numpy(), rtol=1e-6)
    np.testing.assert_allclose(port.bias[...], layer.bias.detach().numpy())


def test_an_unknown_function_that_may_initialise_either_parameter_raises() -> None:
    _, ours, _ = loaded(LINEAR)
    with pytest.raises(NotImplementedError, match=r"self\.weight, self\.bias"):
        ours["Linear"](4, 6, init_fn=lambda w, b: None, rngs=nnx.Rngs(0))


def test_one_that_somebody_hands_over_is_a_finding() -> None:
    handing = "\ndef mine(w, b):\n    nn.init.zeros_(w)\n\ndef make():\n    return Linear(4, 6, init_fn=mine)\n"
    assert rules_of(LINEAR + handing)


def test_an_unknown_function_that_initialises_the_weight_gives_its_value() -> None:
    source = """class L(nn.Linear):
    def __init__(self, init_fn=None):
        super().__init__(3, 2)
        if init_fn is not None:
            init_fn(self.weight)
"""
    _, ours, _ = loaded(source)
    port = ours["L"](lambda w: jnp.arange(6.0).reshape(w.shape), rngs=nnx.Rngs(0))
    np.testing.assert_allclose(port.kernel[...].T, np.arange(6.0).reshape(2, 3))


def test_a_derived_dropout_may_give_back_what_it_is_handed() -> None:
    """In evaluation it does: what is written to its result is written to its input."""
    source = """class Drop(nn.Dropout):
    pass

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = Drop(0.5)
    def forward(self, x):
        y = self.drop(x)
        y += 1
        return y + x
"""
    assert rules_of(source)


TAGGED = """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 3), nn.LayerNorm(3))
        for layer in self.net.children():
            for name, p in layer.named_parameters():
                {what}
    def forward(self, x):
        return self.net(x)
"""


def test_parameters_are_tagged_by_their_names() -> None:
    check(TAGGED.format(what='setattr(getattr(layer, name), "_optim", {"lr": 0.1})'))


def test_a_parameter_asked_for_by_name_is_a_finding() -> None:
    assert rules_of(TAGGED.format(what="print(getattr(layer, name).shape)")) == ["API005"]


HEAD = """class Head(nn.Module):
    def __init__(self, nc=2):
        super().__init__()
        self.nc = nc
        self.fixed = nn.Linear(4, 4, bias=False).requires_grad_(False)
        self.fixed.weight.data[:] = nn.Parameter(torch.arange(16.0).view(4, 4))
        self.a = nn.ModuleList(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 3)) for _ in range(2))

    def begin(self):
        m = self
        for a in m.a:
            a[-1].bias.data[:m.nc] = 0.5
            a[0].bias.data[:] = 1.0

def mark(layers):
    for one in layers:
        one.weight.data[0, 1:] = 2.0

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = Head()
        self.head.begin()
        mark([self.head.a[0][0], self.head.a[1][1]])

    def forward(self, x):
        return self.head.a[0](self.head.fixed(x))
"""


def test_parts_of_parameters_of_layers_known_and_unknown() -> None:
    theirs, ours, _ = loaded(HEAD)
    want = {key: value.numpy() for key, value in theirs["M"]().state_dict().items()}
    got = migrator.to_state_dict(ours["M"](rngs=nnx.Rngs(0)))
    np.testing.assert_allclose(got["head.fixed.weight"], want["head.fixed.weight"])
    for key in ("head.a.0.0.weight", "head.a.1.1.weight"):
        np.testing.assert_allclose(got[key][0, 1:], want[key][0, 1:])
    np.testing.assert_allclose(got["head.a.1.1.bias"][:2], 0.5)
    np.testing.assert_allclose(got["head.a.1.0.bias"], 1.0)
    check(HEAD)


def test_an_unknown_parameter_scaled_in_part_is_a_finding() -> None:
    assert rules_of("def f(layer):\n    layer.weight.data[0] *= 2\n") == ["MUT002"]
    assert rules_of("def f(layer):\n    layer.weight.data *= 2\n") == ["MUT002"]


def test_an_activation_is_named_by_an_argument_that_takes_its_place() -> None:
    check("""class M(nn.Module):
    def __init__(self, act="SiLU"):
        super().__init__()
        act = getattr(torch.nn, act)
        self.net = nn.Sequential(nn.Linear(4, 4), act())
    def forward(self, x):
        return self.net(x)
""")
