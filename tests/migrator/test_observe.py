"""``convert --observe``: what a run shows is used where inference ends, and the reports say so."""

from __future__ import annotations

import ast
import builtins
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from click.testing import CliRunner, Result

from migrator.cli import main
from migrator.findings import Finding
from migrator.infer import kinds as k
from migrator.infer.observed import Observed, completed, contradicts, described
from migrator.observe import facts
from migrator.observe.choose import converted
from migrator.observe.facts import Fact, joined, kind_of
from migrator.observe.instrument import TELL, instrument
from migrator.observe.record import ANY, Recorder, Request, record
from migrator.project import Conversion, Converted, File
from migrator.quick import selection
from migrator.source import Span
from migrator.verifying import verify_cases

STORE = '''import torch
import torch.nn as nn


class Store:
    """Values by name."""

    def __init__(self):
        self.values = {}

    def put(self, name, value):
        self.values[name] = value

    def get(self, name):
        return self.values[name]
'''
NET = """

class Net(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.fc = nn.Linear(dim, dim)

    def mix(self, store):
        left, right = store.get("x").split(2, 1)
        return left + right

    def forward(self, x):
        store = Store()
        store.put("x", self.fc(x))
        return self.mix(store)


def get_init_inputs():
    return [4]


def get_inputs():
    return [torch.randn(3, 4)]
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(STORE + NET)
    return tmp_path


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """The run in this process, which has loaded torch and jax already: seconds less for each test."""

    def run(request: Request) -> Any:
        return json.loads(json.dumps(record(request)))["files"]

    monkeypatch.setattr(facts, "_run", run)


def migrate(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


# --- a file -------------------------------------------------------------------------------------------------------


def test_what_is_not_inferred_is_flagged_without_a_run(here: Path) -> None:
    result = migrate("convert", "net.py", "-o", "out")
    assert result.exit_code == 1
    assert "API005" in result.stdout
    assert "--observe CASE" in result.stdout


def test_what_a_run_shows_is_used_and_reported(here: Path) -> None:
    before = (here / "net.py").read_bytes(), (here / "net.py").stat().st_mtime_ns
    result = migrate("convert", "net.py", "-o", "out", "--observe", "net.py")
    assert result.exit_code == 0, result.output
    note = "net.py:15:16: info OBS001 observed, not proven: `self.values[name]` of Store.get() is a tensor"
    assert note in result.stdout
    assert "1 of 1 file converted, 1 fact observed rather than proven: out/net.py" in result.stdout
    assert "runs your code" in result.stderr
    assert before == ((here / "net.py").read_bytes(), (here / "net.py").stat().st_mtime_ns)
    assert sorted(path.name for path in here.iterdir()) == ["net.py", "out"]
    with selection(None, ["net.py"], None, jax="out/net.py:Net") as (config, names):
        (report,) = verify_cases(config, names, examples=2)
    assert report.ok, str(report)


def test_json_counts_the_facts_and_lists_them(here: Path, in_process: None) -> None:
    result = migrate("convert", "net.py", "--dry-run", "--observe", "net.py", "--format", "json")
    document = json.loads(result.stdout)
    assert document["complete"]
    assert document["observed"] == 1
    (finding,) = document["findings"]
    assert finding["rule"] == "OBS001"
    assert finding["severity"] == "info"
    assert not finding["blocks"]
    assert (finding["line"], finding["column"], finding["end_column"]) == (15, 16, 33)


def test_proof_needs_no_run(here: Path, in_process: None) -> None:
    plain = (STORE + NET).replace('store.get("x").split(2, 1)', "self.fc.weight.split(2, 1)")
    (here / "net.py").write_text(plain)
    result = migrate("convert", "net.py", "--dry-run", "--observe", "net.py")
    assert result.exit_code == 0
    assert "observed" not in result.stdout


def test_what_varies_is_not_used(here: Path, in_process: None) -> None:
    other = '        store.put("name", "a b")\n        store.get("name")\n        return self.mix(store)\n'
    (here / "net.py").write_text(STORE + NET.replace("        return self.mix(store)\n", other))
    result = migrate("convert", "net.py", "--dry-run", "--observe", "net.py")
    assert result.exit_code == 0, result.output
    assert '`store.get("x")` of Net.mix() is a tensor' in result.stdout
    assert "self.values[name]" not in result.stdout


def test_a_run_that_speaks_against_inference_is_a_finding(here: Path, in_process: None) -> None:
    text = STORE + NET.replace(
        "def forward(self, x):", "def forward(self, x, scale: torch.Tensor):"
    )
    text = text.replace("return self.mix(store)", "return self.mix(store) * scale")
    (here / "net.py").write_text(text.replace("[torch.randn(3, 4)]", "[torch.randn(3, 4), 2]"))
    result = migrate("convert", "net.py", "--dry-run", "--observe", "net.py")
    assert result.exit_code == 1
    assert "OBS002 `scale` is read as a tensor here, and was seen to be an int" in result.stdout


def test_a_guess_gives_way_to_what_was_seen(here: Path, in_process: None) -> None:
    text = (STORE + NET).replace("def forward(self, x):", "def forward(self, x, n):")
    text = text.replace(
        "return self.mix(store)", "return torch.full((2,), n) + self.mix(store)[:, 0].sum()"
    )
    (here / "net.py").write_text(text.replace("[torch.randn(3, 4)]", "[torch.randn(3, 4), 2]"))
    result = migrate("convert", "net.py", "--dry-run", "--observe", "net.py")
    assert result.exit_code == 0, result.output
    assert "`n` of Net.forward() is an int" in result.stdout


CASE = """
[[tool.migrate.case]]
name = "net"
torch = "pkg/net.py:Net"
init = { args = [4] }
dims = { B = [1, 3] }
inputs = [{ shape = ["B", 4] }]
"""


def test_a_package(here: Path, in_process: None) -> None:
    (here / "pkg").mkdir()
    (here / "net.py").unlink()
    (here / "pkg" / "__init__.py").write_text("from .net import Net\n")
    (here / "pkg" / "store.py").write_text(STORE)
    head = "import torch\nimport torch.nn as nn\nfrom .store import Store\n"
    (here / "pkg" / "net.py").write_text(head + NET.partition("\n\ndef get_init")[0] + "\n")
    (here / "pyproject.toml").write_text(CASE)
    assert migrate("convert", "pkg", "--dry-run").exit_code == 1
    result = migrate("convert", "pkg", "-o", "out/pkg", "--observe", "net")
    assert result.exit_code == 0, result.output
    assert "pkg/net.py:12:23: info OBS001" in result.stdout
    assert "3 of 3 files converted, 1 fact observed" in result.stdout


def mistake(*arguments: str) -> str:
    """What a command that fails says last; before it stands only that it runs the user's code."""
    result = migrate("convert", *arguments, "-o", "out")
    assert result.exit_code == 2, result.output
    first, line = ["", *result.stderr.splitlines()][-2:]
    assert first in ("", f"migrate: --observe {RUNS}: {arguments[2]}")
    assert line.startswith("migrate: ")
    assert not Path("out").exists()
    return line


