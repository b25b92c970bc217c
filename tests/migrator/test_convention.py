"""Files that make their own inputs, and what is said where nobody describes any."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from click.testing import CliRunner, Result
from flax import nnx

from migrator import convert_source, quick
from migrator.building import build_torch, spec_of
from migrator.cli import main
from migrator.config import load_config
from migrator.convention import init_call, main_class, outline
from migrator.errors import UserError
from migrator.quick import selection
from migrator.usercode import UserCode
from migrator.verifying import verify_cases
from numerics import verify
from numerics.inputs import PROFILES
from numerics.recipes import as_hook

MODEL = """
import torch
import torch.nn as nn
from parts import Head

class Part(nn.Module):
    def forward(self, x):
        return torch.tanh(x)

class Net(nn.Module):
    def __init__(self, width, depth=1, act=None):
        super().__init__()
        self.part = Part()
        self.head = Head(width)

    def forward(self, x, ids):
        return self.head(self.part(x)) * ids

width = 6

def get_inputs():
    return [torch.randn(3, width), torch.randint(0, 5, (3, 1))]

def get_init_inputs():
    return [width, {}]
"""
PARTS = """
import torch.nn as nn

class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.fc = nn.Linear(width, 2)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(MODEL.replace("return [width, {}]", "return [[width], {}]"))
    (tmp_path / "parts.py").write_text(PARTS)
    return tmp_path


def migrate(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.slow
def test_a_file_with_get_inputs_needs_no_configuration(here: Path) -> None:
    result = migrate("verify", "net.py", "--examples", "3")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Net  equal")


GROUPED = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x, size, y=None):
        pooled = nn.functional.adaptive_avg_pool1d(x, size)
        return pooled if y is None else pooled * y
"""


@pytest.mark.parametrize(
    "made",
    [
        "def get_inputs_dyn_list():\n"
        "    return [[torch.randn(2, 3, 8), 4], [torch.randn(1, 2, 6), 3, torch.rand(2, 3)]]\n",
        "def get_input_groups():\n"
        "    groups = []\n"
        "    for n in (6, 8):\n"
        "        groups.append([torch.randn(2, 3, n), 4])\n"
        "    return groups\n",
    ],
)
def test_functions_that_make_the_inputs_of_several_calls(here: Path, made: str) -> None:
    (here / "grouped.py").write_text(GROUPED + "\n" + made)
    result = migrate("verify", "grouped.py", "--examples", "6")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("Model  equal")


def test_each_group_of_inputs_is_tried(here: Path) -> None:
    made = "def get_input_groups():\n    return [[torch.ones(2), 1], [torch.ones(3), 2]]\n"
    (here / "grouped.py").write_text(GROUPED + made)
    with selection(None, ["grouped.py"], None, port=False) as (settings, names):
        case = next(c for c in settings.cases if c.name == names[0])
        spec = spec_of(case, settings, UserCode(settings.root, here))
        assert spec.hook is not None
        calls = [spec.hook(np.random.default_rng(seed), {}, "normal") for seed in range(12)]
    assert {(one[0].shape, one[1]) for one in calls} == {((2,), 1), ((3,), 2)}


def test_what_makes_inputs_runs_outside_of_what_jax_traces() -> None:
    made = """
def _lengths(n):
    return [int(torch.randint(2, 5, (1,))[0]) for _ in range(n)]

def get_inputs():
    ends = torch.tensor(_lengths(3)).cumsum(0)
    x = torch.randn(ends[-1].item(), 4)
    if x.mean() > 9:
        x = x[: int(ends[0])]
    return [x, 2]
"""
    result = convert_source(GROUPED + made)
    assert result.complete, result.findings
    found: dict[str, Any] = {}
    exec(result.code, found)
    assert found["get_inputs"](rngs=nnx.Rngs(0))[0].shape[1] == 4


BUILT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, times):
        super().__init__()
        self.times = times

    def forward(self, x):
        return x * self.times

def get_inputs(case, device=None):
    return [torch.ones(case)]

def get_input_groups():
    return [get_inputs(case) for case in (2, 3, 4)]

def get_init_inputs():
    return INIT
"""


