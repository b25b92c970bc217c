"""What is said in a roundabout way, as the passes know it: ``id(a) == id(b)``, ``self.__getattr__(name)``."""

from __future__ import annotations

import re

import libcst as cst

from migrator import syntax

_IDENTITY = re.compile(r"(?<![\w.])id\(")
_METHODS = {"__getattr__": ("getattr", 1), "__setattr__": ("setattr", 2)}


def straightened(tree: cst.Module, text: str) -> cst.Module:
    """A file with comparisons of two identities as ``a is b``, and attributes asked for by ``getattr``.

    What stands for a parameter may be made anew each time, and Flax's modules have no ``__getattr__`` of their own.
    """
    identities = bool(_IDENTITY.search(text)) and "def id(" not in text
    methods = {
        name: told
        for name, told in _METHODS.items()
        if f".{name}(" in text and f"def {name}" not in text
    }
    if not identities and not methods:
        return tree

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        made = syntax.rebuild(node, visit)
        if isinstance(made, cst.Comparison) and identities:
            return _asked(made) or made
        return (_called(made, methods) or made) if isinstance(made, cst.Call) else made

    made = visit(tree)
    assert isinstance(made, cst.Module)
    return made


def _called(node: cst.Call, methods: dict[str, tuple[str, int]]) -> cst.Call | None:
    """``getattr(self, name)`` for ``self.__getattr__(name)``."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in methods:
        return None
    name, count = methods[func.attr.value]
    plain = all(a.keyword is None and not a.star for a in node.args)
    if (
        len(node.args) != count
        or not plain
        or not isinstance(func.value, (cst.Name, cst.Attribute))
    ):
        return None
    return syntax.with_args(
        syntax.changed(node, func=cst.Name(name)), [cst.Arg(func.value), *node.args]
    )


def _asked(node: cst.Comparison) -> cst.Comparison | None:
    if len(node.comparisons) != 1:
        return None
    (only,) = node.comparisons
    left, right = _whose(node.left), _whose(only.comparator)
    if left is None or right is None or not isinstance(only.operator, (cst.Equal, cst.NotEqual)):
        return None
    operator = cst.Is() if isinstance(only.operator, cst.Equal) else cst.IsNot()
    made = syntax.changed(only, operator=operator, comparator=right)
    return syntax.changed(node, left=left, comparisons=[made])


def _whose(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """``x`` of ``id(x)``, where that is a name or an attribute."""
    if not isinstance(node, cst.Call) or len(node.args) != 1 or node.args[0].star:
        return None
    if not isinstance(node.func, cst.Name) or node.func.value != "id" or node.args[0].keyword:
        return None
    value = node.args[0].value
    return value if isinstance(value, (cst.Name, cst.Attribute, cst.Subscript)) else None
