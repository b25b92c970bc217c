"""Layers that torch keeps under a name which something else has already, or in a container by an attribute."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

HEAD = "import torch\nfrom torch import nn\n\n"
BODY = """
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)
        {line}

    def forward(self, x):
        return self.l(x)
"""


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("class M(nn.Module):\n    act = None\n", "self.act = nn.ReLU()"),
        ("class M(nn.Module):\n    def act(self, x):\n        return x\n", "self.act = nn.ReLU()"),
        (
            "class B(nn.Module):\n    act: nn.Module = nn.Identity()\n\nclass M(B):\n",
            "self.act = nn.ReLU()",
        ),
        ("class M(nn.Module):\n", 'self.d = nn.ModuleDict({"a": self.l}); self.d.b = nn.ReLU()'),
        ("class M(nn.Module):\n", "self.d = nn.ModuleList([self.l]); self.d.b = nn.ReLU()"),
    ],
)
def test_a_layer_that_torch_never_reads_or_runs_too_is_a_finding(head: str, line: str) -> None:
    assert "API007" in rules_of(HEAD + head + BODY.format(line=line))


@pytest.mark.parametrize(
    ("head", "line"),
    [
        ("class M(nn.Module):\n    act: nn.Module\n    n: int = 3\n", "self.act = nn.ReLU()"),
        ("class M(nn.Module):\n    n = 2\n", "self.n = 3"),
        ("class M(nn.Module):\n", 'self.d = nn.ModuleDict({"a": self.l}); self.d.a = nn.ReLU()'),
    ],
)
def test_a_name_that_only_the_layer_has_is_none(head: str, line: str) -> None:
    check(HEAD + head + BODY.format(line=line))


def test_what_a_class_that_derives_from_it_has_hides_the_layer_as_well() -> None:
    heir = "\n\nclass Heir(M):\n    def act(self, x):\n        return x\n"
    source = HEAD + "class M(nn.Module):\n" + BODY.format(line="self.act = nn.ReLU()")
    assert "API007" in rules_of(source + heir)
    assert rules_of(source) == []


GIVEN = """
class M(nn.Module):
    act = None

    def __init__(self, act=None):
        super().__init__()
        self.act = act
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        x = self.l(x)
        return {used}


class Outer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = M({given})
        {line}
"""


@pytest.mark.parametrize(
    ("given", "line", "used"),
    [
        ("", "pass", "x if self.act is None else self.act(x)"),
        ("nn.ReLU()", "pass", "x if self.act is None else self.act(x)"),
        ("None", "self.inner.act = nn.ReLU()", "x * 2 if self.act is None else x"),
    ],
)
def test_what_is_handed_in_may_be_a_layer(given: str, line: str, used: str) -> None:
    assert "API007" in rules_of(GIVEN.format(given=given, line=line, used=used))


@pytest.mark.parametrize("given", ["None", "1", "F.relu"])
def test_what_is_handed_in_is_no_layer(given: str) -> None:
    called = "x if self.act is None else self.act(x)"
    used = called if given == "F.relu" else "x * 2 if self.act is None else x"
    assert not rules_of(GIVEN.format(given=given, line="pass", used=used))
