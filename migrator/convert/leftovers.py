"""The last check: a conversion that is called complete names nothing of torch any more."""

from __future__ import annotations

import ast
import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.layout import TOKENS
from migrator.infer.symbols import of_torch
from migrator.source import dotted
from migrator.tree import Tree


def check_leftovers(ctx: Context, own: str, code: str) -> None:
    """Report torch names that the output still reads, where nothing else says that a part was left.

    Args:
      own: the output without its helpers.
      code: the output.
    """
    if any(finding.blocks for finding in ctx.findings):
        return
    names = _mentioned(_torch_names(ctx.source.index), own)
    if names:
        names &= _read_unbound(ast.parse(code))
    if not names:
        return
    pending: list[cst.CSTNode] = [ctx.source.tree]
    while pending:
        node = pending.pop()
        if isinstance(node, (cst.Import, cst.ImportFrom)):
            continue
        text = dotted(node) if isinstance(node, (cst.Name, cst.Attribute)) else None
        if text is None:
            pending.extend(syntax.children(node))
        elif text.partition(".")[0] in names and node not in ctx.facts.kinds:
            message = f"{text} is in code that was not understood"
            ctx.report(node, "API001", message, "port it by hand")
    if not any(finding.blocks for finding in ctx.findings):
        ctx.report(
            ctx.source.tree, "API001", f"{', '.join(sorted(names))} is left in the output", ""
        )


def _torch_names(tree: Tree) -> set[str]:
    """The names that imports of torch bind in the source."""
    found: set[str] = set()
    for node in tree.of_type(cst.Import):
        for alias in node.names:
            path = dotted(alias.name) or ""
            if of_torch(path):
                asname = alias.asname.name if alias.asname is not None else None
                found.add(asname.value if isinstance(asname, cst.Name) else "torch")
    for line in tree.of_type(cst.ImportFrom):
        if line.module is None or line.relative or isinstance(line.names, cst.ImportStar):
            continue
        if of_torch(dotted(line.module) or ""):
            for alias in line.names:
                name = alias.asname.name if alias.asname is not None else alias.name
                if isinstance(name, cst.Name):
                    found.add(name.value)
    return found


def _mentioned(names: set[str], code: str) -> set[str]:
    """The names that stand in the code somewhere, as a whole word outside comments and plain strings."""
    if not names:
        return set()
    # each word before what must not stand before it: it is looked for at once
    words = "|".join(rf"{re.escape(one)}(?!\w)(?<![\w.]{re.escape(one)})" for one in sorted(names))
    pattern = re.compile(words)
    if pattern.search(code) is None:
        return set()
    return set(pattern.findall(TOKENS.sub(_without_text, code)))


def _without_text(token: re.Match[str]) -> str:
    return token[0] if "f" in (token[1] or "").lower() else '""'


def _read_unbound(tree: ast.Module) -> set[str]:
    """Names that are read somewhere and bound nowhere. One pass without ast.walk, which costs as much as parsing."""
    read: set[str] = set()
    bound: set[str] = set()
    pending: list[Any] = [tree]
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind is ast.Name:
            (read if type(node.ctx) is ast.Load else bound).add(node.id)
            continue
        if kind in (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef):
            bound.add(node.name)
        elif kind is ast.arg:
            bound.add(node.arg)
        elif kind in (ast.Import, ast.ImportFrom):
            bound |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        for value in vars(node).values():
            if type(value) is list:
                pending.extend(item for item in value if isinstance(item, ast.AST))
            elif isinstance(value, ast.AST):
                pending.append(value)
    return read - bound
