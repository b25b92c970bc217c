"""The names in a file, and what binds them: imports, assignments, parameters, loops."""

from __future__ import annotations

import builtins
from collections.abc import Container, Iterable, Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.infer.symbols import of_timm, of_torch, starred
from migrator.source import dotted
from migrator.tree import Tree


def used_names(tree: Tree) -> frozenset[str]:
    """Every identifier in a file, so that new names do not clash."""
    return frozenset({n.value for n in tree.of_type(cst.Name)})


def imported(tree: Tree) -> set[str]:
    """Names that an import of torch (or anything else) binds, anywhere in the file."""
    return imported_by(tree.of_type(cst.Import, cst.ImportFrom))


def imported_by(imports: Iterable[cst.CSTNode]) -> set[str]:
    """Names that import statements bind."""
    found: set[str] = set()
    for node in imports:
        if isinstance(node, cst.Import):
            for alias in node.names:
                if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                    found.add(alias.asname.name.value)
                else:
                    head: cst.BaseExpression = alias.name
                    while isinstance(head, cst.Attribute):
                        head = head.value
                    if isinstance(head, cst.Name):
                        found.add(head.value)
        elif isinstance(node, cst.ImportFrom):
            if isinstance(node.names, cst.ImportStar):
                found.update(starred(dotted(node.module) or "") if node.module is not None else ())
                continue
            for alias in node.names:
                name = alias.asname.name if alias.asname is not None else alias.name
                if isinstance(name, cst.Name):
                    found.add(name.value)
    return found


def bound_at_top(tree: Tree, names: Container[str], dead: Container[cst.CSTNode]) -> dict[str, int]:
    """Those of some names that a statement at the top of the file binds, and the place in the tree behind the first.

    What stands in a branch that is not taken, or for an import that fails, is left out.
    """
    found: dict[str, int] = {}
    for node in tree.of_type(*_BINDING, cst.FunctionDef, cst.ClassDef):
        if type(node) is cst.CompFor:
            continue  # binds in itself only
        own = type(node) in (cst.FunctionDef, cst.ClassDef)
        for name in (node.name.value,) if own else _bound_by(node.target):
            if name not in names:
                continue
            around = tree.around(node)
            if any(
                type(n) in _SCOPES or n in dead or _is_fallback(tree, n, name, dead) for n in around
            ):
                continue
            lines = [n for n in around if type(n) is cst.SimpleStatementLine]
            end = tree.place(node) if own else tree.end(lines[-1] if lines else node)
            found[name] = min(found.get(name, end), end)
    return found


PYTHON = frozenset(dir(builtins))
"""The names that are there without an import."""


def hidden_at_top(tree: Tree, dead: Container[cst.CSTNode]) -> frozenset[str]:
    """Names of Python's own that the top of the file binds, or imports from elsewhere than torch."""
    imports = [n for n in tree.of_type(cst.Import, cst.ImportFrom) if not _from_torch(n)]
    return frozenset(bound_at_top(tree, PYTHON, dead)) | (imported_by(imports) & PYTHON)


def _is_fallback(tree: Tree, node: cst.CSTNode, name: str, dead: Container[cst.CSTNode]) -> bool:
    """Whether a node handles what happens where an import of a name fails, which does not."""
    if type(node) is not cst.ExceptHandler:
        return False
    imports = tree.within(tree.parent(node).body, cst.Import, cst.ImportFrom)
    live = [one for one in imports if not any(around in dead for around in tree.around(one))]
    return name in imported_by(live)


def bound_within(tree: Tree, names: Container[str]) -> dict[str, list[tuple[int, int]]]:
    """Those of some names that a lambda or a comprehension binds, and from where to where in the tree it does."""
    found: dict[str, list[tuple[int, int]]] = {}
    for node in tree.of_type(cst.Lambda):
        for param in tree.within(node.params, cst.Param):
            if param.name.value in names:
                span = (tree.place(node.body), tree.end(node.body))
                found.setdefault(param.name.value, []).append(span)
    for node in tree.of_type(cst.CompFor):
        for name in _bound_by(node.target):
            if name in names:
                around = reversed(tree.around(node))
                whole = next(n for n in around if type(n) is not cst.CompFor)
                found.setdefault(name, []).append((tree.place(whole), tree.place(node.iter)))
    return found


def bound_by_statements(tree: Tree) -> set[str]:
    """Every name that the file binds somewhere other than by an import."""
    found: set[str] = set()
    for node in tree.of_type(*_BINDING):
        found.update(_bound_by(node.target))
    for named in tree.of_type(cst.FunctionDef, cst.ClassDef, cst.Param):
        found.add(named.name.value)
    return found


