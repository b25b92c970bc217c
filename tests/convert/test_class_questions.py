"""Code that asks whether what it is handed is a class or a function: torch's layers are classes."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, convert

DEFAULT = """from inspect import isfunction

def default(value, other):
    if value is not None:
        return value
    return other() if isfunction(other) else other

"""
MADE = """class M(nn.Module):
    def __init__(self, act=None):
        super().__init__()
        act = default(act, nn.GELU)
        self.act = act()
        self.drop = default(None, nn.Dropout)(0.5)
        self.l = nn.Linear(4, default(None, lambda: 3))

    def forward(self, x):
        return self.act(self.drop(self.l(x)))
"""


def test_a_layer_that_is_a_default_is_no_function() -> None:
    code = check(DEFAULT + MADE)
    assert "@layer_class\ndef GELU(" in code


@pytest.mark.parametrize(
    "question",
    [
        "isinstance(act, type)",
        "inspect.isclass(act)",
        "isinstance(act, type) and issubclass(act, nn.Module)",
        "not inspect.isfunction(act)",
    ],
)
def test_what_is_handed_is_built_where_it_is_a_class(question: str) -> None:
    code = check(f"""import inspect

class M(nn.Module):
    def __init__(self, act=nn.GELU, other=nn.Tanh, plain=lambda x: x * 2, own=None):
        super().__init__()
        self.a, self.b, self.c = self.make(act), self.make(other), self.make(plain)
        self.l = nn.Linear(4, 4)

    def make(self, act):
        return act() if {question} else act

    def forward(self, x):
        return self.a(self.l(self.b(self.l(self.c(self.l(x))))))
""")
    assert "class LayerClass" in code


def test_code_that_asks_only_of_its_own_functions_carries_nothing() -> None:
    code = convert(DEFAULT + "y = default(None, lambda: 3)\n").code
    assert "layer_class" not in code
