"""Parameters that are picked out of a walk through a module's."""

import pytest

from tests.convert.tools import check, rules_of

MODEL = """
import itertools

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.b = nn.Linear(3, 2)
        {lines}
    def forward(self, x):
        return self.b(self.a(x)) * getattr(self, "k", 1)
"""


@pytest.mark.parametrize(
    "lines",
    [
        "self.k = next(self.parameters()).shape[0]",
        "self.k = next(iter(self.parameters())).size(1)",
        "self.k = next(p for p in self.parameters() if p.dim() > 1).shape[0]",
        "self.k = list(map(lambda p: p.shape[0], self.parameters()))[0]",
        "self.k = max(self.parameters(), key=lambda p: p.numel()).shape[0]",
        "self.k = sorted(self.parameters(), key=lambda p: p.shape[0])[0].numel()",
        "name, p = next(self.named_parameters()); self.k = p.shape[0]",
        "first, *rest = self.parameters(); self.k = first.shape[0]",
        "self.k = nn.init._calculate_fan_in_and_fan_out(next(self.parameters()))[0]",
    ],
)
def test_its_axes(lines: str) -> None:
    assert "API006" in rules_of(MODEL.format(lines=lines))


@pytest.mark.parametrize(
    "lines",
    [
        "for p in itertools.chain(self.a.parameters(), self.b.parameters()): p.data.fill_(0.1)",
        "for p in itertools.chain(self.a.parameters(), self.b.parameters()): nn.init.ones_(p)",
        "for p in itertools.chain.from_iterable([self.a.parameters(), self.b.parameters()]): p.data[0] = 1",
        "p = next(self.parameters()); p.data[0] = 0.5",
        "first, *rest = self.parameters(); first.data[0] = 0.5",
        "ps = list(reversed(list(self.parameters()))); ps[1].data[0] = 0.5",
        "for p in itertools.islice(self.parameters(), 2): p.data = torch.ones_like(p)",
    ],
)
def test_writes_to_it(lines: str) -> None:
    assert "MUT001" in rules_of(MODEL.format(lines=lines))


@pytest.mark.parametrize(
    "lines",
    [
        "self.k = next(self.parameters()).dim()",
        "self.dtype = next(self.parameters()).dtype",
        "self.k = sum(p.numel() for p in self.parameters())",
        "self.k = len(list(itertools.chain(self.a.parameters(), self.b.parameters())))",
        "self.k = sum(map(lambda p: p.numel(), self.parameters()))",
        "self.k = len(next(nn.Conv1d(2, 3, 1).parameters()).shape)",
    ],
)
def test_what_does_not_go_by_its_axes(lines: str) -> None:
    check(MODEL.format(lines=lines))


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("filter(lambda x: x[1].requires_grad, model.named_parameters())", False),
        ("sorted(model.named_parameters(), key=lambda x: x[0])", False),
        ("filter(lambda x: x[1].shape[0] > 3, model.named_parameters())", True),
    ],
)
def test_pairs_of_a_name_and_a_parameter(asked: str, found: bool) -> None:
    assert ("API006" in rules_of(f"def f(model: nn.Module):\n    return {asked}\n")) is found


RETURNED = """
def f(m):
    return {value}

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 3)
        self.b = nn.Linear(3, 2)
        {lines}
    def forward(self, x):
        return self.b(self.a(x)) * getattr(self, "k", 1)
"""
DICTS = ("{n: p for n, p in m.named_parameters()}", "dict(m.named_parameters())")
LISTS = ("[p for p in m.parameters()]", "list(m.parameters())")


@pytest.mark.parametrize("value", DICTS)
def test_a_dict_that_a_function_returns(value: str) -> None:
    for lines in (
        "self.k = f(self)['a.weight'].shape[0]",
        "d = f(self); self.k = d['a.weight'].size(0)",
        "for n, p in f(self).items(): self.k = p.shape[0]",
    ):
        assert "API006" in rules_of(RETURNED.format(value=value, lines=lines))
    lines = "d = f(self); d['a.weight'].data[0] = 1."
    assert "MUT001" in rules_of(RETURNED.format(value=value, lines=lines))


@pytest.mark.parametrize("value", LISTS)
def test_a_list_that_a_function_returns(value: str) -> None:
    for lines in ("w, *rest = f(self); self.k = w.shape[0]", "self.k = f(self)[0].size(1)"):
        assert "API006" in rules_of(RETURNED.format(value=value, lines=lines))
    check(RETURNED.format(value=value, lines="self.k = sum(p.numel() for p in f(self))"))


def test_one_that_a_function_returns() -> None:
    value = "next(m.parameters())"
    assert "API006" in rules_of(RETURNED.format(value=value, lines="self.k = f(self).shape[0]"))
    check(RETURNED.format(value=value, lines="self.k = f(self).numel()"))


def test_the_variables_themselves_are_written() -> None:
    lines = "for p in f(self): nn.init.constant_(p, 0.5)"
    check(RETURNED.format(value=LISTS[1], lines=lines))
    assert "MUT001" in rules_of(RETURNED.format(value=LISTS[0], lines=lines))
