"""Functions that a module keeps, and that reach the module by way of another function."""

from __future__ import annotations

import pytest

from tests.convert.tools import rules_of

SOURCE = """
def made(module):
    return lambda x: x * module.weight

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4))

        def inner(x):
            return x * self.weight

        def outer(x):
            return inner(x) + 1

        short = lambda x: x * self.weight
        {line}

    def make(self):
        def inner(x):
            return x * self.weight

        return inner

    def forward(self, x):
        return self.func(x)
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.func = outer",
        "self.func = lambda x: inner(x)",
        "self.func = short",
        "self.func = lambda x: short(x)",
        "self.func = self.make()",
        "self.func = made(self)",
    ],
)
def test_they_would_go_on_with_the_weights_of_the_module_as_it_was_built(line: str) -> None:
    assert rules_of(SOURCE.format(line=line)) == ["API001"]
