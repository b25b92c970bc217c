"""Changed definitions as text: what is as it was keeps its lines, comments and breaks.

A node without ``changed`` is as it was read, in the lines that it has with it.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from migrator.convert.layout import fitted

_ANNOTATED = re.compile(r"(: [\w.\[\]| ]+)=")
_NEGATIVE = re.compile(r" \*\* \((-[\d.]+)\)")
_EXPONENT = re.compile(r"(?<=[\d.])e([+-])0+(?=\d)")


def definition(node: Any) -> str:
    """A definition at the left margin."""
    return "\n".join(statement(node, 0)) + "\n"


def statement(node: Any, indent: int) -> list[str]:
    """The lines of a statement."""
    if hasattr(node, "lines") and not getattr(node, "changed", False):
        return _as_it_was(node, indent)
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [*_header(node, indent), *suite(node.body, indent + 4)]
    if isinstance(node, ast.If):
        return _branches(node, indent, "if")
    if isinstance(node, ast.For):
        made = fitted(f"{' ' * indent}for {_plain(node.target)} in {_plain(node.iter)}:")
        return [*made, *suite(node.body, indent + 4)]
    if hasattr(node, "body"):
        return [" " * indent + line for line in _tidy(ast.unparse(node)).splitlines()]
    return _simple(node, indent)


def suite(body: list[ast.stmt], indent: int) -> list[str]:
    """The lines of statements, with the comments and blank lines that stood before each."""
    made: list[str] = []
    for place, one in enumerate(body):
        lead = _before(one)
        apart = isinstance(one, ast.FunctionDef) or isinstance(body[place - 1], ast.FunctionDef)
        if place == 0:
            lead = [line for line in lead if line.strip()]
        elif apart and not any(not line.strip() for line in lead):
            lead = ["", *lead]
        made += [" " * indent + line.strip() if line.strip() else "" for line in lead]
        made += statement(one, indent)
    return made


def _as_it_was(node: Any, indent: int) -> list[str]:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
    shift = indent - node.col_offset
    found = node.lines[first - 1 : node.end_lineno]
    if isinstance(node, ast.If):
        found[0] = found[0].replace("elif ", "if ", 1)
    if shift == 0:
        return found
    moved = [line[-shift:] if shift < 0 else " " * shift + line for line in found]
    return [line if line.strip() else "" for line in moved]


def stands_apart(node: Any) -> bool:
    """Whether comments or blank lines stand right above a statement."""
    return bool(_before(node))


def has_comment(node: Any) -> bool:
    """Whether there may be a comment in the lines of a statement, as it was."""
    first, last = getattr(node, "lineno", 0), getattr(node, "end_lineno", 0)
    return bool(first) and any("#" in line for line in node.lines[first - 1 : last])


def _before(node: Any) -> list[str]:
    """The comments and blank lines right above a statement."""
    line = getattr(node, "lineno", 0)
    if not line:
        return []
    line = min([line, *(d.lineno for d in getattr(node, "decorator_list", []))])
    start, lines = line - 1, node.lines
    while start > 0 and (not lines[start - 1].strip() or lines[start - 1].lstrip().startswith("#")):
        start -= 1
    return lines[start : line - 1]


def _header(node: Any, indent: int) -> list[str]:
    decorators = [f"{' ' * indent}@{_plain(d)}" for d in node.decorator_list]
    if isinstance(node, ast.ClassDef):
        bases = ", ".join(map(_plain, node.bases))
        return [*decorators, f"{' ' * indent}class {node.name}({bases}):"]
    returns = f" -> {_plain(node.returns)}" if node.returns is not None else ""
    params = _ANNOTATED.sub(r"\1 = ", _tidy(ast.unparse(node.args)))
    line = f"{' ' * indent}def {node.name}({params}){returns}:"
    return [*decorators, *fitted(line)]


def _branches(node: ast.If, indent: int, word: str) -> list[str]:
    made = fitted(f"{' ' * indent}{word} {_plain(node.test)}:")
    made += suite(node.body, indent + 4)
    orelse = node.orelse
    if len(orelse) == 1 and isinstance(orelse[0], ast.If):
        return [*made, *_branches(orelse[0], indent, "elif")]
    if orelse:
        made += [f"{' ' * indent}else:", *suite(orelse, indent + 4)]
    return made


def _simple(node: Any, indent: int) -> list[str]:
    if isinstance(node, ast.Assign):
        targets = [_plain(t) for t in node.targets]
        text = " = ".join([*targets, _plain(node.value)])
    elif isinstance(node, ast.Return) and node.value is not None:
        text = f"return {_plain(node.value)}"
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        text = f'"""{node.value.value!s}"""'
    else:
        text = _tidy(ast.unparse(node))
    return fitted(" " * indent + text)


def _plain(node: ast.AST) -> str:
    """An expression's text, a tuple without the parentheses that it does not need."""
    text = _tidy(ast.unparse(node))
    if isinstance(node, ast.Tuple) and len(node.elts) > 1 and text.startswith("("):
        if not any(isinstance(e, ast.Starred) for e in node.elts):
            return text[1:-1]
    return text


def _tidy(text: str) -> str:
    """Double quotes and short exponents, as the rest of a file has."""
    text = _EXPONENT.sub(lambda m: "e-" if m[1] == "-" else "e", text)
    text = _NEGATIVE.sub(r"**\1", text)
    return text if '"' in text else text.replace("'", '"')
