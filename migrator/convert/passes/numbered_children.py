"""``setattr(net, name, layer)``, ``getattr(net, "0")``: children of modules by torch's names, which are numbers in some."""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.source import dotted
from rules.definitions import module_file

_HELPERS = {"getattr": "child_named", "setattr": "set_child", "hasattr": "has_child"}
_ASKING = (*_HELPERS, "delattr")
_BY_PATH = re.compile(r"named_children|named_modules|_modules|\br?split\(|r?partition\(")


def _asks(ctx: Context) -> bool:
    return not ctx.words.isdisjoint(_ASKING)


@converts(cst.Call, named=_ASKING, when=_asks)
def child(rw: Rewriter, node: cst.Call) -> Any:
    """``setattr(module, name, nn.GroupNorm(1, n))`` → ``set_child(module, name, …)``.

    Raises:
      Failure: a layer is taken out, after which the others have other numbers in the output.
    """
    ctx = rw.ctx
    name = node.func.value if isinstance(node.func, cst.Name) else ""
    if name not in _ASKING or any(a.star or a.keyword for a in node.args):
        return None
    if len(node.args) < 2 or not ctx.facts.tree.has(node):
        return None
    held, told = node.args[0].value, node.args[1].value
    given = node.args[2].value if name == "setattr" and len(node.args) == 3 else None
    sequential = name == "setattr" and getattr(ctx.kind(held), "cls", "") == "torch.nn.Sequential"
    if not sequential and not may_be_number(ctx, told):
        return None
    if not _may_be_numbered(ctx, held, given):
        return None
    if name == "delattr":
        what = "a child is deleted by its name, which is its number if it is one of a Sequential"
        raise Failure(node, "API007", what, "write `del net[i]`, or build the network without it")
    helper = ctx.helpers.need(module_file("rules.compat.numbered"), _HELPERS[name])
    made = rw.rebuild(node)
    return syntax.changed(made, func=cst.Name(helper))


@converts(cst.Name, when=lambda ctx: {"getattr", "reduce"} <= ctx.words)
def by_path(rw: Rewriter, node: cst.Name) -> Any:
    """``reduce(getattr, path.split("."), net)`` while a model is built."""
    ctx = rw.ctx
    if node.value != "getattr" or not ctx.facts.tree.has(node):
        return None
    match ctx.facts.tree.around(node):
        case [*_, cst.Call() as call, cst.Arg() as arg] if arg is call.args[0]:
            func = (dotted(call.func) or "").removeprefix("functools.")
            if func != "reduce" or len(call.args) != 3:
                return None
            if isinstance(ctx.kind(call.args[2].value), (k.Module, k.Unknown)):
                helper = ctx.helpers.need(module_file("rules.compat.numbered"), "child_named")
                return cst.Name(helper)
    return None


def may_be_number(ctx: Context, told: cst.BaseExpression) -> bool:
    """Whether a name may be one of digits: what stands in a text beside what is computed tells."""
    kind = ctx.facts.kind(told)
    if isinstance(kind, k.Const):
        return str(kind.value).isdigit()
    if isinstance(told, cst.FormattedString):
        texts = [p.value for p in told.parts if isinstance(p, cst.FormattedStringText)]
        return all(text.isdigit() for text in texts)
    if isinstance(told, cst.BinaryOperation):
        parts = (told.left, told.right)
        texts = [str(p.evaluated_value) for p in parts if isinstance(p, cst.SimpleString)]
        return all(re.sub(r"%\d*[dis]", "0", text).isdigit() for text in texts)
    return True


def _may_be_numbered(
    ctx: Context, held: cst.BaseExpression, given: cst.BaseExpression | None
) -> bool:
    """Whether an object may be a Sequential: one whose class is not known, where a program goes by paths."""
    kind = ctx.kind(held)
    if isinstance(kind, k.Module):
        info = ctx.class_of(kind)
        if info is not None:
            return info.torch_base == "torch.nn.Sequential"
        return not {"torch.nn.Module", "torch.nn.Sequential"}.isdisjoint(kind.cls.split("|"))
    if not isinstance(kind, k.Unknown):
        return False
    if given is not None and isinstance(ctx.kind(given), k.Module):
        return True
    frame = ctx.frame
    return frame is not None and _BY_PATH.search(syntax.code(frame.info.node.body)) is not None
