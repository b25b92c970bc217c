"""The children of a Sequential, read in torch's table of them."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = {made}
        for i in range(2):
            {add}

    def forward(self, x):
        xs = torch.chunk(x, len(self.blocks._modules), dim=1)
        ys = []
        for {target} in {iterated}:
            ys.append({value})
        return torch.cat(ys, dim=1)
"""
NAMED = 'self.blocks.add_module("block{}".format(i), nn.Linear(2, 2))'


@pytest.mark.parametrize(
    ("made", "add"),
    [("nn.Sequential()", NAMED), ("nn.ModuleList()", "self.blocks.append(nn.Linear(2, 2))")],
)
@pytest.mark.parametrize(
    ("target", "iterated", "value"),
    [
        ("b, one", "zip(self.blocks._modules.values(), xs)", "b(one)"),
        ("i, b", "enumerate(self.blocks._modules.values())", "b(xs[i])"),
        ("b", "self.blocks._modules.values()", "b(xs[len(ys)])"),
        ("b", "reversed(list(self.blocks._modules.values()))", "b(xs[len(ys)])"),
    ],
)
def test_they_are_the_layers_in_order(
    made: str, add: str, target: str, iterated: str, value: str
) -> None:
    source = SOURCE.format(made=made, add=add, target=target, iterated=iterated, value=value)
    assert "_modules" not in check(source)


def test_of_what_may_be_another_module_the_table_is_told() -> None:
    source = SOURCE.format(
        made="nn.ModuleDict()",
        add=NAMED,
        target="b",
        iterated="self.blocks._modules.values()",
        value="b(xs[0])",
    )
    assert "API007" in rules_of(source)


def test_a_list_of_what_setattr_made_may_hold_layers() -> None:
    source = """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        for i in range(2):
            setattr(self, "layer%d" % i, nn.Linear(4, 4))
        self.layers = {made}

    def forward(self, x):
        return self.{first}(x)
"""
    for made, first in [
        ("[self.layer0, self.layer1]", "layers[0]"),
        ("(self.layer0, self.layer1)", "layers[0]"),
        ('{"a": self.layer0}', 'layers["a"]'),
    ]:
        assert rules_of(source.replace("{made}", made).replace("{first}", first)) == ["API008"]


def test_a_list_of_what_has_a_name_is_none() -> None:
    check("""\
class M(nn.Module):
    def __init__(self, width=4, depth=4):
        super().__init__()
        self.width, self.depth = width, depth
        self.add_module("layer" + str(width), nn.Linear(width, depth))
        self.sizes = [self.width, self.depth]

    def forward(self, x):
        return self.layer4(x) * self.sizes[1]
""")


REGISTRY = """\
def register(cls):
    if cls.__name__ in globals().keys() or cls.__name__.lower() in globals():
        raise ValueError(cls.__name__)
    globals().{write}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.l(x))
"""


def test_a_registry_of_new_names_binds_none_anew() -> None:
    source = REGISTRY.format(write="update({cls.__name__: cls})")
    check(source)
    assert "API005" in rules_of(source.replace("raise ValueError(cls.__name__)", "print(cls)"))
    assert "API005" in rules_of(source.replace("{cls.__name__: cls}", "{cls.name: cls}"))
