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
