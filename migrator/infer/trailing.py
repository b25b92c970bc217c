"""What a list of layers ends with where it has just been filled: ``layers += [nn.Linear(4, 4), nn.ReLU()]; layers[-2]``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.facts import Facts


def last_entry(facts: Facts, node: cst.Subscript, back: int) -> k.Kind | None:
    """The kind of ``layers[-2]`` by the statements before it in its own block; None where these do not tell.

    Between the lines that fill the list and the item only the list's items are spoken of, so that nothing else, under no
    other name, can have changed what it ends with.
    """
    name = syntax.code(node.value)
    if not facts.tree.has(node) or not _is_plain(node.value):
        return None
    around = facts.tree.around(node)
    for statement in _before(around):
        entries = _filled(statement, name)
        if entries is None:
            if _reads_items(facts, statement, name):
                continue
            return None
        if back <= len(entries):
            entry = entries[-back]
            return None if isinstance(entry, cst.StarredElement) else facts.kind(entry.value)
        if any(isinstance(one, cst.StarredElement) for one in entries):
            return None
        back -= len(entries)
    return None


def _before(around: Sequence[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """The statements that have run just before something in its block, the last first; a ``with`` block goes on outside."""
    for i in range(len(around) - 1, 0, -1):
        block, statement = around[i - 1], around[i]
        if not isinstance(statement, cst.BaseStatement):
            continue
        if not isinstance(block, (cst.IndentedBlock, cst.Module)):
            return
        here = next(i for i, one in enumerate(block.body) if one is statement)
        yield from reversed(block.body[:here])
        if i < 2 or not isinstance(around[i - 2], cst.With):
            return


def _is_plain(node: cst.BaseExpression) -> bool:
    """``layers`` or ``self.layers``."""
    if isinstance(node, cst.Attribute):
        return isinstance(node.value, cst.Name) and node.value.value == "self"
    return isinstance(node, cst.Name)


def _filled(statement: cst.CSTNode, name: str) -> list[cst.BaseElement] | None:
    """The entries that a statement puts at the end of a list: ``layers.append(x)``, ``layers += [x, y]``."""
    if not isinstance(statement, cst.SimpleStatementLine) or len(statement.body) != 1:
        return None
    match statement.body[0]:
        case cst.Expr(cst.Call(cst.Attribute(of, cst.Name("append")), [cst.Arg(one, None)])):
            return [cst.Element(one)] if syntax.code(of) == name else None
        case cst.Expr(cst.Call(cst.Attribute(of, cst.Name("extend")), [cst.Arg(made, None)])):
            return _displayed(made) if syntax.code(of) == name else None
        case cst.AugAssign(target, cst.AddAssign(), made):
            return _displayed(made) if syntax.code(target) == name else None
    return None


def _displayed(node: cst.BaseExpression) -> list[cst.BaseElement] | None:
    return list(node.elements) if isinstance(node, (cst.List, cst.Tuple)) else None


def _reads_items(facts: Facts, statement: cst.CSTNode, name: str) -> bool:
    """Whether a statement draws or sets the numbers of items: ``nn.init.zeros_(layers[-1].bias)``."""
    if not isinstance(statement, cst.SimpleStatementLine):
        return False
    for call in facts.tree.within(statement, cst.Call):
        callee, func = facts.callee(call) or "", call.func
        of_item = isinstance(func, cst.Attribute) and _is_item(func.value, name)
        if not callee.startswith(("torch.", "math.", "builtins.")) and not of_item:
            return False
    kept = (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Del, cst.Return, cst.NamedExpr)
    for one in facts.tree.within(statement, *kept):
        if not isinstance(one, (cst.Assign, cst.AugAssign)) or name in syntax.code(one.value):
            return False
        target = one.target if isinstance(one, cst.AugAssign) else one.targets[0].target
        if not isinstance(target, cst.Attribute) or not _is_item(target.value, name):
            return False
    code = syntax.code(statement)
    return code.count(name) == code.count(f"{name}[-")


def _is_item(node: cst.BaseExpression, name: str) -> bool:
    """``layers[-1]``, or an attribute of it."""
    while isinstance(node, (cst.Attribute, cst.Call)):
        node = node.func if isinstance(node, cst.Call) else node.value
    return isinstance(node, cst.Subscript) and syntax.code(node.value) == name
