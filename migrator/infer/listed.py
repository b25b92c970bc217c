"""Words for dicts of layers that a file may go over: ``net.heads.items()``, ``for name in self.heads``, ``run(self.heads)``.

By name alone, and over all files of a project: what is only asked for by its keys, ``self.heads[name]``, has no order.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from migrator.python_tree import children

GOING_OVER = frozenset("items keys values children named_children".split())
UNNAMED = ""
"""Stands for a dict that is no attribute where it is made, and for what may be any dict where one is gone over."""
_WITHOUT_ORDER = frozenset("len isinstance hasattr getattr setattr bool type id".split())


def made(nodes: Sequence[ast.AST], container: str) -> frozenset[str]:
    """The names of the attributes that a file makes a container; UNNAMED where it makes one otherwise.

    Args:
      nodes: all nodes of the file.
      container: the last name of its class, as ``ModuleDict``; without one whatever a call gives counts.
    """
    calls = {node for node in nodes if type(node) is ast.Call}
    if container:
        calls = {node for node in calls if _word(node.func) == container}
    if not calls:
        return frozenset()
    found = set()
    for node in nodes:
        if type(node) is ast.Assign and type(node.targets[0]) is ast.Attribute:
            value = node.value
            parts = [value.body, value.orelse] if type(value) is ast.IfExp else [value]
            for part in parts:
                if part in calls and len(node.targets) == 1:
                    calls.discard(part)
                    found.add(node.targets[0].attr)
    return frozenset(found | ({UNNAMED} if calls else set()))


def listed(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names of the attributes that a file may go over; UNNAMED beside them where it goes over some dict at all.

    Args:
      nodes: all nodes of the file.
    """
    return frozenset(word for node in nodes for word in _listed(node))


def _listed(node: ast.AST) -> Iterator[str]:
    kind = type(node)
    if kind in (ast.For, ast.comprehension) and not _is_range(node.iter):  # type: ignore[attr-defined]
        yield UNNAMED
    if kind is ast.Attribute and node.attr in GOING_OVER:  # type: ignore[attr-defined]
        yield UNNAMED
        if type(node.value) is ast.Attribute:  # type: ignore[attr-defined]
            yield node.value.attr  # type: ignore[attr-defined]
        return
    if kind in (ast.Attribute, ast.Subscript, ast.Compare):
        return
    if kind is ast.Call and _word(node.func) in _WITHOUT_ORDER:  # type: ignore[attr-defined]
        return
    called = node.func if kind is ast.Call else None  # type: ignore[attr-defined]
    for child in children(node):
        if type(child) is ast.Attribute and child is not called:
            if isinstance(child.ctx, ast.Load):
                yield child.attr


def items(nodes: Sequence[ast.AST]) -> frozenset[str]:
    """The names of attributes of other objects than ``self`` that a file goes over, or takes items of: ``net.body[0]``.

    Args:
      nodes: all nodes of the file.
    """
    sources = [one for node in nodes for one in _sources(node)]
    names = {one.id for one in sources if isinstance(one, ast.Name)}
    for node in nodes:  # ``layers = net.body``
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            for target, value in _pairs(node.targets[0], node.value):
                if isinstance(target, ast.Name) and target.id in names:
                    sources.append(value)
    return frozenset(
        one.attr for one in sources if isinstance(one, ast.Attribute) and _word(one.value) != "self"
    )


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """``a, b = x, y`` as two assignments."""
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        return list(zip(target.elts, value.elts, strict=False))
    return [(target, value)]


def _sources(node: ast.AST) -> Sequence[ast.AST]:
    if isinstance(node, (ast.For, ast.comprehension)):
        return [node.iter]
    if isinstance(node, (ast.Subscript, ast.Starred)):
        return [node.value]
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], (ast.Tuple, ast.List)):
        return [node.value]
    if isinstance(node, ast.Call) and _word(node.func) in _OVER:
        return node.args
    return ()


_OVER = frozenset(
    "all any enumerate filter iter len list map next reversed set sorted sum tuple zip reduce islice chain".split()
)


def _is_range(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _word(node.func) == "range"


def _word(node: ast.AST) -> str:
    """``ModuleDict`` of ``nn.ModuleDict``."""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")
