"""Functions in the body of a class that are called through the class: static methods, said to be so or not.

Python passes no instance in ``Util.std(x)``, so that ``def std(x)`` in the body of ``Util`` gets what is handed to it.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax

_RECEIVERS = frozenset("self cls mcs mcls metacls this slf ctx _self klass".split())
_DEFINED = re.compile(r"\n[ \t]+def (\w+)\(\s*(\w+)")


def said_static(tree: cst.Module, text: str) -> cst.Module:
    """The file with ``@staticmethod`` above functions of classes that are only ever called through their class."""
    names = {name for name, first in _DEFINED.findall(text) if first not in _RECEIVERS}
    names = {name for name in names if re.search(rf"(?:\b[A-Z]\w*|__class__|\))\.{name}\b", text)}
    # Block.run(self, x) hands over the instance, act = run gives the method another name
    names = {n for n in names if not re.search(rf"\.{n}\(\s*self\b|= *{n}\s*$", text, re.M)}
    if not names or "class " not in text:
        return tree
    classes = {node.name.value for node in syntax.walk(tree) if isinstance(node, cst.ClassDef)}
    asked = {
        node.attr.value
        for node in syntax.walk(tree)
        if isinstance(node, cst.Attribute) and not _is_class(node.value, classes)
    } | {node.raw_value for node in syntax.walk(tree) if isinstance(node, cst.SimpleString)}
    found = [
        function
        for node in syntax.walk(tree)
        if isinstance(node, cst.ClassDef) and isinstance(node.body, cst.IndentedBlock)
        for function in node.body.body
        if isinstance(function, cst.FunctionDef)
        and _gets_no_instance(function, names)
        and (function.name.value not in asked or not _has_instances(node, text))
    ]
    if not found:
        return tree
    static = cst.Decorator(cst.Name("staticmethod"))

    def visit(node: cst.CSTNode) -> Any:
        if node in found:
            return syntax.changed(node, decorators=[static])
        return syntax.rebuild(node, visit)

    made: cst.Module = visit(tree)
    return made


def _has_instances(node: cst.ClassDef, text: str) -> bool:
    """Whether a file makes instances of a class, derives from it or hands it on."""
    name = node.name.value
    return bool(node.bases) or len(re.findall(rf"\b{name}\b(?!\.)", text)) > 1


def _gets_no_instance(function: cst.FunctionDef, names: set[str]) -> bool:
    params = function.params.params
    name = function.name.value
    if function.decorators or name not in names or not params:
        return False
    if name == "forward" or name.startswith("__"):
        return False
    return params[0].name.value not in _RECEIVERS


def _is_class(node: cst.BaseExpression, classes: set[str]) -> bool:
    """``Util``, ``self.__class__``, ``type(self)``."""
    if isinstance(node, cst.Attribute):
        return node.attr.value == "__class__"
    if isinstance(node, cst.Call):
        return isinstance(node.func, cst.Name) and node.func.value == "type" and len(node.args) == 1
    return isinstance(node, cst.Name) and (node.value in classes or node.value == "__class__")
