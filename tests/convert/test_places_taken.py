"""Layers in whose place the file puts others: whether what is called then gives new memory."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

WRITTEN = """
class Own(nn.Sequential):
    def __init__(self):
        super().__init__()
        self.c = nn.Linear(4, 4)


class Listed(nn.Sequential):
    def __init__(self, *layers):
        super().__init__(nn.Linear(4, 4))


def strip(net: nn.Module):
    for name, child in net.named_children():
        if isinstance(child, nn.Linear):
            setattr(net, name, NEW)


def first(net: nn.Sequential):
    net[0] = NEW


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.s = MADE
        self.t = nn.Linear(4, 4)
        EDIT

    def forward(self, x):
        h = x * 2
        y = CALL
        y += 1
        return y + h
"""
PLAIN = "nn.Sequential(nn.Linear(4, 4))"


def _edited(
    edit: str, made: str = PLAIN, new: str = "nn.Identity()", call: str = "self.s(h)"
) -> str:
    source = WRITTEN.replace("EDIT", edit).replace("MADE", made).replace("CALL", call)
    for name in ("strip", "first"):
        if f"{name}(" not in edit:
            at = source.index(f"def {name}(")
            source = source[:at] + source[source.index("\n\n\n", at) + 3 :]
    return source.replace("NEW", new)


@pytest.mark.parametrize(
    "source",
    [
        _edited("setattr(self.s, '0', nn.Identity())"),
        _edited("self.s._modules['0'] = nn.Identity()"),
        _edited("self.s[0] = nn.Identity()"),
        _edited("first(self.s)"),
        _edited("strip(self.s)"),
        _edited("strip(self)", call="self.t(h)"),
        _edited("strip(self.s)", "Own()"),
        _edited("self.s._modules['c'] = nn.Identity()", "Own()"),
        _edited("self.s[0] = nn.Identity()", "Listed()"),
        _edited("del self.s[0]", "nn.Sequential(nn.Linear(4, 4), nn.Identity())"),
        _edited("self.s.pop(0)", "nn.Sequential(nn.Linear(4, 4), nn.Identity())"),
        _edited("pass", "nn.Sequential(nn.Linear(4, 4), nn.Identity())[1:]"),
        _edited("pass", "nn.Sequential(nn.Linear(4, 4))[:0]"),
        _edited("self.s.add_module('0', nn.Identity())"),
        _edited("self.s.register_module('0', nn.Identity())"),
        _edited(
            "for m in self.modules():\n            if hasattr(m, 'c'):\n                m.c = nn.Identity()",
            "Own()",
        ),
        _edited(
            "for n in ('', '2'):\n            setattr(self, f't{n}', nn.Identity())",
            call="self.t(h)",
        ),
        _edited("for i in range(1):\n            setattr(self.s, f'{i}', nn.Identity())"),
        _edited("delattr(self.s, '0')", "nn.Sequential(nn.Linear(4, 4), nn.Identity())"),
        _edited("self.s.__delitem__(0)", "nn.Sequential(nn.Linear(4, 4), nn.Identity())"),
        _edited("del self.s._modules['0']", "nn.Sequential(nn.Linear(4, 4), nn.Identity())"),
        _edited("del self.s.c", "Own()"),
        _edited("delattr(self.s, 'c')", "Own()"),
        _edited("self.s._modules.pop('c')", "Own()"),
    ],
)
def test_a_layer_whose_place_another_takes_gives_new_memory_no_more(source: str) -> None:
    assert "MUT001" in rules_of(source)


@pytest.mark.parametrize(
    "source",
    [
        _edited("first(self.s)", new="nn.Linear(4, 4, bias=False)"),
        _edited("strip(self)", new="nn.Linear(4, 4, bias=False)"),
        _edited("setattr(self, 'u', nn.Identity())"),
        _edited("for i in range(2):\n            setattr(self, f'drop{i}', nn.Dropout(0.0))"),
        _edited(
            "for i in range(2):\n            setattr(self, f'drop{i}', nn.Dropout(0.0))", "Own()"
        ),
        _edited(
            "for i in range(2):\n            setattr(self, f'drop{i}', nn.Dropout(0.0))",
            call="self.t(h)",
        ),
        _edited(
            "for i in range(2):\n            setattr(self, 'drop%d' % i, nn.Dropout(0.0))",
            call="self.t(h)",
        ),
        _edited("del self.t\n        self.t = 3", "Own()"),
        _edited("counts = [1]\n        counts.remove(1)\n        del counts", "Own()"),
        _edited("del self.s[0]", "nn.Sequential(nn.Linear(4, 4), nn.ReLU())"),
        _edited("pass", "nn.Sequential(nn.Identity(), nn.Linear(4, 4))[1:]"),
    ],
)
def test_a_layer_whose_place_a_layer_with_new_results_takes(source: str) -> None:
    check(source)
