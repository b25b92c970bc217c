"""Puts the file together: imports where torch's stood, helpers behind the imports."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.stand_ins import NAME
from migrator.infer.symbols import of_torch
from migrator.source import dotted

_STANDARD = ("functools", "inspect", "math")
_ORDER = ("jax", "jnp", "np", "nnx", "lax")


def assemble(ctx: Context, tree: cst.Module, helpers: str) -> str:
    """The text of the module with the imports it needs and a mark where the helpers go."""
    body: list[cst.BaseStatement] = list(tree.body)
    stand_in = ctx.helpers.has(NAME)
    if stand_in:
        body = _imports_first(ctx, body, stand_in)
    present = _bindings(body)
    needed = {n: line for n, line in ctx.helpers.imports.items() if n not in present}
    at, leading = _torch_import(ctx, body)
    at = min(at, _first_use(body, stand_in), _first_run(body, {*needed}))
    before_torch = _first_import(body)
    header: list[cst.BaseStatement] = []
    if ctx.module_rngs:
        needed.setdefault("nnx", "from flax import nnx")
    standard = [needed.pop(n) for n in _STANDARD if n in needed]
    hints = sorted(n for n, line in needed.items() if line.startswith("from typing import "))
    standard += [needed.pop(n) for n in hints]
    lines = [needed.pop(n) for n in _ORDER if n in needed]
    lines += sorted(needed.values())
    brought = ctx.helpers.import_line()
    if brought:
        lines.append(brought)
    made = [_line(text) for text in lines]
    if made:
        made[0] = syntax.changed(made[0], leading_lines=leading)
    header = list(made)
    if header and at < len(body):
        body[at] = _apart(body[at])
    body[at:at] = header
    if standard:
        place = min(before_torch, at)
        stdlib = [_line(text) for text in standard]
        if place < len(body) and isinstance(body[place], cst.SimpleStatementLine) and place != at:
            first = body[place]
            assert isinstance(first, cst.SimpleStatementLine)
            stdlib[0] = syntax.changed(stdlib[0], leading_lines=first.leading_lines)
            body[place] = syntax.changed(first, leading_lines=[])
        elif header:
            stdlib[0] = syntax.changed(stdlib[0], leading_lines=leading)
            body[at] = syntax.changed(header[0], leading_lines=[cst.EmptyLine(indent=False)])
        body[place:place] = stdlib
    if helpers:
        names = {*ctx.helpers.names.values()}
        body = _with_mark(body, min(_first_use(body, stand_in), _first_run(body, names)))
    if ctx.module_rngs:
        body = _with_rngs(body, ctx.rngs_by_definitions)
    return syntax.module_code(syntax.changed(tree, body=body))


def _apart(node: cst.BaseStatement) -> cst.BaseStatement:
    """A definition that was the first thing in its file, which stands behind imports now."""
    if not isinstance(node, (cst.FunctionDef, cst.ClassDef)):
        return node
    if any(line.comment is None for line in node.leading_lines):
        return node
    blank = cst.EmptyLine(indent=False)
    return syntax.changed(node, leading_lines=[blank, blank, *node.leading_lines])


def with_helpers(code: str, helpers: str) -> str:
    """The text with the helpers in the place of their mark."""
    if not helpers:
        return code
    gap = "" if helpers.startswith("_") and "=" in helpers.split("\n")[0] else "\n"
    return code.replace(f"{_MARK}\n", f"{gap}{helpers}".rstrip("\n") + "\n", 1)


def without_imports(code: str, imports: Mapping[str, str], whole: str, helpers: str) -> str:
    """The text without the imports that only what is gone of the helpers needed, those of hints on one line."""
    for name, line in imports.items():
        word = re.compile(rf"\b{re.escape(name)}\b")
        if word.search(helpers) or not word.search(whole):
            continue
        rest = re.sub(rf"^{re.escape(line)}\n", "", code, count=1, flags=re.MULTILINE)
        if rest != code and not word.search(rest):
            code = re.sub(r"\A\n+", "", rest)
    hints = sorted(n for n, line in imports.items() if line == f"from typing import {n}")
    several = "".join(f"from typing import {n}\n" for n in hints if f"typing import {n}\n" in code)
    if several.count("\n") > 1 and several in code:
        names = several.replace("from typing import ", "").split()
        code = code.replace(several, f"from typing import {', '.join(names)}\n", 1)
    return code


@cache
def _line(text: str) -> cst.SimpleStatementLine:
    made = cst.parse_statement(text)
    assert isinstance(made, cst.SimpleStatementLine)
    return made


def _is_import(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(
        node.body[0], (cst.Import, cst.ImportFrom)
    )


def _bindings(body: Sequence[cst.CSTNode]) -> set[str]:
    found: set[str] = set()
    for node in body:
        if not isinstance(node, cst.SimpleStatementLine):
            continue
        for small in node.body:
            if isinstance(small, cst.Import):
                for alias in small.names:
                    name = alias.asname.name if alias.asname is not None else alias.name
                    found.add((dotted(name) or "").partition(".")[0])
            elif isinstance(small, cst.ImportFrom) and not isinstance(small.names, cst.ImportStar):
                for alias in small.names:
                    name = alias.asname.name if alias.asname is not None else alias.name
                    found.add(dotted(name) or "")
    return found


def _torch_import(ctx: Context, body: list[cst.BaseStatement]) -> tuple[int, list[cst.EmptyLine]]:
    """Where the first import of torch stood in the converted body, and the lines above it."""
    original = ctx.source.tree.body
    kept = set(map(id, body))
    index = 0
    for node in original:
        if _imports_torch(node):
            assert isinstance(node, cst.SimpleStatementLine)
            while index < len(body) and not _after(original, node, body, index):
                index += 1
            definitions = (i for i, n in enumerate(body) if isinstance(n, _DEFINITIONS))
            return min(index, next(definitions, index)), list(node.leading_lines)
    del kept
    at = _first_import(body)
    while at < len(body) and _is_import(body[at]):
        at += 1
    return at, []


_DEFINITIONS = (cst.ClassDef, cst.FunctionDef)
"""What may read at once what is imported; several imports may have become fewer before them."""


def _after(
    original: Sequence[cst.CSTNode], node: cst.CSTNode, body: list[cst.BaseStatement], index: int
) -> bool:
    """Whether the statement at an index of the new body comes behind a removed one of the original."""
    position = next(i for i, n in enumerate(original) if n is node)
    earlier = sum(1 for n in original[:position] if not _imports_torch(n))
    return index >= earlier


def _imports_torch(node: cst.CSTNode) -> bool:
    if not isinstance(node, cst.SimpleStatementLine):
        return False
    small = node.body[0]
    if len(node.body) != 1:
        return False
    if isinstance(small, cst.Import):
        return all(of_torch(dotted(a.name) or "") for a in small.names)
    if isinstance(small, cst.ImportFrom) and small.module is not None and not small.relative:
        return of_torch(dotted(small.module) or "")
    return False


def _first_import(body: Sequence[cst.CSTNode]) -> int:
    at = 0
    for i, node in enumerate(body):
        if isinstance(node, cst.SimpleStatementLine):
            small = node.body[0]
            docstring = i == 0 and isinstance(small, cst.Expr)
            future = (
                isinstance(small, cst.ImportFrom)
                and small.module is not None
                and dotted(small.module) == "__future__"
            )
            if docstring or future:
                at = i + 1
                continue
        break
    return at


def _last_import(body: Sequence[cst.CSTNode]) -> int:
    """The index behind the imports at the top of a file."""
    at = 0
    for i, node in enumerate(body):
        if _is_import(node):
            at = i + 1
        elif not (isinstance(node, (cst.SimpleStatementLine, cst.Try, cst.If)) and i < at + 3):
            break
    return at


def _imports_first(
    ctx: Context, body: list[cst.BaseStatement], name: str
) -> list[cst.BaseStatement]:
    """The names that stand for failed imports behind the other imports at the top of a file, as what they need is.

    They stay before an import of the project that came after them: it may import them from here.
    """
    at = 0
    for i, node in enumerate(body):
        if _is_import(node) or _is_stand_in(node, name):
            at = i + 1
        elif i >= max(at, _first_import(body)):
            break
    first = next((i for i, node in enumerate(body) if _is_stand_in(node, name)), at)
    at = next((i for i in range(first, at) if _is_of_project(ctx, body[i])), at)
    moved = [node for node in body[:at] if _is_stand_in(node, name)]
    kept = [node for node in body[:at] if not _is_stand_in(node, name)]
    if moved and kept:
        moved[0] = _with_blank(moved[0])
    rest = body[at:]
    if moved and rest and _is_import(rest[0]):
        rest[0] = _with_blank(rest[0])
    return [*kept, *moved, *rest]


def _is_of_project(ctx: Context, node: cst.BaseStatement) -> bool:
    """Whether a statement imports another file of the project."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
    linked = ctx.facts.linked
    if linked is None or not isinstance(small, (cst.Import, cst.ImportFrom)):
        return False
    if isinstance(small, cst.ImportFrom):
        modules, level = [dotted(small.module) or "" if small.module else ""], len(small.relative)
    else:
        modules, level = [dotted(alias.name) or "" for alias in small.names], 0
    here = ctx.source.module
    return level > 0 or any(linked.place(here, one, 0, None) != "outside" for one in modules)


