"""What a function does with what an argument gives it: a layer perhaps, of which nothing is known."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import check, convert, loaded, rules_of

MODULE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
"""


@pytest.mark.parametrize(
    "body",
    [
        "y = m(x)\n    return y + y.data",
        "return m(x).data * x",
        "y = m(x)\n    z = y.data\n    return x * z",
    ],
)
def test_data_of_a_result_has_no_gradient(body: str) -> None:
    theirs, ours, _ = loaded(f"def f(m, x):\n    {body}\n")
    x = torch.linspace(-1, 1, 3, requires_grad=True)
    want = theirs["f"](lambda t: t * t, x)
    want.sum().backward()
    given = jnp.asarray(x.detach().numpy())
    found = jax.grad(lambda t: ours["f"](lambda u: u * u, t).sum())(given)
    np.testing.assert_allclose(ours["f"](lambda u: u * u, given), want.detach(), rtol=1e-6)
    assert x.grad is not None
    np.testing.assert_allclose(found, x.grad, rtol=1e-6)


@pytest.mark.parametrize("name", ["requires_grad", "grad_fn", "is_leaf"])
def test_the_history_of_a_result_is_asked_for(name: str) -> None:
    source = f"def f(m, x):\n    y = m(x)\n    if y.{name}:\n        y = y * 2\n    return y\n"
    assert rules_of(source) == ["API002"]


def test_a_generator_of_what_has_no_gradient() -> None:
    source = (
        "def f(m, xs):\n    with torch.no_grad():\n        for x in xs:\n            yield m(x)\n"
    )
    assert rules_of(source) == ["API001"]
    named = source.replace("yield m(x)", "y = m(x)\n            yield y")
    assert rules_of(named) == []


@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("return self.held[0](self.fc(x))", True),
        ("for part in self.held:\n            x = part(x)\n        return x", True),
        ("return self.fc(x) * self.held[0]", False),
    ],
)
def test_an_argument_in_a_plain_list_that_is_called(use: str, told: bool) -> None:
    """torch does not register it, and Flax keeps no module in such a list."""
    source = MODULE.replace("__init__(self)", "__init__(self, part)")
    source += f"        self.held = [part]\n\n    def forward(self, x):\n        {use}\n"
    assert rules_of(source) == (["API008"] if told else [])


@pytest.mark.parametrize(
    ("made", "told"), [("nn.Sequential(nn.Linear(3, 3))", True), ("Own()", False)]
)
def test_the_mode_of_a_layer_that_is_handed_to_a_function(made: str, told: bool) -> None:
    """torch's layers keep it otherwise in Flax, or not at all."""
    source = "class Own(nn.Module):\n    def forward(self, x):\n        return x * 2 if self.training else x\n\n\n"
    source += "def f(m, x):\n    return m(x) * 2 if m.training else m(x)\n\n"
    source += MODULE.replace("nn.Linear(3, 3)", made)
    source += "\n    def forward(self, x):\n        return f(self.fc, x)\n"
    assert rules_of(source) == (["API010"] if told else [])


def test_a_copy_of_settings_stays_one() -> None:
    """Nothing is differentiated by a copy that is merely changed."""
    _, ours, code = loaded(
        "import copy\n\n\ndef f(cfg):\n    made = copy.deepcopy(cfg)\n    made.update(a=1)\n    return made\n"
    )
    assert "detached" not in code
    assert ours["f"]({"b": 2}) == {"a": 1, "b": 2}


@pytest.mark.parametrize(("name", "told"), [("m", True), ("cfg", False)])
def test_the_dropout_of_a_layer_that_is_handed_over(name: str, told: bool) -> None:
    """An attention layer would go on with what it was made with."""
    source = f"def f({name}, p):\n    {name}.dropout = p\n    return {name}\n"
    assert rules_of(source) == (["API001"] if told else [])


def test_layers_for_each_of_an_argument_that_is_not_empty_by_default() -> None:
    source = """class Res(nn.Module):
    def __init__(self, n, dilations=(1, 3)):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(n, n) for _ in dilations])

    def forward(self, x):
        for layer in self.layers:
            x = layer(x) + x
        return x

class M(nn.Module):
    def __init__(self, n=4):
        super().__init__()
        self.parts = nn.ModuleList([Res(n), Res(n, (1,))])

    def forward(self, x):
        xs = None
        for part in self.parts:
            if xs is None:
                xs = part(x)
            else:
                xs += part(x)
        return xs / 2
"""
    check(source)
    told = [f.message for f in convert(source).findings if f.rule == "MUT001"]
    assert told == ["`dilations` is taken not to be empty, as its default: else no layer would run"]
    assert "MUT001" in rules_of(source.replace("dilations=(1, 3)", "dilations=()"))
    assert "MUT001" in rules_of(source.replace("dilations=(1, 3)", "dilations"))
