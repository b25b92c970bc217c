"""What is kept that shows the memory of parameters, which are written later."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

KEEPER = """
class Keeper:
    def __init__(self, model: nn.Module):
        self.kept = {{}}
        {line}
"""
LOOP = "for n, p in model.named_parameters():\n            "


@pytest.mark.parametrize(
    "line",
    [
        "self.kept = {n: p.data for n, p in model.named_parameters()}",
        "self.kept = [p.detach() for p in model.parameters()]",
        "self.kept = dict((n, p.data) for n, p in model.named_parameters())",
        "self.kept = tuple(p.data for p in model.parameters() if p.requires_grad)",
        LOOP + "self.kept[n] = p.data",
        LOOP + "self.kept.update({n: p.data})",
        LOOP + "self.kept[n] = p.data\n            p.data.copy_(p * 2)",
    ],
)
def test_an_attribute_outlives_a_step(line: str) -> None:
    assert "MUT001" in rules_of(KEEPER.format(line=line))
    copied = line.replace("p.data", "p.data.clone()", 1).replace("p.detach()", "p.detach().clone()")
    assert "MUT001" not in rules_of(KEEPER.format(line=copied))


def test_memory_that_the_parameter_leaves_stays() -> None:
    line = LOOP + "self.kept[n] = p.data\n            p.data = p.data * 2"
    assert rules_of(KEEPER.format(line=line)) == []


FUNCTION = """
def f(n: int):
    model = nn.LayerNorm(n)
    before = {value}
    {between}
    return before
"""


@pytest.mark.parametrize(
    ("value", "between", "flagged"),
    [
        ("[p.data for p in model.parameters()]", "nn.init.ones_(model.weight)", True),
        ("[p.data for p in model.parameters()]", "pass", False),
        ("[p.data.norm() for p in model.parameters()]", "nn.init.ones_(model.weight)", False),
        ("torch.stack([p.data for p in model.parameters()])", "nn.init.ones_(model.weight)", False),
    ],
)
def test_a_name_is_read_after_a_write(value: str, between: str, flagged: bool) -> None:
    source = FUNCTION.format(value=value, between=between)
    assert ("MUT001" in rules_of(source)) is flagged


def test_what_is_used_at_once_is_converted() -> None:
    code = check(
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    @property
    def bias(self):
        return self.l.bias.data

    def forward(self, x):
        b = self.l.bias.detach()
        return self.l(x) + b * self.bias
"""
    )
    assert "MUT001" not in code


def test_a_view_of_one_weight() -> None:
    source = "def f(n: int):\n    l = nn.Linear(n, n)\n    w = l.weight.detach()\n    {}\n    return w.sum()\n"
    assert "MUT001" in rules_of(source.format("l.weight.data.mul_(0.5)"))
    assert "MUT001" not in rules_of(source.format("m = w * 2"))


@pytest.mark.parametrize("value", ["self.c", "self.c.data"])
def test_data_that_is_another_buffer_is_shared(value: str) -> None:
    source = f"""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("b", torch.zeros(4))
        self.register_buffer("c", torch.ones(4))

    def forward(self, x):
        self.b.data = {value}
        self.c.add_(1)
        return x * self.b
"""
    assert "MUT001" in rules_of(source)
    check(source.replace(f"data = {value}", f"data = {value} * 2"))
