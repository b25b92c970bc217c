"""Dtypes as keys, as members of sets, by identity and as text.

``x.dtype`` of an array is ``np.dtype("float32")``, which equals ``jnp.float32`` and is another object with another hash,
so that neither a dict nor a set finds one by the other; as text it is ``float32``, which is ``torch.float32`` in torch.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax, texts
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.source import dotted
from rules.definitions import module_file
from rules.torch_names import table


def _has_keys(ctx: Context) -> bool:
    return not _WORDS.isdisjoint(ctx.words) and bool(_keys(ctx))


_WORDS = {"dtype", *(name.rpartition(".")[2] for name in table()["dtype"])}
"""What a file that handles dtypes says."""


@converts(cst.Attribute, cst.Name, cst.Call, when=_has_keys)
def key(rw: Rewriter, node: cst.Attribute | cst.Name | cst.Call) -> Any:
    """``{torch.float32: 1e-3}[x.dtype]`` → ``{jnp.dtype(jnp.float32): 1e-3}[x.dtype]``."""
    keys = _keys(rw.ctx)
    if node not in keys:
        return None
    if isinstance(node, cst.Attribute) and isinstance(rw.ctx.kind(node.value), k.Tensor):
        return None  # the dtype of an array is what others are made
    keys.discard(node)
    return _named(rw, node)


def _keys(ctx: Context) -> set[cst.CSTNode]:
    """Dtypes that something is looked up by, found once a file."""
    if ctx.dtype_keys is None:
        ctx.dtype_keys = set(_found(ctx))
    found: set[cst.CSTNode] = ctx.dtype_keys
    return found


def _found(ctx: Context) -> list[cst.CSTNode]:
    tree = ctx.facts.tree
    held: list[cst.BaseExpression] = []
    for shown in tree.of_type(cst.Dict):
        held += [one.key for one in shown.elements if isinstance(one, cst.DictElement)]
    held += [one.key for one in tree.of_type(cst.DictComp)]
    for members in tree.of_type(cst.Set):
        held += [one.value for one in members.elements]
    held += [one.elt for one in tree.of_type(cst.SetComp)]
    for item in tree.of_type(cst.Subscript):
        if not isinstance(ctx.kind(item.value), (k.Tensor, k.Class)):
            held += [e.slice.value for e in item.slice if isinstance(e.slice, cst.Index)]
    for asked in tree.of_type(cst.Comparison):
        if all(isinstance(one.operator, (cst.In, cst.NotIn)) for one in asked.comparisons):
            held.append(asked.left)
    for call in tree.of_type(cst.Call):
        if not call.args:
            continue
        first = call.args[0].value
        if isinstance(call.func, cst.Attribute):
            if call.func.attr.value in ("get", "pop", "setdefault", "add", "discard", "remove"):
                held.append(first)
        elif dotted(call.func) in ("set", "frozenset") and isinstance(first, _DISPLAYS):
            held += [one.value for one in first.elements]
    flat: list[cst.CSTNode] = _unknown_keys(ctx)
    for one in held:
        parts = [e.value for e in one.elements] if isinstance(one, cst.Tuple) else [one]
        flat += [part for part in parts if isinstance(ctx.kind(part), k.DType)]
    return flat


def _unknown_keys(ctx: Context) -> list[cst.CSTNode]:
    """What a dict with dtypes as keys is asked by where nothing is known of it: ``DIGITS[default(dtype)]``."""
    tree = ctx.facts.tree
    tables = {one for one in tree.of_type(cst.Dict) if _is_by_dtype(ctx, one)}
    if not tables:
        return []
    names = {
        dotted(target)
        for line in tree.of_type(cst.Assign, cst.AnnAssign)
        if line.value in tables
        for target in syntax.assigned_to(line)
    }
    asked = [
        e.slice.value
        for item in tree.of_type(cst.Subscript)
        if item.value in tables or (dotted(item.value) or item) in names
        for e in item.slice
        if isinstance(e.slice, cst.Index)
    ]
    return [one for one in asked if isinstance(ctx.kind(one), k.Unknown)]


def _is_by_dtype(ctx: Context, node: cst.Dict) -> bool:
    """Whether a dict has dtypes as keys, and nothing else: a text may be another key than the dtype of that name."""
    keys = [getattr(one, "key", None) for one in node.elements]
    return bool(keys) and all(
        one is not None and isinstance(ctx.kind(one), k.DType) for one in keys
    )


_DISPLAYS = (cst.List, cst.Tuple, cst.Set)


@converts(cst.Comparison)
def identity(rw: Rewriter, node: cst.Comparison) -> Any:
    """``x.dtype is torch.float32`` → ``x.dtype == jnp.float32``."""
    if len(node.comparisons) != 1:
        return None
    only = node.comparisons[0]
    if not isinstance(only.operator, (cst.Is, cst.IsNot)):
        return None
    if not all(isinstance(rw.ctx.kind(one), k.DType) for one in (node.left, only.comparator)):
        return None
    operator = cst.Equal() if isinstance(only.operator, cst.Is) else cst.NotEqual()
    made = syntax.changed(only, operator=operator, comparator=rw.visit(only.comparator))
    return syntax.changed(node, left=rw.visit(node.left), comparisons=[made])


@converts(cst.Call, called=("builtins.str", "builtins.repr"))
def as_text(rw: Rewriter, node: cst.Call) -> Any:
    """``str(x.dtype)`` → ``f"torch.{jnp.dtype(x.dtype)}"``."""
    if rw.ctx.facts.callee(node) not in ("builtins.str", "builtins.repr") or len(node.args) != 1:
        return None
    value = node.args[0].value
    if not isinstance(rw.ctx.kind(value), k.DType):
        return None
    if not _is_known(rw, value):
        name = rw.ctx.helpers.need(module_file("rules.compat.dtypes"), "dtype_name")
        return cst.Call(cst.Name(name), [cst.Arg(syntax.unparenthesized(rw.visit(value)))])
    return cst.FormattedString(
        [cst.FormattedStringText("torch."), cst.FormattedStringExpression(_named(rw, value))], 'f"'
    )


@converts(cst.FormattedString)
def within_text(rw: Rewriter, node: cst.FormattedString) -> Any:
    """``f"{x.dtype}"`` that something goes by: as torch calls it."""
    ctx = rw.ctx
    tree = ctx.facts.tree
    if not tree.has(node) or not any(_shows_dtype(ctx, part) for part in node.parts):
        return None
    if any(_is_said(one) for one in tree.around(node)):
        return None
    parts: list[cst.BaseFormattedStringContent] = []
    for part in node.parts:
        if not isinstance(part, cst.FormattedStringExpression) or not _shows_dtype(ctx, part):
            parts.append(rw.rebuild(part))
        elif not _is_known(rw, part.expression):
            name = ctx.helpers.need(module_file("rules.compat.dtypes"), "dtype_name")
            shown = cst.Call(cst.Name(name), [cst.Arg(rw.visit(part.expression))])
            parts.append(syntax.changed(part, expression=shown))
        else:
            parts.append(cst.FormattedStringText("torch."))
            parts.append(syntax.changed(part, expression=_named(rw, part.expression)))
    return texts.requoted(syntax.changed(node, parts=parts), node.end)


def _shows_dtype(ctx: Context, part: cst.CSTNode) -> bool:
    return (
        isinstance(part, cst.FormattedStringExpression)
        and part.format_spec is None
        and part.equal is None
        and isinstance(ctx.kind(part.expression), k.DType)
    )


def _is_said(node: cst.CSTNode) -> bool:
    """Whether a text is only told to people: in an error, by print() or by a log."""
    if isinstance(node, (cst.Raise, cst.Assert)):
        return True
    if not isinstance(node, cst.Call):
        return False
    name = (dotted(node.func) or "").rpartition(".")[2]
    return name in _SAYING


_SAYING = frozenset("print warn warning info debug error exception critical log".split())


def _is_known(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether an expression is a dtype, and not None: ``torch.float32``, ``x.dtype``."""
    if isinstance(value, cst.Attribute) and isinstance(rw.ctx.kind(value.value), k.Tensor):
        return True
    return rw.ctx.is_import(value)


def _named(rw: Rewriter, value: cst.BaseExpression) -> cst.BaseExpression:
    made = syntax.unparenthesized(rw.visit(value))
    if not _is_known(rw, value):
        name = rw.ctx.helpers.need(module_file("rules.compat.dtypes"), "as_key")
        return cst.Call(cst.Name(name), [cst.Arg(made)])
    rw.ctx.helpers.use("jnp")
    return cst.Call(syntax.parse("jnp.dtype"), [cst.Arg(made)])


@converts(cst.Attribute, named=("itemsize",), of=(k.DType,))
def width(rw: Rewriter, node: cst.Attribute) -> Any:
    """``torch.float16.itemsize`` → ``jnp.dtype(jnp.float16).itemsize``."""
    if node.attr.value != "itemsize" or not isinstance(rw.ctx.kind(node.value), k.DType):
        return None
    return syntax.changed(node, value=_named(rw, node.value))
