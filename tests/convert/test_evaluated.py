"""``eval("torch." + name)``: code within a text."""

from __future__ import annotations

import pytest

from migrator.convert import convert_source
from tests.convert.tools import check, convert, rules_of


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ('eval("nn.Linear")(4, 4)', "Linear(4, 4, rngs=rngs)"),
        ('eval("nn.Identity()") if eval("2 + 1") * 2 == 6 else None', "(2 + 1) * 2"),
    ],
)
def test_a_text_that_is_known_is_read(line: str, becomes: str) -> None:
    source = (
        f"class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        f"        self.layer = {line}\n\n    def forward(self, x):\n        return self.layer(x)\n"
    )
    assert becomes in convert(source).code
    check(source)


@pytest.mark.parametrize(
    "text",
    [
        '"self.layer%d" % i',
        'f"self.layer{i}"',
        '"self.layer" + str(i)',
        '"self." + "layer" + str(i)',
        '"self.{}{}".format("layer", i)',
    ],
)
def test_a_text_that_begins_with_the_owner_asks_for_an_attribute(text: str) -> None:
    source = (
        f"class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.layer0 = nn.Linear(4, 4)\n        self.layer1 = nn.Linear(4, 4)\n\n"
        "    def forward(self, x):\n        for i in range(2):\n"
        f"            x = eval({text})(x)\n        return x\n"
    )
    assert "getattr(self, " in convert(source).code
    check(source)


@pytest.mark.parametrize(
    "line", ['eval("nn.%s(4, 4)" % name)', 'eval(f"nn.{name}")(4, 4)', "exec(name)"]
)
def test_a_text_that_names_what_is_torchs_is_found(line: str) -> None:
    source = (
        "class M(nn.Module):\n    def __init__(self, name: str):\n        super().__init__()\n"
        f"        self.layer = {line}\n"
    )
    assert not convert(source).complete


def test_a_text_of_which_nothing_is_known_is_warned_of() -> None:
    result = convert("def build(name):\n    return eval(name)(4, 4)\n")
    assert result.complete
    assert [(one.rule, one.severity) for one in result.findings] == [("API013", "warning")]


def test_a_statement_in_a_text_is_found() -> None:
    assert rules_of('def f(x):\n    exec("y = torch.sin(x)")\n    return x\n') == ["API013"]


@pytest.mark.parametrize("head", ["", "def eval(text):\n    return text\n\n\nimport torch\n\n"])
def test_a_file_without_torch_or_with_an_eval_of_its_own_is_left(head: str) -> None:
    assert convert_source(f'{head}def f(name):\n    return eval(name), eval("1 + 1")\n').complete


def test_attributes_by_the_methods_that_ask_for_them() -> None:
    code = check("""
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.names = ["a", "b"]
        for name in self.names:
            self.__setattr__(name, nn.Linear(4, 4))

    def forward(self, x):
        return sum(self.__getattr__(name)(x) for name in self.names)
""")
    assert "setattr(self, name, Linear(4, 4, rngs=rngs))" in code


@pytest.mark.parametrize(
    ("given", "blocks"),
    [
        ("def f(name='nn.SiLU()'):\n    return eval(name)\n", True),
        ("CFG = [('nn.Linear', 3)]\ndef f(n):\n    return eval(n)(3, 3)\n", True),
        ("def f(m):\n    m = eval(m)\n    return 1 if m is nn.Linear else m\n", True),
        ("def f(m):\n    m = eval(m)\n    return 1 if m is f else m\n", False),
        ("def f(name='Net'):\n    return eval(name)\n", False),
    ],
)
def test_a_text_that_may_name_something_of_torch(given: str, blocks: bool) -> None:
    result = convert(given)
    assert [(one.rule, one.blocks) for one in result.findings] == [("API013", blocks)]
