"""``net.apply(fn)``: torch's call on every module, as a loop that disturbs no other name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import convert

INIT = """
def init(m):
    if isinstance(m, nn.Linear):
        nn.init.constant_(m.weight, 0.5)
        nn.init.constant_(m.bias, 1.0)
"""


def compare(source: str) -> str:
    """The code of a port that starts with the weights of torch's module and computes the same."""
    result = convert(source)
    assert result.complete, result.findings
    theirs: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(source, theirs)
    ours: dict[str, Any] = {}
    exec(result.code, ours)
    module, port = theirs["M"](), ours["M"](rngs=nnx.Rngs(0))
    weights = migrator.to_state_dict(port)
    for name, want in module.state_dict().items():
        np.testing.assert_array_equal(weights[name], want.numpy(), err_msg=name)
    x = torch.randn(2, 3)
    call = nnx.jit(lambda port, x: port(x))
    for _ in range(2):
        np.testing.assert_allclose(call(port, x.numpy()), module(x).detach(), rtol=1e-5)
    return result.code


def test_name_of_the_callers() -> None:
    source = f"""{INIT}
class M(nn.Module):
    def __init__(self, module=2.0):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.apply(init)
        self.scale = module

    def forward(self, x):
        return self.fc(x) * self.scale
"""
    assert "for _, module in" not in compare(source)


def test_name_as_before() -> None:
    source = f"""{INIT}
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.apply(init)

    def forward(self, x):
        return self.fc(x)
"""
    assert "for _, module in nnx.iter_modules(self)" in compare(source)


@pytest.mark.parametrize("made", ["Net().apply(init)", "nn.Linear(3, 4).apply(init)"])
def test_module_that_is_made_and_kept(made: str) -> None:
    source = f"""{INIT}
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Sequential(nn.Linear(3, 4), nn.ReLU())

    def forward(self, x):
        return self.fc(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = {made}
        last = nn.Linear(4, 2).apply(init)
        self.last = last

    def forward(self, x):
        return self.last(self.net(x))
"""
    compare(source)


@pytest.mark.parametrize(
    ("given", "applied"),
    [
        ("", "self.apply(Init(3.0))"),
        (", init=Init(3.0)", "self.apply(init)"),
        (", init=Init(3.0)", "self.init = init; self.apply(self.init)"),
        (", init=Init(3.0)", "if init is not None: self.apply(init)"),
    ],
)
def test_an_object_that_can_be_called(given: str, applied: str) -> None:
    source = f"""class Init(object):
    def __init__(self, value):
        self.value = value

    def __call__(self, module):
        if isinstance(module, nn.Linear):
            module.weight = nn.init.constant_(module.weight, self.value)
            if module.bias is not None:
                module.bias = nn.init.constant_(module.bias, 1)


class M(nn.Module):
    def __init__(self{given}):
        super().__init__()
        self.fc = nn.Linear(3, 4)
        self.act = nn.ReLU()
        {applied.replace("; ", chr(10) + "        ")}

    def forward(self, x):
        return self.act(self.fc(x))
"""
    compare(source)
