"""Which files a pattern means: .gitignore files, ``--include`` and ``--exclude``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from migrator.folders import Resolved


@dataclass(frozen=True)
class Pattern:
    """One line of a .gitignore: the expression, whether it takes back, and whether it means directories only."""

    expression: re.Pattern[str]
    negated: bool
    directories: bool


@cache
def pattern(line: str) -> Pattern | None:
    """The meaning of a line by git's rules; None for blank lines and comments."""
    text = line.rstrip("\r\n")
    if not text.endswith("\\ "):
        text = text.rstrip()
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[1:] if negated else text.removeprefix("\\")
    directories = text.endswith("/")
    text = text.rstrip("/")
    anchored = "/" in text
    text = text.lstrip("/")
    prefix = "" if anchored else "(?:.*/)?"
    return Pattern(re.compile(f"{prefix}{_expression(text)}"), negated, directories)


def _expression(text: str) -> str:
    made = []
    i = 0
    while i < len(text):
        if text.startswith("**/", i):
            made.append("(?:.*/)?")
            i += 3
        elif text.startswith("**", i):
            made.append(".*")
            i += 2
        elif text[i] == "*":
            made.append("[^/]*")
            i += 1
        elif text[i] == "?":
            made.append("[^/]")
            i += 1
        elif text[i] == "[" and "]" in text[i + 2 :]:
            end = text.index("]", i + 2)
            inner = text[i + 1 : end].replace("\\", "\\\\")
            made.append(f"[{'^' + inner[1:] if inner.startswith('!') else inner}]")
            i = end + 1
        else:
            made.append(re.escape(text[i]))
            i += 1
    return "".join(made)


class Ignored:
    """The .gitignore files that apply to a directory and those below it."""

    def __init__(self, directory: Path) -> None:
        self._files: dict[Path, Sequence[Pattern]] = {}
        self._said: dict[Path, list[tuple[Path, Sequence[Pattern]]]] = {}
        self._resolved = Resolved()
        directory = directory.resolve()
        above = [directory, *directory.parents]
        top = next((p for p in above if (p / ".git").exists()), directory)
        self._above = [p for p in reversed(above) if p.is_relative_to(top)]

    def __call__(self, path: Path) -> bool:
        """Whether git would ignore a file or directory that stands in a directory it does not ignore."""
        path = self._resolved(path)
        ignored = False
        for folder, patterns in self._applying(path.parent):
            for one in patterns:
                if one.directories and not path.is_dir():
                    continue
                if one.expression.fullmatch(path.relative_to(folder).as_posix()):
                    ignored = not one.negated
        return ignored

    def _applying(self, parent: Path) -> list[tuple[Path, Sequence[Pattern]]]:
        """The folders that say something about what stands in a folder, the outermost first, and what."""
        if parent not in self._said:
            around = [*reversed(parent.parents), parent]
            folders = [*self._above, *(p for p in around if p not in self._above)]
            said = ((p, self._patterns(p)) for p in folders if parent.is_relative_to(p))
            self._said[parent] = [(folder, patterns) for folder, patterns in said if patterns]
        return self._said[parent]

    def _patterns(self, folder: Path) -> Sequence[Pattern]:
        if folder not in self._files:
            found: list[Pattern] = []
            if folder in self._above or any(folder.is_relative_to(p) for p in self._above[-1:]):
                try:
                    text = (folder / ".gitignore").read_text(encoding="utf-8", errors="replace")
                except OSError:
                    text = ""
                found = [p for p in map(pattern, text.splitlines()) if p is not None]
            self._files[folder] = found
        return self._files[folder]


def chosen(name: Path, include: Iterable[str], exclude: Iterable[str]) -> bool:
    """Whether a file, by its place below the named directory, is asked for.

    Patterns are written as in a .gitignore: ``models/``, ``*_test.py``, ``a/**/b.py``.
    """
    include = list(include)
    if include and not any(_means(one, name) for one in include):
        return False
    return not any(_means(one, name) for one in exclude)


def _means(text: str, name: Path) -> bool:
    one = pattern(text)
    if one is None:
        return False
    parts = [Path(*name.parts[: i + 1]).as_posix() for i in range(len(name.parts))]
    parts = parts[:-1] if one.directories else parts
    return any(one.expression.fullmatch(part) for part in parts)
