"""``forward`` where it is more than a method of a module: by name, of what is not known, of a plain class, replaced."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

import migrator
from tests.convert.tools import HEADER, convert, rules_of

SOURCE = """
class Mixed:
    def forward(self, x):
        y = self.scale(self.fc(x)) + self.token + self.shift
        return y @ self.fc.weight.t()

    def scale(self, x):
        return x * 2

    def twice(self, x):
        return self.forward(self.forward(x))


class Root:
    def run(self, x):
        return self.forward(x) + 1


class Small(Mixed, nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.token = nn.Parameter(torch.randn(4))
        self.register_buffer("shift", torch.ones(4))


class Large(Root, Mixed, nn.Module):
    def __init__(self, inner, how="forward"):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.token = nn.Parameter(torch.randn(4))
        self.register_buffer("shift", torch.ones(4))
        self.inner = inner
        self.how = how

    def forward(self, x):
        y = super().forward(x) + self.inner.forward(x)
        return y + getattr(self.inner, self.how)(x) + getattr(self.inner, "forward")(x)


def called(net, x):
    run = net.forward
    return net.forward(x) + run(x)


class M(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.large = Large(inner)

    def forward(self, x):
        return self.large.run(x) + self.large.twice(x) + self.large.forward(x)
"""


@pytest.mark.parametrize("known", [True, False])
def test_forward_is_what_is_called(known: bool) -> None:
    source = SOURCE + ("\n\ndef make():\n    return M(Small())\n" if known else "")
    result = convert(source)
    assert result.complete, result.findings
    names: dict[str, Any] = {}
    exec(result.code, names)
    theirs: dict[str, Any] = {}
    exec(HEADER + source, theirs)
    rngs = nnx.Rngs(0)
    model = theirs["M"](theirs["Small"]())
    port = names["M"](names["Small"](rngs=rngs), rngs=rngs)
    migrator.load_state_dict(port, model.state_dict())
    x = torch.ones(2, 4)
    want = theirs["called"](model, x).detach()
    np.testing.assert_allclose(names["called"](port, jnp.ones((2, 4))), want, rtol=1e-4)
    report = migrator.verify(model, port, inputs=[torch.ones(2, 4)])
    assert report.ok, report.failure


@pytest.mark.parametrize(
    "line",
    [
        "self.forward = self.fast",
        "net.forward = lambda x: x",
        'setattr(self, "forward", self.fast)',
    ],
)
def test_a_forward_that_is_replaced_is_a_finding(line: str) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self, net):\n        super().__init__()\n        self.net = net\n"
        f"        {line}\n\n    def fast(self, x):\n        return x * 2\n\n    def forward(self, x):\n        return x\n"
    )
    assert not convert(source).complete
    assert "API005" not in rules_of(source.replace(line, "net.ahead = lambda x: x"))


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("return F.dropout(x, 0.5)", "API003"),
        ("return x * 2 if self.training else x", "API010"),
    ],
)
def test_what_only_a_module_has_in_a_forward_of_a_plain_class(body: str, rule: str) -> None:
    source = f"class Mixed:\n    def forward(self, x):\n        {body}\n\n\nclass M(Mixed, nn.Module):\n    pass\n"
    assert rule in rules_of(source)
