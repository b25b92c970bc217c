"""Follows a Markdown document to the letter: writes its files, runs its commands, compares what it shows.

A fence says what its block is:

- ```` ```python NAME ```` (or toml …): the file NAME. It is written, or, where a command has made it already, it
  must read as shown. ``+NAME`` appends to the file.
- ```` ```console ````: lines after ``$`` are run; what follows is their output. ``…`` stands for any text, and
  measured numbers (``1.2e-07``, ``3.1 s``) for any others.
- ```` ```python ```` without a name: a script that runs without error.

Other blocks are prose. ``python -m tests.documents README.md`` brings what a document shows up to date.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
_FENCE = re.compile(r"^```(\w+)(?:[ \t]+(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_MEASURED = re.compile(r"\d+(?:\.\d+)?e[-+]\d+|\b\d+\.\d+ s\b")


@dataclass(frozen=True)
class Block:
    """One fenced block; ``line`` is where its text starts, ``span`` its place in the document."""

    language: str
    name: str
    text: str
    line: int
    span: tuple[int, int]


def blocks(document: Path) -> list[Block]:
    """The fenced blocks in order."""
    text = document.read_text(encoding="utf-8")
    return [
        Block(m[1], m[2] or "", m[3], text[: m.start()].count("\n") + 2, m.span(3))
        for m in _FENCE.finditer(text)
    ]


def commands(block: Block) -> Iterator[tuple[str, str]]:
    """(command, output) of a console block."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output.strip("\n")


def matches(shown: str, printed: str) -> bool:
    """Whether the output is what the document shows."""

    def plain(text: str) -> str:
        return "\n".join(line.rstrip() for line in _MEASURED.sub("#", text).strip().splitlines())

    pattern = ".*".join(re.escape(part.strip("\n")) for part in plain(shown).split("…"))
    return re.fullmatch(r"\s*" + pattern + r"\s*", plain(printed), re.DOTALL) is not None


def run(command: str, directory: Path, imports: Path = ROOT) -> subprocess.CompletedProcess[str]:
    """Run a command line as a user would, with ``migrate`` and ``python`` those of this environment."""
    program, *arguments = shlex.split(command)
    programs = {"migrate": ["-m", "migrator"], "python": []}
    environment = {**os.environ, "PYTHONPATH": str(imports), "COLUMNS": "100"}
    environment["JAX_PLATFORMS"] = "cpu"
    return subprocess.run(
        [sys.executable, *programs[program], *arguments],
        cwd=directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=600,
    )


def follow(block: Block, directory: Path, imports: Path = ROOT) -> str:
    """Do what one block says, in ``directory``; the block's text as it should read.

    Raises:
      AssertionError: a script fails.
    """
    if block.language == "console":
        return "".join(_console(block, directory, imports))
    if block.name.startswith("+"):
        with (directory / block.name[1:]).open("a", encoding="utf-8") as file:
            file.write(block.text)
    elif block.name:
        path = directory / block.name
        if path.exists():
            return path.read_text(encoding="utf-8")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")
    elif block.language == "python":
        script = directory / f"line_{block.line}.py"
        script.write_text(block.text, encoding="utf-8")
        result = run(f"python {script.name}", directory, imports)
        assert result.returncode == 0, f"line {block.line}:\n{result.stdout}{result.stderr}"
    return block.text


def _console(block: Block, directory: Path, imports: Path) -> Iterator[str]:
    for command, shown in commands(block):
        result = run(command, directory, imports)
        printed = (result.stdout + result.stderr).strip("\n")
        output = shown if matches(shown, printed) else printed
        yield f"$ {command}\n" + (f"{output}\n" if output else "")


def update(document: Path) -> None:
    """Rewrite what a document shows where it differs from what happens."""
    text = document.read_text(encoding="utf-8")
    parts, end = [], 0
    with tempfile.TemporaryDirectory() as directory:
        for block in blocks(document):
            parts += [text[end : block.span[0]], follow(block, Path(directory))]
            end = block.span[1]
    document.write_text("".join([*parts, text[end:]]), encoding="utf-8")


if __name__ == "__main__":
    update(Path(sys.argv[1]))
