"""Names that a function binds anew around it, ``global relu``: what torch calls so is told by the name where it is read."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.branches import leaves
from migrator.source import dotted
from migrator.texts import pattern

_TOLD = (k.Function, k.Class, k.Namespace, k.DType)


@converts(cst.Global, cst.Nonlocal)
def declared(rw: Rewriter, node: cst.Global | cst.Nonlocal) -> None:
    """Raise a Failure for a name that stands for a function, a class or a module where it is read."""
    functions = [f for f in rw.ctx.facts.tree.around(node) if isinstance(f, cst.FunctionDef)]
    if not functions:
        return
    around = functions[0] if isinstance(node, cst.Nonlocal) else rw.ctx.facts.tree.root
    for one in node.names:
        if _binds(rw.ctx, functions[-1], one.name.value):
            _check(rw.ctx, node, around, re.escape(one.name.value))


@converts(cst.Assign, when=lambda ctx: "globals" in ctx.words)
def by_table(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure for ``globals()["relu"] = torch.tanh``."""
    for one in node.targets:
        match one.target:
            case cst.Subscript(cst.Call() as table, [cst.SubscriptElement(cst.Index(key))]):
                if dotted(table.func) == "globals" and not _is_new(rw.ctx, node, key):
                    _check(rw.ctx, node, rw.ctx.facts.tree.root, pattern(key))


@converts(cst.Call, named=("update",))
def at_once(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for ``globals().update(…)``."""
    match node.func:
        case cst.Attribute(cst.Call() as table, cst.Name("update")):
            given = node.args[0].value if len(node.args) == 1 and not node.args[0].star else None
            if isinstance(given, cst.Dict) and all(
                isinstance(one, cst.DictElement) and _is_new(rw.ctx, node, one.key)
                for one in given.elements
            ):
                return
            if dotted(table.func) == "globals":
                _check(rw.ctx, node, rw.ctx.facts.tree.root, ".*")


def _is_new(ctx: Context, node: cst.CSTNode, key: cst.BaseExpression) -> bool:
    """Whether lines before have left the function where the name is there: ``if name in globals(): raise …``."""
    tree = ctx.facts.tree
    around = tree.around(node) if tree.has(node) else []
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    for line in function.body.body if function is not None else ():
        if tree.holds(line, node):
            return False
        if isinstance(line, cst.If) and leaves(line.body):
            for one in _either(line.test):
                match one:
                    case cst.Comparison(left, [cst.ComparisonTarget(cst.In(), table)]):
                        named = syntax.code(left) == syntax.code(key)
                        if named and syntax.code(table) in ("globals()", "globals().keys()"):
                            return True
    return False


def _either(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """``a`` and ``b`` of ``a or b``."""
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.Or):
        return [*_either(test.left), *_either(test.right)]
    return [test]


def _check(ctx: Context, node: cst.CSTNode, around: cst.CSTNode, names: str) -> None:
    for one in _read(ctx, around):
        if re.fullmatch(names, one.value) and isinstance(ctx.kind(one), _TOLD):
            what = (
                f"`{one.value}` stands for {_called(ctx.kind(one))}, and a function binds it anew"
            )
            raise Failure(
                node, "API005", what, "hand it over as an argument, or keep it in an object"
            )


def _read(ctx: Context, around: cst.CSTNode) -> Iterator[cst.Name]:
    for one in ctx.facts.tree.within(around, cst.Name):
        above = ctx.facts.tree.parent(one)
        if not isinstance(above, (cst.FunctionDef, cst.ClassDef, cst.ImportAlias, cst.NameItem)):
            yield one


def _called(kind: k.Kind) -> str:
    name = getattr(kind, "name", "") or ""
    return name if name.startswith("torch") else "what is defined here"


def _binds(ctx: Context, function: cst.FunctionDef, name: str) -> bool:
    """Whether a function gives a name that it declares another value."""
    tree = ctx.facts.tree
    for one in tree.within(function.body, cst.Name):
        above = tree.around(one)
        if one.value == name and not isinstance(above[-1], cst.NameItem):
            if any(isinstance(each, _BINDING) and _is_target(ctx, each, one) for each in above):
                return True
    return False


_BINDING = (
    cst.AssignTarget,
    cst.AnnAssign,
    cst.AugAssign,
    cst.For,
    cst.NamedExpr,
    cst.AsName,
    cst.FunctionDef,
    cst.ClassDef,
    cst.ImportAlias,
    cst.Del,
)


def _is_target(ctx: Context, node: cst.CSTNode, name: cst.Name) -> bool:
    bound = getattr(node, "target", None) or getattr(node, "name", None)
    holds = bound is name or (bound is not None and ctx.facts.tree.holds(bound, name))
    return holds and not isinstance(ctx.facts.tree.parent(name), cst.Attribute)
