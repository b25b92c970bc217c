"""``module.train(mode)`` and ``module.eval()`` whose value is used: Flax's take no mode and return nothing."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.own_modes import sets_mode
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_MODES = ("train", "eval")


@converts(cst.Expr, named=_MODES, values=(cst.Call,))
def mode_statement(rw: Rewriter, node: cst.Expr) -> Any:
    """``model.train(False)`` as a statement → ``model.eval()``."""
    call = node.value
    if not isinstance(call, cst.Call) or not _sets_mode(rw, call):
        return None
    assert isinstance(call.func, cst.Attribute)
    mode = _mode(call)
    if call.args and not (isinstance(mode, cst.Name) and mode.value in ("True", "False")):
        return None
    name = "train" if isinstance(mode, cst.Name) and mode.value == "True" else "eval"
    func = syntax.changed(call.func, value=rw.visit(call.func.value), attr=cst.Name(name))
    return syntax.changed(node, value=syntax.with_args(syntax.changed(call, func=func), []))


@converts(cst.Call, named=_MODES)
def mode_value(rw: Rewriter, node: cst.Call) -> Any:
    """``Encoder().eval()``, ``model.train(was_training)`` → ``set_training(…)``, which returns the module."""
    if not _sets_mode(rw, node):
        return None
    assert isinstance(node.func, cst.Attribute)
    build = rw.ctx.helpers.need(module_file("rules.compat.modes"), "set_training")
    given: list[cst.BaseExpression] = [node.func.value]
    mode = _mode(node)
    if not (isinstance(mode, cst.Name) and mode.value == "True"):
        given.append(mode)
    args = [cst.Arg(syntax.unparenthesized(rw.visit(value))) for value in given]
    return syntax.with_args(cst.Call(cst.Name(build)), args)


def _mode(call: cst.Call) -> cst.BaseExpression:
    """The mode that a call sets."""
    assert isinstance(call.func, cst.Attribute)
    if call.func.attr.value == "eval":
        return cst.Name("False")
    return call.args[0].value if call.args else cst.Name("True")


def _sets_mode(rw: Rewriter, call: cst.Call) -> bool:
    """Whether a call sets the mode of a module, of one of which nothing is known if it is given a bool."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _MODES:
        return False
    if len(call.args) > (func.attr.value == "train"):
        return False
    if any(a.star or (a.keyword is not None and a.keyword.value != "mode") for a in call.args):
        return False
    if _is_module(rw, func.value):
        info = rw.ctx.class_of(rw.ctx.kind(func.value))
        method = info.method(func.attr.value) if info is not None else None
        return method is None or method.settled is not None or sets_mode(rw.ctx, method)
    if not isinstance(rw.ctx.kind(func.value), k.Unknown):
        return False
    if not call.args:
        return func.attr.value == "eval"
    by_name = call.args[0].keyword is not None
    return by_name or k.scalar_type(rw.ctx.kind(call.args[0].value)) == "bool"


def _is_module(rw: Rewriter, node: cst.BaseExpression) -> bool:
    return isinstance(rw.ctx.kind(node), k.Module)
