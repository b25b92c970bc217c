"""Dtypes as keys, as members of sets, by identity and as text; shapes as text.

``x.dtype`` of an array is ``np.dtype("float32")``, which equals ``jnp.float32`` and is another object with another hash,
so that neither a dict nor a set finds one by the other; as text it is ``float32``, which is ``torch.float32`` in torch.
A shape is a tuple, and ``torch.Size([2, 3])`` as text in torch.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax, texts
from migrator.convert.context import Context, Failure
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
        elif ctx.facts.callee(call) in _DICTS:
            held += _keys_of_pairs(ctx, first)
    flat: list[cst.CSTNode] = _unknown_keys(ctx)
    for one in held:
        parts = [e.value for e in one.elements] if isinstance(one, cst.Tuple) else [one]
        flat += [part for part in parts if isinstance(ctx.kind(part), k.DType)]
    return flat


_DICTS = ("builtins.dict", "collections.OrderedDict", "collections.defaultdict")


def _keys_of_pairs(ctx: Context, pairs: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The keys of ``dict([(torch.float32, 1), …])`` and ``dict(zip([torch.float32, …], values))``."""
    if isinstance(pairs, cst.Call) and ctx.facts.callee(pairs) == "builtins.zip" and pairs.args:
        first = pairs.args[0].value
        return [e.value for e in first.elements] if isinstance(first, _DISPLAYS) else []
    if isinstance(pairs, (cst.ListComp, cst.GeneratorExp)):
        parts = [pairs.elt]
    else:
        parts = [e.value for e in pairs.elements] if isinstance(pairs, _DISPLAYS) else []
    two = [one for one in parts if isinstance(one, (cst.Tuple, cst.List)) and one.elements]
    return [one.elements[0].value for one in two]


@converts(cst.Call, called=("builtins.set", "builtins.frozenset", "builtins.zip"))
def members(rw: Rewriter, node: cst.Call) -> Any:
    """``set(dtypes)``, ``dict(zip(dtypes, values))`` of a list of dtypes: each as others find it."""
    if not node.args or node.args[0].star or isinstance(node.args[0].value, _DISPLAYS):
        return None
    ctx, first = rw.ctx, node.args[0].value
    if not isinstance(ctx.kind(first), (k.Sequence, k.Tuple)):
        return None
    if not isinstance(k.element(ctx.kind(first)), k.DType):
        return None
    if ctx.facts.callee(node) == "builtins.zip":
        around = ctx.facts.tree.around(node)
        outer = around[-2] if len(around) > 1 and isinstance(around[-1], cst.Arg) else None
        if not isinstance(outer, cst.Call) or ctx.facts.callee(outer) not in _DICTS:
            return None
    name = ctx.helpers.need(module_file("rules.compat.dtypes"), "as_key")
    mapped = [cst.Arg(cst.Name(name)), cst.Arg(rw.visit(first))]
    each = syntax.with_args(cst.Call(cst.Name("map")), mapped)
    rest = [rw.visit(one) for one in node.args[1:]]
    return syntax.with_args(node, [syntax.changed(node.args[0], value=each), *rest])


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
    """``str(x.dtype)`` → ``f"torch.{jnp.dtype(x.dtype)}"``, ``str(x.shape)`` → ``size_name(x.shape)``."""
    if rw.ctx.facts.callee(node) not in ("builtins.str", "builtins.repr") or len(node.args) != 1:
        return None
    return _text(rw, node.args[0].value)