def _with_blank(node: cst.BaseStatement) -> cst.BaseStatement:
    lines = [line for line in getattr(node, "leading_lines", ()) if line.comment is not None]
    return syntax.changed(node, leading_lines=[cst.EmptyLine(indent=False), *lines])


def _is_stand_in(node: cst.BaseStatement, name: str) -> bool:
    """``DropPath = NotConverted(…)``."""
    small = node.body[0] if isinstance(node, cst.SimpleStatementLine) else None
    call = small.value if isinstance(small, cst.Assign) else None
    return (
        isinstance(call, cst.Call) and isinstance(call.func, cst.Name) and call.func.value == name
    )


def _first_use(body: Sequence[cst.CSTNode], name: str) -> int:
    """The index of the first statement that reads a name; behind the last one where there is none."""
    if name:
        for i, node in enumerate(body):
            if syntax.names(node).get(name):
                return i
    return len(body)


def _first_run(body: Sequence[cst.CSTNode], names: set[str]) -> int:
    """The index of the first statement that is no import nor a definition and reads one of some names."""
    for i, node in enumerate(body):
        if _is_import(node) or isinstance(node, _DEFINITIONS):
            continue
        if not names.isdisjoint(syntax.names(node)):
            return i
    return len(body)


_MARK = "__migrator_helpers__"


