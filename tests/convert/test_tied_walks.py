"""Initialisers that go through a Linear and an Embedding which share one matrix: what torch does last stays."""

from __future__ import annotations

import numpy as np
import pytest
from flax import nnx

import migrator
from tests.convert.tools import convert, loaded, rules_of

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

EACH = "for m in WALK:\n            self._init(m)"
HERE = "for m in WALK:\n            " + ALIKE.replace("\n", "\n    ")
PUT = """def put(v, m):
            m.weight.data.fill_(v)
        if isinstance(m, nn.Linear):
            put(0.1, m)
        elif isinstance(m, nn.Embedding):
            nn.init.constant_(m.weight, 0.2)"""


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
        ((HEAD, EMBED), (TIE, HERE.replace("WALK", "list(self.modules())")), "pass"),
        (
            (EMBED, HEAD),
            (TIE, HERE.replace("m in WALK", "i, m in enumerate(self.modules())")),
            ALIKE,
        ),
        ((EMBED, HEAD), (TIE, HERE.replace("m in WALK", "_, m in self.named_modules()")), "pass"),
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
        ((EMBED, HEAD), (TIE, EACH.replace("WALK", "list(self.modules())")), UNLIKE),
        ((HEAD, EMBED), (TIE, EACH.replace("WALK", "reversed(list(self.modules()))")), UNLIKE),
        (
            (EMBED, HEAD),
            (TIE, EACH.replace("m in WALK", "i, m in enumerate(self.modules())")),
            UNLIKE,
        ),
        ((EMBED, HEAD), (TIE, EACH.replace("WALK", "self._modules.values()")), UNLIKE),
        ((EMBED, HEAD), (TIE, "[self._init(m) for m in self.modules()]"), UNLIKE),
        ((EMBED, HEAD), (TIE, "list(map(self._init, self.modules()))"), UNLIKE),
        (
            ("emb = nn.Embedding(5, 4)", "self.l = nn.ModuleList([emb])", HEAD, "self.emb = emb"),
            (TIE, EACH.replace("WALK", "self.modules()")),
            UNLIKE,
        ),
        ((EMBED, HEAD), (TIE, "self.apply(self._init)"), PUT),
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


@pytest.mark.parametrize(
    ("made", "walk"),
    [
        ("Inner()", APPLY),
        ("Inner()", "self.inner.apply(self._init)"),
        ("nn.Sequential(nn.Identity(), Inner())", "self.inner.apply(self._init)"),
        ("Middle(Inner())", APPLY),
        ("Middle(Inner())", "for m in self.inner.modules():\n            self._init(m)"),
    ],
)
def test_a_model_around_it_initialises_it(made: str, walk: str) -> None:
    inner = _source((EMBED, HEAD), (TIE,), "pass").replace("class M", "class Inner")
    middle = (
        "\n\nclass Middle(nn.Module):\n    def __init__(self, inner):\n        super().__init__()\n"
    )
    middle += (
        "        self.inner = inner\n\n    def forward(self, x):\n        return self.inner(x)\n"
    )
    outer = _source((f"self.inner = {made}",), (walk,), UNLIKE).replace(
        "self.head(x)", "self.inner(x)"
    )
    assert "API009" in _told(inner + middle + outer)


def test_a_walk_through_other_layers() -> None:
    inner = _source((EMBED, HEAD), (TIE,), "pass").replace("class M", "class Inner")
    layers = ("self.inner = Inner()", "self.net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))")
    outer = _source(layers, ("self.net.apply(self._init)",), UNLIKE)
    source = inner + outer.replace("self.head(x)", "self.inner(self.net(x))")
    assert "API009" not in _told(source)


@pytest.mark.parametrize(
    "line",
    [
        "self.n = len(list(self.modules()))",
        "self.n = any(isinstance(m, nn.GRU) for m in self.modules())",
    ],
)
def test_what_only_counts_or_asks(line: str) -> None:
    assert not _told(_source((EMBED, HEAD), (TIE, line), "pass"))


@pytest.mark.parametrize(
    ("line", "forward"),
    [
        ("self.n = len(list(self.modules()))", "return self.head(x) * self.n"),
        ("pass", "return self.head(x) * sum(1 for _ in self.children())"),
        ("pass", "return self.head(x) * len([m for m in self.modules()])"),
    ],
)
def test_what_goes_by_how_many_layers_there_are(line: str, forward: str) -> None:
    """The Linear is the Embedding in the port: they were counted as one, and nothing was said."""
    source = _source((EMBED, HEAD), (TIE, line), "pass")
    assert "return self.head(x)" in source
    assert "API009" in rules_of(source.replace("return self.head(x)", forward))