def _text(rw: Rewriter, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """The text of a dtype or of a shape as torch writes it; None for anything else, and for what is only said."""
    ctx = rw.ctx
    if _is_size(ctx, value) and not any(_is_said(one) for one in ctx.facts.tree.around(value)):
        return _helped(rw, "size_name", value)
    if not isinstance(ctx.kind(value), k.DType):
        return None
    if not _is_known(rw, value):
        return _helped(rw, "dtype_name", value)
    return cst.FormattedString(
        [cst.FormattedStringText("torch."), cst.FormattedStringExpression(_named(rw, value))], 'f"'
    )


def _helped(rw: Rewriter, helper: str, value: cst.BaseExpression) -> cst.Call:
    name = rw.ctx.helpers.need(module_file("rules.compat.dtypes"), helper)
    return cst.Call(cst.Name(name), [cst.Arg(syntax.unparenthesized(rw.visit(value)))])


def _is_size(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a ``torch.Size``."""
    kind = ctx.kind(node)
    return isinstance(kind, k.Sequence) and kind.type == "size" and ctx.facts.tree.has(node)


@converts(cst.BinaryOperation)
def filled_in(rw: Rewriter, node: cst.BinaryOperation) -> Any:
    """``"%s" % x.dtype``, ``"%s %s" % (x.dtype, x.shape)``: as torch writes them, where something goes by it."""
    if not isinstance(node.operator, cst.Modulo) or rw.ctx.kind(node.left) != k.STR:
        if not isinstance(node.operator, cst.Modulo) or not _is_text(rw.ctx, node.left):
            return None
    if any(_is_said(one) for one in rw.ctx.facts.tree.around(node)):
        return None
    if not isinstance(node.right, cst.Tuple):
        if not isinstance(rw.ctx.kind(node.right), k.DType):
            return None  # a shape is taken for several values
        _check_plain(node, node.left)
        return syntax.changed(node, left=rw.visit(node.left), right=_text(rw, node.right))
    made = [_text(rw, e.value) for e in node.right.elements]
    if not any(made):
        return None
    _check_plain(node, node.left)
    pairs = zip(node.right.elements, made, strict=True)
    elements = [syntax.changed(e, value=new or rw.visit(e.value)) for e, new in pairs]
    return syntax.changed(
        node, left=rw.visit(node.left), right=syntax.changed(node.right, elements=elements)
    )


def _check_plain(node: cst.CSTNode, text: cst.BaseExpression) -> None:
    """Raise a Failure for ``"%r"`` and ``"{!r}"``, which would show the quotes of a text."""
    if re.search(r"%r|![ra]", syntax.code(text)):
        what = "a dtype or a shape is written in a text as torch has it"
        raise Failure(node, "API007", what, "use an f-string")


def _is_text(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    return isinstance(node, _TEXTS) or (isinstance(kind, k.Const) and isinstance(kind.value, str))


_TEXTS = (cst.SimpleString, cst.ConcatenatedString, cst.FormattedString)


@converts(cst.Call, named=("format",))
def formatted(rw: Rewriter, node: cst.Call) -> Any:
    """``"{} {}".format(x.dtype, x.shape)``."""
    func = node.func
    if not isinstance(func, cst.Attribute) or not _is_text(rw.ctx, func.value):
        return None
    if any(_is_said(one) for one in rw.ctx.facts.tree.around(node)):
        return None
    made = [None if one.star else _text(rw, one.value) for one in node.args]
    if not any(made):
        return None
    _check_plain(node, func.value)
    pairs = zip(node.args, made, strict=True)
    args = [syntax.changed(one, value=new) if new else rw.visit(one) for one, new in pairs]
    return syntax.changed(node, func=rw.visit(func), args=args)


@converts(cst.FormattedString)
def within_text(rw: Rewriter, node: cst.FormattedString) -> Any:
    """``f"{x.dtype}"``, ``f"{x.shape}"`` that something goes by: as torch writes them."""
    ctx = rw.ctx
    tree = ctx.facts.tree
    if not tree.has(node) or not any(_shows(ctx, part) for part in node.parts):
        return None
    if any(_is_said(one) for one in tree.around(node)):
        return None
    parts: list[cst.BaseFormattedStringContent] = []
    for part in node.parts:
        if not isinstance(part, cst.FormattedStringExpression) or not _shows(ctx, part):
            parts.append(rw.rebuild(part))
            continue
        part = syntax.changed(part, conversion=None)  # repr() of a text has quotes
        if _is_size(ctx, part.expression):
            parts.append(syntax.changed(part, expression=_helped(rw, "size_name", part.expression)))
        elif not _is_known(rw, part.expression):
            parts.append(
                syntax.changed(part, expression=_helped(rw, "dtype_name", part.expression))
            )
        else:
            parts.append(cst.FormattedStringText("torch."))
            parts.append(syntax.changed(part, expression=_named(rw, part.expression)))
    return texts.requoted(syntax.changed(node, parts=parts), node.end)


def _shows(ctx: Context, part: cst.CSTNode) -> bool:
    """Whether a part of a text shows a dtype or a shape as it is."""
    return (
        isinstance(part, cst.FormattedStringExpression)
        and part.format_spec is None
        and part.equal is None
        and (isinstance(ctx.kind(part.expression), k.DType) or _is_size(ctx, part.expression))
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
