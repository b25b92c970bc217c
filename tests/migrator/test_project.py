"""Which files are worked on, and that no output loses anybody's work."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from migrator.errors import UserError
from migrator.project import MANIFEST, Manifest, convert_path, discover, write_text

MODEL = """import torch.nn as nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 3)

    def forward(self, x):
        return self.fc(x)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A directory with Python files, and what must not be looked at."""
    root = tmp_path / "src"
    for name in ("b.py", "a.py", "pkg/c.py", ".hidden/d.py", "pkg/__pycache__/e.py", "env/f.py"):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(MODEL)
    (root / "env" / "pyvenv.cfg").touch()
    (root / "flax" / "a.py").parent.mkdir()
    (root / "flax" / "a.py").write_text("from flax import nnx\n")
    (root / "flax" / MANIFEST).write_text('{"files": {}}')
    (root / "notes.txt").touch()
    return root


def test_directories_are_walked_in_order(tree: Path) -> None:
    assert [f.name.as_posix() for f in discover([tree])] == ["a.py", "b.py", "pkg/c.py"]


def test_a_file_named_twice_is_one_file(tree: Path) -> None:
    assert len(discover([tree / "a.py", tree, tree / "pkg" / ".." / "a.py"])) == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("absent.py", "no such file", id="absent"),
        pytest.param("empty", "no Python file", id="directory without Python"),
        pytest.param("x.ipynb", "notebook", id="notebook"),
    ],
)
def test_what_is_no_python_is_named(tmp_path: Path, name: str, message: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "x.ipynb").touch()
    with pytest.raises(UserError, match=message) as error:
        discover([tmp_path / name])
    assert name in str(error.value)


def test_the_output_has_the_layout_of_the_sources(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    conversion = convert_path([tree], out)
    assert conversion.complete
    files = {p.relative_to(out).as_posix() for p in out.rglob("*.py")}
    assert files == {"a.py", "b.py", "pkg/c.py"}
    assert set(json.loads((out / MANIFEST).read_text())["files"]) == files
    assert all(f.path.read_text() == MODEL for f in discover([tree]))


def test_one_file_may_be_named(tree: Path, tmp_path: Path) -> None:
    convert_path([tree / "a.py"], tmp_path / "flax_a.py")
    assert "nnx" in (tmp_path / "flax_a.py").read_text()
    with pytest.raises(UserError, match="name a directory"):
        convert_path([tree], tmp_path / "flax.py")


def test_a_second_run_overwrites_what_nobody_edited(tree: Path, tmp_path: Path) -> None:
    convert_path([tree], tmp_path / "out")
    (tree / "a.py").write_text(MODEL.replace("Net", "Other"))
    convert_path([tree], tmp_path / "out")
    assert "class Other" in (tmp_path / "out" / "a.py").read_text()


def test_an_edited_output_is_kept_unless_forced(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    convert_path([tree], out)
    edited = out / "pkg" / "c.py"
    edited.write_text("# mine\n")
    (tree / "a.py").write_text(MODEL.replace("Net", "Other"))
    with pytest.raises(UserError, match=r"c\.py was edited since it was generated; --force"):
        convert_path([tree], out)
    assert edited.read_text() == "# mine\n"
    assert "class Other" not in (out / "a.py").read_text()
    convert_path([tree], out, force=True)
    assert "nnx" in edited.read_text()


def test_a_file_that_is_not_ours_is_kept(tree: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "a.py").write_text("# mine\n")
    with pytest.raises(UserError, match="was not written by migrate"):
        convert_path([tree], out)


@pytest.mark.parametrize("force", [False, True])
def test_sources_are_never_overwritten(tree: Path, force: bool) -> None:
    with pytest.raises(UserError, match="is a source"):
        convert_path([tree], tree, force=force)
    assert (tree / "a.py").read_text() == MODEL


def test_two_sources_for_one_output_are_refused(tree: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text(MODEL)
    with pytest.raises(UserError, match="both be written"):
        convert_path([tree, other], tmp_path / "out")


def test_nothing_is_written_when_the_source_cannot_be_read(tree: Path, tmp_path: Path) -> None:
    (tree / "b.py").write_text("def f(:\n")
    with pytest.raises(UserError, match=r"b\.py:1"):
        convert_path([tree / "b.py"], tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_an_output_nothing_is_written(tree: Path, tmp_path: Path) -> None:
    conversion = convert_path([tree], None)
    assert len(conversion.files) == 3
    assert not conversion.written
    assert {p.name for p in tmp_path.iterdir()} == {"src"}
    assert "+class Net(nnx.Module):\n" in list(conversion.diff())


def test_the_same_input_gives_the_same_bytes(tree: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        convert_path([tree], tmp_path / name)
    for path in (tmp_path / "one").rglob("*"):
        if path.is_file():
            other = tmp_path / "two" / path.relative_to(tmp_path / "one")
            assert path.read_bytes() == other.read_bytes()


def test_writing_leaves_no_temporary_file_and_keeps_the_mode(tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("old")
    path.chmod(0o640)
    write_text(path, "new")
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["x.py"]


def test_a_broken_manifest_is_named(tmp_path: Path) -> None:
    (tmp_path / MANIFEST).write_text("{")
    with pytest.raises(UserError, match=MANIFEST):
        Manifest(tmp_path).record(tmp_path / "x.py", "")
