"""Classes that a function derives from what it is handed, and what methods return that set an attribute."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

DERIVED = """
def change_default_args(**defaults):
    def wrapper(layer_class):
        class Layer(layer_class):
            def __init__(self, *args, **kwargs):
                for key, value in defaults.items():
                    kwargs.setdefault(key, value)
                super().__init__(*args, **kwargs)
        return Layer
    return wrapper

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = change_default_args({})({})({})

    def forward(self, x):
        return self.layer(x)
"""


def test_a_class_that_derives_from_a_layer_it_is_handed() -> None:
    check(DERIVED.format("eps=0.1", "nn.BatchNorm1d", "4"))
    # the output has a function for it
    assert set(rules_of(DERIVED.format("bias=False", "nn.Linear", "4, 4"))) == {"API001"}


RESET = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = self.reset()

    def reset(self):
        self.hidden = torch.zeros(1, 4)
        {}

    def forward(self, x):
        self.reset()
        self.hidden = self.hidden + x
        return self.hidden
"""


@pytest.mark.parametrize("line", ["return", "pass"])
def test_an_attribute_is_given_nothing(line: str) -> None:
    assert "API001" in rules_of(
        RESET.format(line)
    )  # torch keeps None, until the forward pass sets it


def test_an_attribute_is_given_what_a_method_returns() -> None:
    check(RESET.format("return self.hidden"))


OWN_LOOKUP = """
class Table(nn.Embedding):
    def __init__(self, n, d, *args, **kwargs):
        super().__init__(n, d, *args, padding_idx=0, **kwargs)

    def forward(self, x):
        weight = self.weight * 2
        return F.embedding(x, weight, self.padding_idx, self.max_norm, self.norm_type)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = Table(5, 4)
        {}

    def forward(self, x):
        return self.table(torch.tensor([1, 0, 2])) + x
"""


def test_a_lookup_that_hands_on_a_limit_nobody_asks_for() -> None:
    check(OWN_LOOKUP.format("self.a = self.b = None"))
