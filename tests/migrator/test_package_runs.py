"""A run over the files of a package: which are worked on, by how many processes, and what ends one file but not the run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from migrator.project import convert_path, discover
from tests.migrator.test_packages import LAYERS, NET, write


def many(tmp_path: Path, number: int = 8) -> Path:
    files = {"layers.py": LAYERS}
    for i in range(number):
        files[f"net{i}.py"] = NET
    files["top.py"] = "from .net0 import Net\n\n\nclass Top(Net):\n    pass\n"
    return write(tmp_path / "src", files)


def outputs(directory: Path) -> dict[str, bytes]:
    return {p.relative_to(directory).as_posix(): p.read_bytes() for p in directory.rglob("*.*")}


def test_the_number_of_processes_changes_nothing(tmp_path: Path) -> None:
    root = many(tmp_path)
    for number in ("1", "3"):
        command = [sys.executable, "-m", "migrator", "convert", str(root), "-q", "--no-cache"]
        out = tmp_path / number / "pkg"
        subprocess.run([*command, "-j", number, "-o", str(out)], check=True)
    assert outputs(tmp_path / "1") == outputs(tmp_path / "3")


def test_a_second_run_works_on_what_changed_and_what_depends_on_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from migrator.package import build

    root = many(tmp_path)
    worked: list[str] = []
    real = build.Builder.build

    def noted(self: build.Builder, job: build.Job) -> list[build.Outcome]:
        worked.extend(module for module, _, _ in job.files)
        return real(self, job)

    monkeypatch.setattr(build.Builder, "build", noted)

    def run(name: str) -> list[str]:
        worked.clear()
        convert_path([root], tmp_path / "out" / name, cache=tmp_path / "cache")
        return sorted(worked)

    assert len(run("pkg")) == 11
    first = outputs(tmp_path / "out" / "pkg")
    assert run("pkg") == []
    assert outputs(tmp_path / "out" / "pkg") == first
    (root / "net0.py").write_text(NET.replace("dim: int = 4", "dim: int = 5, scale=None"))
    assert run("pkg") == ["pkg.net0", "pkg.top"]
    (root / "net1.py").write_text(NET.replace("Block(dim)", "Block(dim)  # a comment"))
    assert run("pkg") == ["pkg.net1"]
    (root / "layers.py").write_text(LAYERS.replace("return x.mean(1)", "return x.size(1)"))
    assert run("pkg") == ["pkg.layers", *(f"pkg.net{i}" for i in range(8)), "pkg.top"]


VERSIONED = """
from . import __version__, DEBUG
from .layers import Block


class Net(Block):
    known = __version__ + "a"

    def forward(self, x):
        return super().forward(x) * (2 if DEBUG else 3)
