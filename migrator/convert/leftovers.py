"""The last check: a conversion that is called complete names nothing of torch any more."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer.symbols import of_torch
from migrator.source import dotted

_HOLDS_STATEMENTS = (
    cst.BaseStatement,
    cst.BaseSmallStatement,
    cst.BaseSuite,
    cst.Else,
    cst.Finally,
    cst.ExceptHandler,
    cst.ExceptStarHandler,
    cst.MatchCase,
)


def check_leftovers(ctx: Context, code: str) -> None:
    """Report torch names that the output still reads, where nothing else says that a part was left."""
    output = ast.parse(code)  # the output always parses: an error here is ours
    if any(finding.blocks for finding in ctx.findings):
        return
    names = _torch_names(ctx.source.tree) & _read_unbound(output)
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


def _torch_names(tree: cst.Module) -> set[str]:
    """The names that imports of torch bind in the source."""
    found: set[str] = set()
    for node in _statements(tree):
        if isinstance(node, cst.Import):
            for alias in node.names:
                path = dotted(alias.name) or ""
                if of_torch(path):
                    asname = alias.asname.name if alias.asname is not None else None
                    found.add(asname.value if isinstance(asname, cst.Name) else "torch")
        elif isinstance(node, cst.ImportFrom) and node.module is not None and not node.relative:
            if of_torch(dotted(node.module) or ""):
                for alias in node.names if not isinstance(node.names, cst.ImportStar) else ():
                    name = alias.asname.name if alias.asname is not None else alias.name
                    if isinstance(name, cst.Name):
                        found.add(name.value)
    return found


def _statements(tree: cst.Module) -> list[cst.CSTNode]:
    """All statements at any depth; expressions, which hold none, are not looked into."""
    found: list[cst.CSTNode] = list(tree.body)
    for node in found:
        if not isinstance(node, cst.BaseSmallStatement):
            found.extend(c for c in syntax.children(node) if isinstance(c, _HOLDS_STATEMENTS))
    return found


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
