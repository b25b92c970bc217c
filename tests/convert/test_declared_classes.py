"""A class that a hint or ``isinstance`` tells may be another's; what may be None is asked for that first."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

HEIRS = """class Scaled(nn.Linear):
    scaling = 2.0

    def merge(self):
        return 3.0


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.b = Scaled(4, 4)
        n = 0.0
        for m in self.modules():
            if isinstance(m, nn.Linear):
                {line}
        self.n = n

    def scale(self, layer: nn.Linear, x):
        return layer(x) * getattr(layer, "scaling", 5.0)

    def forward(self, x):
        return self.scale(self.b, self.a(x)) * self.n
"""


@pytest.mark.parametrize(
    "line",
    [
        'n += m.merge() if hasattr(m, "merge") else 1.0',
        'n += 10.0 if m.__class__.__name__ == "Scaled" else 1.0',
        'n += 10.0 if type(m).__name__ == "Linear" else 1.0',
        'n += getattr(m, "scaling", 4.0)',
    ],
)
def test_a_layer_may_be_of_a_class_derived_from_it(line: str) -> None:
    check(HEIRS.format(line=line))


@pytest.mark.parametrize(
    ("init", "test"),
    [
        ('self.fc.register_buffer("mask", torch.ones(4))', 'hasattr(self.fc, "mask")'),
        ('self.q = nn.Sequential(OrderedDict([("a", nn.ReLU())]))', 'hasattr(self.q, "a")'),
        ('self.q = nn.ModuleDict({"a": nn.ReLU()})', 'hasattr(self.q, "a")'),
        ("self.bn = nn.BatchNorm1d(4, track_running_stats=False)", "NO_STATS"),
    ],
)
def test_what_a_program_gives_a_layer_is_found(init: str, test: str) -> None:
    test = test.replace("NO_STATS", 'getattr(self.bn, "running_mean", None) is None')
    check(
        f"""from collections import OrderedDict


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        {init}

    def forward(self, x):
        return self.fc(x) * 2 if {test} else self.fc(x)
"""
    )


@pytest.mark.parametrize(
    "hint", [": Optional[nn.Sequential] = None", ": nn.Sequential = None", "=None"]
)
def test_a_sequential_or_none(hint: str) -> None:
    check(
        f"""from typing import Optional


class B(nn.Module):
    def __init__(self, n, down{hint}):
        super().__init__()
        self.fc = nn.Linear(n, n)
        self.down = down

    def forward(self, x):
        r = x
        if self.down:
            r = self.down(x)
        return self.fc(x) + r


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = B(4), B(4, nn.Sequential(nn.Linear(4, 4)))
        self.seqs = nn.ModuleList([nn.Sequential(), nn.Sequential(nn.ReLU())])

    def forward(self, x):
        return self.b(self.a(x)) * len([s for s in self.seqs if s])
"""
    )


def test_a_dtype_or_none() -> None:
    check(
        """EPS = {torch.float16: 1.0, torch.float64: 2.0}


def eps(dtype: torch.dtype = None):
    return EPS.get(dtype, 7.0) + len(str(dtype)) + len(f"{dtype}")


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)

    def forward(self, x):
        return self.fc(x) * eps() * eps(torch.float16)
"""
    )


@pytest.mark.parametrize(
    "body",
    [
        "def __call__(self, a, b):\n        return super().__call__(b, a)",
        "def __call__(self, a, b):\n        return super().__call__(a=b, b=a)",
        "def __call__(self, a, b=None):\n        return super().__call__(a, b)",
        "def __call__(self, *args):\n        return super().__call__(args)",
    ],
)
def test_a_call_that_changes_arguments_stays_a_finding(body: str) -> None:
    source = f"""class M(nn.Module):
    {body}

    def forward(self, a, b):
        return a - b
"""
    assert rules_of(source) == ["API001"]


@pytest.mark.parametrize(
    "member", ["scale = 3.0", "@property\n    def scale(self):\n        return 3.0"]
)
def test_names_of_flax_in_the_body_of_a_class(member: str) -> None:
    source = f"""class M(nn.LayerNorm):
    {member}

    def __init__(self):
        super().__init__(4)
"""
    assert rules_of(source) == ["API005"]


@pytest.mark.parametrize("own", ["", "    def __init__(self):\n        super().__init__()\n\n"])
def test_a_constructor_that_another_base_hands_on(own: str) -> None:
    source = f"""class Mixin(nn.Module):
    def __init__(self):
        super().__init__()
        self.k = 2.0


class Base(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)


class M(Mixin, Base):
{own}    def forward(self, x):
        return self.fc(x) * self.k
"""
    assert rules_of(source) == ["API005"]


def test_walrus_of_a_weight() -> None:
    check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.w = nn.Parameter(torch.ones(4))

    def forward(self, x):
        if (w := self.fc.weight) is not None:
            x = x @ w
        return (v := self.w) * x + v
"""
    )


def test_the_weights_of_any_layer_that_has_one() -> None:
    check(
        """class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.norm = nn.LayerNorm(4)
        for m in self.modules():
            if hasattr(m, "weight") and m.weight is not None:
                nn.init.ones_(m.weight)

    def forward(self, x):
        return self.norm(self.fc(x))
"""
    )


def test_a_class_on_one_line() -> None:
    check(
        """class Lin(nn.Linear): pass


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = Lin(4, 4)

    def forward(self, x):
        return self.fc(x)
"""
    )
