"""Where Python asks a tensor for its value unsaid: ``all(x > 0)``, ``0 < x.sum() < 1``, ``layers[i]``, ``math.sqrt(x)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from migrator.infer.kinds import Kind, Mapping, Module, Optional, Sequence, Tensor, Tuple, element
from rules.flags import _lines as lines
from rules.registry import Advice, FlagContext

Reads = Callable[[Any, FlagContext], bool]
"""Whether an expression, asked for its truth, asks a tensor."""
_COMPREHENSIONS = (cst.GeneratorExp, cst.ListComp, cst.SetComp)
_DISPLAYS = (cst.List, cst.Tuple, cst.Set)
_HELD = (cst.In, cst.NotIn)
_SAME = (cst.Is, cst.IsNot)
_KEYED = frozenset("get setdefault pop insert index count remove discard".split())
_LETTERS = frozenset("chr hex oct bin".split())
_HOLDING = (Mapping, Sequence, Tuple)
_LISTED = ("torch.nn.ModuleList", "torch.nn.ParameterList", "torch.nn.Sequential")


def holds_tensors(kind: Kind) -> bool:
    """A list or tuple of tensors."""
    if isinstance(kind, Tuple):
        return any(isinstance(item, Tensor) for item in kind.items)
    return isinstance(kind, Sequence) and isinstance(kind.item, Tensor)


def gives_tensors(node: cst.BaseExpression, ctx: FlagContext) -> bool:
    """A tensor, or a list of some: ``[x.sum(), x.mean()]``, ``[row.sum() for row in x]``."""
    if isinstance(node, _COMPREHENSIONS):
        return gives_tensors(node.elt, ctx)
    if isinstance(node, _DISPLAYS):
        return any(gives_tensors(one.value, ctx) for one in node.elements)
    return ctx.is_tensor(node) or holds_tensors(ctx.kind(node))


def asks_truth(node: cst.CSTNode, ctx: FlagContext, reads: Reads) -> bool:
    """``all(x > 0)``, ``any(torch.isnan(p).any() for p in ps)``, ``low < x.sum() < high``, ``x[0] in (1, 2)``."""
    if isinstance(node, cst.Call):
        if ctx.callee(node) not in ("builtins.all", "builtins.any") or len(node.args) != 1:
            return False
        return not node.args[0].star and _each(node.args[0].value, ctx, reads)
    return isinstance(node, cst.Comparison) and _compared(node, ctx)


def _each(node: cst.BaseExpression, ctx: FlagContext, reads: Reads) -> bool:
    """Whether one of several things, each asked for its truth, is a tensor."""
    if isinstance(node, _COMPREHENSIONS):
        return reads(node.elt, ctx)
    if isinstance(node, _DISPLAYS):
        return any(reads(one.value, ctx) for one in node.elements)
    return ctx.is_given_tensor(node) or holds_tensors(ctx.kind(node))


def _compared(node: cst.Comparison, ctx: FlagContext) -> bool:
    left = node.left
    for place, one in enumerate(node.comparisons):
        right, operator = one.comparator, one.operator
        if isinstance(operator, _HELD):
            if ctx.is_given_tensor(left) or ctx.is_tensor(right):
                return True
            if ctx.scalar(left) not in (None, "str") and _held(right, ctx):
                return True
        elif not isinstance(operator, _SAME) and place < len(node.comparisons) - 1:
            # `a < b < c` is `a < b and b < c`: all but the last are asked for their truth
            if ctx.is_given_tensor(left) or ctx.is_given_tensor(right):
                return True
        left = right
    return False


def _held(node: cst.BaseExpression, ctx: FlagContext) -> bool:
    if isinstance(node, _DISPLAYS):
        return any(ctx.is_tensor(one.value) for one in node.elements)
    return holds_tensors(ctx.kind(node))


def asks_order(node: cst.Call, ctx: FlagContext, reads: Reads) -> bool:
    """``sorted(xs)``, ``max((x.sum(), i) for …)``, ``filter(lambda x: x.sum() > 0, xs)``, ``xs.sort()`` of tensors."""
    name, args = ctx.callee(node), node.args
    if name == "builtins.filter" and len(args) == 2:
        by, among = args[0].value, args[1].value
        if isinstance(by, cst.Lambda):
            return reads(by.body, ctx)
        return isinstance(by, cst.Name) and by.value == "None" and _each(among, ctx, reads)
    values = [one.value for one in args if not one.star and one.keyword is None]
    if name not in ("builtins.sorted", "builtins.max", "builtins.min"):
        parts = lines.method(node)
        if parts is None or parts[1] != "sort" or not isinstance(ctx.kind(parts[0]), Sequence):
            return False
        values = [parts[0]]
    by_key = [one.value for one in args if one.keyword is not None and one.keyword.value == "key"]
    if by_key:
        if isinstance(by_key[0], cst.Attribute) and by_key[0].attr.value == "get":
            table = ctx.kind(by_key[0].value)
            return isinstance(table, Mapping) and isinstance(table.value, Tensor)
        return isinstance(by_key[0], cst.Lambda) and _ordered(by_key[0].body, ctx)
    if len(values) != 1:
        return False  # max(a, b) is spoken of by itself
    if isinstance(values[0], _COMPREHENSIONS):
        return _ordered(values[0].elt, ctx)
    listed = ctx.is_given_tensor(values[0]) or holds_tensors(ctx.kind(values[0]))
    return listed and name not in ("builtins.max", "builtins.min")


def _ordered(node: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether what is compared is a tensor or a tuple with one."""
    if isinstance(node, cst.Tuple):
        return any(ctx.is_given_tensor(one.value) for one in node.elements)
    return ctx.is_given_tensor(node)


