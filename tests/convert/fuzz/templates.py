"""Texts with choices in them, for the generators: ``<<a||b>>`` is a or b, ``#`` the number of the part."""

from __future__ import annotations

import random
import re

_INNERMOST = re.compile(r"<<((?:(?!<<|>>).)*)>>", re.DOTALL)


def chosen(text: str, draw: random.Random) -> str:
    """The text with one of each of its choices, the innermost first."""
    while found := _INNERMOST.search(text):
        text = text[: found.start()] + draw.choice(found[1].split("||")) + text[found.end() :]
    return text


def sections(text: str) -> dict[str, list[str]]:
    """``--name`` lines and what follows each, by name."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.strip("\n").splitlines():
        if line.startswith("--"):
            lines = found.setdefault(line[2:], [])
        elif line.strip():
            lines.append(line)
    return found


def indented(lines: list[str], by: int = 1) -> list[str]:
    return ["    " * by + line for line in lines]
