"""What runs when a file is imported and asks for what has no counterpart; entries of tables that do not convert."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, comment, converts, with_source
from migrator.convert.stand_ins import at_import, is_hint, listed, stand_in, unavailable
from migrator.infer import kinds as k


def _in_project(ctx: Context) -> bool:
    return ctx.facts.linked is not None


@converts(cst.Element, cst.DictElement, cst.Arg, when=_in_project)
def entry(rw: Rewriter, node: cst.Element | cst.DictElement | cst.Arg) -> Any:
    """An entry of a table at the top of a file that does not convert raises when it is used; the others are there."""
    ctx = rw.ctx
    if not at_import(ctx) or not ctx.source.index.has(node):
        return None
    around = ctx.source.index.around(node)
    if not listed([*around, node] if isinstance(node, cst.Arg) else around):
        return None
    saved = ctx.helpers.snapshot()
    try:
        return rw.rebuild(node)
    except Failure as failure:
        inside = set(ctx.source.index.below(node.value))
        if failure.node is not node.value and failure.node not in inside:
            raise  # a key
        ctx.helpers.restore(saved)
        failure = rw.told(failure)
        ctx.statements[-1].todo.append(comment(failure))
        made = syntax.changed(node, value=stand_in(ctx, failure))
        if isinstance(node, cst.DictElement):
            made = syntax.changed(made, key=rw.visit(node.key))
        return made


_USING = (
    cst.Attribute,
    cst.BinaryOperation,
    cst.BooleanOperation,
    cst.Call,
    cst.Comparison,
    cst.Decorator,
    cst.If,
    cst.IfExp,
    cst.Subscript,
    cst.UnaryOperation,
)
_ASKING = frozenset({"getattr", "hasattr", "isinstance", "issubclass", "callable", "len", "bool"})


@converts(*_USING, when=_in_project)
def used(rw: Rewriter, node: cst.CSTNode) -> Any:
    """``LOAD = torchaudio.load`` at the top of a file: who imports it must not need what is not there."""
    ctx = rw.ctx
    if not at_import(ctx):
        return None
    for part in [*_asked(node), *_versions(ctx, node), *_hints(ctx, node)]:
        why = unavailable(ctx, part)
        if why is not None:
            raise Failure(part, *why)
    return None


def _versions(ctx: Context, node: cst.CSTNode) -> list[cst.BaseExpression]:
    """``version.parse(transformers.__version__)``: a text that is read, unlike what is merely handed on."""
    if not isinstance(node, cst.Call):
        return []
    kinds = [(arg.value, ctx.kind(arg.value)) for arg in node.args]
    return [
        value
        for value, kind in kinds
        if isinstance(kind, (k.Function, k.Namespace)) and kind.name.endswith(".__version__")
    ]


def _hints(ctx: Context, node: cst.CSTNode) -> list[cst.BaseExpression]:
    """``Transforms = Union[Pad, Resize]``: typing compares what it is given."""
    tree = ctx.source.index
    if not is_hint(ctx, node) or not tree.has(node):
        return []
    if not any(isinstance(one, cst.Assign) for one in tree.around(node)):
        return []
    return [one for one in tree.below(node) if isinstance(one, (cst.Name, cst.Attribute))]


def _asked(node: Any) -> list[cst.BaseExpression]:
    """The parts of an expression that must be there for it to have a value."""
    if isinstance(node, cst.Decorator):
        return [node.decorator]
    if isinstance(node, cst.Call):
        asking = isinstance(node.func, cst.Name) and node.func.value in _ASKING
        return [node.func, *(a.value for a in node.args if asking)]
    if isinstance(node, (cst.If, cst.IfExp)):
        return [node.test]
    if isinstance(node, (cst.BinaryOperation, cst.BooleanOperation)):
        return [node.left, node.right]
    if isinstance(node, cst.UnaryOperation):
        return [node.expression]
    if isinstance(node, cst.Comparison):
        same = all(isinstance(c.operator, (cst.Is, cst.IsNot)) for c in node.comparisons)
        return [] if same else [node.left, *(c.comparator for c in node.comparisons)]
    return [node.value]


@converts(cst.FunctionDef, when=_in_project)
def subclass_hook(rw: Rewriter, node: cst.FunctionDef) -> Any:
    """``__init_subclass__`` runs where a class is defined: where it does not convert, the classes cannot be built."""
    ctx = rw.ctx
    if node.name.value != "__init_subclass__" or not at_import(ctx) or not ctx.classes:
        return None
    from migrator.convert.passes.functions import function_def

    before, saved = len(ctx.findings), ctx.helpers.snapshot()
    made = function_def(rw, node)
    found = [finding for finding in ctx.findings[before:] if finding.blocks]
    if not found:
        return made
    ctx.helpers.restore(saved)
    first = found[0]
    failure = Failure(node, first.rule, first.message, first.advice)
    name = syntax.code(stand_in(ctx, failure))
    new = syntax.statement(
        "def __init_subclass__(cls, **kwargs):\n"
        "    super().__init_subclass__(**kwargs)\n"
        f"    cls.__new__ = {name}\n"
    )
    return syntax.changed(new, leading_lines=with_source(node, failure))
