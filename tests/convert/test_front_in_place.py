"""A Sequential that may begin with a layer that works in place, run on what is read again: torch reads what was written."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

BLOCK = """
class M(nn.Module):
    def __init__(self, outer=False, dropout=False, first=nn.Identity()):
        super().__init__()
        conv = nn.Linear(4, 4)
        act = nn.LeakyReLU(0.2, True)
        norm = nn.LayerNorm(4)
        MADE

    def prepare(self, layers):
        layers.insert(0, nn.Identity())

    def forward(self, x):
        x = x * 3
        LINES
"""
MADE = {
    "lists": """
        down = [act, conv, norm]
        if outer:
            down = [conv]
        model = down + [first] + [nn.ReLU(True), nn.Linear(4, 4)]
        if dropout:
            model += [nn.Dropout(0.5)]
        self.model = nn.Sequential(*model)""",
    "arguments": "self.model = nn.Sequential(nn.ELU(0.3, inplace=True), conv, norm)",
    "two": "self.model = nn.Sequential(act, nn.Hardtanh(-0.5, 0.5, inplace=True), *[conv, norm])",
    "by two names": """
        layers = [nn.SiLU(inplace=True), conv]
        layers.append(norm)
        layers = layers + [first]
        self.model = nn.Sequential(*layers)""",
}
LINES = {
    "joined": "return torch.cat([x, self.model(x)], 1)",
    "added": "return x + self.model(x)",
    "added behind": "return self.model(x) * x",
    "read later": "y = torch.stack((self.model(x), x)); return y - x",
}


def _source(made: str, lines: str) -> str:
    below = lines.replace("; ", "\n        ")
    return BLOCK.replace("MADE", made.strip()).replace("LINES", below)


@pytest.mark.parametrize("lines", LINES)
@pytest.mark.parametrize("made", MADE)
def test_what_is_read_again_is_what_the_first_layers_have_made_of_it(made: str, lines: str) -> None:
    code = check(_source(MADE[made], LINES[lines]))
    assert "InPlace(" in code
    assert "run_in_place(self.model, x)" in code
    if made == "lists":
        check(_source(MADE[made], LINES[lines]), True)


@pytest.mark.parametrize(
    ("made", "lines"),
    [
        # what a caller hands over may be anything
        ("self.model = nn.Sequential(act, first, conv)", LINES["added"]),
        (
            "layers = [act]; layers.append(conv); self.model = nn.Sequential(*layers)",
            LINES["added"],
        ),
        # one that draws, and one that works in place where it is told to
        ("self.model = nn.Sequential(nn.Dropout(0.5, inplace=True), conv)", LINES["added"]),
        ("self.model = nn.Sequential(nn.ELU(inplace=dropout), conv)", LINES["added"]),
        (
            "layers = [act, conv]; self.prepare(layers); self.model = nn.Sequential(*layers)",
            LINES["added"],
        ),
        # another Sequential, or other layers in it later
        ("self.model = nn.Sequential(act, conv); self.model = nn.Sequential(act)", LINES["added"]),
        ("self.model = nn.Sequential(act, conv); self.model.append(norm)", LINES["added"]),
        ("self.model = nn.Sequential(act, conv); setattr(self, 'model', conv)", LINES["added"]),
        (
            "layers = [act, conv]; layers.insert(0, first); self.model = nn.Sequential(*layers)",
            LINES["added"],
        ),
        # read before the layers have run, and by another name
        ("self.model = nn.Sequential(act, conv)", "return x * 2 + self.model(x)"),
        ("self.model = nn.Sequential(act, conv)", "y = x; return y + self.model(x)"),
        ("self.model = nn.Sequential(act, conv)", "return torch.cat([x[:1], self.model(x)])"),
    ],
)
def test_what_is_not_known_stays_a_finding(made: str, lines: str) -> None:
    found = rules_of(_source(made.replace("; ", "\n        "), lines))
    assert found[:1] in (["MUT001"], ["MUT002"])


BOUND = """
class M(nn.Module):
    def __init__(self, times=2):
        super().__init__()
        if times:
            layers = [nn.Linear(4, 4)]
        else:
            {line}
        layers.append(nn.ReLU(inplace=True))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        x = x * 1.5
        return self.net(x) + x
"""


@pytest.mark.parametrize(
    "line",
    [
        "layers, n = [], 1",
        "n, (layers, m) = 1, ([], 2)",
        "[layers] = [[]]",
        "for layers, n in [([], 1)]:\n                pass",
    ],
)
def test_a_list_that_is_made_among_other_things(line: str) -> None:
    """It may be empty, and what is appended stands at the front."""
    assert "MUT002" in rules_of(BOUND.format(line=line))
