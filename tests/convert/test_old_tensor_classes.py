"""``Tensor = torch.cuda.FloatTensor if CUDA else torch.FloatTensor``: torch's old classes of tensors under other names."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

SOURCE = """
CUDA = torch.cuda.is_available()
{head}


class M(nn.Module):
    def __init__(self):
        super().__init__()
        {kept}
        self.w = nn.Parameter(torch.rand(4))

    def forward(self, x):
        {lines}
"""


def _source(lines: str, head: str = "", kept: str = "self.n = 3") -> str:
    return SOURCE.format(lines=lines.replace("; ", "\n        "), head=head, kept=kept)


HEADS = [
    "T = torch.FloatTensor",
    "T = torch.cuda.FloatTensor if CUDA else torch.FloatTensor",
    "T = torch.FloatTensor if not torch.cuda.is_available() else torch.cuda.FloatTensor",
    "if CUDA:\n    T = torch.cuda.FloatTensor\nelse:\n    T = torch.FloatTensor",
]


@pytest.mark.parametrize("head", HEADS)
def test_at_the_top(head: str) -> None:
    lines = "y = T(3, 4).fill_(-2) + T([[1], [2], [3]]); return (x > 0).type(T) * y + self.w"
    assert "torch" not in check(_source(lines, head))


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        ("T = torch.cuda.FloatTensor if x.is_cuda else torch.FloatTensor; return x * T([2.0])", ""),
        (
            "T = torch.cuda.LongTensor if x.is_cuda else torch.LongTensor; return x[:, T([0, 1])]",
            "",
        ),
        (
            "return x + self.T(x.size()).fill_(2.0)",
            "self.T = torch.cuda.FloatTensor if CUDA else torch.FloatTensor",
        ),
    ],
)
def test_within(lines: str, kept: str) -> None:
    assert "torch" not in check(_source(lines, kept=kept or "self.n = 3"))


@pytest.mark.parametrize(
    ("lines", "head"),
    [
        ("return x * torch.cuda.FloatTensor([3.0]).cpu()", ""),
        ("return x * T(3, 4).fill_(2)", "T = torch.cuda.FloatTensor"),
    ],
)
def test_on_a_gpu(lines: str, head: str) -> None:
    assert rules_of(_source(lines, head)) == []


@pytest.mark.parametrize(
    ("lines", "head"),
    [
        ("return x if isinstance(x, T) else x * 2", HEADS[2]),
        ("made = [f([1.0]) for f in (T, T)]; return x * made[0]", HEADS[2]),
        ("return x * T([1, 2, 3, 4])", "T = torch.cuda.LongTensor if CUDA else torch.FloatTensor"),
        ("return x * T([1.0])", "T = torch.FloatTensor\n\n\ndef give():\n    return T"),
        ("return x * T([1])", "T = torch.ByteTensor"),
        ("return x * self.T([1.0])", "class H:\n    T = torch.FloatTensor"),
    ],
)
def test_others_stay_findings(lines: str, head: str) -> None:
    assert rules_of(_source(lines, head))
