"""Base classes that read what only the classes deriving from them set."""

import pytest

from tests.convert.tools import check, convert

BASES = """
class Base(nn.Module):
    def forward(self, x):
        {forward}

class M(Base):
    def __init__(self):
        super().__init__()
        self.model = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4), nn.Linear(4, 4))
        self.scale = nn.Parameter(torch.ones(4) * 2)
        self.act = nn.ReLU(inplace=True)
        self.register_buffer("shift", torch.ones(4))
"""


@pytest.mark.parametrize(
    "forward",
    [
        "for m in self.model: x = m(x)\n        return x",
        "return x * len(self.model)",
        "return F.linear(x, self.model[0].weight, self.model[2].bias) * self.scale.sum()",
        "return self.model[1].weight * self.scale + self.shift * self.scale.data",
        "y = x * 2\n        return self.act(y) + y",
        "return torch.stack([m(x) for i, m in enumerate(self.model) if i]).sum(0)",
    ],
)
def test_what_a_base_class_reads(forward: str) -> None:
    check(BASES.format(forward=forward))


def test_what_a_mixin_reads() -> None:
    check(
        """
class Mix:
    def scaled(self, x):
        return F.linear(x, self.fc.weight * self.scale.unsqueeze(1), self.fc.bias)

class Base(Mix, nn.Module):
    def forward(self, x):
        return self.scaled(x)

class M(Base):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3) * 2)
        self.fc = nn.Linear(4, 3)
"""
    )


@pytest.mark.parametrize(
    "forward",
    [
        "return x.sum() + max(self.ls, key=lambda m: m.weight.numel()).weight.sum()",
        "return sorted(self.ls, key=lambda m: m.weight.sum().shape)[0].weight.sum() + x",
        "return functools.reduce(lambda s, m: s + m.weight.pow(2).sum(), self.ls, 0.0) + x",
        "return functools.reduce(lambda h, m: torch.tanh(m(h)), self.ls, x)",
    ],
)
def test_what_a_key_or_a_fold_reads_of_layers(forward: str) -> None:
    check(
        f"""
import functools

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.ls = nn.ModuleList([nn.Linear(4, 3), nn.Linear(3, 4)])
    def forward(self, x):
        {forward}
"""
    )


def test_what_dropout_hands_on_is_written_in_place() -> None:
    source = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.5)
        self.norm = nn.LayerNorm(4)
        self.act = nn.ReLU(inplace=True)
    def forward(self, x):
        y = x * 2
        return self.act(self.{made}(y)) + {read}
"""
    result = convert(source.format(made="drop", read="y"))
    assert [one.rule for one in result.findings if one.blocks] == ["MUT001"]
    check(source.format(made="drop", read="x"))
    check(source.format(made="norm", read="y"))


def test_parts_made_in_a_method_that_only_the_heir_has() -> None:
    code = check(
        """
class Base(nn.Module):
    def __init__(self, width=4, **options):
        super().__init__()
        self.make(width, **options)

    def forward(self, x):
        return self.run(x)

class M(Base):
    def make(self, width, bias=True):
        self.fc = nn.Linear(width, width, bias=bias)

    def run(self, x):
        return self.fc(x)
"""
    )
    assert code.index("self.rngs = rngs") < code.index("super().__init__(*args")


def test_a_tuple_of_parts_made_in_a_method_that_only_heirs_have() -> None:
    source = """
class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.make()

class Middle(Base):
    def make(self):
        self.first = nn.Linear(4, 4)
        self.other = nn.Linear(4, 4)
        self.pair = (self.first, self.other)

class M(Middle):
    def make(self):
        super().make()
        self.third = nn.Linear(4, 4)
        self.more = [("a", self.third)]

    def forward(self, x):
        return self.pair[0](x) + self.more[0][1](x)
"""
    assert "self.pair = Unregistered([self.first, self.other])" in check(source)
