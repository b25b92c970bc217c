"""Tests of a mask around what does nothing where the mask is empty: ``if mask.any(): x = x.masked_fill(mask, 0)``.

``if mask.sum() > 0:`` and ``if len(x[mask]) > 0:`` are such tests, too.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from rules.flags._messages import is_message
from rules.flags._selected import selected_write
from rules.registry import FlagContext

_ANY = frozenset({"Tensor.any", "torch.any"})
_COUNTS = frozenset({"Tensor.sum", "torch.sum", "Tensor.count_nonzero", "torch.count_nonzero"})
_FILLS = frozenset({"Tensor.masked_fill", "torch.masked_fill", "Tensor.masked_fill_"})


def is_guard(node: cst.If, ctx: FlagContext) -> bool:
    """Whether a test of a mask may be left out: the body changes only what that mask selects.

    The mask's is the whole test, or the last of several: ``if mask is not None and mask.any():``."""
    mask = tested_mask(last_test(node), ctx)
    if mask is None or node.orelse is not None or not ctx.is_tensor(mask):
        return False
    return _only_fills(node.body, mask, ctx)


def last_test(node: cst.If) -> cst.BaseExpression:
    """``b`` of ``if a and b:``."""
    test = node.test
    if isinstance(test, cst.BooleanOperation) and isinstance(test.operator, cst.And):
        return test.right
    return test


