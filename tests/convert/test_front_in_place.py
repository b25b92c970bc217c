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


HANDED = """
def default_conv(n, m, size, bias=True):
    return nn.Conv2d(n, m, size, padding=size // 2, bias=bias)


def inplace_first(n, m, size, bias=True):
    return nn.Sequential(nn.ReLU(True), default_conv(n, m, size, bias))


class Block(nn.Module):
    def __init__(self, conv, n, size, norm=False, act=nn.ReLU(True)):
        super().__init__()
        body = []
        for i in range(2):
            body.append(conv(n, n, size, bias=True))
            if norm:
                body.append(nn.BatchNorm2d(n))
            if i == 0:
                body.append(act)
        body.append(nn.Conv2d(n, n, 1))
        self.body = nn.Sequential(*body)

    def forward(self, x):
        out = self.body(x)
        out += x
        return out


class M(nn.Module):
    def __init__(self, conv=MAKER):
        super().__init__()
        self.head = nn.Sequential(conv(1, 4, 3))
        self.body = nn.Sequential(*[Block(conv, 4, 3, norm=i > 0) for i in range(2)])

    def forward(self, x):
        x = self.head(x[None, None])
        return self.body(x)[0, 0]
"""


def test_a_function_that_makes_the_first_layer_is_handed_over() -> None:
    check(HANDED.replace("MAKER", "default_conv"))


def test_one_that_makes_a_layer_in_place() -> None:
    found = set(rules_of(HANDED.replace("MAKER", "inplace_first")))
    assert {"MUT001", "MUT002"} & found
    both = HANDED.replace("MAKER", "default_conv") + "\nother = Block(inplace_first, 4, 3)\n"
    assert {"MUT001", "MUT002"} & set(rules_of(both))


@pytest.mark.parametrize(
    "line", ["self.body = nn.Sequential(act, *body)", "setattr(self, 'body', nn.Sequential(act))"]
)
def test_another_line_that_puts_one_in_its_place(line: str) -> None:
    more = f"self.body = nn.Sequential(*body)\n        if norm is None:\n            {line}"
    source = HANDED.replace("self.body = nn.Sequential(*body)", more, 1)
    assert rules_of(source.replace("MAKER", "default_conv"))
