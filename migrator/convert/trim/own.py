"""What the file's own code no longer says to its helpers: options that all calls state alike, classes that nothing builds."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from migrator.python_tree import children, walk


def edited(text: str, options: Mapping[str, Collection[str]], unbuilt: Collection[str]) -> str:
    """A file without arguments that its helpers no longer take, and without classes of which there are no instances.

    Args:
      options: helper → names of arguments that its calls leave out.
      unbuilt: classes that ``isinstance`` need not ask for.
    """
    lines = text.encode().splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    whole = b"".join(lines)

    def at(line: int | None, column: int | None) -> int:
        return starts[(line or 1) - 1] + (column or 0)

    spans: list[tuple[int, int, bytes]] = []
    for node in _calls(ast.parse(text)):
        if not isinstance(node.func, ast.Name):
            continue
        for keyword in node.keywords:
            if keyword.arg in options.get(node.func.id, ()):
                first = at(keyword.lineno, keyword.col_offset)
                last = at(keyword.end_lineno, keyword.end_col_offset)
                before = whole[:first].rstrip()
                if before.endswith(b","):
                    first = len(before) - 1
                elif (comma := _COMMA.match(whole, last)) is not None:
                    last = (
                        comma.end()
                    )  # a comment stands between, which stays, and the comma before it
                spans.append((first, last, b""))
        kinds = kinds_of(node)
        left = kept_of(kinds, unbuilt) if kinds is not None else []
        if kinds is not None and 0 < len(left) < len(kinds.elts):
            names = ", ".join(map(ast.unparse, left))
            new = names if len(left) == 1 else f"({names})"
            ends = at(kinds.lineno, kinds.col_offset), at(kinds.end_lineno, kinds.end_col_offset)
            spans.append((*ends, new.encode()))
    for first, last, made in sorted(spans, reverse=True):
        whole = whole[:first] + made + whole[last:]
    return whole.decode()


def _calls(tree: ast.AST) -> Iterator[ast.Call]:
    """The calls of a file, those in f-strings left out: Python 3.11 does not say where they stand."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.JoinedStr):
            continue
        if isinstance(node, ast.Call):
            yield node
        pending += children(node)


_COMMA = re.compile(rb"\s*,(?:[ \t]*\r?\n)?[ \t]*")


def may_leave_out(call: ast.Call, option: str) -> bool:
    """Whether an argument is stated by name behind another, so that it can be left out of the text."""
    if any(k.arg is None for k in call.keywords):
        return False
    places = [place for place, k in enumerate(call.keywords) if k.arg == option]
    return bool(places) and bool(places[0] or call.args)


def unbuilt_of(
    own: ast.Module, text: str, empty: Collection[str], idle: Collection[str]
) -> set[str]:
    """Those of the classes that nothing builds which the file only asks for beside one that is built.

    ``isinstance(m, (A, B))``, with no comment in it.

    Args:
      own: the file's own code, of this text.
      empty: classes that are only asked for.
      idle: all classes of the helpers that nothing builds.
    """
    lines = text.split("\n")
    asked = [
        kinds
        for node in _calls(own)
        if (kinds := kinds_of(node)) is not None
        and kept_of(kinds, idle)
        and (
            kinds.lineno == kinds.end_lineno
            or not any("#" in line for line in lines[kinds.lineno - 1 : kinds.end_lineno])
        )
    ]
    read = Counter(n.id for n in walk(own) if isinstance(n, ast.Name) and n.id in empty)
    beside = Counter(
        e.id for kinds in asked for e in kinds.elts if isinstance(e, ast.Name) and e.id in empty
    )
    return {name for name in empty if beside[name] == read[name]}


def kinds_of(call: ast.Call) -> ast.Tuple | None:
    """The classes of ``isinstance(layer, (Linear, Conv2d))``."""
    named = isinstance(call.func, ast.Name) and call.func.id == "isinstance" and len(call.args) == 2
    kinds = call.args[1] if named else None
    return kinds if isinstance(kinds, ast.Tuple) and len(kinds.elts) > 1 else None


def kept_of(kinds: ast.Tuple, unbuilt: Collection[str]) -> list[ast.expr]:
    """The classes of a tuple without some."""
    return [e for e in kinds.elts if not (isinstance(e, ast.Name) and e.id in unbuilt)]