RUNS = "imports and runs your code, in a process of its own"


@pytest.mark.parametrize(
    ("arguments", "change", "expected"),
    [
        ("net.py --observe absent", ("", ""), "no case 'absent'"),
        ("net.py --observe absent.py", ("", ""), "absent.py: no such file"),
        ("other.py --observe net.py", ("", ""), "runs none of the files that are converted"),
        (
            "net.py --observe net.py",
            ("store = Store()", "store = 1 / 0"),
            "line 28: ZeroDivisionError",
        ),
        ("net.py --observe net.py", ("nn\n", "nn\nimport nowhere\n"), "No module named 'nowhere'"),
    ],
)
def test_mistakes_are_one_line(
    here: Path, in_process: None, arguments: str, change: tuple[str, str], expected: str
) -> None:
    (here / "other.py").write_text("x = 1\n")
    (here / "net.py").write_text((STORE + NET).replace(*change, 1))
    assert expected in mistake(*arguments.split())


def test_the_end_of_the_other_process_is_one_line(here: Path) -> None:
    (here / "net.py").write_text((STORE + NET).replace("return [4]", "print('out'); exit(3)"))
    assert "ends the program, with status 3" in mistake("net.py", "--observe", "net.py")


# --- which facts decide -------------------------------------------------------------------------------------------


