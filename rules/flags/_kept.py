"""Where a traced value is put that is older than the call: the next call, of another trace, finds a tracer there."""

from __future__ import annotations

from typing import Any

import libcst as cst

from rules.flags import _lines as lines
from rules.registry import Advice, FlagContext

_ADDING = frozenset(["append", "extend", "insert", "add", "appendleft"])
_SETTING = frozenset(["update", "setdefault"])


def kept(node: Any, ctx: FlagContext) -> Advice | None:
    """``self.cache[key] = x``, ``CACHE[key] = x``, ``memo.setdefault(key, x)``, ``self.rope = Cache(cos, sin)``."""
    if isinstance(node, cst.Decorator):
        if not ctx.keeps_results(node):
            return None
        return _advice("a decorator keeps what the forward pass computes", "leave it out")
    if isinstance(node, cst.Call):
        return _added(node, ctx)
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        return _put(node.targets[0].target, node.value, ctx)
    return None


def _put(target: cst.BaseExpression, value: cst.BaseExpression, ctx: FlagContext) -> Advice | None:
    if isinstance(target, cst.Name):
        if not _is_global(target.value, ctx) or not ctx.holds_tensor(value):
            return None
        return _advice("a global keeps a value of the forward pass", _ANEW.format(target.value))
    if isinstance(target, cst.Subscript):
        if type(ctx.kind(target.value)).__name__ not in ("Mapping", "Sequence"):
            return None
        if not ctx.holds_tensor(value) or not ctx.outlives(target.value):
            return None
        if type(ctx.kind(target.value)).__name__ == "Sequence" and not ctx.is_object_of_tensors(
            value
        ):
            return None  # a list of a module is an nnx.List, whose entries are data
        what = "a dict keeps a value of the forward pass"
        return _advice(what, _ANEW.format(ctx.text(target.value)))
    if not isinstance(target, cst.Attribute) or not ctx.outlives(target):
        return None
    own = isinstance(target.value, cst.Name) and target.value.value == "self"
    if own and not ctx.in_module:
        return None  # MUT004 says what becomes of the attributes of an object
    leaks = ctx.is_object_of_tensors(value) if own else ctx.holds_tensor(value)
    if not leaks or not (own or _is_plain(target, ctx)):
        return None
    what = "an object that is no module keeps a value of the forward pass"
    return _advice(what, _ANEW.format(ctx.text(target)))


def _is_plain(target: cst.Attribute, ctx: FlagContext) -> bool:
    """Whether the owner of an attribute is an object, a class or a function that nnx does not look into."""
    return type(ctx.kind(target.value)).__name__ in ("Other", "Class", "Function")


def _added(call: cst.Call, ctx: FlagContext) -> Advice | None:
    parts = lines.method(call)
    if parts is None or not call.args or not ctx.outlives(parts[0]):
        return None
    held, value = type(ctx.kind(parts[0])).__name__, call.args[-1].value
    setting = parts[1] in _SETTING and held == "Mapping"
    if not setting and not (parts[1] in _ADDING and held == "Sequence"):
        return None
    own = ctx.in_module and not setting
    if not (ctx.is_object_of_tensors(value) if own else ctx.holds_tensor(value)):
        return None
    what = f"a {'dict' if setting else 'list'} keeps a value of the forward pass"
    return _advice(what, _ANEW.format(ctx.text(parts[0])))


def _is_global(name: str, ctx: FlagContext) -> bool:
    """Whether the function around the node says ``global name``."""
    for parent in reversed(ctx.parents):
        if isinstance(parent, cst.FunctionDef):
            return any(
                item.name.value == name
                for line in parent.body.body
                if isinstance(line, cst.SimpleStatementLine)
                for part in line.body
                if isinstance(part, cst.Global)
                for item in part.names
            )
    return False


_ANEW = "compute it anew each time, or build all of `{}` in the constructor"


def _advice(what: str, text: str) -> Advice:
    return Advice(text, what=what, severity="error", blocks=True)
