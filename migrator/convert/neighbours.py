"""Files beside the one that is converted, which its imports find and which are not converted with it."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import libcst as cst

from migrator.infer import Facts
from migrator.infer.optional import idle
from migrator.infer.symbols import of_timm, of_torch
from migrator.infer.without_torch import needs_torch
from migrator.python_tree import walk
from migrator.source import dotted

_HIGHEST = 4
"""In so many folders above a file its imports are looked for."""


def _needing_torch(path: str, module: str) -> frozenset[str]:
    """The names of a file beside another, or around it, whose definitions need torch; empty where there is no such file.

    Args:
      path: the file that imports.
      module: the dotted name that it imports.
    """
    here = Path(path)
    known = of_torch(module) or needs_torch(module) or of_timm(module) is not None
    if not module or known or here.suffix != ".py":
        return frozenset()
    place = Path(*module.split("."))
    for folder in here.resolve().parents[:_HIGHEST]:
        for one in (folder / place.with_suffix(".py"), folder / place / "__init__.py"):
            if one.is_file():
                return _needing(str(one), one.stat().st_mtime_ns)
    return frozenset()


@lru_cache(maxsize=256)
def _needing(path: str, _changed: int) -> frozenset[str]:
    try:
        tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError, RecursionError):
        return frozenset()
    needing: set[str] = set()
    for node in walk(tree):
        if isinstance(node, ast.Import):
            torchs = [a for a in node.names if of_torch(a.name)]
            needing |= {a.asname or a.name.partition(".")[0] for a in torchs}
        elif isinstance(node, ast.ImportFrom) and not node.level and of_torch(node.module or ""):
            needing |= {a.asname or a.name for a in node.names}
    uses = {
        node.name: {one.id for one in walk(node) if isinstance(one, ast.Name)}
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.ClassDef))
    }
    while True:
        more = {name for name, used in uses.items() if used & needing} - needing
        if not more:
            return frozenset(needing & uses.keys())
        needing |= more


def as_well(path: str, library: str) -> str:
    """What to do about a library that is not converted: one that is a file or folder beside this one is named with it."""
    beside = Path(path).parent / library.partition(".")[0]
    for one in (beside.with_suffix(".py"), beside):
        if one.exists():
            return f"convert it as well: name {one.name} beside this file, or convert their folder"
    return f"convert it as well (`--follow {library}`), or port what is used of it"


def left_beside(
    facts: Facts,
    path: str,
    node: cst.Import | cst.ImportFrom,
    attributes: Iterable[cst.Attribute],
) -> tuple[str, str] | None:
    """What an import brings that needs torch and stands in a file that is not converted, and what to do about it.

    Args:
      attributes: those of the file, of which ``import model`` brings ``model.Net``.
    """
    if isinstance(node, cst.ImportFrom):
        if node.relative or node.module is None or isinstance(node.names, cst.ImportStar):
            return None
        module = dotted(node.module) or ""
        names = [dotted(alias.name) or "" for alias in node.names]
        parts = [(module, names, [*node.names])]
    else:
        parts = []
        for alias in node.names:
            module = dotted(alias.name) or ""
            head = alias.evaluated_alias or module
            if _is_beside(facts, path, module):
                read = sorted({n.attr.value for n in attributes if dotted(n.value) == head})
                parts.append((module, read, [alias]))
    for module, names, aliases in parts:
        found = [n for n in names if n in _needing_torch(path, module)]
        if found and _is_beside(facts, path, module) and not idle(facts, aliases):
            verb, among = ("need", "are") if len(found) > 1 else ("needs", "is")
            what = f"{', '.join(found)} of {module} {verb} torch, and {among} not among the files that are converted"
            return what, as_well(path, module)
    return None


def _is_beside(facts: Facts, path: str, module: str) -> bool:
    linked = facts.linked
    own = linked is not None and linked.place(facts.module, module, 0, None) != "outside"
    return not own and bool(_needing_torch(path, module))
