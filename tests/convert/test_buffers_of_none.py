"""Buffers that are registered without a tensor and get one later: torch's state_dict has them from then on."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import X, both

MODEL = """
class M(nn.Module):
    def __init__(self, given=None):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {register}

    def forward(self, x):
        {forward}
"""


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    ("register", "forward"),
    [
        (
            'self.register_buffer("cache", None)',
            "if self.cache is None:\n            self.cache = x.detach() * 2\n"
            "        return self.fc(x) + self.cache",
        ),
        (
            'self.register_buffer("cache", None)',
            "self.cache = x.detach() if self.cache is None else self.cache + 1\n"
            "        return self.fc(x) + self.cache",
        ),
        (
            'self.register_buffer("cache", torch.ones(4) if given else None)',
            "if self.cache is None:\n            self.cache = torch.zeros(4)\n"
            "        return self.fc(x) + self.cache",
        ),
        (
            'if given:\n            self.register_buffer("cache", torch.ones(4))\n'
            '        else:\n            self.register_buffer("cache", None)',
            "if self.cache is None:\n            self.cache = torch.zeros(4)\n"
            "        return self.fc(x) + self.cache",
        ),
    ],
)
def test_a_buffer_that_comes_later_is_in_the_state(register: str, forward: str, jit: bool) -> None:
    model, port, _ = both(MODEL.format(register=register, forward=forward))
    run = nnx.jit(lambda m, x: m(x)) if jit else lambda m, x: m(x)
    for x in (X, X * 2):
        got = run(port, jnp.asarray(x.numpy()))
        np.testing.assert_allclose(got, model(x).detach().numpy(), atol=1e-5)
    ours = migrator.to_state_dict(port)
    assert set(ours) == set(model.state_dict())
    np.testing.assert_allclose(ours["cache"], model.state_dict()["cache"].numpy(), atol=1e-6)


def test_one_that_is_not_saved_has_no_key() -> None:
    register = 'self.register_buffer("cache", None, persistent=False)'
    forward = "self.cache = x.detach()\n        return self.fc(x) + self.cache"
    _, port, _ = both(MODEL.format(register=register, forward=forward))
    port(jnp.asarray(X.numpy()))
    assert set(migrator.to_state_dict(port)) == {"fc.weight", "fc.bias"}
