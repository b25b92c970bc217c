"""Where the lines of an expression break within brackets changes nothing of what it becomes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from migrator import convert_source
from tests.convert.broken_lines import broken
from tests.convert.tools import convert

SAMPLES = sorted((Path(__file__).parents[2] / "samples").glob("*.py"))


def _meaning(text: str) -> str:
    return ast.unparse(ast.parse(text))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda p: p.stem)
def test_samples(path: Path) -> None:
    text = path.read_text()
    other = broken(text)
    assert other != text
    assert _meaning(other) == _meaning(text)
    made = convert_source(other)
    assert made.complete is convert_source(text).complete
    assert _meaning(made.code) == _meaning(convert_source(text).code)


EXPRESSIONS = [
    "a\n    - b",
    "a -\n        b",
    "a if self.training\n        else b",
    "a.exp()\n        .log()",
    "torch.cat([a,\n        b])\n        * 2",
    "self\n        .p - a",
    "-a  # why\n        + b",
    "(a\n        + b)",
    "a @\n        b",
    "a\n    [0:4]",
]
CALLS = [
    "u, k = torch.sort({}, dim=1)",
    "u, k = torch.max({}, 1)",
    "u, k = torch.std_mean({}, 1)",
    "u = k = F.normalize({}, dim=1)",
    "u = k = F.tanhshrink({})",
    "u = k = torch.lerp(a, b, {})",
    "u = k = torch.frac({}).sum()",
    "u, k = F.log_softmax({}, 1), b",
    "u, k = F.threshold({}, 0.1, 20.0), b",
    "u, k = torch.aminmax({})",
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_arguments_that_stand_alone_afterwards(call: str, expression: str) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.p = nn.Parameter(torch.ones(4, 4))\n\n"
        "    def forward(self, a: torch.Tensor, b: torch.Tensor):\n        {}\n        return u, k\n"
    )
    one = convert(source.format(call.format(expression)))
    plain = " ".join(expression.replace("  # why", "").split())
    other = convert(source.format(call.format(plain)))
    assert one.complete
    assert _meaning(one.code) == _meaning(other.code)


STATEMENTS = [
    ("nn.init.zeros_(self\n        .p)", "jnp.zeros_like(self.p[...])"),
    ("assert torch.is_tensor(a\n    [0])", "assert"),
    ("for c in torch.unbind(a\n        + b):\n            a = a + c", "for c in "),
    (
        "match torch.numel(a\n    [0]):\n            case 4:\n                a = a + 1",
        "match a[0].size:",
    ),
]


@pytest.mark.parametrize(("line", "piece"), STATEMENTS)
def test_statements(line: str, piece: str) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.p = nn.Parameter(torch.ones(4, 4))\n\n"
        "    def forward(self, a: torch.Tensor, b: torch.Tensor):\n        {}\n        return a\n"
    )
    plain = " ".join(line.split("\n    ", 1))
    one, other = convert(source.format(line)).code, convert(source.format(plain)).code
    assert _meaning(one) == _meaning(other)
    assert piece in one


def test_a_loop_that_is_made_of_a_call() -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(2, 2)\n"
        "        self.apply(self{}._start)\n\n    def _start(self, m):\n        if isinstance(m, nn.Linear):\n"
        "            nn.init.zeros_(m.weight)\n\n    def forward(self, x):\n        return self.fc(x)\n"
    )
    one, other = convert(source.format("\n            ")).code, convert(source.format("")).code
    assert _meaning(one) == _meaning(other)


@pytest.mark.parametrize("line", ["a  # why\n            + b", "self\n        # why\n        .b"])
def test_comments_stay(line: str) -> None:
    source = (
        "class M(nn.Module):\n    def forward(self, a: torch.Tensor, b: torch.Tensor):\n"
        f"        u, k = torch.max({line}, 1)\n        return u, k\n"
    )
    code = convert(source).code
    assert "# why" in code
    ast.parse(code)