"""


def test_a_number_of_a_package_that_imports_all_its_files_ties_none_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from migrator.package import build

    together: list[list[str]] = []
    real = build.Builder.build

    def noted(self: build.Builder, job: build.Job) -> list[build.Outcome]:
        together.append([module for module, _, _ in job.files])
        return real(self, job)

    monkeypatch.setattr(build.Builder, "build", noted)
    named = '__version__ = "1.0"\nDEBUG = {}\nfrom .net import Net\n'
    files = {"__init__.py": named.format(False), "layers.py": LAYERS, "net.py": VERSIONED}
    root = write(tmp_path / "src", files)

    def run() -> list[list[str]]:
        together.clear()
        conversion = convert_path([root], tmp_path / "out/pkg", cache=tmp_path / "cache")
        assert conversion.complete, conversion.findings
        return sorted(together)

    assert run() == [["pkg"], ["pkg.layers"], ["pkg.net"]]
    assert "known = __version__ + " in (tmp_path / "out/pkg/net.py").read_text()
    assert run() == []
    (root / "__init__.py").write_text(named.format('""'))  # of another type now
    assert run() == [["pkg"], ["pkg.net"]]
    again = "def debug():\n    global DEBUG\n    DEBUG = None\n"
    for more in (again, "from .layers import *\n", 'globals()["DEBUG"] = None\n'):
        (root / "__init__.py").write_text(named.format(False) + more)
        assert ["pkg", "pkg.net"] in run()


def test_a_file_is_summed_up_for_those_that_may_read_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from migrator.package import build

    root = write(tmp_path / "src", {"layers.py": LAYERS, "net.py": NET, "more/far.py": NET})
    (root / "more/far.py").write_text(NET.replace("from .layers", "from ..layers"))
    summed: list[str] = []
    real = build.summarize

    def noted(ctx: Any, module: str) -> build.Data:
        summed.append(module)
        return real(ctx, module)

    monkeypatch.setattr(build, "summarize", noted)

    def run(cache: Path | None) -> list[str]:
        summed.clear()
        assert convert_path([root], tmp_path / "out" / "pkg", cache=cache).complete
        return sorted(summed)

    assert run(None) == ["pkg.layers"]
    assert run(tmp_path / "cache") == ["pkg.layers"]
    assert run(tmp_path / "cache") == []
    (root / "top.py").write_text("from .net import Net\n\n\nclass Top(Net):\n    pass\n")
    assert run(tmp_path / "cache") == ["pkg.net"]
    (root / "top.py").write_text("from . import more\n\nheld = more\n")
    assert run(None) == ["pkg.layers", "pkg.more", "pkg.more.far"]


def test_include_exclude_and_gitignore(tmp_path: Path) -> None:
    root = write(
        tmp_path, dict.fromkeys(("a.py", "a_test.py", "m/b.py", "m/c.py", "gen/d.py"), "x = 1\n")
    )
    (root / ".gitignore").write_text("gen/\n*.log\n")

    def names(**options: list[str]) -> set[str]:
        found = (f.name.as_posix() for f in discover([root], **options))
        return {name for name in found if not name.endswith("__init__.py")}

    assert names() == {"a.py", "a_test.py", "m/b.py", "m/c.py"}
    assert names(include=["m/"]) == {"m/b.py", "m/c.py"}
    assert names(exclude=["*_test.py", "m/c.py"]) == {"a.py", "m/b.py"}
    (root / ".gitignore").write_text("*\n!a.py\n")
    assert names() == {"a.py"}


def test_requirements_that_are_built_on_torch_are_named(tmp_path: Path) -> None:
    root = write(tmp_path, {"layers.py": LAYERS})
    (tmp_path / "requirements.txt").write_text("numpy\ntorch>=2\ntimm==1.0\n# kornia\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "x"\ndependencies = ["kornia>=0.7"]\n'
    )
    found = convert_path([root], None)
    assert found.complete
    named = [(Path(f.path).name, f.line, f.message.split()[2]) for f in found.findings]
    assert named == [
        ("pyproject.toml", 3, "kornia"),
        ("requirements.txt", 2, "torch"),
        ("requirements.txt", 3, "timm"),
    ]


def test_an_internal_error_in_a_file_does_not_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from click.testing import CliRunner

    import migrator.package.build as build
    from migrator.cli import main

    package = tmp_path / "net"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "layers.py").write_text(LAYERS)
    (package / "net.py").write_text(NET)
    whole = build._converted

    def broken(sources: list, *rest: object) -> list:
        if sources[0].module == "net.layers":
            raise KeyError("lost")
        return whole(sources, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(build, "_converted", broken)
    command = ["convert", str(package), "-o", str(tmp_path / "flax"), "--no-cache", "--jobs", "1"]
    result = CliRunner().invoke(main, command)
    assert result.exit_code == 2
    assert "INT001 internal error, the file is left as it is: KeyError: 'lost'" in result.output
    assert "Traceback" not in result.output
    assert (tmp_path / "flax" / "layers.py").read_text().endswith(LAYERS)
    assert "nnx.Module" in (tmp_path / "flax" / "net.py").read_text()
    result = CliRunner().invoke(main, [*command, "--force", "--debug"])
    assert result.exit_code == 2
    assert "Traceback" in result.output
    assert "KeyError: 'lost'" in result.output