def fact(place: int) -> Fact:
    kind = k.Tensor(2, "float")
    return Fact("m", place, kind, "m.py", Span(place + 1, 1, place + 1, 2), "x", "", "f", "float32")


def conversion(left: list[int]) -> Conversion:
    file = File(Path("m.py"), Path("m.py"))
    findings = tuple(Finding("API005", "left", line=line, blocks=True) for line in left)
    return Conversion([Converted(file, "", "", findings, not left)])


def test_the_fewest_facts_that_leave_the_same_findings() -> None:
    """Of 64 places 7 and 8 settle a finding only together, 9 and 40 each do, and the rank counts at 9."""

    def convert(observed: Mapping[str, Observed]) -> Conversion:
        used = observed["m"].used
        settled = [
            7 in used and 8 in used,
            (9 in used and used[9] == k.Tensor(2, "float")) or 40 in used,
        ]
        return conversion([line for line, done in enumerate(settled) if not done])

    done, kept = converted([fact(place) for place in range(64)], convert)
    assert done.complete
    assert [(one.place, one.kind) for one in kept] == [
        (7, k.TENSOR),
        (8, k.TENSOR),
        (9, k.Tensor(2, "float")),
    ]


def test_no_fact_is_used_where_none_decides() -> None:
    done, kept = converted([fact(0)], lambda observed: conversion([3]))
    assert kept == []
    assert not done.complete


def test_what_inference_says_stands() -> None:
    seen = k.Tensor(2, "int")
    assert completed(k.UNKNOWN, seen) == seen
    assert completed(k.Tensor(dtype="float"), seen) == k.Tensor(2, "float")
    assert completed(k.Optional(k.TENSOR), seen) == k.Optional(seen)
    assert completed(k.Sequence(k.UNKNOWN), k.Tuple((seen, seen))) == k.Sequence(seen)
    assert completed(k.Module(), k.Module("torch.nn.Linear")) == k.Module("torch.nn.Linear")
    assert completed(k.INT, seen) == k.INT


@pytest.mark.parametrize(
    ("known", "seen", "expected"),
    [
        (k.TENSOR, k.INT, True),
        (k.TENSOR, k.Optional(k.TENSOR), False),
        (k.Tensor(3), k.Tensor(2), True),
        (k.Tensor(None, "float"), k.Tensor(2, "float"), False),
        (k.Tensor(None, "float"), k.Tensor(2, "int"), True),
        (k.NONE, k.TENSOR, True),
        (k.INT, k.FLOAT, False),
        (k.INT, k.STR, True),
        (k.UNKNOWN, k.TENSOR, False),
        (k.Optional(k.TENSOR), k.Module(), True),
        (k.Sequence(), k.Module("torch.nn.ModuleList"), False),
        (k.Other("file.Config"), k.TENSOR, True),
        (k.Function(""), k.Module(), False),
    ],
)
def test_contradictions(known: k.Kind, seen: k.Kind, expected: bool) -> None:
    assert contradicts(known, seen) is expected


@pytest.mark.parametrize(
    ("kind", "dtype", "words"),
    [
        (k.Tensor(2, "int"), "int64", "an int64 tensor of rank 2"),
        (k.TENSOR, "", "a tensor"),
        (k.Optional(k.INT), "", "an int or None"),
        (k.Mapping(k.TENSOR), "", "a dict, each value a tensor"),
        (k.Tuple((k.STR, k.BOOL)), "", "a tuple of (a string, a bool)"),
        (k.Module("torch.nn.Linear"), "", "a Linear module"),
    ],
)
def test_kinds_in_words(kind: k.Kind, dtype: str, words: str) -> None:
    assert described(kind, dtype) == words


# --- the copy that tells ------------------------------------------------------------------------------------------

