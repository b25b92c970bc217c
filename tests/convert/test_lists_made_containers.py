"""A list of layers in an attribute that a ModuleList of them replaces: what its layers give is known."""

from __future__ import annotations

import pytest

from tests.convert.tools import check

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.u = []
        {fill}
        self.u = nn.ModuleList(self.u)

    def forward(self, x):
        d = []
        for i in range(2):
            x = self.u[i](x)
            d.append(x)
        for layer in self.u:
            x = layer(x)
            {line}
        return x
"""


@pytest.mark.parametrize(
    "line",
    [
        "x = x.add(d[0])",
        "x = x - x.var(0)",
        "x = x.max(1)[0][:, None] * x",
        "x.add_(d[0])",
        "x[0] = 1.",
        "x = x.sort(0)[0].add(x)",
    ],
)
@pytest.mark.parametrize(
    "fill",
    [
        "for i in range(2):\n            self.u.append(nn.Linear(4, 4))",
        "for i in range(2):\n            self.u += [nn.Linear(4, 4)]",
        "if True:\n            self.u.append(nn.Linear(4, 4))\n        self.u.append(nn.Linear(4, 4))",
        "self.u.extend([nn.Linear(4, 4), nn.Linear(4, 4)])",
    ],
)
def test_what_its_layers_give_is_a_tensor(fill: str, line: str) -> None:
    check(SOURCE.format(fill=fill, line=line))


UNKNOWN = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def part(self, d, seen):
        x, y = d["x"], d["y"]
        new = [i for i in (1, 1, 2) if not (i in seen or seen.add(i))]
        seen.add(3)
        {line}
        return x.add(y, alpha=2) * len(new) * len(seen)

    def forward(self, x):
        return self.part(dict([("x", self.l(x)), ("y", x)]), set())
"""


@pytest.mark.parametrize("line", ["x = x.add(y)", "x = x * y.add(x)", "x = torch.tanh(x.add(y))"])
def test_what_add_of_something_unknown_gives_is_used(line: str) -> None:
    code = check(UNKNOWN.format(line=line))
    assert "seen.add(3)" in code
