"""Items at places that tensors say: one without axes counts as a number, and gives a view that is written through."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(4, 4)
        self.rows = [0, 2]
        self.register_buffer("place", torch.tensor(1), persistent=False)
        self.register_buffer("places", torch.tensor([0, 1]), persistent=False)

    def forward(self, x):
        x = self.scale(x)
        columns = []
        for i in range(2):
            columns.append(i)
        {line}
        part {write}
        return x{more}
"""


@pytest.mark.parametrize(
    "line",
    [
        "part = x[torch.tensor(0)]",
        "part = x[self.place]",
        "part = x[:, self.place]",
        "i = torch.tensor([0, 1])[1]; part = x[i]",
        "i = x.sum().long() * 0; part = x[i]",
        "i = x.argmax(); part = x.view(-1)[i]",
        "i = torch.argmax(x[:, 0]); part = x[i, 1:]",
        "i = torch.arange(2); i = i[0]; part = x[i]",
        "_, i = x[:, 0].max(0); part = x[i]",
    ],
)
@pytest.mark.parametrize("write", [".mul_(2)", "+= 1"])
def test_what_is_written_to_the_view_is_not_lost(line: str, write: str) -> None:
    assert "MUT001" in rules_of(SOURCE.format(line=line, write=write, more=""))


@pytest.mark.parametrize(
    "line",
    [
        "part = x[:, [0, 1]]",
        "part = x[:, columns]",
        "part = x[self.rows]",
        "part = x[list(range(2))]",
        "part = x[x[:, 0] > 0].mean()",
        "part = x[torch.tensor([0, 1])]",
        "at = torch.arange(2) * 1; part = x[:, at]",
        "part = x[self.places.long()]",
        "at = torch.topk(x[:, 0], 2)[1]; part = x[at]",
        "at = x[:, 0].sort().indices; part = x[at]",
        "at = torch.tensor([[0, 1]]).view(-1); part = x[at]",
    ],
)
def test_lists_and_masks_copy(line: str) -> None:
    check(SOURCE.format(line=line, write="+= 1", more=" + part.sum()"))


def test_a_list_of_slices_makes_a_view() -> None:
    line = "at = [slice(0, 1), slice(0, 2)]; part = x[tuple(at)]"
    assert rules_of(SOURCE.format(line=line, write="+= 1", more=""))


SCORES = """\
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.start = nn.Parameter(torch.randn(4))
        self.step = nn.Linear(4, 4)

    def score(self, emissions, tags):
        {asked}
        score = self.start[{first}]
        score += emissions[0, {first}]
        return score

    def forward(self, x):
        x = self.step(x)
        return self.score(x, (x > 0).long()).sum() + x
"""


@pytest.mark.parametrize(
    ("asked", "first"),
    [
        ("n, b = tags.shape", "tags[0]"),
        ("n, b = tags.size()", "tags[0]"),
        ("n, b = tags.size(0), tags.size(1)", "tags[0]"),
        ("assert tags.dim() == 2", "tags[0]"),
        ("tags = tags.transpose(0, 1); n, b = tags.shape", "tags[0].long()"),
        ("n = len(tags)", "tags[:, 0]"),
        ("n = tags.shape[-2]", "tags[1]"),
    ],
)
def test_arguments_whose_axes_are_counted(asked: str, first: str) -> None:
    check(SCORES.format(asked=asked, first=first))


@pytest.mark.parametrize(
    ("asked", "first"),
    [("n = len(tags)", "tags[0]"), ("tags = tags[0]; n = tags.size(0)", "tags[0]")],
)
def test_arguments_that_may_have_one_axis_only(asked: str, first: str) -> None:
    source = SCORES.format(asked=asked, first=first)
    assert "MUT001" in rules_of(source.replace("(x > 0).long()", "tags_of(x)"))
