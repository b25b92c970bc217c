"""The number of a model's parameters is torch's, without helpers that keep torch's order."""

from __future__ import annotations

import pytest

from tests.convert.tools import both

SOURCE = """
class M(nn.Module):
    def __init__(self, freeze=False):
        super().__init__()
        self.embed = nn.Embedding(7, 4)
        self.rnn = nn.LSTM(4, 3, bidirectional=True)
        self.norm = nn.BatchNorm1d(6)
        self.head = nn.Linear(4, 7, bias=False)
        self.head.weight = self.embed.weight
        FREEZE

    def count(self):
        return COUNT

    def forward(self, x):
        return self.head(self.embed(x))


def size(model: nn.Module) -> int:
    return sum(p.numel() for p in model.parameters())
"""
PLAIN = "jax.tree.leaves(nnx.state(self, "


@pytest.mark.parametrize(
    "count",
    [
        "sum(p.numel() for p in self.parameters())",
        "sum(p.numel() for p in self.parameters() if p.requires_grad)",
        "sum([q.nelement() for q in self.rnn.parameters()])",
        "sum(p.numel() for p in self.parameters()) / 1e6",
    ],
)
def test_as_many_as_in_torch(count: str) -> None:
    module, port, code = both(SOURCE.replace("COUNT", count).replace("FREEZE", "pass"))
    assert port.count() == module.count() > 0
    assert "def parameters" not in code
    assert (PLAIN in code) is ("self.parameters" in count)


@pytest.mark.parametrize("condition", ["", " if p.requires_grad", " if p.dim() > 1"])
@pytest.mark.parametrize(
    "freeze",
    [
        "self.norm.weight.requires_grad = False",
        "self.norm.requires_grad_(False)",
        "for p in self.norm.parameters(): setattr(p, 'requires_grad', False)",
        "self.extra = nn.Embedding.from_pretrained(torch.ones(3, 5))",
        "self.extra = nn.Parameter(torch.ones(3), False)",
    ],
)
def test_what_is_not_trained_counts_as_in_torch(condition: str, freeze: str) -> None:
    count = f"sum(p.numel() for p in self.parameters(){condition})"
    module, port, _ = both(SOURCE.replace("COUNT", count).replace("FREEZE", freeze))
    assert port.count() == module.count()
