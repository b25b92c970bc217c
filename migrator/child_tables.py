"""The children of a Sequential read in torch's own table of them: ``self.blocks._modules.values()`` are ``self.blocks``."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax

_READ = re.compile(r"\bself\.(\w+)\._modules\b")
_OWN = re.compile(r"^class (?:Sequential|ModuleList)\b", re.MULTILINE)
_ITERATING = frozenset("zip enumerate list tuple reversed iter map".split())


def without_tables(tree: cst.Module, text: str) -> cst.Module:
    """A file that goes over its Sequentials and ModuleLists themselves, which gives the same layers in the same order."""
    names = {
        name
        for name in _READ.findall(text)
        if (made := re.findall(rf"\.{name} *(?::[^=\n]*)?=(?!=) *([\w.]*)", text))
        and all(one.rpartition(".")[2] in ("Sequential", "ModuleList") for one in made)
    }
    if not names or _OWN.search(text):
        return tree
    changed: Any = tree.visit(_Tables(names))
    return changed


class _Tables(cst.CSTTransformer):
    def __init__(self, names: set[str]) -> None:
        self.names = names

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:
        func = updated_node.func
        if not isinstance(func, cst.Name) or any(item.star for item in updated_node.args):
            return updated_node
        if func.value == "len" and len(updated_node.args) == 1:
            layers = self._table(updated_node.args[0].value)
            if layers is not None:
                return syntax.with_args(updated_node, [cst.Arg(layers)])
        if func.value in _ITERATING:
            items = [
                syntax.changed(item, value=self._values(item.value)) for item in updated_node.args
            ]
            return syntax.changed(updated_node, args=items)
        return updated_node

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:
        return syntax.changed(updated_node, iter=self._values(updated_node.iter))

    def leave_CompFor(self, original_node: cst.CompFor, updated_node: cst.CompFor) -> cst.CompFor:
        return syntax.changed(updated_node, iter=self._values(updated_node.iter))

    def _values(self, node: cst.BaseExpression) -> cst.BaseExpression:
        """``self.blocks`` of ``self.blocks._modules.values()``; anything else as it is."""
        match node:
            case cst.Call(func=cst.Attribute(value=table, attr=cst.Name(value="values")), args=[]):
                return self._table(table) or node
        return node

    def _table(self, node: cst.BaseExpression) -> cst.Attribute | None:
        match node:
            case cst.Attribute(
                value=cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name)) as own,
                attr=cst.Name(value="_modules"),
            ) if name in self.names:
                return own
        return None
