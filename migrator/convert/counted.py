"""How often each number stands in a tensor, counted before a loop that asks whether its own is among them.

``counts = torch.bincount(chosen.flatten()).tolist()`` and ``if counts[i] == 0: continue`` ask of ``chosen == i`` what
``not (chosen == i).any()`` asks, as long as ``chosen`` is what it was.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context

_FLAT = ("{}", "{}.flatten()", "{}.view(-1)", "{}.reshape(-1)", "{}.ravel()", "torch.flatten({})")
_HANDED_ON = ("tolist", "cpu", "numpy", "detach", "long", "int")


def asked_count(test: cst.BaseExpression, how: tuple[type, ...]) -> cst.Subscript | None:
    """``counts[i]``, compared with 0 in one of these ways."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    only = test.comparisons[0]
    zero = isinstance(only.operator, how) and syntax.code(only.comparator) == "0"
    return test.left if zero and isinstance(test.left, cst.Subscript) else None


def counting(ctx: Context, asked: cst.Subscript, mask: cst.BaseExpression) -> cst.Assign | None:
    """The statement that counted what ``counts[i]`` reads, if that is how many places of the mask are true.

    Args:
      mask: ``chosen == i``.
    """
    sides = _compared(mask)
    if sides is None or not isinstance(asked.value, cst.Name) or len(asked.slice) != 1:
        return None
    tensor, number = sides
    index = asked.slice[0].slice
    if not isinstance(index, cst.Index) or not index.value.deep_equals(number):
        return None
    tree = ctx.source.index
    function = next(
        (n for n in reversed(tree.around(asked)) if isinstance(n, cst.FunctionDef)), None
    )
    if function is None:
        return None
    named = [n for n in tree.within(function.body, cst.Name) if n.value == asked.value.value]
    others = [n for n in named if n is not asked.value]
    if len(others) != 1:  # read elsewhere too, or made in two places
        return None
    target, *_ = reversed(tree.around(others[0]))
    made = next((n for n in reversed(tree.around(others[0])) if isinstance(n, cst.Assign)), None)
    if not isinstance(target, cst.AssignTarget) or made is None or len(made.targets) != 1:
        return None
    if not _counts(ctx, made.value, tensor) or not _as_it_was(ctx, function, made, tensor, mask):
        return None
    return made


def _compared(mask: cst.BaseExpression) -> tuple[cst.Name, cst.BaseExpression] | None:
    """``chosen`` and ``i`` of ``chosen == i``."""
    if not isinstance(mask, cst.Comparison) or len(mask.comparisons) != 1:
        return None
    only = mask.comparisons[0]
    if not isinstance(only.operator, cst.Equal) or not isinstance(mask.left, cst.Name):
        return None
    return mask.left, only.comparator


def _counts(ctx: Context, node: cst.BaseExpression, tensor: cst.Name) -> bool:
    """``torch.bincount(chosen.flatten(), minlength=n).tolist()``."""
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value not in _HANDED_ON or node.args:
            break
        node = node.func.value
    if not isinstance(node, cst.Call) or not node.args:
        return False
    name = ctx.facts.callee(node)
    if name == "Tensor.bincount" and isinstance(node.func, cst.Attribute):
        given = node.func.value
    elif name == "torch.bincount":
        given = node.args[0].value
    else:
        return False
    extra = [a.keyword.value for a in node.args if a.keyword is not None]
    plain = [a for a in node.args if a.keyword is None]
    if set(extra) - {"minlength"} or len(plain) != (name == "torch.bincount"):
        return False  # weights are not counts
    text = syntax.code(given).replace(" ", "")
    return text in [form.format(tensor.value) for form in _FLAT]


def _as_it_was(
    ctx: Context,
    function: cst.FunctionDef,
    made: cst.Assign,
    tensor: cst.Name,
    mask: cst.BaseExpression,
) -> bool:
    """Whether nothing is done with the tensor after it was counted but comparisons."""
    tree = ctx.source.index
    if not tree.holds(tree.around(made)[-2], mask):
        return False  # counted in a branch or in another loop
    since, until = tree.place(made), tree.place(mask)
    for node in tree.within(function.body, cst.Name):
        elsewhere = node.value == tensor.value and not tree.holds(mask, node)
        if not elsewhere or tree.place(node) < since or tree.holds(made, node):
            continue
        if not isinstance(tree.parent(node), cst.Comparison):
            return False
    # another name may stand for the same memory
    writes = tree.within(function.body, cst.AugAssign, cst.Call, cst.AssignTarget)
    return not any(since < tree.place(node) < until and _may_write(node) for node in writes)


def _may_write(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.AssignTarget):
        return any(isinstance(n, cst.Subscript) for n in syntax.walk(node.target))
    if isinstance(node, cst.Call):
        func = node.func
        return isinstance(func, cst.Attribute) and func.attr.value.endswith("_")
    return True
