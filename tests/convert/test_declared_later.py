"""Attributes that are something else first and a parameter or layer then, and properties over what a base keeps."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

from tests.convert.tools import X, both, check, rules_of

NET = """
class M(nn.Module):
    def __init__(self, act={0}):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.act = act
        {1}

    def setup(self):
        self.act = nn.Parameter(torch.ones(4)) if self.act else 1.0

    def forward(self, x):
        return {2}
"""


@pytest.mark.parametrize(
    ("default", "line", "result"),
    [
        ("True", "self.act = nn.Parameter(torch.ones(4)) if act else 1.0", "self.fc(x) * self.act"),
        (
            "False",
            "self.act = nn.Parameter(torch.ones(4)) if act else 1.0",
            "self.fc(x) * self.act",
        ),
        ("None", "self.act = nn.Parameter(torch.ones(4)) if act is None else act", "x * self.act"),
        ("True", "self.setup()", "x * self.act"),
        ("4", "self.act = nn.Linear(self.act, act)", "self.act(self.fc(x))"),
        ("nn.Tanh", "self.act = self.act()", "self.act(self.fc(x))"),
        ("nn.ReLU", "self.act = nn.Sequential(act(), self.fc)", "self.act(x)"),
    ],
)
def test_data_after_what_is_none(default: str, line: str, result: str) -> None:
    check(NET.format(default, line, result))


FOCAL = """
class M(nn.Module):
    def __init__(self, gamma=2, alpha=None):
        super().__init__()
        self.gamma = gamma
        self.alpha = alpha
        if isinstance(alpha, (float, int)):
            self.alpha = torch.Tensor([alpha, 1 - alpha])
        if isinstance(alpha, list):
            self.alpha = torch.Tensor(alpha)

    def forward(self, x, target):
        logpt = F.log_softmax(x, dim=1).gather(1, target.view(-1, 1)).view(-1)
        if self.alpha is not None:
            if self.alpha.type() != x.data.type():
                self.alpha = self.alpha.type_as(x.data)
            logpt = logpt * self.alpha.gather(0, target.view(-1))
        return -((1 - logpt.exp()) ** self.gamma * logpt).mean()
"""


@pytest.mark.parametrize("args", [(), (2, 0.3), (1, [0.2, 0.8])])
def test_weights_of_a_loss_that_may_be_left_out(args: tuple[object, ...]) -> None:
    model, port, _ = both(FOCAL, *args)
    x, target = torch.randn(5, 2), torch.tensor([0, 1, 1, 0, 1])
    got = port(jnp.asarray(x.numpy()), jnp.asarray(target.numpy()))
    np.testing.assert_allclose(got, model(x, target), rtol=1e-5)


def test_what_the_forward_pass_gives_first_is_a_finding() -> None:
    source = """
class M(nn.Module):
    def __init__(self, mask=None, n=3):
        super().__init__()
        self.mask = mask
        if n > 5:
            self.mask = torch.ones(n)

    def forward(self, x):
        if self.mask is None:
            self.mask = torch.ones_like(x[0])
        return x * self.mask
"""
    assert "API005" in rules_of(source)


BASE = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.{0}
        self.fc = nn.Linear(4, 4)


class M(Base):
    def __init__(self):
        super().__init__()
        self._scale = 2.0

    @property
    def scale(self):
        return self._scale

{1}
    def forward(self, x):
        return self.fc(x) * self.scale
"""
SETTER = "    @scale.setter\n    def scale(self, value):\n        self._scale = value * 2\n"


@pytest.mark.parametrize(
    "kept",
    [
        "scale = nn.Parameter(torch.ones(4))",
        "register_buffer('scale', torch.ones(4))",
        "scale = nn.Linear(4, 4)",
    ],
)
def test_a_property_over_what_a_base_registers_is_a_finding(kept: str) -> None:
    assert "API007" in rules_of(BASE.format(kept, ""))


def test_a_property_over_a_plain_attribute_with_a_setter() -> None:
    check(BASE.format("scale = 3.0", SETTER))
    assert X.shape == (3, 4)
