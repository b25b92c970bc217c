"""Walks through the layers of a model that are over before its head is tied: ``self.apply(self._init_weights)``."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import ClassInfo


def earlier(ctx: Context, info: ClassInfo, tie: cst.CSTNode) -> list[cst.CSTNode]:
    """The calls of ``apply`` in constructors that meet no tied head of a class, and the methods that only they run.

    Args:
      tie: the statement of the constructor of ``info`` that ties the head.

    Nobody in the file makes such a model a part of another, whose walk would come later, or derives from it.
    """
    tree, name = ctx.source.index, info.node.name.value
    init = info.methods.get("__init__")
    if init is None or not tree.holds(init.node, tie):
        return []
    if any(isinstance(one, (cst.For, cst.While)) for one in tree.around(tie)):
        return []
    for node in tree.of_type(cst.Name):
        above = tree.parent(node)
        if node.value != name or (isinstance(above, cst.ClassDef) and above.name is node):
            continue
        around = tree.around(node)
        if any(isinstance(one, cst.ClassDef) for one in around) and not _is_hint(around):
            return []
    found: list[cst.CSTNode] = []
    for call in tree.of_type(cst.Call):
        if not _applies(call.func) or len(call.args) != 1:
            continue
        function = next((n for n in tree.around(call) if isinstance(n, cst.FunctionDef)), None)
        if function is None or function.name.value != "__init__":
            continue
        if tree.holds(init.node, call) and tree.place(call) > tree.place(tie):
            continue
        found += [call, *_walker(ctx, call)]
    return found


def _applies(func: cst.BaseExpression) -> bool:
    """``self.apply``, and ``child.apply`` of a part (``migrator.pretrained``)."""
    return syntax.code(func) in ("self.apply", "child.apply")


def _is_hint(around: list[cst.CSTNode]) -> bool:
    return any(isinstance(one, cst.Annotation) for one in around)


def _walker(ctx: Context, call: cst.Call) -> list[cst.CSTNode]:
    """The methods that ``self.apply(self.method)`` runs, where nobody else does."""
    tree, given = ctx.source.index, call.args[0].value
    if not isinstance(given, cst.Attribute) or syntax.code(given.value) != "self":
        return []
    name = given.attr.value
    for node in tree.reading(ctx.source.tree, name):
        above = tree.around(node)
        if not above or not _in_constructor(above):
            return []
        handed = isinstance(above[-1], cst.Arg) and _applies(above[-2].func)
        if not handed and syntax.code(above[-1]) != f"self.{name}(self)":
            return []
    return [f.body for f in tree.of_type(cst.FunctionDef) if f.name.value == name]


def _in_constructor(around: list[cst.CSTNode]) -> bool:
    function = next((n for n in around if isinstance(n, cst.FunctionDef)), None)
    return function is not None and function.name.value == "__init__"
