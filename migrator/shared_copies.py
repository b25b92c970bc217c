"""Copies of libraries that several conversions write into one directory: each leaves there what the others need.

``migrate convert a.py -o out/a.py`` and then ``b.py -o out/b.py`` share ``out/transformers_flax``.
"""

from __future__ import annotations

import ast


def merged(old: str, new: str) -> str | None:
    """A generated module with all that either text defines, ``new`` first; None where they define a name otherwise."""
    ours, theirs = ast.parse(new), ast.parse(old)
    known = {name: node for node in ours.body for name in _defined(node)}
    said = {ast.dump(node) for node in ours.body}
    imports, rest = list[str](), list[str]()
    for place, node in enumerate(theirs.body):
        names = _defined(node)
        if not names:
            if ast.dump(node) not in said and not (place == 0 and isinstance(node, ast.Expr)):
                rest.append(_text(old, node))  # what is done with what stands before it
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            missing = [name for name in names if name not in known]
            for alias in node.names:
                other = known.get(alias.asname or alias.name)
                if other is not None and not _brings(other, node, alias):
                    return None
            if missing:
                imports.append(_imported(node, missing))
            continue
        same = [name for name in names if name in known]
        if same and any(ast.dump(known[name]) != ast.dump(node) for name in same):
            return None
        if not same:
            rest.append(_text(old, node))
    if not imports and not rest:
        return new
    lines = new.splitlines(keepends=True)
    at = _behind_imports(ours)
    head, tail = "".join(lines[:at]), "".join(lines[at:])
    more = "".join(f"\n\n{text}\n" for text in rest)
    return (
        f"{head}{''.join(imports)}{tail.rstrip()}\n{more}"
        if rest
        else f"{head}{''.join(imports)}{tail}"
    )


def _defined(node: ast.stmt) -> list[str]:
    """The names that a statement at the top gives."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return [a.asname or a.name for a in node.names]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return [one.id for target in targets for one in ast.walk(target) if isinstance(one, ast.Name)]


def _brings(other: ast.stmt, node: ast.Import | ast.ImportFrom, alias: ast.alias) -> bool:
    """Whether an import brings the same as another."""
    if type(other) is not type(node) or not isinstance(other, (ast.Import, ast.ImportFrom)):
        return False
    if isinstance(other, ast.ImportFrom) and isinstance(node, ast.ImportFrom):
        if (other.module, other.level) != (node.module, node.level):
            return False
    return any((a.name, a.asname) == (alias.name, alias.asname) for a in other.names)


def _imported(node: ast.Import | ast.ImportFrom, names: list[str]) -> str:
    kept = [a for a in node.names if (a.asname or a.name) in names]
    node.names = kept
    return f"{ast.unparse(node)}\n"


def _text(source: str, node: ast.stmt) -> str:
    first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
    return "\n".join(source.splitlines()[first - 1 : node.end_lineno])


def _behind_imports(tree: ast.Module) -> int:
    """The line behind the docstring and the imports that a module begins with."""
    at = 0
    for i, node in enumerate(tree.body):
        plain = isinstance(node, (ast.Import, ast.ImportFrom))
        doc = i == 0 and isinstance(node, ast.Expr)
        if not plain and not doc:
            break
        at = node.end_lineno or at
    return at
