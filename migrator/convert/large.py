"""Whole numbers beyond 32 bits: Python and torch's int64 have them, JAX's integers do not.

JAX raises when such a number meets an array, also one of floats, where torch takes it for a float. What a list, a name
or an attribute holds is known by how it is spelled, everywhere in a file.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context
from migrator.infer import kinds as k
from migrator.tree import Tree

HIGHEST = 2**31 - 1
_MOST = 10**40  # nobody's number, and quick to reckon with
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    cst.Add: operator.add,
    cst.Subtract: operator.sub,
    cst.Multiply: operator.mul,
    cst.FloorDivide: operator.floordiv,
    cst.Modulo: operator.mod,
    cst.BitOr: operator.or_,
    cst.BitAnd: operator.and_,
    cst.BitXor: operator.xor,
}
_SHORTEST = 10
"""Digits of the least number beyond 32 bits; a power or a shift has fewer."""


def value_of(node: cst.CSTNode) -> int | None:
    """The whole number that an expression of written numbers is; None for any other."""
    if isinstance(node, cst.Integer):
        return int(syntax.literal(node))
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = value_of(node.expression)
        return None if inner is None else -inner
    if isinstance(node, cst.Call) and syntax.code(node.func) == "int" and len(node.args) == 1:
        written = node.args[0].value
        return int(float(written.value)) if isinstance(written, cst.Float) else None
    if not isinstance(node, cst.BinaryOperation):
        return None
    left, right = value_of(node.left), value_of(node.right)
    if left is None or right is None:
        return None
    if isinstance(node.operator, (cst.Power, cst.LeftShift)):
        if not (0 <= right <= 128 and abs(left) <= 2**16):
            return None
        return int(left**right) if isinstance(node.operator, cst.Power) else left << right
    how = _OPERATORS.get(type(node.operator))
    zero = right == 0 and isinstance(node.operator, (cst.FloorDivide, cst.Modulo))
    if how is None or zero:
        return None
    found = how(left, right)
    return found if abs(found) < _MOST else None


def is_large(node: cst.CSTNode) -> bool:
    """Whether an expression of written numbers is beyond 32 bits."""
    found = value_of(node)
    return found is not None and not -HIGHEST - 1 <= found <= HIGHEST


class LargeNumbers:
    """Where a file writes whole numbers beyond 32 bits down, and which names may hold one."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.names: set[str] = set()
        self.written = {id(node) for node in self._written()}
        if self.written:
            while self._spread():
                pass

    def holds(self, node: cst.CSTNode) -> bool:
        """Whether an expression may be such a number, or hold one."""
        if id(node) in self.written:
            return True
        if isinstance(self.ctx.kind(node), k.Tensor):
            return False
        if isinstance(node, cst.Name):
            return node.value in self.names
        if isinstance(node, cst.Attribute):
            return f".{node.attr.value}" in self.names
        if isinstance(node, cst.Subscript):
            return self.holds(node.value)
        if isinstance(node, (cst.Tuple, cst.List, cst.Set)):
            return any(self.holds(e.value) for e in node.elements)
        if isinstance(node, cst.Dict):
            return any(self.holds(e.value) for e in node.elements)
        if isinstance(node, cst.IfExp):
            return self.holds(node.body) or self.holds(node.orelse)
        if isinstance(node, cst.UnaryOperation):
            return self.holds(node.expression)
        if isinstance(node, cst.BinaryOperation):
            shrinks = isinstance(node.operator, (cst.Divide, cst.Modulo, cst.RightShift))
            return not shrinks and (self.holds(node.left) or self.holds(node.right))
        if isinstance(node, cst.Call) and syntax.code(node.func) in _SAME:
            return any(self.holds(a.value) for a in node.args)
        return False

    def _written(self) -> Iterator[cst.CSTNode]:
        """The largest expressions of written numbers that are beyond 32 bits."""
        tree = self.ctx.source.index
        for node in tree.of_type(cst.Integer, cst.Float):
            if len(node.value) < _SHORTEST and not _is_reckoned(tree, node):
                continue
            whole: cst.CSTNode = node
            for around in reversed(tree.around(node)):
                if value_of(around) is not None:
                    whole = around
                elif not isinstance(around, cst.Arg):
                    break
            if is_large(whole):
                yield whole

    def _spread(self) -> bool:
        """Whether one more name may hold a large number."""
        known = len(self.names)
        tree = self.ctx.source.index
        for node in tree.of_type(cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr):
            if node.value is not None and self.holds(node.value):
                targets = node.targets if isinstance(node, cst.Assign) else [node]
                for one in targets:
                    self._add(one.target)
        for node in tree.of_type(cst.For, cst.CompFor):
            if self.holds(node.iter):
                self._add(node.target)
        for node in tree.of_type(cst.Param):
            if node.default is not None and self.holds(node.default):
                self._add(node.name)
        for info in self.ctx.facts.functions.values():
            for call in info.call_sites:
                if isinstance(call, cst.Call) and tree.has(call):
                    handed = bound_arguments(call, info)
                    self.names |= {name for name, item in handed if self.holds(item.value)}
        return len(self.names) > known

    def _add(self, target: cst.BaseExpression) -> None:
        if isinstance(target, (cst.Tuple, cst.List)):
            for element in target.elements:
                self._add(element.value)
            return
        while isinstance(target, cst.Subscript):
            target = target.value
        if isinstance(self.ctx.kind(target), k.Tensor):
            return
        if isinstance(target, cst.Attribute):
            self.names.add(f".{target.attr.value}")
        elif isinstance(target, cst.Name):
            scope = (cst.ClassDef, cst.FunctionDef)
            around = [n for n in self.ctx.source.index.around(target) if isinstance(n, scope)]
            in_class = bool(around) and isinstance(around[-1], cst.ClassDef)
            self.names.add(f".{target.value}" if in_class else target.value)


_SAME = frozenset("enumerate zip reversed sorted list tuple max min sum abs int".split())


def _is_reckoned(tree: Tree, node: cst.CSTNode) -> bool:
    """Whether a short number may be part of a larger one: ``2**40``, ``-2**40``, ``int(1e10)``."""
    around = tree.parent(node)
    if isinstance(around, cst.BinaryOperation):
        return isinstance(around.operator, (cst.Power, cst.LeftShift, cst.Multiply))
    if isinstance(around, cst.Arg):
        return isinstance(node, cst.Float)
    signed = around
    while isinstance(signed, cst.UnaryOperation):
        signed = tree.parent(signed)
    return signed is not around and isinstance(signed, cst.BinaryOperation)


def large_numbers(ctx: Context) -> LargeNumbers:
    """The large numbers of a file, looked for once."""
    if ctx.large is None:
        ctx.large = LargeNumbers(ctx)
    assert isinstance(ctx.large, LargeNumbers)
    return ctx.large