def _only_fills(body: cst.BaseSuite, mask: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether statements, also in branches that ask for something else, fill what a mask selects."""
    small: list[Any] = []
    for line in body.body:
        if isinstance(line, cst.If):
            orelse = line.orelse
            inner = [line.body]
            while orelse is not None:
                inner.append(orelse.body)
                orelse = orelse.orelse if isinstance(orelse, cst.If) else None
            if not all(_only_fills(one, mask, ctx) for one in inner):
                return False
            continue
        small += line.body if isinstance(line, cst.SimpleStatementLine) else [line]
    small = [one for one in small if not is_message(one, ctx)]
    fills = all(_fills(one, mask, ctx) or _writes(one, mask, ctx) for one in small)
    return fills and (bool(small) or any(isinstance(line, cst.If) for line in body.body))


def guards(node: cst.CSTNode, ctx: FlagContext) -> bool:
    """Whether a node is part of the test of such an ``if``."""
    inner = node
    for parent in reversed(ctx.parents):
        if isinstance(parent, cst.If):
            tests = last_test(parent) is inner or parent.test is inner
            return tests and is_guard(parent, ctx)
        both = isinstance(parent, cst.BooleanOperation) and parent.right is inner
        if not both and not isinstance(parent, _WITHIN):
            return False
        if not both:
            inner = parent
    return False


_WITHIN = (cst.Call, cst.Attribute, cst.Arg, cst.Subscript, cst.Comparison)
"""What may stand between a test and what it asks of a mask."""


def tested_mask(test: cst.BaseExpression, ctx: FlagContext) -> cst.BaseExpression | None:
    """The mask that a test asks whether it holds anywhere.

    ``mask.any()``, ``torch.any(mask)``, ``mask.any().item()``, ``bool(mask.any())``, ``mask.sum() > 0``,
    ``len(x[mask]) > 0``, ``x[mask].numel() != 0``.
    """
    counted = _compared_with_zero(test)
    if counted is not None:
        return _counted(counted, ctx)
    if not isinstance(test, cst.Call):
        return None
    name = ctx.callee(test)
    if name == "Tensor.item" and isinstance(test.func, cst.Attribute):
        return tested_mask(test.func.value, ctx)
    if name == "builtins.bool" and len(test.args) == 1:
        return tested_mask(test.args[0].value, ctx)
    return _only_operand(test, ctx) if name in _ANY else None


def _only_operand(call: cst.Call, ctx: FlagContext) -> cst.BaseExpression | None:
    """``x`` of ``x.any()`` and ``torch.any(x)``."""
    given = [a.value for a in call.args]
    if str(ctx.callee(call)).startswith("Tensor.") and isinstance(call.func, cst.Attribute):
        given = [call.func.value, *given]
    return given[0] if len(given) == 1 else None


def _compared_with_zero(test: cst.BaseExpression) -> cst.BaseExpression | None:
    """``n`` of ``n > 0``, ``n != 0``, ``n >= 1``."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    operator, bound = test.comparisons[0].operator, test.comparisons[0].comparator
    if not isinstance(bound, cst.Integer):
        return None
    least = {cst.GreaterThan: "0", cst.NotEqual: "0", cst.GreaterThanEqual: "1"}
    return test.left if least.get(type(operator)) == bound.value else None


def _counted(number: cst.BaseExpression, ctx: FlagContext) -> cst.BaseExpression | None:
    """The mask of ``mask.sum()``, ``len(x[mask])``, ``x[mask].numel()``, ``x[mask].shape[0]``."""
    if isinstance(number, cst.Subscript) and isinstance(number.value, cst.Attribute):
        first = number.slice[0].slice
        zero = isinstance(first, cst.Index) and getattr(first.value, "value", "") == "0"
        shape = number.value.attr.value == "shape" and zero and len(number.slice) == 1
        return _selecting(number.value.value, ctx) if shape else None
    if not isinstance(number, cst.Call):
        return None
    name = ctx.callee(number)
    if name == "Tensor.item" and isinstance(number.func, cst.Attribute):
        return _counted(number.func.value, ctx)
    if name == "builtins.int" and len(number.args) == 1:
        return _counted(number.args[0].value, ctx)
    if name == "builtins.len" and len(number.args) == 1:
        return _selecting(number.args[0].value, ctx)
    if name in _COUNTS:
        mask = _only_operand(number, ctx)
        return mask if mask is not None and ctx.dtype(mask) == "bool" else None
    if name in ("Tensor.numel", "Tensor.nelement", "Tensor.size"):
        assert isinstance(number.func, cst.Attribute)
        given = [getattr(a.value, "value", None) for a in number.args]
        rows = given == ["0"] if name == "Tensor.size" else not given
        return _selecting(number.func.value, ctx) if rows else None
    return None


def _selecting(node: cst.BaseExpression, ctx: FlagContext) -> cst.BaseExpression | None:
    """The mask of ``x[mask]``, whose rows are as many as the mask selects."""
    if not isinstance(node, cst.Subscript) or len(node.slice) != 1:
        return None
    index = node.slice[0].slice
    if not isinstance(index, cst.Index) or ctx.dtype(index.value) != "bool":
        return None
    return index.value


def _writes(small: Any, mask: cst.BaseExpression, ctx: FlagContext) -> bool:
    """``x[mask] = log(x[mask])``: what is computed, element by element, through the mask alone."""
    found = selected_write(small, ctx.callee, lambda n: ctx.scalar(n) is not None, ctx.rank)
    if found is None or not _same(found.mask, mask) or ctx.dtype(mask) != "bool":
        return False
    return isinstance(found.target.value, cst.Name)


def _fills(small: Any, mask: cst.BaseExpression, ctx: FlagContext) -> bool:
    """``x = x.masked_fill(mask, 0)``, ``x.masked_fill_(mask, 0)`` or ``x[mask] = 0``, with a number."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, value = small.targets[0].target, small.value
        if isinstance(target, cst.Subscript) and len(target.slice) == 1:
            index = target.slice[0].slice
            same = isinstance(index, cst.Index) and _same(index.value, mask)
            return same and _is_filled(target.value, value, ctx)
        return isinstance(target, cst.Name) and _is_fill(value, target, mask, ctx)
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        func = small.value.func
        written = isinstance(func, cst.Attribute) and func.attr.value == "masked_fill_"
        receiver = func.value if isinstance(func, cst.Attribute) else None
        return written and receiver is not None and _is_fill(small.value, receiver, mask, ctx)
    return False


def _is_fill(
    call: cst.BaseExpression, target: cst.BaseExpression, mask: cst.BaseExpression, ctx: FlagContext
) -> bool:
    whole, call = call, _uncast(call, target, ctx)
    if not isinstance(call, cst.Call) or ctx.callee(call) not in _FILLS:
        return False
    given = [a.value for a in call.args if a.keyword is None and not a.star]
    if isinstance(call.func, cst.Attribute) and str(ctx.callee(call)).startswith("Tensor."):
        given = [call.func.value, *given]
    if len(given) != 3 or len(call.args) > 3:
        return False
    if not _same(_plain(given[0], ctx) if call is not whole else given[0], target):
        return False
    return _same(_unviewed(given[1], ctx), mask) and _is_filled(target, given[2], ctx)


def _uncast(
    call: cst.BaseExpression, target: cst.BaseExpression, ctx: FlagContext
) -> cst.BaseExpression:
    """``x.float().masked_fill(mask, v)`` of ``x.float().masked_fill(mask, v).type_as(x)``."""
    func = call.func if isinstance(call, cst.Call) else None
    if not isinstance(call, cst.Call) or not isinstance(func, cst.Attribute) or len(call.args) != 1:
        return call
    back = ctx.callee(call) in ("Tensor.type_as", "Tensor.to") and _same(call.args[0].value, target)
    return func.value if back else call


def _plain(node: cst.BaseExpression, ctx: FlagContext) -> cst.BaseExpression:
    """``x`` of ``x.float()``, which loses no digit of a float."""
    func = node.func if isinstance(node, cst.Call) and ctx.callee(node) == "Tensor.float" else None
    plain = isinstance(func, cst.Attribute) and ctx.dtype(func.value) != "int"
    return func.value if plain else node  # type: ignore[union-attr]


def _unviewed(node: cst.BaseExpression, ctx: FlagContext) -> cst.BaseExpression:
    """The mask of ``mask[None, :, :, None]``, ``mask.unsqueeze(1)``, ``mask.bool()``: empty where that is."""
    while True:
        if isinstance(node, cst.Subscript) and all(map(_is_whole, node.slice)):
            node = node.value
        elif isinstance(node, cst.Call) and ctx.callee(node) in _VIEWS:
            assert isinstance(node.func, cst.Attribute)
            node = node.func.value
        else:
            return node


_VIEWS = frozenset(f"Tensor.{name}" for name in "unsqueeze bool view reshape expand".split())


def _is_whole(element: cst.SubscriptElement) -> bool:
    """``None``, ``:`` and ``...``, which select everything."""
    part = element.slice
    if isinstance(part, cst.Slice):
        return part.lower is part.upper is part.step is None
    index = part.value if isinstance(part, cst.Index) else None
    none = isinstance(index, cst.Name) and index.value == "None"
    return none or isinstance(index, cst.Ellipsis)


def _same(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether two expressions are written alike, but for brackets around them."""
    bare = [node.with_changes(lpar=[], rpar=[]) for node in (one, other)]
    return bare[0].deep_equals(bare[1])


def _is_filled(target: cst.BaseExpression, value: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether a name gets a number. The mask may read it: where that is empty, nothing before has changed it."""
    return isinstance(target, cst.Name) and ctx.scalar(value) in ("int", "float", "bool")
