"""``FILE:NAME``: a model and what it needs, taken out of the script around it."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli import main
from migrator.shaken import shaken, whole, without_methods

TRAIN = '''"""Trains a net."""

import argparse, json
import torch
from torch import nn, optim
from torch.utils.data import DataLoader

WIDTH = 6
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


# what the net is made of
def layer(n: int) -> nn.Module:
    return nn.Linear(WIDTH, n)


class Net(nn.Module):
    def __init__(self, n=3):
        super().__init__()
        self.fc = layer(n)

    def forward(self, x):
        return self.fc(x.to(device)).relu()


# the loop
def train(model, loader):
    opt = optim.Adam(model.parameters())
    for x, y in loader:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()


if __name__ == "__main__":
    model = Net().to(device)
    train(model, DataLoader([]))
'''


def migrate(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def kept(text: str, *asked: str) -> set[str]:
    """The statements that stay, without imports and the bodies of definitions."""
    tree = ast.parse(shaken(text, asked))
    return {
        getattr(node, "name", None) or ast.unparse(node)
        for node in tree.body
        if not isinstance(node, ast.Import | ast.ImportFrom)
    }


def test_a_model_converts_and_verifies_without_the_loop_that_trains_it(here: Path) -> None:
    (here / "train.py").write_text(TRAIN)
    result = migrate("convert", "train.py", "-o", "all", "--format", "json")
    assert result.exit_code == 1
    (file,) = json.loads(result.stdout)["files"]
    assert file["whole"] == ["Net"]
    assert "converts by itself: train.py:Net" in migrate("convert", "train.py", "--dry-run").stdout
    result = migrate("convert", "train.py:Net", "-o", "out")
    assert result.exit_code == 0, result.output
    port = (here / "out/train.py").read_text()
    assert "train(" not in port
    assert "the loop" not in port
    assert "argparse" not in port
    assert "# what the net is made of\ndef layer" in port
    assert port.startswith('"""Trains a net."""\n')
    assert migrate("analyze", "train.py:Net").exit_code == 0
    result = migrate("verify", "train.py:Net", "--input", "B,6", "--examples", "2")
    assert result.exit_code == 0, result.output
    assert "5 places of its file outside it: does not convert, not compared" in result.stdout


def test_what_a_model_needs_still_stands_in_the_way(here: Path) -> None:
    needs = TRAIN.replace("(x.to(device)).relu()", "(x[x > 0])")
    (here / "train.py").write_text(needs)
    result = migrate("convert", "train.py:Net", "-o", "out")
    assert result.exit_code == 1
    assert "DYN001" in result.stdout
    assert (
        json.loads(migrate("convert", "train.py", "--dry-run", "--format", "json").stdout)["files"][
            0
        ]["whole"]
        == []
    )
    result = migrate("verify", "train.py:Net", "--input", "B,6")
    assert result.exit_code == 2
    assert "train.py:Net does not convert whole" in result.stderr
    assert "DYN001" in result.stderr


def test_lines_of_findings_are_those_of_the_file(here: Path) -> None:
    (here / "train.py").write_text(
        TRAIN.replace("self.fc(x.to(device)).relu()", "self.fc(x[x > 0])")
    )
    result = migrate("analyze", "train.py:Net", "--format", "json")
    line = next(f["line"] for f in json.loads(result.stdout)["findings"] if f["rule"] == "DYN001")
    assert "x[x > 0]" in (here / "train.py").read_text().splitlines()[line - 1]


@pytest.mark.parametrize("command", ["convert", "analyze"])
def test_a_name_that_is_not_there(here: Path, command: str) -> None:
    (here / "train.py").write_text(TRAIN)
    result = migrate(command, "train.py:Nett", *(["-o", "out"] if command == "convert" else []))
    assert result.exit_code == 2
    assert result.stderr == "migrate: train.py has no 'Nett'; it has layer, Net, train\n"
    assert (
        migrate(command, "absent.py:Net", *(["--diff"] if command == "convert" else [])).exit_code
        == 2
    )


def test_files_that_only_the_script_imports_are_not_converted_for_the_model(here: Path) -> None:
    (here / "loop.py").write_text("import torch\n\nopt = torch.optim.Adam([])\n")
    (here / "part.py").write_text("from torch import nn\n\n\nclass Part(nn.Linear):\n    pass\n")
    (here / "train.py").write_text(
        "from torch import nn\nfrom loop import opt\nfrom part import Part\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.part = Part(6, 2)\n\n"
        "    def forward(self, x):\n        return self.part(x)\n\n\nprint(opt)\n"
    )
    (here / "loop.py").write_text("import torch\n\n\ndef opt(x):\n    return torch.optim.Adam(x)\n")
    result = migrate("verify", "train.py:Net", "--input", "B,6", "--examples", "1")
    assert result.exit_code == 0, result.output


HEAD = "import torch\nfrom torch import nn\nimport numpy as np\n"


@pytest.mark.parametrize(
    ("text", "stay", "go"),
    [
        # a table that is filled where it stands, by a decorator, by a function that is called, by a class that derives
        (
            "T = {}\nT['a'] = 1\nS = {}\nS['a'] = 1\nclass Net:\n    x = T\n",
            ["T['a'] = 1"],
            ["S = {}", "S['a'] = 1"],
        ),
        ("T = []\nT.append(1)\nclass Net:\n    x = T\n", ["T.append(1)"], []),
        (
            "T = {}\ndef reg(f):\n    T[f.__name__] = f\n    return f\n@reg\ndef a():\n    pass\ndef b():\n    pass\n"
            "def Net():\n    return T['a']()\n",
            ["T = {}", "reg", "a"],
            ["b"],
        ),
        (
            "T = {}\ndef fill():\n    T['x'] = 1\ndef all_of_it():\n    fill()\nall_of_it()\ndef Net():\n    return T\n",
            ["fill", "all_of_it", "all_of_it()"],
            [],
        ),
        (
            "N = 1\ndef more():\n    global N\n    N = 2\nmore()\ndef Net():\n    return N\n",
            ["more", "more()"],
            [],
        ),
        (
            "class Base:\n    def __init_subclass__(cls):\n        pass\nclass A(Base):\n    pass\nclass C:\n    pass\n"
            "def Net():\n    return Base\n",
            ["Base", "A"],
            ["C"],
        ),
        ("class A:\n    pass\nclass Net:\n    pass\nNet.extra = A\n", ["Net.extra = A", "A"], []),
        (
            "T = {}\ndef use(t):\n    pass\nuse(T)\nlr = 3\nuse(lr)\ndef Net():\n    return T, lr\n",
            ["use(T)"],
            ["use(lr)"],
        ),
        # made under a condition, in a loop, by an import that may fail
        (
            "try:\n    import x\nexcept ImportError:\n    x = None\ny = 1\ndef Net():\n    return x\n",
            ["try:\n    import x\nexcept ImportError:\n    x = None"],
            ["y = 1"],
        ),
        (
            "t = []\nfor i in range(3):\n    t += [i]\nfor j in range(3):\n    k = j\ndef Net():\n    return t\n",
            ["for i in range(3):\n    t += [i]"],
            ["for j in range(3):\n    k = j"],
        ),
        # an import that another statement makes something else of
        (
            "from functools import partial\npool = 1\nnp = partial(np)\npartial = pool\ndef Net():\n    return np\n",
            ["np = partial(np)"],
            [],
        ),
        # a local variable is no variable of the file
        (
            "x = open('f')\nopt = x\ndef Net(x):\n    opt = x\n    return opt\n",
            [],
            ["x = open('f')", "opt = x"],
        ),
        # hints and defaults, decorators, names in strings
        (
            "D = 3\nclass H: pass\ndef deco(f):\n    return f\n@deco\ndef Net(x: 'H', y=D) -> None:\n    pass\n",
            ["D = 3", "H", "deco"],
            [],
        ),
        # what changes libraries
        (
            "torch.set_default_dtype(torch.float64)\nnp.random.seed(0)\nnp.random.seed(s)\ntorch.save(1, 'f')\ndef Net():\n    return 1\n",
            ["torch.set_default_dtype(torch.float64)", "np.random.seed(0)"],
            ["torch.save(1, 'f')", "np.random.seed(s)"],
        ),
        ("nn.Module.more = 1\ndef Net():\n    return 1\n", ["nn.Module.more = 1"], []),
        ("a = 1; b = 2\ndef Net():\n    return a\n", ["a = 1"], []),
    ],
)
def test_what_stays(text: str, stay: list[str], go: list[str]) -> None:
    found = kept(HEAD + text, "Net")
    assert found >= {*stay, "Net"}
    assert not found & set(go)


@pytest.mark.parametrize(
    "text", ["def Net():\n    return globals()['a']\na = 1\n", "def Net(:\n", "a = 1\n"]
)
def test_a_file_of_which_nothing_can_be_left_out(text: str) -> None:
    assert shaken(text, ["Net"]) == text


def test_models_that_need_nothing_of_some_lines() -> None:
    text = "class A(B):\n    def forward(self): ...\nclass C(A): ...\nclass D: ...\nclass F(torch.autograd.Function):\n    def forward(ctx): ...\n"
    assert whole(text, {4}) == ["A", "C"]
    assert whole(text, {3}) == ["A"]
    assert whole(text, {2}) == []


def test_models_that_read_what_an_import_on_some_line_does_not_bring() -> None:
    text = (
        "import torch\nimport far\nfrom near import (\n    one,\n    two,\n)\n\n\n"
        "class A(torch.nn.Module):\n    def forward(self): ...\n"
        "    def step(self):\n        return far.step(self)\n"
        "class B(torch.nn.Module):\n    def forward(self):\n        return two()\n"
        "def help():\n    return one()\n"
        "class C(torch.nn.Module):\n    def forward(self):\n        return help()\n"
    )
    assert whole(text, {2}) == ["B", "C"]
    assert whole(text, {3}) == ["A"]
    assert whole(text, {4}) == ["A", "B"]
    assert whole(text, {5}) == ["A", "C"]
    assert whole(text, {1}) == []
    assert whole(text, {7}) == []  # about the file, not about a statement


def test_only_what_was_asked_for_is_said_to_convert_by_itself(here: Path) -> None:
    lost = "import torchdiffeq\n" + TRAIN.replace('"""Trains a net."""\n', "") + OTHER
    (here / "train.py").write_text(lost)
    result = migrate("convert", "train.py:Ode", "-o", "out", "--format", "json")
    assert result.exit_code == 1
    (file,) = json.loads(result.stdout)["files"]
    assert file["whole"] == []
    result = migrate("convert", "train.py", "--dry-run", "--format", "json")
    (file,) = json.loads(result.stdout)["files"]
    assert file["whole"] == ["Net"]


OTHER = """

