"""``F.dropout(x, p, inplace=inplace)`` with an option that is off unless a call says otherwise."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import both, loaded, rules_of

SOURCE = """
class Drop(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p
        self.always = False

    def forward(self, x, inplace: bool = False):
        if self.p > 0 and (self.training or self.always):
            return F.dropout(x, p=self.p, training=True, inplace=inplace)
        else:
            return x


class M(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.drop = Drop(p)
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        y = self.l(x)
        z = CALL
        return z + READ
"""


def source(call: str = "self.drop(y)", read: str = "y", **others: str) -> str:
    made = SOURCE.replace("CALL", call).replace("READ", read)
    for old, new in others.items():
        made = made.replace(old, new)
    return made


@pytest.mark.parametrize(
    "call", ["self.drop(y)", "self.drop(y, False)", "self.drop(y, inplace=False)"]
)
@pytest.mark.parametrize("p", [0.0, 1.0])
def test_what_no_call_switches_on_writes_to_nothing(call: str, p: float) -> None:
    model, port, _ = both(source(call), p)
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    for train in (True, False):
        model.train(train)
        port.train() if train else port.eval()
        np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).detach(), atol=1e-6)


def test_what_is_switched_on_and_read_no_more_is_replaced() -> None:
    model, port, _ = both(source("self.drop(y, inplace=True)", "x"), 1.0)
    x = torch.linspace(-1, 1, 8).reshape(2, 4)
    np.testing.assert_allclose(port(jnp.asarray(x.numpy())), model(x).detach(), atol=1e-6)


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        ("self.drop(y, inplace=True)", {}),
        ("self.drop(y, True)", {}),
        ("self.drop(y, inplace=self.training)", {}),
        ("self.drop(y, **{'inplace': True})", {}),
        ("self.drop(y)", {"inplace: bool = False": "inplace: bool = True"}),
        (
            "self.drop(y)",
            {"        if self.p": "        inplace = self.training\n        if self.p"},
        ),
        (
            "self.drop(y)",
            {
                "            return F.dropout(x, p=self.p, training=True, inplace=inplace)": (
                    "            z = F.dropout(x, p=self.p, training=True, inplace=True)\n"
                    "            return x + z"
                )
            },
        ),
    ],
)
def test_what_may_be_switched_on_and_is_read_is_a_finding(
    call: str, changes: dict[str, str]
) -> None:
    assert {"MUT002", "MUT003", "MUT001"} & set(rules_of(source(call, **changes)))


def test_what_is_read_after_a_return_has_the_new_values() -> None:
    lines = """
class M(nn.Module):
    def forward(self, x, seen):
        y = x * 2
        try:
            return F.relu(y, inplace=True)
        finally:
            seen.append(y)
"""
    torchs, flaxs, _ = loaded(lines)
    model, port = torchs["M"](), flaxs["M"]()
    x = torch.linspace(-1, 1, 8)
    theirs: list[torch.Tensor] = []
    ours: list[np.ndarray] = []
    np.testing.assert_allclose(port(jnp.asarray(x.numpy()), ours), model(x, theirs))
    np.testing.assert_allclose(ours[0], theirs[0])