def asks_number(node: cst.CSTNode, ctx: FlagContext) -> Advice | None:
    """``math.sqrt(x)``, ``parts[i]`` of a list by a tensor, ``"%d" % x`` and ``f"{x:.2f}"``."""
    if isinstance(node, cst.Subscript):
        return _place(node, ctx)
    found = _number(node, ctx)
    return found if found is not None and ctx.in_forward else None


def _number(node: cst.CSTNode, ctx: FlagContext) -> Advice | None:
    if isinstance(node, cst.Call):
        if not (ctx.callee(node) or "").startswith("math."):
            return _formatted(node, ctx) or _key(node, ctx)
        given = [one.value for one in node.args if ctx.is_given_tensor(one.value)]
        if not given:
            return None
        text = (
            f"use the function of jnp: `jnp.{(ctx.callee(node) or '')[5:]}({ctx.text(given[0])})`"
        )
        return Advice(text, what="a function of math takes a tensor for a number", effort=0.1)
    if isinstance(node, cst.FormattedStringExpression):
        plain = node.format_spec is None or not ctx.is_given_tensor(node.expression)
        return None if plain else _text(node.expression, ctx)
    return _printed(node, ctx) if isinstance(node, cst.BinaryOperation) else None


def _text(node: cst.CSTNode, ctx: FlagContext) -> Advice:
    text = f"leave the format out, or log outside, or `jax.debug.print('{{}}', {ctx.text(node)})`"
    return Advice(text, what="the value of a tensor is written as a number", effort=0.1)


def _printed(node: cst.BinaryOperation, ctx: FlagContext) -> Advice | None:
    """``"loss %.3f" % x``; ``%s`` takes anything."""
    if not isinstance(node.operator, cst.Modulo) or ctx.scalar(node.left) != "str":
        return None
    right = node.right
    parts = [e.value for e in right.elements] if isinstance(right, cst.Tuple) else [right]
    given = next((one for one in parts if ctx.is_given_tensor(one)), None)
    if given is None:
        return None
    if isinstance(node.left, cst.SimpleString):
        text = node.left.value.replace("%%", "")
        if text.count("%") == text.count("%s") + text.count("%r"):
            return None
    return _text(given, ctx)


def _formatted(node: cst.Call, ctx: FlagContext) -> Advice | None:
    """``"{:.3f}".format(x)``; ``{}`` takes anything."""
    parts = lines.method(node)
    if parts is None or parts[1] != "format" or ctx.scalar(parts[0]) != "str":
        return None
    given = next((one.value for one in node.args if ctx.is_given_tensor(one.value)), None)
    if given is None:
        return None
    if isinstance(parts[0], cst.SimpleString) and ":" not in parts[0].value:
        return None
    return _text(given, ctx)


def _key(node: cst.Call, ctx: FlagContext) -> Advice | None:
    """``table.get(x)``, ``parts.pop(i)``, ``chr(i)`` and ``getattr(self, f"layer{i}")`` of tensors."""
    name, given = ctx.callee(node), [one.value for one in node.args if not one.star]
    parts = lines.method(node)
    if (name is None and isinstance(node.func, cst.Name) and node.func.value in _LETTERS) or (
        parts is not None and parts[1] in _KEYED and isinstance(ctx.kind(parts[0]), _HOLDING)
    ):
        if given and ctx.is_given_tensor(given[0]):
            text = f"`{ctx.text(given[0])}` has no value here: take it as an argument of Python's, or choose by lax.switch"
            return Advice(text, what="a tensor is taken for a number or a key of Python's")
    elif name in ("builtins.getattr", "builtins.setattr", "builtins.hasattr") and len(given) > 1:
        if isinstance(given[1], cst.FormattedString) and any(
            isinstance(one, cst.FormattedStringExpression) and ctx.is_given_tensor(one.expression)
            for one in given[1].parts
        ):
            text = (
                "choose among the layers by jax.lax.switch, or take the number as one of Python's"
            )
            return Advice(text, what="a tensor says the name of an attribute")
    return None


def _place(node: cst.Subscript, ctx: FlagContext) -> Advice | None:
    """An item of a Python list, or of a list of layers, at a place that a tensor says."""
    index = node.slice[0].slice if len(node.slice) == 1 else None
    if not isinstance(index, cst.Index) or not ctx.is_given_tensor(index.value):
        return None
    kind = ctx.kind(node.value)
    if isinstance(kind, Optional):
        kind = kind.inner
    layers = isinstance(kind, Module) and kind.cls in _LISTED
    # a list of layers takes no array for a place, not even on the host
    if not layers and (not isinstance(kind, (Sequence, Tuple, Mapping)) or not ctx.in_forward):
        return None
    into = isinstance(ctx.parents[-1], (cst.AssignTarget, cst.AugAssign))
    if isinstance(element(kind), Tensor) and ctx.dtype(index.value) != "bool" and not into:
        return None  # of tensors one is picked (convert/passes/indexing.py)
    text = (
        f"choose by `jax.lax.switch({ctx.text(index.value)}, …)`, or take the place as a Python int"
    )
    counted = ctx.parents[-1] if isinstance(ctx.parents[-1], cst.AugAssign) else None
    return Advice(text, node=counted, what="a tensor says the place in a Python list")
