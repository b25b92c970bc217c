"""Layers with drawn weights that a forward pass makes: no weights are carried over to them."""

from __future__ import annotations

import pytest

from tests.convert.tools import check, rules_of

MODEL = """
{head}


class Part(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.fc = nn.Linear(n, n)

    def forward(self, x):
        return self.fc(x)


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 4)
        self.more = None

    def make(self, n):
        {made}

    def forward(self, x):
        {forward}
        return self.first(x)
"""
KEEPS = "if self.more is None:\n            self.more = {}\n        x = self.more(x)"


@pytest.mark.parametrize(
    ("head", "made", "forward"),
    [
        ("", "pass", KEEPS.format("nn.Linear(x.shape[1], 4)")),
        ("", "pass", KEEPS.format("Part(4)")),
        ("", "pass", KEEPS.format("nn.Sequential(nn.Linear(4, 4), nn.ReLU())")),
        ("", "self.more = nn.Linear(n, n)", "self.make(4)\n        x = self.more(x)"),
        ("", "return nn.Linear(n, n)", "x = self.make(4)(x)"),
        ("def make(n):\n    return nn.Linear(n, n)", "pass", KEEPS.format("make(4)")),
        (
            "def make(m, n):\n    m.more = nn.Linear(n, n)",
            "pass",
            "make(self, 4)\n        x = self.more(x)",
        ),
    ],
)
def test_drawn_weights(head: str, made: str, forward: str) -> None:
    assert "API003" in rules_of(MODEL.format(head=head, made=made, forward=forward))


@pytest.mark.parametrize(
    ("head", "made", "forward"),
    [
        ("", "return nn.ReLU()", "x = self.make(4)(x)"),
        ("", "pass", "x = nn.LayerNorm(4)(x)"),
        ("def act():\n    return nn.Tanh()", "pass", "x = act()(x)"),
        ("", "self.more = nn.Linear(n, n)", "x = x * 2"),
    ],
)
def test_what_draws_nothing(head: str, made: str, forward: str) -> None:
    check(MODEL.format(head=head, made=made, forward=forward))


def test_weights_that_are_written() -> None:
    forward = "conv = nn.Linear(4, 4, bias=False)\n        conv.weight.data = torch.ones(4, 4)\n        x = conv(x)"
    assert "API003" not in rules_of(MODEL.format(head="", made="pass", forward=forward))


@pytest.mark.parametrize("first", ["self.more = None", 'self.register_parameter("more", None)'])
@pytest.mark.parametrize(
    ("made", "forward"),
    [
        (
            "pass",
            "if self.more is None:\n            self.more = nn.Parameter(torch.ones(4))\n        x = x * self.more",
        ),
        (
            "pass",
            'if self.more is None:\n            self.register_parameter("more", nn.Parameter(torch.ones(4)))\n'
            "        x = x * self.more",
        ),
        (
            "self.more = nn.Parameter(torch.ones(n))",
            "if self.more is None:\n            self.make(4)\n        x = x * self.more",
        ),
    ],
)
def test_parameters_that_the_forward_pass_makes(first: str, made: str, forward: str) -> None:
    """torch has a gradient for it after the pass that makes it, JAX one for what there was before."""
    source = MODEL.format(head="", made=made, forward=forward).replace("self.more = None", first)
    assert "API003" in rules_of(source)


def test_parameters_made_before() -> None:
    """The constructor makes it, by a method that forward() may call again."""
    source = MODEL.format(
        head="", made="self.more = nn.Parameter(torch.ones(n))", forward="x = x * self.more"
    )
    check(source.replace("self.more = None", "self.make(4)"))


HEAD = "def change(m):\n    m.more = nn.Parameter(m.more * 2)\n\n"


@pytest.mark.parametrize(
    "forward",
    [
        "self.more = nn.Parameter(self.more * 2)",
        "more = nn.Parameter(self.more * 2)\n        self.more = more",
        "setattr(self, 'more', nn.Parameter(self.more * 2))",
        "self.fc.weight = nn.Parameter(self.fc.weight * 2)",
        "for fc in self.fcs:\n            fc.bias = nn.Parameter(fc.bias * 2)",
        "self.list[0] = nn.Parameter(self.list[0] * 2)",
        "self.make(4)",
        "change(self)",
    ],
)
def test_parameters_that_the_forward_pass_replaces(forward: str) -> None:
    """torch has the gradient for the new one, which no optimiser knows, JAX for the one there was."""
    made = "self.fc = nn.Linear(4, 4)\n        self.fcs = nn.ModuleList([nn.Linear(4, 4)])\n"
    made += "        self.list = nn.ParameterList([torch.ones(4)])\n        self.more = nn.Parameter(torch.ones(4))"
    source = MODEL.format(
        head=HEAD, made="self.more = nn.Parameter(torch.ones(n))", forward=forward
    )
    assert "API003" in rules_of(source.replace("self.more = None", made))


def test_the_parameters_of_a_layer_that_is_made_there() -> None:
    forward = "blur = nn.Linear(4, 4, bias=False)\n        blur.weight = nn.Parameter(torch.ones(4, 4))\n        x = blur(x)"
    assert "API003" not in rules_of(MODEL.format(head="", made="pass", forward=forward))


@pytest.mark.parametrize(
    "keeps",
    [
        "self.step = lambda f, y: 0.1 * f(y)",
        "self.step = {'euler': self.euler, 'half': lambda f, y: 0.05 * f(y)}[kind]",
    ],
)
def test_a_plain_object_that_keeps_a_layer(keeps: str) -> None:
    check(
        f"""class Solver(object):
    def __init__(self, func, y0, kind="euler"):
        self.func = func
        self.y0 = y0
        {keeps}

    @staticmethod
    def euler(f, y):
        return 0.1 * f(y)

    def integrate(self, n):
        y = self.y0
        for i in range(n):
            y = y + self.step(self.func, y)
        return y


class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 4)

    def forward(self, x):
        return Solver(self.net, x).integrate(3)
"""
    )


def test_a_plain_object_that_makes_one() -> None:
    source = """class Solver(object):
    def __init__(self, make, x):
        self.net = make(4, 4)
        self.x = x

    def integrate(self):
        return self.net(self.x)


class M(nn.Module):
    def forward(self, x):
        return Solver(nn.Linear, x).integrate()
"""
    assert "API003" in rules_of(source)
