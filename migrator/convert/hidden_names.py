"""Names of the file's own that hide what the conversion writes: a local ``max``, a function ``jax``."""

from __future__ import annotations

import ast
import builtins
import re
from collections import Counter
from collections.abc import Iterator

from migrator import python_tree
from migrator.convert.context import Context

_OF_PYTHON = frozenset(dir(builtins))
_RNGS = "rngs"
"""What constructors are handed, and hand on, in the output."""
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def check_hidden(ctx: Context, code: str) -> None:
    """Report a name that the output calls, or looks something up in, more often than the source, where that hides it.

    Args:
      code: the output.
    """
    libraries = {name for name in ctx.helpers.imports if name in ctx.helpers.bound}
    risky = libraries | ((_OF_PYTHON | {_RNGS}) & ctx.helpers.bound)
    risky = {name for name in risky if name == _RNGS or re.search(rf"(?<![\w.]){name}[(.]", code)}
    if not risky or any(finding.blocks for finding in ctx.findings):
        return
    before, after = ast.parse(ctx.source.text), ast.parse(code)
    kept = set(_imports(before))
    risky -= {name for name in libraries if ctx.helpers.imports[name] in kept}
    top, theirs, ours = _bound_at_top(before), dict(_units(before)), dict(_units(after))
    for name in sorted(risky):
        if name in top:
            hides = _uses(after)[name] > _uses(before)[name]
        else:
            hides = any(
                name in _bound_in(node) and _uses(node)[name] > _uses(theirs[path])[name]
                for path, node in ours.items()
                if path in theirs
            )
        if hides:
            message = (
                f"the file has a `{name}` of its own, which hides the one that is written here"
            )
            ctx.report(ctx.source.tree, "API009", message, "give it another name")


def _imports(tree: ast.Module) -> Iterator[str]:
    """What a file imports, a name to a line."""
    for node in tree.body:
        if isinstance(node, ast.Import):
            yield from (ast.unparse(ast.Import([name])) for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                ast.unparse(ast.ImportFrom(node.module, [name], node.level)) for name in node.names
            )


def _bound_at_top(tree: ast.Module) -> set[str]:
    """The names that a file binds outside of functions and classes."""
    found: set[str] = set()
    for node in python_tree.below(tree, (*_FUNCTIONS, ast.ClassDef, ast.Lambda)):
        found |= set(python_tree.bound(node))
    return found


def _bound_in(node: ast.AST) -> set[str]:
    """The names that a function binds, itself or in functions within it."""
    return {name for one in python_tree.walk(node)[1:] for name in python_tree.bound(one)}


def _units(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    """The functions and methods of a file by where they stand; ``forward`` is ``__call__`` in the output."""
    for node in tree.body:
        if isinstance(node, _FUNCTIONS):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for one in node.body:
                if isinstance(one, _FUNCTIONS):
                    name = "__call__" if one.name == "forward" else one.name
                    yield f"{node.name}.{name}", one


def _uses(tree: ast.AST) -> Counter[str]:
    """How often a name is called, or something is looked up in it."""
    found = Counter[str]()
    for node in python_tree.walk(tree):
        part = node.func if isinstance(node, ast.Call) else None
        part = node.value if isinstance(node, ast.Attribute) else part
        if isinstance(part, ast.Name) and not _is_of_a_value(node, part.id):
            found[part.id] += 1
        elif isinstance(node, ast.Name) and node.id == _RNGS:
            found[_RNGS] += 1
    return found


def _is_of_a_value(node: ast.AST, name: str) -> bool:
    """``input.shape``: what Python's own ``input`` does not have is asked of a value that is called so."""
    own = getattr(builtins, name, None)
    return own is not None and isinstance(node, ast.Attribute) and not hasattr(own, node.attr)
