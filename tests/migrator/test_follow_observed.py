"""``convert --follow --observe``: a run of the original tells of the library that is converted with a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from migrator.cli import main
from migrator.infer import kinds as k
from migrator.infer.observed import Observed
from migrator.observe.facts import observe
from migrator.package.follow import Followed, Redirect, followed, redirected
from migrator.project import File, convert_files
from migrator.quick import selection
from migrator.verifying import verify_cases

SHELF = {
    "__init__.py": "from .store import Store\nfrom .mixing import Mixer\nfrom .unused import gone\n",
    "unused.py": "def gone(x):\n    return x\n",
    "store.py": '''import torch


class Store:
    """Values by name."""

    def __init__(self):
        self.values = {}

    def put(self, name, value):
        self.values[name] = value

    def get(self, name):
        return self.values[name]
''',
    "mixing.py": """import torch, shelf.store as kept; kinds = [kept.Store]
import torch.nn as nn


class Mixer(nn.Module):
    def forward(self, x):
        store = kinds[0]()
        store.put("x", x)
        left, right = store.get("x").split(2, 1)
        return left + right
""",
}
NET = """import torch
import torch.nn as nn
from shelf import Mixer


class Net(nn.Module):
    def __init__(self, dim: int = 4):
        super().__init__()
        self.fc = nn.Linear(dim, dim)
        self.mixer = Mixer()

    def forward(self, x):
        return self.mixer(self.fc(x))
"""
CASE = """
[[tool.migrate.case]]
name = "net"
torch = "NAME:Net"
init = { args = [4] }
dims = { B = [1, 3] }
inputs = [{ shape = ["B", 4] }]
"""
NOTE = 'mixing.py:9:23: info OBS001 observed, not proven: `store.get("x")` of Mixer.forward() is a tensor'


@pytest.fixture(params=["file", "package"])
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A project that uses an installed library; the path to convert."""
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "site" / "shelf", SHELF)
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    for name in [name for name in sys.modules if name.partition(".")[0] == "shelf"]:
        monkeypatch.delitem(sys.modules, name)  # of another test's directory
    package = request.param == "package"
    put(tmp_path, {"mine/__init__.py": "", "mine/net.py": NET} if package else {"net.py": NET})
    name = "mine/net.py" if package else "net.py"
    (tmp_path / "pyproject.toml").write_text(CASE.replace("NAME", name))
    return "mine" if package else "net.py"


def put(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def migrate(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments, catch_exceptions=False)


def test_a_run_tells_of_the_library_that_is_followed(source: str, tmp_path: Path) -> None:
    arguments = ["convert", source, "-o", "out", "--follow", "shelf"]
    result = migrate(*arguments)
    assert result.exit_code == 1
    assert "mixing.py:9:23: error API005" in result.stdout
    before = {path: path.read_bytes() for path in sorted(tmp_path.rglob("site/**/*"))[1:]}
    result = migrate(*arguments, "--observe", "net")
    assert result.exit_code == 0, result.output
    site = tmp_path / "site" / "shelf"
    assert f"{site}{os.sep}{NOTE}" in result.stdout
    assert "1 fact observed rather than proven" in result.stdout
    assert before == {path: path.read_bytes() for path in sorted(tmp_path.rglob("site/**/*"))[1:]}
    assert "shelf" not in sys.modules
    port = "out/net.py:Net"
    with selection(None, [_file(source)], None, jax=port, inputs=["B,4"]) as (config, names):
        (report,) = verify_cases(config, names, examples=2)
    assert report.ok, str(report)


def _file(source: str) -> str:
    return "mine/net.py" if source == "mine" else source


def copied(source: str, tmp_path: Path) -> Followed:
    """The project of ``source`` and what it reaches of the library, copied."""
    files = [File(tmp_path / _file(source), Path("net.py"))]
    if source == "mine":
        files.append(File(tmp_path / "mine" / "__init__.py", Path("__init__.py")))
    return followed(files, ["shelf"], tmp_path / "copies")


def test_facts_stand_where_the_copies_have_them(source: str, tmp_path: Path) -> None:
    """Imports of a copy lead elsewhere: what stands beside one is not where it was, all else is."""
    copies = copied(source, tmp_path)
    facts = observe(["net"], copies.files, copies)
    assert {Path(fact.path).name for fact in facts} == {"net.py", "mixing.py", "store.py"}
    for fact in facts:
        assert fact.line == Path(fact.path).read_text().splitlines()[fact.span.line - 1]
        assert not fact.line.startswith("import")
        assert "copies" not in Path(fact.path).parts
    (mixer,) = (fact for fact in facts if fact.text == "self.mixer")
    assert isinstance(mixer.kind, k.Module)
    assert mixer.kind.cls.endswith("shelf_flax.mixing.Mixer")


def test_what_is_kept_of_an_earlier_run_depends_on_the_facts(source: str, tmp_path: Path) -> None:
    copies = copied(source, tmp_path)
    facts = observe(["net"], copies.files, copies)
    (read,) = (fact for fact in facts if fact.text == 'store.get("x")')
    seen = {read.place: read.kind}
    told = {read.module: Observed(seen, seen)}
    cache = tmp_path / "cache"
    for observed, complete in (({}, False), (told, True), ({}, False), (told, True)):
        made = convert_files(copies.files, cache=cache, observed=observed)
        assert made.complete is complete


def test_an_import_over_several_lines_keeps_their_number() -> None:
    text = "import a, \\\n    shelf.store as s; x = 1\ny = s\n"
    made = redirected(text, [Redirect("shelf", "", "shelf_flax")])
    assert made == "import a; from shelf_flax import store as s; x = 1\n\ny = s\n"
