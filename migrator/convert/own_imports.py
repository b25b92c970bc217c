"""``partial(…)`` in place of ``functools.partial(…)`` where the file has imported ``partial`` itself."""

from __future__ import annotations

import ast
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.bindings import bound_by_statements, imported_by
from migrator.convert.context import Context

_NAME, _MODULE = "partial", "functools"


def by_own_imports(ctx: Context, tree: cst.Module) -> cst.Module:
    """The file with the name that it has for ``functools.partial``, where that means nothing else anywhere in it."""
    imports = ctx.helpers.imports
    if _MODULE not in imports or not _imports_partial(tree) or _is_bound_otherwise(ctx):
        return tree
    made: cst.Module = _renamed(tree)
    ctx.helpers.imports = {name: line for name, line in imports.items() if name != _MODULE}
    for file, name in ctx.helpers.wanted.values():
        if not ctx.helpers.elsewhere and _MODULE in ast.unparse(file.definitions[name]):
            ctx.helpers.imports = imports
    return made


def _imports_partial(tree: cst.Module) -> bool:
    """At the top, before anything else could run."""
    for statement in tree.body:
        match statement:
            case cst.SimpleStatementLine(
                [cst.ImportFrom(cst.Name("functools"), names, relative=())]
            ):
                if not isinstance(names, cst.ImportStar) and any(
                    alias.asname is None and syntax.code(alias.name) == _NAME for alias in names
                ):
                    return True
            case cst.SimpleStatementLine():
                continue
            case _:
                return False
    return False


def _is_bound_otherwise(ctx: Context) -> bool:
    """Whether the file binds ``partial`` again, in a function perhaps, or ``functools`` at all."""
    index = ctx.source.index
    imports = [imported_by([node]) for node in index.of_type(cst.Import, cst.ImportFrom)]
    if sum(_NAME in names for names in imports) != 1 or any(_MODULE in names for names in imports):
        return True
    others = bound_by_statements(index)
    others |= {syntax.code(one.name) for one in index.of_type(cst.AsName)}
    return _NAME in others or _MODULE in others


def _renamed(node: Any) -> Any:
    match node:
        case cst.Attribute(cst.Name("functools"), cst.Name("partial")):
            return cst.Name(_NAME)
    return syntax.rebuild(node, _renamed)