PROGRAM = '''"""Docstring."""
from __future__ import annotations
import dataclasses


@dataclasses.dataclass
class Point:
    """Of a plane."""
    x: int = 1
    __hidden = 2

    @property
    def both(self):
        """Doc."""
        first, *rest = [self.x, self.__hidden, 5]
        return f"{first}", rest, super().__repr__ is not None


def run(n, *more, key=None, **named):
    """Doc."""
    total = [("ä", i) for i in range(n) if i]
    for a, (b, c) in [(1, (2, 3))]:
        n += a + b * c
    match n:
        case 1 | 2:
            pass
        case other if other > 3:
            n = other
    with open(__file__) as f: word = f.readline()
    lam = lambda q, r=n: (q, r) if q else (y := r)
    del a
    return n, total, key and more or named, lam(0), word, Point().both
'''


def run_program(code: Any) -> Any:
    space: dict[str, Any] = {"__name__": "program", "__file__": __file__}
    exec(code, space)
    assert space["run"].__doc__ == "Doc."
    assert space["Point"].__annotations__ == {"x": "int"}
    return space["run"](4, 5, other=6)


def test_the_copy_computes_the_same_and_tells_where(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "program", sys)
    told: dict[str, Any] = {}
    lines = PROGRAM.splitlines()

    def tell(file: str, place: tuple[int, int, int, int], value: Any) -> Any:
        line, column, end, end_column = place
        if line == end:
            told[lines[line - 1][column - 1 : end_column - 1]] = value
        return value

    monkeypatch.setattr(builtins, TELL, tell, raising=False)
    expected = run_program(compile(PROGRAM, "p.py", "exec", dont_inherit=True))
    assert run_program(compile(instrument(PROGRAM, "p.py"), "p.py", "exec")) == expected
    assert told["self.x"] == 1
    assert told["lam(0)"] == expected[3]
    assert told["rest"] == [2, 5]
    assert told["n"] in (4, 11)
    assert told["key"] is None
    assert told["c"] == 3
    for text in told:
        ast.parse(text, mode="eval")


# --- facts --------------------------------------------------------------------------------------------------------


class Cut(tuple[int, int]):
    """A tuple of its own class."""


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        ([torch.zeros(2, 3), torch.zeros(4, 1)], k.Tensor(2, "float")),
        ([torch.zeros(2, 3), torch.zeros(4)], k.Tensor(None, "float")),
        ([torch.zeros(2), torch.zeros(2, dtype=torch.int64)], k.Tensor(1)),
        ([torch.zeros(2), 1], k.UNKNOWN),
        ([torch.zeros(2), None], k.Optional(k.Tensor(1, "float"))),
        ([1, 2], k.INT),
        ([True], k.BOOL),
        ([None], k.NONE),
        ([[1, 2], []], k.Sequence(k.INT)),
        ([{"a": 1.0}, {}], k.Mapping(k.FLOAT)),
        ([(1, "a")], k.Tuple((k.INT, k.STR))),
        ([(1, 2), (1, 2, 3)], k.Sequence(k.INT, "tuple")),
        ([torch.nn.ReLU()], k.Module("torch.nn.ReLU")),
        (
            [torch.nn.ModuleList([torch.nn.ReLU()])],
            k.Module("torch.nn.ModuleList", k.Module("torch.nn.ReLU")),
        ),
        ([torch.nn.Linear], k.Class("")),
        ([torch.float32], k.DType()),
        ([torch.relu], k.UNKNOWN),
        ([torch.zeros(2).split], k.UNKNOWN),
        ([Cut()], k.UNKNOWN),
    ],
)
def test_kinds_of_values_and_their_join(values: list[Any], kind: k.Kind) -> None:
    recorder = Recorder()
    assert joined([recorder.describe(value, 0) for value in values], {}) == kind


def test_a_class_of_the_project_has_its_name() -> None:
    (described_,) = [Recorder().describe(Span(1, 2, 3, 4), 0)]
    file = described_[1]
    assert kind_of(described_, {file: "own.spans"}) == k.Other("own.spans.Span")
    assert kind_of(ANY, {}) == k.UNKNOWN
