"""Breaks the lines that conversion made too long, at their last bracket, as formatters do."""

from __future__ import annotations

import ast
import re
import symtable
import warnings
from itertools import pairwise

LIMIT = 100
_PAIRS = {"(": ")", "[": "]", "{": "}"}


def wrapped(code: str, source: str) -> str:
    """The code with its new lines of more than LIMIT columns broken; lines of the source stay as they are.

    An f-string that nests its own quotes may be taken apart: the caller looks whether the result parses."""
    lines = code.split("\n")
    long = [i for i, line in enumerate(lines) if len(line) > LIMIT]
    if not long:
        return code
    known = set(source.splitlines())
    new = [i for i in long if lines[i] not in known]
    inside = _in_strings(code) if new else ()
    for i in new:
        if i not in inside:
            lines[i] = "\n".join(_broken(lines[i]))
    return "\n".join(lines)


def parsed_names(code: str) -> tuple[bool, symtable.SymbolTable | None]:
    """Whether Python's own parser takes the code, and its names: half the cost of Python objects for its tree."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return True, symtable.symtable(code, "<converted>", "exec")
    except (SyntaxError, ValueError):
        try:  # such as a return outside a function, which the source may hold as well
            ast.parse(code)
        except (SyntaxError, ValueError):
            return False, None
    return True, None


def bound_at_top(table: symtable.SymbolTable | None) -> list[str] | None:
    """The names that the top of a file binds; None without a table."""
    if table is None:
        return None
    return sorted(
        one.get_name() for one in table.get_symbols() if one.is_assigned() or one.is_imported()
    )


def _in_strings(code: str) -> set[int]:
    """The 0-based numbers of lines that begin inside a string."""
    found: set[int] = set()
    if '"""' not in code and "'''" not in code and "\\\n" not in code:
        return found
    line, at = 0, 0
    for match in _UNPREFIXED.finditer(code):
        text = match[0]
        if "\n" in text:
            line += code.count("\n", at, match.start())
            at = match.start()
            found.update(range(line + 1, line + 1 + text.count("\n")))
    return found


_STRING = (
    r"""\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'"""
)
TOKENS = re.compile(rf"#[^\n]*|([A-Za-z]{{0,2}})(?:{_STRING})", re.DOTALL)
"""Comments and strings of Python source; the group is a string's prefix, empty or None."""
_UNPREFIXED = re.compile(rf"#[^\n]*|{_STRING}", re.DOTALL)
"""The same without prefixes, which take most of the time."""


def fitted(line: str) -> list[str]:
    """A line that starts outside of strings, over several lines when it is too long."""
    return _broken(line) if len(line) > LIMIT else [line]


def _broken(line: str) -> list[str]:
    """The line over several lines, broken in the last bracket where that fits, or as it is."""
    brackets = _brackets(line)
    if not brackets:
        return _parameters(line)
    tries = [_broken_in(line, *bracket) for bracket in reversed(brackets)]
    for made in tries:
        if max(map(len, made)) <= LIMIT:
            return made
    return tries[0]


def _broken_in(line: str, start: int, end: int, commas: list[int]) -> list[str]:
    """The line with what stands between two brackets on lines of its own."""
    indent = line[: len(line) - len(line.lstrip())]
    head, inner, tail = line[: start + 1], line[start + 1 : end].strip(), line[end:]
    if not inner or len(head) > LIMIT:
        return [line]
    deeper = f"{indent}    "
    if len(deeper) + len(inner) <= LIMIT:
        return [head, f"{deeper}{inner}", f"{indent}{tail}"]
    cuts = [start, *commas, end]
    items = [line[a + 1 : b].strip() for a, b in pairwise(cuts)]
    items = [item for item in items if item]
    if line[start] != "(":
        return [line]
    if len(items) < 2:
        return [head, *fitted(f"{deeper}{inner}"), f"{indent}{tail}"]
    rows = [row for item in items for row in fitted(f"{deeper}{item},")]
    return [head, *rows, f"{indent}{tail}"]


def _parameters(line: str) -> list[str]:
    """A line of parameters or arguments alone, which ``rngs`` made too long: one a line."""
    text = line.strip()
    if not text.endswith(("rngs: nnx.Rngs", "rngs=rngs")) or any(c in text for c in "([{#\"'"):
        return [line]
    indent = line[: len(line) - len(line.lstrip())]
    return [f"{indent}{item.strip()}," for item in text.split(",")]


def _brackets(line: str) -> list[tuple[int, int, list[int]]]:
    """Start, end and own commas of each outermost bracket pair of a line that is a statement or a part of one."""
    stack: list[tuple[int, list[int]]] = []
    found: list[tuple[int, int, list[int]]] = []
    quote = ""
    i = 0
    while i < len(line):
        c = line[i]
        if quote:
            if c == "\\":
                i += 1
            elif c == quote:
                quote = ""
        elif c in "\"'":
            quote = c
        elif c == "#":
            return []
        elif c in _PAIRS:
            stack.append((i, []))
        elif c in ")]}":
            if not stack:
                return []
            start, commas = stack.pop()
            if not stack:
                found.append((start, i, commas))
        elif c == "," and stack:
            stack[-1][1].append(i)
        i += 1
    return [] if stack or quote else found