class Ode(nn.Module):
    def forward(self, x):
        return x

    def run(self, x, t):
        return torchdiffeq.odeint(self, x, t)
"""

LM = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 6)

    def forward(self, x):
        return self.fc(x)

    def step(self, x: torch.Tensor):
        return x[x > 0]

    def generate(self, x):
        while True:
            x = self.step(x)
        return x


class Other(nn.Module):
    def forward(self, x):
        return x[x > 0]
"""


def test_methods_that_do_not_convert_are_no_hindrance_to_the_rest(here: Path) -> None:
    (here / "lm.py").write_text(LM)
    assert migrate("convert", "lm.py:Net", "-o", "out").exit_code == 1
    result = migrate("verify", "lm.py:Net", "--input", "B,6", "--examples", "1")
    assert result.exit_code == 0, result.output
    for left in ("1 place of its file outside it", "Net.generate", "Net.step"):
        assert f"{left}: does not convert, not compared" in result.stdout
    (here / "lm.py").write_text(LM.replace("return self.fc(x)", "return self.step(self.fc(x))"))
    result = migrate("verify", "lm.py:Net", "--input", "B,6")
    assert result.exit_code == 2
    assert "lm.py:Net does not convert whole" in result.stderr


def test_a_method_under_no_grad_is_left_out() -> None:
    text = "class A:\n    @torch.no_grad()\n    def generate(self): ...\n    @hook\n    def b(self): ...\n"
    assert without_methods(text, {3})[1] == ["A.generate"]
    assert without_methods(text, {5}) is None


def test_methods_that_somebody_may_call_stay() -> None:
    text = "class A:\n    def a(self):\n        self.b()\n    def b(self): ...\n    def c(self): ...\n    @d\n    def e(self): ...\n"
    assert without_methods(text, {5})[1] == ["A.c"]
    assert without_methods(text, {4})[1] == ["A.a", "A.b"]
    assert without_methods(text, {7}) is None
    assert without_methods(text, {1}) is None
    assert without_methods(text + "getattr(x, 'c')()\n", {5}) is None
    assert (
        without_methods(text + "class B:\n    def forward(self):\n        self.x.c()\n", {5})
        is None
    )
