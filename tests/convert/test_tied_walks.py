"""Initialisers that go through a Linear and an Embedding which share one matrix: what torch does last stays."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import convert, loaded

SOURCE = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        LAYERS
        LINES

    def _init(self, m):
        BODY

    def forward(self, x):
        return self.head(x)
"""
EMBED = "self.emb = nn.Embedding(5, 4)"
HEAD = "self.head = nn.Linear(4, 5, bias=False)"
TIE, OTHER = "self.head.weight = self.emb.weight", "self.emb.weight = self.head.weight"
APPLY = "self.apply(self._init)"
UNLIKE = """if isinstance(m, nn.Linear):
            nn.init.constant_(m.weight, 0.1)
        elif isinstance(m, nn.Embedding):
            m.weight.data.fill_(0.2)"""
ALIKE = """if isinstance(m, nn.Linear):
            std = 0.2
            if hasattr(m, "SCALE"):
                std *= 0.5
            nn.init.constant_(m.weight, std)
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        elif isinstance(m, nn.Embedding):
            nn.init.constant_(m.weight, 0.2)
            if m.padding_idx is not None:
                m.weight.data[m.padding_idx].zero_()"""
LINEAR = "if isinstance(m, nn.Linear):\n            nn.init.constant_(m.weight, 0.1)"
EMBEDDING = LINEAR.replace("Linear", "Embedding")


def _told(source: str) -> list[str]:
    """What is said of a source that is converted all the same: its first values alone are others."""
    made = convert(source)
    assert made.complete
    return [one.rule for one in made.findings if one.severity == "warning"]


def _source(layers: tuple[str, ...], lines: tuple[str, ...], body: str) -> str:
    text = SOURCE.replace("LAYERS", "\n        ".join(layers))
    return text.replace("LINES", "\n        ".join(lines)).replace("BODY", body)


@pytest.mark.parametrize(
    ("layers", "lines", "body"),
    [
        ((HEAD, EMBED), (TIE, APPLY), UNLIKE),  # the embedding comes last
        ((EMBED, HEAD), (APPLY, TIE), UNLIKE),
        ((EMBED, HEAD), (TIE, APPLY), ALIKE),
        ((EMBED, HEAD), (OTHER, APPLY), ALIKE),
        ((EMBED, HEAD), (TIE, APPLY), EMBEDDING),
        ((EMBED, HEAD), (OTHER, "nn.init.constant_(self.emb.weight, 0.3)"), "pass"),
    ],
)
def test_what_stays_is_what_is_done_to_the_embedding(
    layers: tuple[str, ...], lines: tuple[str, ...], body: str
) -> None:
    theirs, ours, _ = loaded(_source(layers, lines, body))
    state = migrator.to_state_dict(ours["M"](rngs=nnx.Rngs(0)))
    for name, value in theirs["M"]().state_dict().items():
        np.testing.assert_allclose(state[name], value)


@pytest.mark.parametrize(
    ("layers", "lines", "body"),
    [
        ((EMBED, HEAD), (TIE, APPLY), UNLIKE),
        ((EMBED, HEAD), (OTHER, APPLY), UNLIKE),
        ((EMBED, HEAD), (TIE, APPLY), LINEAR),
        ((HEAD, EMBED), (TIE, APPLY), LINEAR),
        ((EMBED, HEAD), (APPLY, OTHER), UNLIKE),
        ((EMBED, HEAD), (OTHER,), "pass"),
        ((EMBED.replace(")", ", padding_idx=0)"), HEAD), (TIE, APPLY), ALIKE),
        ((EMBED, HEAD), (TIE, "for m in self.modules():\n            self._init(m)"), UNLIKE),
        (
            (EMBED, HEAD),
            (TIE, APPLY),
            "if 'Lin' in type(m).__name__:\n            nn.init.ones_(m.weight)",
        ),
    ],
)
def test_the_linear_may_have_drawn_it(
    layers: tuple[str, ...], lines: tuple[str, ...], body: str
) -> None:
    assert "API009" in _told(_source(layers, lines, body))


def test_a_model_around_it_initialises_it() -> None:
    inner = _source((EMBED, HEAD), (TIE,), "pass").replace("class M", "class Inner")
    outer = _source(("self.inner = Inner()",), (APPLY,), UNLIKE).replace(
        "self.head(x)", "self.inner(x)"
    )
    assert "API009" in _told(inner + outer)
