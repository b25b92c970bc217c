"""``train`` of a module's own that does what torch's does without calling it."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import X, both, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4))
        self.norm = nn.BatchNorm1d(4)
        self.seen = 0

    def train(self, mode=True):
        BODY
        return self

    def forward(self, x):
        return self.norm(self.body(x)) * (2 if self.training else 1)
"""
PLAIN = "self.training = mode\n        for m in self.children():\n            m.train(mode)"


@pytest.mark.parametrize(
    "body",
    [
        PLAIN,
        '"""Set the mode."""\n        ' + PLAIN,
        PLAIN + "\n        self.norm.eval()",
        PLAIN + "\n        if mode:\n            self.norm.train(False)",
        PLAIN.replace("for m", "for module").replace("m.train", "module.train"),
    ],
)
def test_what_torch_does(body: str) -> None:
    module, port, code = both(SOURCE.replace("BODY", body))
    assert "_child_order" not in code
    for mode in (True, False, True):
        module.train(mode)
        port.train() if mode else port.eval()
        want = module(X).detach().numpy()
        np.testing.assert_allclose(port(jnp.asarray(X.numpy())), want, atol=1e-5)
    mean = port.norm.running_mean[...]
    assert torch.allclose(module.norm.running_mean, torch.tensor(np.asarray(mean)), atol=1e-5)


@pytest.mark.parametrize(
    "body",
    [
        "self.training = mode",
        PLAIN.replace("m.train(mode)", "m.train(not mode)"),
        PLAIN.replace("m.train(mode)", "m.train()"),
        PLAIN.replace("self.training = mode", "self.training = True"),
        PLAIN.replace("self.children()", "self.body.children()"),
        PLAIN.replace("m.train(mode)", "m.train(mode)\n            self.seen += 1"),
        "self.seen += 1\n        " + PLAIN,
        PLAIN + "\n        else:\n            pass",
    ],
)
def test_what_does_something_else(body: str) -> None:
    assert "API010" in rules_of(SOURCE.replace("BODY", body))