@pytest.mark.parametrize(
    ("init", "times", "sizes"),
    [
        ("[[5], [5], [5]]", 5, {2, 3, 4}),
        ("[[5], [6], [5]]", 5, {2, 4}),
        ("[7]", 7, {2, 3, 4}),
        ("[[7, 8]]", [7, 8], {2, 3, 4}),
    ],
)
def test_each_group_may_have_a_constructor_call_of_its_own(
    here: Path, init: str, times: Any, sizes: set[int]
) -> None:
    (here / "grouped.py").write_text(BUILT.replace("INIT", init))
    with selection(None, ["grouped.py"], None, port=False) as (settings, names):
        case = next(c for c in settings.cases if c.name == names[0])
        code = UserCode(settings.root, here)
        spec = spec_of(case, settings, code)
        assert spec.hook is not None
        calls = [spec.hook(np.random.default_rng(seed), {}, "normal") for seed in range(20)]
        assert build_torch(case, settings, code).times == times
    assert {one[0].size for one in calls} == sizes


def test_no_inputs_at_all_is_said(here: Path) -> None:
    (here / "grouped.py").write_text(GROUPED + "def get_input_groups():\n    return []\n")
    result = migrate("verify", "grouped.py")
    assert result.exit_code == 2, result.output
    assert "get_input_groups makes no inputs" in result.stderr


@pytest.mark.slow
def test_a_directory_means_its_files_and_a_written_port_is_found(here: Path) -> None:
    (here / "pyproject.toml").write_text('[tool.migrate]\noutput = "port"\n')
    migrate("convert", ".", "-o", "port")
    port = here / "port" / "net.py"
    port.write_text(port.read_text().replace("jnp.tanh(x)", "jnp.sin(x)"))
    result = migrate("verify", ".", "--examples", "3")
    assert result.exit_code == 1, result.output
    assert "first difference in: part" in result.stdout


def test_a_file_that_is_no_python_leaves_the_models_of_its_directory(here: Path) -> None:
    (here / "broken.py").write_text("import torch\ndef f(:\n")
    result = migrate("verify", ".", "--examples", "2")
    assert result.exit_code == 2, result.output
    assert [line.split()[:2] for line in result.stdout.splitlines() if "rror" in line] == [
        ["broken", "error"],
        ["Net", "equal"],
        ["1", "error,"],
    ]
    assert result.stderr.endswith("broken.py:2:7: syntax error: invalid syntax\n")


def test_a_file_that_has_cases_means_those(here: Path) -> None:
    case = '[[tool.migrate.case]]\nname = "mine"\ntorch = "net.py:Net"\n'
    (here / "pyproject.toml").write_text(case)
    with selection(None, ["net.py"], None) as (_, names):
        assert names == ["mine"]


def test_models_of_one_name_are_called_by_their_files(here: Path) -> None:
    for path in ("a/first.py", "a/second.py", "a/other.py", "b/other.py"):
        (here / path).parent.mkdir(exist_ok=True)
        cls = "Own" if path == "a/second.py" else "Model"
        model = f"class {cls}(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
        inputs = "def get_inputs():\n    return [torch.ones(2)]\n"
        (here / path).write_text(f"import torch\n{model}{inputs}")
    with selection(None, ["a", "b", "a/first.py"], None) as (_, names):
        assert names == ["first", "a/other.py", "Own", "b/other.py"]
    with selection(None, ["a/first.py"], None) as (_, names):
        assert names == ["Model"]


def test_sizes_that_only_arithmetic_names_are_drawn(here: Path) -> None:
    flags = {"inputs": ("B,2*T+1,3", "B,T:int64:0:4")}
    with selection(None, ["net.py"], None, **flags) as (settings, _):
        case = settings.cases[-1]
        assert dict(case.inputs.dims) == {"B": (2, 3, 4, 5), "T": (2, 3, 4, 5)} or case.inputs.dims
        assert case.budget == quick.BUDGET


