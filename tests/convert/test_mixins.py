"""Plain classes that modules derive from, and functions of modules: what they ask of torch's Module."""

from __future__ import annotations

import pytest
from flax import nnx

from tests.convert.tools import check, loaded, rules_of

MIXIN = """
class Mixin:
    def count(self):
        return sum(p.numel() for p in self.parameters() if p.requires_grad)

    def layers(self):
        return [m for m in self.modules() if isinstance(m, nn.Linear)]

    def freeze(self):
        for p in self.parameters():
            p.requires_grad = False

    {method}


class M(Mixin, nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.n = len(self.layers()) * self.count()

    def forward(self, x):
        return self.fc(x) * self.n
"""


def test_a_mixin_goes_over_its_module() -> None:
    """It has torch's methods from the modules that derive from it: they were left as they stand, and Flax has none."""
    code = check(MIXIN.format(method=""))
    assert "for p in parameters(self)" in code
    assert "modules(self)" in code


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("return self.training", "API010"),
        ("return x if self.training else -x", "API010"),
        ("return self.state_dict()", "API001"),
        ("self.add_module('b', nn.Linear(4, 4))", "API005"),
        ("self.apply(print)", "API005"),
        ("self.register_buffer('b', x)", "API005"),
    ],
)
def test_what_a_mixin_may_not_ask(line: str, rule: str) -> None:
    assert rules_of(MIXIN.format(method=f"def more(self, x):\n        {line}")) == [rule]


def test_a_plain_class_with_a_mode_of_its_own() -> None:
    source = (
        "class Config:\n    def __init__(self, training):\n        self.training = training\n\n"
    )
    source += "    def mode(self):\n        return 'train' if self.training else 'eval'\n"
    assert rules_of(source) == []


@pytest.mark.parametrize(
    ("head", "rules"),
    [
        ("def f(model, x):\n    return x if model.training else -x", ["API010"]),
        ("def f(config, x):\n    return x if config.training else -x", []),
        ("def f(net, x):\n    net.register_buffer('b', x)", ["API005"]),
        (
            "def f(forward):\n    def run(self, x):\n        return forward(self, x) * self.training\n"
            "    return run",
            ["API010"],
        ),
    ],
)
def test_functions_of_modules(head: str, rules: list[str]) -> None:
    assert rules_of(head) == rules


PLAIN = """
class Log:
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.lines = []


class Quiet:
    def note(self, x):
        return x


class Base:
    def __init__(self, d):
        self.net = nn.Linear(d, d)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x)


{lines}


def make():
    return D(4)
"""


@pytest.mark.parametrize(
    "lines",
    [
        "class D(Log, Base):\n    pass",
        "class D(Log, Base):\n    def __init__(self, d):\n        super().__init__(d)",
    ],
)
def test_a_plain_mixin_hands_no_generator_on(lines: str) -> None:
    assert rules_of(PLAIN.format(lines=lines)) == ["API005"]


@pytest.mark.parametrize(
    "lines",
    [
        "class D(Quiet, Base):\n    pass",
        "class D(Base, Quiet):\n    def __init__(self, d):\n        super().__init__(d)",
        "class D(Log, Base):\n    def __init__(self, d):\n        Base.__init__(self, d)",
    ],
)
def test_plain_bases_that_are_handed_the_generator(lines: str) -> None:
    _, ours, _ = loaded(PLAIN.format(lines=lines))
    made = ours["make"](rngs=nnx.Rngs(0))
    assert made.net.kernel.shape == (4, 4)
