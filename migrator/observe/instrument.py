"""A copy of a file, in memory, that hands each value of interest to a function before it goes on with it."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import Any

TELL = "__migrate_tell__"
"""The name, among the builtins, of the function that gets a place and a value and returns the value."""

Place = tuple[int, int, int, int]
"""Line and column of an expression and of its end, from 1, the end exclusive: as ``migrator.source.Span``."""

OF_INTEREST = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.BoolOp, ast.IfExp)
_BUILTINS = frozenset(dir(builtins))


def instrument(text: str, file: str) -> ast.Module:
    """A file's tree whose code tells, with the file's name, what expressions, parameters and targets are.

    What it computes is the same; lines stay where they are. Type hints, decorators and bases tell nothing.

    Raises:
      SyntaxError: the text is not Python.
    """
    tree = _Telling(text, file).visit(ast.parse(text, file))
    made = ast.fix_missing_locations(tree)
    assert isinstance(made, ast.Module)
    return made


class _Telling(ast.NodeTransformer):
    def __init__(self, text: str, file: str) -> None:
        self._lines = None if text.isascii() else text.encode().splitlines()
        self._file = file

    def _column(self, line: int, offset: int) -> int:
        """Python counts bytes of UTF-8 where an editor counts characters."""
        if self._lines is None:
            return offset + 1
        return len(self._lines[line - 1][:offset].decode(errors="replace")) + 1

    def _told(self, node: ast.expr | ast.arg, value: ast.expr) -> ast.expr:
        end, end_offset = node.end_lineno, node.end_col_offset
        assert end is not None
        assert end_offset is not None
        if isinstance(node, ast.arg):  # without its type hint
            end, end_offset = node.lineno, node.col_offset + len(node.arg.encode())
        start = self._column(node.lineno, node.col_offset)
        place: Place = (node.lineno, start, end, self._column(end, end_offset))
        call = ast.Call(_name(TELL), [_constant(self._file), _constant(place), value], [])
        made = ast.copy_location(call, node)
        assert isinstance(made, ast.expr)
        return made

    def visit(self, node: ast.AST) -> Any:
        made = super().visit(node)
        reads = isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load)
        if not isinstance(node, OF_INTEREST) or not reads:
            return made
        if isinstance(node, ast.Name) and node.id in _BUILTINS:
            return made
        return self._told(node, made)

    # --- what stays as it is ----------------------------------------------------------------------------------

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        node.body = self._all(node.body)
        return node

    def visit_arguments(self, node: ast.arguments) -> Any:
        node.defaults = self._all(node.defaults)
        node.kw_defaults = [None if d is None else self.visit(d) for d in node.kw_defaults]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        node.target = self.visit(node.target)
        node.value = None if node.value is None else self.visit(node.value)
        return node

    def visit_match_case(self, node: ast.match_case) -> Any:
        node.guard = None if node.guard is None else self.visit(node.guard)
        node.body = self._all(node.body)
        return node

    def visit_JoinedStr(self, node: ast.JoinedStr) -> Any:
        return node

    # --- names that statements bind ---------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        node.args = self.visit(node.args)
        documented = ast.get_docstring(node, clean=False) is not None
        start, rest = node.body[:documented], node.body[documented:]
        told = [self._statement(arg, _name(arg.arg)) for arg in given]
        node.body = [*start, *told, *self._all(rest)]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_For(self, node: ast.For | ast.AsyncFor) -> Any:
        bound = list(self._bound([node.target]))
        self.generic_visit(node)
        node.body = [*bound, *node.body]
        return node

    visit_AsyncFor = visit_For

    def visit_Assign(self, node: ast.Assign) -> Any:
        unpacked = [t for t in node.targets if isinstance(t, (ast.Tuple, ast.List))]
        bound = list(self._bound(unpacked))
        self.generic_visit(node)
        return [node, *bound]

    def _all(self, nodes: list[Any]) -> list[Any]:
        made = [self.visit(node) for node in nodes]
        return [one for part in made for one in (part if isinstance(part, list) else [part])]

    def _bound(self, targets: Iterable[ast.expr]) -> Iterator[ast.stmt]:
        for target in targets:
            for part in ast.walk(target):
                if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                    yield self._statement(part, _name(part.id))

    def _statement(self, node: ast.expr | ast.arg, value: ast.Name) -> ast.stmt:
        made = ast.copy_location(ast.Expr(self._told(node, value)), node)
        assert isinstance(made, ast.stmt)
        return made


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())


def _constant(value: Any) -> ast.Constant:
    return ast.Constant(value)