def test_a_file_with_inputs_of_its_own_has_so_much_time(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with selection(None, ["net.py"], None) as (settings, _):
        assert settings.cases[-1].budget == quick.BUDGET
        assert not any(case.budget for case in settings.cases[:-1])
    looks = itertools.count()  # a clock that goes on by a second at each look
    monkeypatch.setattr(verify, "time", SimpleNamespace(perf_counter=lambda: float(next(looks))))
    monkeypatch.setattr(quick, "BUDGET", 4.0)
    with selection(None, ["net.py"], None) as (settings, names):
        (report,) = verify_cases(settings, names)
    assert report.verdict == "equal"
    assert 1 <= report.examples < 12
    assert any(
        "of 12 examples tried: the budget of 4 s is used up" in note for note in report.notes
    )


def test_a_file_that_says_not_what_is_meant_leaves_the_others(here: Path) -> None:
    text = (here / "net.py").read_text()
    other = "\nclass Other(nn.Module):\n    def forward(self, x):\n        return x\n"
    (here / "unclear.py").write_text(text + other)
    with selection(None, ["."], None) as (settings, names):
        assert names == ["Net", "unclear"]
        assert "which class?" in str(settings.cases[-1].problem)


def test_inputs_that_cannot_be_made_leave_the_other_files(here: Path) -> None:
    model = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
    )
    (here / "net.py").unlink()
    (here / "bad.py").write_text(model + "def get_inputs():\n    raise RuntimeError('no data')\n")
    (here / "good.py").write_text(model + "def get_inputs():\n    return [torch.ones(2)]\n")
    result = migrate("verify", ".", "--examples", "1")
    assert result.exit_code == 2, result.output
    assert "good  equal" in result.stdout
    assert "get_inputs makes no inputs: line 6: RuntimeError: no data" in result.stderr


def test_functions_in_the_table(here: Path) -> None:
    table = '[[tool.migrate.case]]\ntorch = "net.py:Net"\ninit = "net.py:get_init_inputs"\n'
    (here / "pyproject.toml").write_text(table + 'inputs = "net.py:get_inputs"\n')
    (case,) = load_config().cases
    assert (case.init_hook, case.hook) == ("net.py:get_init_inputs", "net.py:get_inputs")


def test_a_table_that_says_nothing_of_inputs_takes_the_files(here: Path) -> None:
    table = '[[tool.migrate.case]]\ntorch = "net.py:Net"\n'

    def hooks(more: str = "") -> tuple[str | None, str | None]:
        (here / "pyproject.toml").write_text(table + more)
        (case,) = load_config().cases
        return case.init_hook, case.hook

    assert hooks() == ("net.py:get_init_inputs", "net.py:get_inputs")
    assert hooks("init = { args = [6] }\n") == (None, "net.py:get_inputs")
    assert hooks("inputs = [{ shape = [3, 6] }, { value = 1.0 }]\n") == (None, None)
    (here / "net.py").unlink()
    assert hooks() == (None, None)


def test_a_file_without_get_inputs_is_told_the_table_to_write(here: Path) -> None:
    (here / "net.py").write_text(MODEL.replace("def get_", "def make_"))
    result = migrate("verify", "net.py")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    for words in ("[[tool.migrate.case]]", 'torch = "net.py:Net"', 'name = "ids", shape', "int64"):
        assert words in line
    assert "init = { kwargs = { width = 8 } }" in line
    assert 'net.py:Net --init "width=8" --input B,8 --input B,8:int64:0:100' in line
    (here / "net.py").write_text(
        MODEL.replace("width, depth", "width=6, depth").replace("def get_", "def make_")
    )
    assert "init" not in migrate("verify", "net.py").stderr


def test_the_class_meant(here: Path) -> None:
    assert main_class(outline(here / "net.py")) == "Net"
    two = MODEL + "\nclass Other(nn.Module):\n    def forward(self, x):\n        return x\n"
    (here / "two.py").write_text(two)
    with pytest.raises(UserError, match=r"which class\? Write one of .*two.py:Net, .*two.py:Other"):
        main_class(outline(here / "two.py"))
    (here / "net.py").write_text(two.replace("Other", "Model"))
    assert main_class(outline(here / "net.py")) == "Model"
    (here / "net.py").write_text("x = 1\n")
    with pytest.raises(UserError, match="no class with a forward"):
        main_class(outline(here / "net.py"))


