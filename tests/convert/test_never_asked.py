"""Functions with an option to work in place, handed on as values: ``gate_fn=hard_sigmoid`` of GhostNet and its kin."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both, loaded, rules_of

SOURCE = """
import functools


def hard_sigmoid(x, inplace: bool = False):
    BODY


class Gate(nn.Module):
    def __init__(self, n, act=nn.ReLU, gate_fn=hard_sigmoid):
        super().__init__()
        self.gate_fn = gate_fn
        self.l = nn.Linear(n, n)
        self.act = act(inplace=True)

    def forward(self, x):
        y = self.l(x)
        return CALL


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = Gate(4)

    def forward(self, x):
        return self.g(x) + self.g(x * 2)
"""
BODY = """if inplace:
        return x.add_(3.).clamp_(0., 6.).div_(6.)
    else:
        return F.relu6(x + 3.) / 6."""
CALL = "self.act(x * self.gate_fn(y)) + y"


def source(body: str = BODY, call: str = CALL, **others: str) -> str:
    made = SOURCE.replace("BODY", body).replace("CALL", call)
    for old, new in others.items():
        made = made.replace(old, new)
    return made


@pytest.mark.parametrize(
    "body",
    [
        BODY,
        "return x.mul_(x.sigmoid()) if inplace else x.mul(x.sigmoid())",
        "if inplace:\n        x.mul_(2)\n        return x\n    return x * 2",
        "if not inplace:\n        return x * 2\n    else:\n        return x.mul_(2)",
        "return x.mul_(2) if inplace and x.dim() > 1 else x * 2",
    ],
)
def test_nobody_asks_for_it(body: str) -> None:
    model, port, _ = both(source(body))
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    want = model(x.clone()).detach().numpy()
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("body", "call", "others"),
    [
        (BODY, "x * self.gate_fn(y, inplace=True) + y", {}),
        (BODY, "x * self.gate_fn(y, True) + y", {}),
        (BODY, "x * self.gate_fn(*[y, True]) + y", {}),
        (BODY, "x * self.gate_fn(y, **self.options) + y", {}),
        (
            BODY,
            CALL,
            {"gate_fn=hard_sigmoid": "gate_fn=functools.partial(hard_sigmoid, inplace=True)"},
        ),
        (BODY, CALL, {"inplace: bool = False": "inplace: bool = True"}),
        (BODY, CALL, {"inplace: bool = False": "inplace"}),
        (f"inplace = x.dim() > 1\n    {BODY}", CALL, {}),
        (f"inplace |= x.dim() > 1\n    {BODY}", CALL, {}),
        (f"for inplace in (True,):\n        pass\n    {BODY}", CALL, {}),
        (BODY, "x * list(map(self.gate_fn, [y], [True]))[0] + y", {}),
        (
            BODY,
            CALL,
            {
                "gate_fn=hard_sigmoid": "gate_fn=lambda x: functools.partial(hard_sigmoid, x, True)()"
            },
        ),
        ("x.add_(3.)\n    return x.clamp_(0., 6.) if inplace else x", CALL, {}),
        ("return x.clone() if inplace else x.add_(3.)", CALL, {}),
    ],
)
def test_somebody_may_ask_for_it(body: str, call: str, others: dict[str, str]) -> None:
    assert {r[:3] for r in rules_of(source(body, call, **others))} & {"MUT"}


METHOD = """
class M(nn.Module):
    def act(self, x, inplace=False):
        if inplace:
            x.add_(3.)
        return x * 2

    def forward(self, x):
        y = x * 1
        z = self.act(y, GIVEN)
        return z + y
"""


@pytest.mark.parametrize("given", ["True", "inplace=True", "x.dim() > 1", "False", "inplace=False"])
def test_a_method_that_is_asked_for_it(given: str) -> None:
    made = METHOD.replace("GIVEN", given)
    if "False" not in given:
        assert {r[:3] for r in rules_of(made)} == {"MUT"}
        return
    theirs, ours, _ = loaded(made)
    x = torch.linspace(-2, 2, 12).reshape(3, 4)
    np.testing.assert_allclose(ours["M"]()(jnp.asarray(x.numpy())), theirs["M"]()(x), rtol=1e-6)
