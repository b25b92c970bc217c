"""``id(a) == id(b)`` is written as ``a is b``, which the passes know: what stands for a parameter may be made anew."""

from __future__ import annotations

import libcst as cst

from migrator import syntax


def compared(tree: cst.Module, text: str) -> cst.Module:
    """A file with its comparisons of two identities as what they ask."""
    if "id(" not in text or "def id(" in text:
        return tree

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        made = syntax.rebuild(node, visit)
        return (_asked(made) or made) if isinstance(made, cst.Comparison) else made

    made = visit(tree)
    assert isinstance(made, cst.Module)
    return made


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