def keywords(a: int, b: int = 2) -> None: ...


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([], ((), {})),
        (None, ((), {})),
        ([1, 2], ((1, 2), {})),
        ({"a": 1}, ((), {"a": 1})),
        ([[], {"a": 1, "b": 3}], ((), {"a": 1, "b": 3})),
        ([[1, 2], {"c": 1}], (([1, 2], {"c": 1}), {})),
        ([[1], [2]], (([1], [2]), {})),
    ],
    ids=str,
)
def test_constructor_arguments(given: Any, expected: Any) -> None:
    assert init_call(keywords, given) == expected


def test_made_inputs_vary_inside_what_they_show() -> None:
    def made() -> list[Any]:
        x, p = torch.randn(40, 8), torch.rand(40, 8)
        return [x, p, torch.randint(0, 9, (40,)), (torch.rand(40) > 0.5).float(), 3]

    hook = as_hook(made)
    state = torch.get_rng_state()
    for profile in PROFILES:
        x, p, ids, mask, three = hook(np.random.default_rng(7), {}, profile)
        assert p.min() >= 0
        assert p.max() <= 1
        assert set(mask) <= {0.0, 1.0}
        assert ids.dtype == np.int64
        assert three == 3
        again = hook(np.random.default_rng(7), {}, profile)
        assert (again[0] == x).all()
        spread = {"zeros": 0.0, "tiny": 1e-3, "large": 10.0, "offset": 0.1}.get(profile)
        assert spread is None or 0.5 * spread <= x.std() <= 2 * spread
    assert (torch.get_rng_state() == state).all()


def test_a_file_that_does_not_convert_leaves_the_others_to_be_verified(here: Path) -> None:
    text = "import torch\nfrom torch import nn\n\nclass {}(nn.Module):\n    def forward(self, x):\n"
    inputs = "\ndef get_inputs():\n    return [torch.randn(4)]\n"
    (here / "masked.py").write_text(text.format("Masked") + "        return x[x > 0]\n" + inputs)
    (here / "whole.py").write_text(text.format("Whole") + "        return x * 2\n" + inputs)
    result = migrate("verify", "masked.py", "whole.py", "--examples", "1")
    assert result.exit_code == 2, result.output
    assert "masked.py does not convert whole" in result.stderr
    assert "1 error, 1 equal" in result.stdout


def test_a_port_beside_its_original_is_no_original(here: Path) -> None:
    text = "import torch\nfrom torch import nn\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x * 2\n"
    (here / "net.py").write_text(text + "\ndef get_inputs():\n    return [torch.randn(4)]\n")
    (here / "port.py").write_text("from flax import nnx\n\nclass Net(nnx.Module):\n    pass\n")
    result = migrate("verify", "net.py", "port.py", "--examples", "1", "--input", "4")
    assert result.exit_code == 2, result.output
    assert "`migrate verify --torch FILE:CLASS --jax port.py:CLASS`" in result.stderr


def test_classes_that_are_used_by_way_of_functions_and_functions_with_gradients(
    here: Path,
) -> None:
    text = (
        "class Part(nn.Conv2d):\n    def forward(self, x):\n        return x\n\n\n"
        "def make(n):\n    return Part(n, n, 1)\n\n\n"
        "class Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n        return x * 2\n\n\n"
        "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.part = make(2)\n\n"
        "    def forward(self, x):\n        return self.part(x)\n"
    )
    (here / "net.py").write_text("import torch\nfrom torch import nn\n\n\n" + text)
    assert main_class(outline(here / "net.py")) == "Whole"
    other = text + "\n\nclass Net(nn.Module):\n    def forward(self, x):\n        return x\n"
    for name in ("net.py", "12_Net.py"):
        (here / name).write_text(other)
        assert main_class(outline(here / name)) == "Net"
    (here / "both.py").write_text(other)
    with pytest.raises(UserError, match="which class"):
        main_class(outline(here / "both.py"))


def test_a_base_is_used_by_who_uses_a_class_that_derives_from_it(here: Path) -> None:
    text = (
        "class Bottle(nn.Module):\n    def forward(self, x):\n        return super().forward(x)\n\n\n"
        "class Flat(Bottle, nn.Linear):\n    pass\n\n\n"
    )
    whole = (
        "class Whole(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.part = Flat(2, 2)\n\n    def forward(self, x):\n        return self.part(x)\n"
    )
    head = "import torch\nfrom torch import nn\n\n\n"
    (here / "snli.py").write_text(head + text + whole)
    assert main_class(outline(here / "snli.py")) == "Whole"
    (here / "snli.py").write_text(head + text + whole.replace("Flat(2, 2)", "nn.Linear(2, 2)"))
    with pytest.raises(UserError, match="which class"):
        main_class(outline(here / "snli.py"))


