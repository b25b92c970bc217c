"""The source text of nodes: libcst's own writer, without its bookkeeping of positions.

libcst writes a node by ``_codegen``, which tells the state of each node before and after it and calls ``_codegen_impl``,
which enters a context for each span. Nobody asks here, and that takes two thirds of the time. So each ``_codegen_impl``
is read once, when its first node is written, and taken without all that.
"""

from __future__ import annotations

import ast
import linecache
import textwrap
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any, TypeVar

import libcst as cst
from libcst._nodes.internal import CodegenState

N = TypeVar("N", bound=ast.AST)
Write = Callable[..., None]
_BLANK = cst.Module(body=[])


def code(node: cst.CSTNode) -> str:
    """The source text of a node."""
    return _written(node, _BLANK)


def module_code(module: cst.Module) -> str:
    """The source text of a whole file."""
    return _written(module, module)


def _written(node: Any, module: cst.Module) -> str:
    state = _State(module)
    node._write(state)
    return "".join(state.tokens)


class _State(CodegenState):
    def __init__(self, module: cst.Module) -> None:
        super().__init__(module.default_indent, module.default_newline)
        shortcut: dict[str, Any] = {"add_token": self.tokens.append}
        vars(self).update(shortcut)


def _write_first(node: Any, state: CodegenState, **how: Any) -> None:
    """``node._write`` of a type of which none has been written yet."""
    kind: Any = type(node)
    kind._write = writer(kind._codegen_impl)
    kind._write(node, state, **how)


_node: Any = cst.CSTNode
_node._write = _write_first


@cache
def writer(real: Any) -> Write:
    """A ``_codegen_impl`` without bookkeeping; many types of nodes share one."""
    text = _source(real.__code__)
    if not text:  # libcst is installed without its source
        return real
    names = {**real.__globals__, "_writer": writer, "_space": cst.SimpleWhitespace}
    exec(compile(_Plain().visit(ast.parse(text)), real.__name__, "exec"), names)
    made: Write = names[real.__name__]
    return made


def _source(function: CodeType) -> str:
    """The text of a function. ``inspect`` finds its end by splitting it into tokens, which takes as long as all else."""
    lines = linecache.getlines(function.co_filename)
    first = function.co_firstlineno - 1
    end = max(line or 0 for *_, line in function.co_lines())
    inside = " " * (len(lines[first]) - len(lines[first].lstrip()) + 1) if lines else ""
    while end < len(lines) and lines[end].startswith(inside):
        end += 1
    return textwrap.dedent("".join(lines[first:end]))


class _Plain(ast.NodeTransformer):
    """Takes the bookkeeping out of a ``_codegen_impl``."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.args = _without_hints(node.args)
        return self.generic_visit(node)

    def visit_With(self, node: ast.With) -> Any:
        """``record_syntactic_position`` is for nobody; ``_parenthesize`` does nothing without parentheses."""
        self.generic_visit(node)
        first, *others = node.items
        inner: list[ast.stmt] = [_at(node, ast.With(others, node.body))] if others else node.body
        match first.context_expr:
            case ast.Call(ast.Attribute(_, "record_syntactic_position")):
                return inner
            case ast.Call(ast.Attribute(ast.Name("self"), "_parenthesize")):
                return _at(node, ast.If(_name("self.lpar"), [node], inner))
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """White space, of which most nodes are, is one token in most places."""
        match node.value:
            case ast.Call(ast.Attribute(ast.Attribute(_, name) as space, "_codegen")) if (
                name.startswith("whitespace")
            ):
                value = ast.Attribute(space, "value", ast.Load())
                known = ast.Compare(_call("type", space), [ast.Is()], [_name("_space")])
                token = ast.Expr(_call("state.add_token", value))
                other = ast.Expr(
                    ast.Call(ast.Attribute(space, "_write", ast.Load()), [_name("state")], [])
                )
                return _at(node, ast.If(known, [token], [other]))
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """``x._codegen(state)`` → ``x._write(state)``, ``Base._codegen_impl(self, state)`` likewise."""
        self.generic_visit(node)
        match node.func:
            case ast.Attribute(_, "_codegen"):
                node.func.attr = "_write"
            case ast.Attribute(_, "_codegen_impl") as real:
                node.func = _at(node, _call("_writer", real))
        return node


def _name(dotted: str) -> ast.expr:
    head, *attributes = dotted.split(".")
    made: ast.expr = ast.Name(head, ast.Load())
    for one in attributes:
        made = ast.Attribute(made, one, ast.Load())
    return made


def _call(function: str, argument: ast.expr) -> ast.Call:
    return ast.Call(_name(function), [argument], [])


def _at(place: ast.AST, node: N) -> N:
    """A new node with the places that a compiler asks for."""
    return ast.fix_missing_locations(ast.copy_location(node, place))


def _without_hints(args: ast.arguments) -> ast.arguments:
    for one in (*args.posonlyargs, *args.args, *args.kwonlyargs):
        one.annotation = None
    return args