def _with_mark(body: list[cst.BaseStatement], before: int) -> list[cst.BaseStatement]:
    """A line that stands for the helpers until the file is text: they need no parsing."""
    at = min(_last_import(body), before)
    blank = cst.EmptyLine(indent=False)
    mark = cst.SimpleStatementLine([cst.Expr(cst.Name(_MARK))], leading_lines=[blank])
    rest = body[at:]
    if rest and hasattr(rest[0], "leading_lines"):
        lines = list(rest[0].leading_lines)
        while lines and lines[0].comment is None:
            lines.pop(0)
        rest[0] = syntax.changed(rest[0], leading_lines=[blank, blank, *lines])
    return [*body[:at], mark, *rest]


def _with_rngs(body: list[cst.BaseStatement], first: bool) -> list[cst.BaseStatement]:
    """``rngs = nnx.Rngs(0)`` at the top of a script that draws or builds modules itself.

    After its definitions, unless one of them needs it where it stands (``first``)."""
    at = _last_import(body)
    line = _line("rngs = nnx.Rngs(0)").with_changes(leading_lines=[cst.EmptyLine(indent=False)])
    position = at
    definitions = (cst.FunctionDef, cst.ClassDef)
    while not first and position < len(body) and isinstance(body[position], definitions):
        position += 1
    return [*body[:position], line, *body[position:]]