def test_a_constructor_that_seeds_torch_draws_all_the_same(here: Path) -> None:
    """What is drawn is not taken for a constant because the constructor seeds the generator."""
    (here / "net.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self, seed=0):\n"
        "        super().__init__()\n        self.seed = torch.manual_seed(seed)\n        self.fc = nn.Linear(3, 2)\n\n"
        "    def forward(self, x):\n        return self.fc(x)\n\n\n"
        "def get_inputs():\n    return [torch.rand(2, 3)]\n"
    )
    result = migrate("verify", "net.py", "--examples", "2")
    assert result.exit_code == 0, result.output


LAYERS = """
import torch
from collections import OrderedDict
from torch import nn


def conv(ins, outs, k=3):
    return nn.Conv2d(ins, outs, k)


class Unit(nn.Sequential):
    def __init__(self, ins, outs):
        super().__init__(nn.Conv1d(ins, outs, 1), nn.ReLU())


class Stem(nn.Module):
    def __init__(self, width, ins=5):
        super().__init__()
        self.ins = ins * 2
        self.conv = conv(self.ins, width)

    def forward(self, image, scale=None):
        return self.conv(image)


class Net(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        MADE

    def embed(self, x):
        return self.layer(x)

    def forward(self, x):
        return LINE
"""


@pytest.mark.parametrize(
    ("made", "line", "flag"),
    [
        ("self.layer = nn.Conv2d(3, width, 3)", "self.layer(x)", "B,3,32,32"),
        ("self.layer = nn.Linear(width * 3, 2)", "self.embed(x)", "B,12"),
        ("self.layer = nn.Sequential(nn.Conv3d(1, 2, 3))", "self.layer(x)", "B,1,8,16,16"),
        (
            'self.layer = nn.Sequential(OrderedDict([("a", nn.GRU(7, 2))]))',
            "self.layer(x)",
            "B,8,7",
        ),
        ("self.layer = nn.Embedding(30, 2)", "self.layer(x)", "B,8:int64:0:30"),
        ("self.layer = Stem(width, ins=3)", "self.layer(x)", "B,6,32,32"),
        ("self.layer = Stem(width)", "self.layer(x)", "B,10,32,32"),
        ("self.layer = Unit(6, width)", "self.layer(x)", "B,6,32"),
        (
            "parts = [nn.Linear(9, 2)]\n        self.layer = nn.Sequential(*parts)",
            "self.layer(x)",
            "B,9",
        ),
        ("self.layer = None", "self.layer(x)", "B,8"),
        ("self.layer = nn.Linear(3, 2)", "self.layer(x * 2)", "B,8"),
    ],
)
def test_the_shape_that_is_offered_fits_the_first_layer(
    here: Path, made: str, line: str, flag: str
) -> None:
    (here / "net.py").write_text(LAYERS.replace("MADE", made).replace("LINE", line))
    assert f"migrate verify net.py:Net --input {flag}\n" in migrate("verify", "net.py").stderr


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("net.py:nn", "'nn' is a module, not a class or function; net.py has "),
        ("net.py:WIDTH", "'WIDTH' is of type int, not a class or function; net.py has "),
        ("net.py:Nett", "net.py has no 'Nett'; it has Net"),
        ("net.py:Part", "net.py:Part cannot be built: TypeError: Part.__init__() missing 1"),
        ("net.py:Part", '; give it with --init "width=…"'),
    ],
)
def test_what_cannot_be_built_is_told_with_what_to_write(
    here: Path, target: str, words: str
) -> None:
    part = "\nWIDTH = 3\n\n\nclass Part(Net):\n    def __init__(self, width):\n        super().__init__()\n"
    text = LAYERS.replace("MADE", "pass").replace("LINE", "x") + part
    (here / "net.py").write_text(text)
    result = migrate("verify", target, "--input", "B,3")
    assert result.exit_code == 2
    assert words in result.stderr
