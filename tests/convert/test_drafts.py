"""Lists that a constructor keeps in attributes until it has made modules of them."""

import pytest

from tests.convert.tools import check, convert

BUILT = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
{lines}
    def forward(self, x):
        for one in self.blocks:
            x = one(x)
        return x
"""


def _source(lines: str) -> str:
    return BUILT.format(
        lines="".join(f"        {line}\n" for line in lines.strip("\n").split("\n"))
    )


@pytest.mark.parametrize(
    "lines",
    [
        """
self.blocks = []
for i in range(2):
    self.blocks += [[nn.Linear(4, 4)]]
    if i:
        self.blocks[-1] += [nn.ReLU()]
self.blocks = nn.ModuleList([nn.Sequential(*b) for b in self.blocks])""",
        """
self.blocks = [[nn.Linear(4, 4), nn.Tanh()] for _ in range(2)]
self.count = len(self.blocks)
self.blocks = nn.ModuleList(nn.Sequential(*b) for b in self.blocks)""",
        """
self.blocks = list()
for i in range(2):
    self.blocks.append((nn.Linear(4, 4), nn.ReLU()))
self.act = lambda x: x * 2
self.blocks = nn.Sequential(*[nn.Sequential(a, b) for a, b in self.blocks])""",
    ],
)
def test_lists_of_lists_are_variables_until_they_are_modules(lines: str) -> None:
    assert "        blocks = " in check(_source(lines))


@pytest.mark.parametrize(
    "lines",
    [
        # somebody else may ask for it meanwhile
        """
self.blocks = []
self.blocks.append([nn.Linear(4, 4)])
self.count = lambda: len(self.blocks)
self.blocks = nn.ModuleList([nn.Sequential(*b) for b in self.blocks])""",
        """
blocks = 2
self.blocks = []
self.blocks.append([nn.Linear(4, 4)])
self.blocks = nn.ModuleList([nn.Sequential(*b) for b in self.blocks * blocks])""",
    ],
)
def test_what_others_may_ask_for_stays_an_attribute(lines: str) -> None:
    result = convert(_source(lines))
    assert "        blocks = [" not in result.code
    assert not result.complete
    assert "API008" in {one.rule for one in result.findings}


def test_layers_in_the_tuples_of_a_list_are_no_part_of_the_model() -> None:
    result = convert(
        _source(
            """
self.pairs = []
for i in range(2):
    self.pairs.append((nn.Linear(4, 4), nn.Linear(4, 4)))
self.blocks = nn.ModuleList([a for a, b in self.pairs])"""
        )
    )
    assert [one.rule for one in result.findings if one.blocks] == ["API008"]


def test_an_embedding_that_is_derived_from_and_given_its_weight() -> None:
    check(
        """
class Embed(nn.Embedding):
    def __init__(self, n, d, padding_idx=None, max_norm=None, norm_type=2, scale=False,
                 sparse=False, _weight=None):
        nn.Embedding.__init__(self, n, d, padding_idx, max_norm, norm_type, scale, sparse, _weight)
    def forward(self, x):
        return F.embedding(x, self.weight * 2)

class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = Embed(5, 4)
        self.b = Embed(5, 4, _weight=torch.arange(20.0).reshape(5, 4))
        assert self.b.weight[1, 2] == 6
    def forward(self, x):
        return x + self.a(torch.tensor([1]))[0].sum() + self.b(torch.tensor([2]))[0].sum()
"""
    )
