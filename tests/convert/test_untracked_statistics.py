"""Norms that keep no running statistics: torch has None where the others have a buffer."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import migrator
from tests.convert.tools import both, check, same

PARTS = """
class Own({base}):
    def __init__(self, n, track):
        super().__init__(n{rest})
        self.gain = nn.Parameter(torch.rand(n))

    def forward(self, x):
        {body}
        return x * self.gain[:, None]


class Plain({base}):
    def forward(self, x):
        {body}
        return x


class M(nn.Module):
    def __init__(self, track):
        super().__init__()
        self.a = Own(3, track)
        self.b = Plain({args})
        self.c = {base}(3{rest})

    def forward(self, x):
        x = self.b(self.a(x[None]))
        m = self.c.running_mean
        return x if m is None else x + m[:, None]
"""
NORMALIZE = (
    "x = F.{call}(x, self.running_mean, self.running_var, self.weight, self.bias, "
    "self.training or not self.track_running_stats, self.momentum, self.eps)"
)
BODIES = [
    "x = x * 2 if self.running_mean is None else x - self.running_mean[:, None]",
    "m, v = self.running_mean, self.running_var\n        x = x if m is None else (x - m[:, None]) / v[:, None]",
    "m = self.running_mean\n        if m is not None:\n            x = x - m.view(-1, 1)",
]


@pytest.mark.parametrize("track", [True, False])
@pytest.mark.parametrize("rest", ["", ", track_running_stats=track", ", 1e-5, .1, True, track"])
@pytest.mark.parametrize("body", [*BODIES, NORMALIZE.format(call="batch_norm")])
def test_batch_norm(body: str, rest: str, track: bool) -> None:
    args = "3, track_running_stats=track" if rest else "3"
    check(PARTS.format(base="nn.BatchNorm1d", body=body, rest=rest, args=args), track)


@pytest.mark.parametrize("track", [True, False])
@pytest.mark.parametrize("rest", ["", ", track_running_stats=track"])
@pytest.mark.parametrize("body", BODIES)
def test_instance_norm(body: str, rest: str, track: bool) -> None:
    args = "3, track_running_stats=track" if rest else "3"
    check(PARTS.format(base="nn.InstanceNorm1d", body=body, rest=rest, args=args), track)


def test_instance_norm_by_function() -> None:
    body = NORMALIZE.format(call="instance_norm")
    source = PARTS.format(base="nn.InstanceNorm1d", body=body, rest=", affine=True", args="3")
    check(source, True)


SWITCHED = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.BatchNorm1d(3)
        self.b = nn.InstanceNorm1d(3, track_running_stats=True)
        self.a.track_running_stats = False
        self.b.track_running_stats = False

    def forward(self, x):
        return self.b(self.a(x[None]) * 2)
"""


def test_tracking_that_is_switched_off_later_leaves_the_statistics() -> None:
    """In evaluation a batch norm that has statistics uses them; an instance norm goes on to update its own."""
    model, port, _ = both(SWITCHED)
    model.b.running_mean += 1
    model.a.running_mean += 1
    migrator.load_state_dict(port, model.state_dict())
    x = torch.linspace(-1, 1, 12).reshape(3, 4).numpy()
    for mode in (False, True, False):
        model.train(mode)
        port.train() if mode else port.eval()
        same(model, port, x)
    state = migrator.to_state_dict(port)
    for name, value in model.state_dict().items():
        if "tracked" not in name:  # a counter of torch's that an instance norm never counts up
            np.testing.assert_allclose(state[name], value.numpy(), rtol=1e-5)