def bound_in_file(tree: Tree) -> frozenset[str]:
    """Every name that the file binds somewhere, imports of torch left out."""
    found = bound_by_statements(tree)
    imports = [n for n in tree.of_type(cst.Import, cst.ImportFrom) if not _from_torch(n)]
    return frozenset(found | imported_by(imports))


def _from_torch(node: cst.CSTNode) -> bool:
    name = dotted(module) if (module := getattr(node, "module", None)) is not None else None
    if name is None or not isinstance(node, cst.ImportFrom):
        return False
    if of_torch(name):
        return True
    if not name.startswith("timm.") or isinstance(node.names, cst.ImportStar):
        return False
    return all(of_timm(f"{name}.{alias.evaluated_name}") for alias in node.names)


def bound_names(tree: Tree, function: cst.FunctionDef) -> frozenset[str]:
    """The names a function binds: parameters, assignments, loops, withs (imports left out)."""
    found: set[str] = set()
    params = function.params
    for param in (*params.posonly_params, *params.params, *params.kwonly_params):
        found.add(param.name.value)
    for star in (params.star_arg, params.star_kwarg):
        if isinstance(star, cst.Param):
            found.add(star.name.value)
    imports: list[cst.CSTNode] = []
    for node in tree.within(function.body, *_BINDING, cst.AsName, cst.Import, cst.ImportFrom):
        kind = type(node)
        if kind is cst.Import or kind is cst.ImportFrom:
            imports.append(node)
        else:
            found.update(_bound_by(node.name if kind is cst.AsName else node.target))
    return frozenset(found - imported_by(imports))


def given_to(
    tree: Tree, function: cst.FunctionDef, name: cst.Name
) -> list[cst.BaseExpression | None]:
    """What a function gives a name anew, None for what is not written out: of a parameter, a loop, a tuple."""
    params = syntax.named_parameters(function.params)
    found: list[cst.BaseExpression | None] = [None for p in params if p.name.value == name.value]
    for node in tree.within(function.body, *_GIVING):
        bound = _targets(node)
        value = node.value if type(node) in (cst.Assign, cst.AnnAssign, cst.NamedExpr) else None
        for one in bound:
            if name.value in _bound_by(one):
                found.append(value if isinstance(one, cst.Name) else None)
    return found


def begins_as_number(tree: Tree, function: cst.FunctionDef, target: cst.BaseExpression) -> bool:
    """Whether a name is a number wherever a function gives it a value anew: ``n = 0`` of ``n += x.size(1)``.

    A number is added to by making something new, be it a tensor that is added.
    """
    if not isinstance(target, cst.Name):
        return False
    given = given_to(tree, function, target)
    return (bool(given) and all(map(_is_number, given))) or _is_number(_last(tree, target))


def _is_number(value: cst.CSTNode | None) -> bool:
    value = value.expression if isinstance(value, cst.UnaryOperation) else value
    return isinstance(value, (cst.Integer, cst.Float))


def _last(tree: Tree, name: cst.Name) -> cst.BaseExpression | None:
    """What a name is given last, in any case, before it is added to; None where that is not one line."""
    above = [*tree.around(name), name] if tree.has(name) else []
    for i in range(len(above) - 2, -1, -1):
        block, inner = above[i], above[i + 1]
        if isinstance(block, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
            return None
        if isinstance(block, (cst.For, cst.While)) and _gives(tree, block, name.value):
            return None
        if not isinstance(block, cst.IndentedBlock):
            continue
        lines = list(block.body)
        for line in reversed(lines[: lines.index(inner)]):
            match line:
                case cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(cst.Name(to))], value)]):
                    if to == name.value:
                        return value
            if _gives(tree, line, name.value):
                return None
    return None


def _gives(tree: Tree, node: cst.CSTNode, name: str) -> bool:
    """Whether something in a statement gives a name a value, but for what is added to it."""
    for one in tree.within(node, *_GIVING, cst.Del):
        if any(name in syntax.names(to) for to in _targets(one)):
            return True
    return False


def _targets(node: Any) -> list[Any]:
    """What a statement, or a part of one, gives a value to."""
    if type(node) is cst.Assign:
        return [one.target for one in node.targets]
    return [node.name if type(node) in (cst.AsName, cst.NameItem) else node.target]


_GIVING: Any = (cst.Assign, cst.For, cst.AnnAssign, cst.NamedExpr, cst.AsName, cst.NameItem)


def _bound_by(target: cst.CSTNode) -> Iterator[str]:
    """The names in the target of an assignment, with those of its tuples and lists."""
    pending = [target]
    for node in pending:
        if type(node) is cst.Name:
            yield node.value
        elif type(node) is cst.Tuple or type(node) is cst.List:
            pending += [element.value for element in node.elements]


_SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda)
_BINDING: Any = (
    cst.AssignTarget,
    cst.For,
    cst.CompFor,
    cst.AugAssign,
    cst.AnnAssign,
    cst.NamedExpr,
)
