"""What a constructor keeps beside a parameter or buffer that shows its memory."""

from __future__ import annotations

import pytest

from tests.convert.tools import convert, rules_of

SOURCE = """
class M(nn.Module):
    def __init__(self, n: int):
        super().__init__()
        t = torch.randn(n)
        self.kept = []
        {state}
        {line}

    def forward(self, x):
        return x + 1
"""


@pytest.mark.parametrize(
    "state",
    [
        'self.register_buffer("a", t)',
        'self.register_buffer("a", t.data)',
        'self.register_buffer(f"a{n}", t)',
        "self.a = nn.Parameter(t)",
        'self.register_parameter("a", nn.Parameter(t))',
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        "self.b = t",
        "self.b = t.view(1, -1)",
        "self.b = [t]",
        "self.kept.append(t)",
        "self.kept += [t]",
    ],
)
def test_a_second_name_for_the_memory_of_state(state: str, line: str) -> None:
    """Loading a state_dict and a training step write to both in torch."""
    assert "MUT001" in rules_of(SOURCE.format(state=state, line=line))


@pytest.mark.parametrize(
    "line", ["self.b = self.a.t()", "self.b = self.a[0]", "self.b = self.a.data"]
)
def test_a_view_of_the_attribute(line: str) -> None:
    source = SOURCE.format(state='self.register_buffer("a", torch.randn(n, n))', line=line)
    assert "MUT001" in rules_of(source)


@pytest.mark.parametrize(
    ("state", "line"),
    [
        pytest.param('self.register_buffer("a", t)', "self.b = t.clone()", id="copy"),
        pytest.param('self.register_buffer("a", t * 2)', "self.b = t", id="product"),
        pytest.param('self.register_buffer("a", t)', "self.b = t.shape[0]", id="size"),
        pytest.param("p = self.a = nn.Parameter(t)", "self.b = p", id="one parameter, two names"),
        pytest.param(
            "u, v = torch.sort(t)",
            'self.register_buffer("a", u); self.b = v',
            id="two results of one function",
        ),
        pytest.param(
            "self.a = nn.Linear(n, n); self.b = nn.Linear(n, n)",
            "self.b.weight = self.a.weight",
            id="tied layers",
        ),
    ],
)
def test_memory_of_its_own(state: str, line: str) -> None:
    result = convert(SOURCE.format(state=state, line=line))
    assert result.complete, result.findings


ARMS = """
class M(nn.Module):
    def __init__(self, learned: bool = False):
        super().__init__()
        t = torch.randn(4)
        if learned:
            ONE
        else:
            OTHER

    def forward(self, x):
        return x + self.a
"""
BUFFER, PLAIN, LEARNED = 'self.register_buffer("a", t)', "self.a = t", "self.a = nn.Parameter(t)"


@pytest.mark.parametrize("one", [BUFFER, PLAIN, LEARNED])
@pytest.mark.parametrize("other", [BUFFER, PLAIN, LEARNED])
def test_only_one_branch_runs(one: str, other: str) -> None:
    source = ARMS.replace("ONE", one).replace("OTHER", other)
    assert "MUT001" not in rules_of(source)
    early = source.replace("        else:\n            ", "            return\n        ")
    assert "MUT001" not in rules_of(early)


def test_what_stands_before_a_branch_that_leaves_runs_too() -> None:
    source = ARMS.replace("        if learned:", "        self.b = t\n        if learned:")
    source = source.replace("ONE", BUFFER + "\n            return").replace("OTHER", "pass")
    assert rules_of(source) == ["MUT001"]
    loop = ARMS.replace("if learned:", "for i in range(2):\n            if i:")
    loop = loop.replace(
        "            ONE\n        else:\n            OTHER",
        f"                {BUFFER}\n            else:\n                self.b = t",
    )
    assert "MUT001" in rules_of(loop)
