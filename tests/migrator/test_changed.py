"""``--changed-since``: the cases a diff can affect, through the imports of the project."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.changed import affected
from migrator.cli import main
from migrator.config import load_config
from migrator.errors import UserError

FILES = {
    "pyproject.toml": """
[tool.migrate]
output = "ported"
[[tool.migrate.case]]
name = "a"
torch = "a.py:A"
[[tool.migrate.case]]
name = "b"
torch = "pkg/b.py:B"
""",
    "a.py": "import helper\n",
    "helper.py": "from pkg import shared\n",
    "pkg/__init__.py": "",
    "pkg/b.py": "from .inner import thing\n",
    "pkg/inner.py": "thing = 1\n",
    "pkg/shared.py": "",
    "ported/a.py": "",
    "ported/b.py": "",
    "notes.txt": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    author = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-qm", "first"]):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    return tmp_path


@pytest.mark.parametrize(
    ("file", "names"),
    [
        ("a.py", ["a"]),
        ("helper.py", ["a"]),
        ("pkg/shared.py", ["a"]),
        ("pkg/inner.py", ["b"]),
        ("ported/b.py", ["b"]),
        ("notes.txt", []),
        ("pyproject.toml", ["a", "b"]),
    ],
)
def test_a_change_affects_what_imports_it(project: Path, file: str, names: list[str]) -> None:
    (project / file).write_text(FILES[file] + "\n")
    config = load_config(project / "pyproject.toml")
    assert affected(config, ["a", "b"], "HEAD") == names


def test_nothing_changed(project: Path) -> None:
    config = load_config(project / "pyproject.toml")
    assert affected(config, ["a", "b"], "HEAD") == []


def test_a_revision_that_is_none(project: Path) -> None:
    config = load_config(project / "pyproject.toml")
    with pytest.raises(UserError, match="--changed-since v9"):
        affected(config, ["a", "b"], "v9")


def test_on_the_command_line_nothing_to_do_is_no_error(project: Path) -> None:
    options = ["--config", str(project / "pyproject.toml"), "--changed-since", "HEAD"]
    result = CliRunner().invoke(main, ["verify", *options])
    assert result.exit_code == 0, result.output
    assert result.output == "nothing to verify: no case is affected by what changed since HEAD\n"
    assert CliRunner().invoke(main, ["verify", *options, "-q"]).output == ""
