"""Norms that keep no running statistics: torch has None where the others have a buffer."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

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
