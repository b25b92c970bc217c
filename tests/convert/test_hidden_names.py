"""A name of the file's own may hide what the conversion writes: that is a finding."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

LOCAL = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        NAME = self.fc(x)
        return NAME.softmax(-1) + (NAME + x).relu()
"""
TOP = """
def NAME(x, n=2):
    return x.transpose(0, 1).reshape(x.shape) * n


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return NAME(self.fc(x)) + NAME(x, n=3)
"""
ARGUMENT = """
class M(nn.Module):
    def __init__(self, NAME=3):
        super().__init__()
        self.fc = nn.Linear(4, NAME)
        self.n = NAME

    def forward(self, x):
        return self.fc(x)[:, :1] * self.n + x
"""
LOOP = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        range = x.max() - x.min()
        for row in x.unbind(0):
            x = x + row / range
        return x

    def rows(self, x: torch.Tensor):
        return [i for i in range(3)]
"""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (LOCAL, "jax"),
        (TOP, "jax"),
        (TOP, "nnx"),
        (TOP, "max"),
        (ARGUMENT, "rngs"),
        (ARGUMENT, "nnx"),
    ],
)
def test_names_that_hide_what_is_written(source: str, name: str) -> None:
    assert rules_of(source.replace("NAME", name)) == ["API009"]


@pytest.mark.parametrize("name", ["max", "jnp", "len", "sum", "input"])
@pytest.mark.parametrize("source", [LOCAL, ARGUMENT])
def test_names_that_hide_nothing(source: str, name: str) -> None:
    check(source.replace("NAME", name))


@pytest.mark.parametrize("name", ["jnp", "sorted", "sum", "input", "abs", "id", "filter"])
def test_functions_that_hide_nothing(name: str) -> None:
    check(TOP.replace("NAME", name))


def test_a_local_of_another_function() -> None:
    check(LOOP)


@pytest.mark.parametrize("name", ["input", "max", "slice"])
def test_what_python_s_own_does_not_have_is_asked_of_the_argument(name: str) -> None:
    """``y.view_as(input)`` reads ``input.shape`` in the output."""
    check(LIKE.replace("NAME", name))


LIKE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, NAME):
        rows = NAME.shape[0]
        return self.fc(NAME.view(rows, -1)).view_as(NAME)
"""


def test_an_import_beside_others_is_the_same() -> None:
    """``import logging, math`` gives the ``math`` that the helpers ask for."""
    source = "import logging, math\n\n\ndef f(x: torch.Tensor):\n    return F.avg_pool2d(x, math.isqrt(9))\n"
    assert rules_of(source) == []
