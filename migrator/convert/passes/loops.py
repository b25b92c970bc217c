"""Loops over what Flax iterates in another way: modules, children of a Sequential."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.passes.containers import is_sequential, layers_of
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.For)
def over_modules(rw: Rewriter, node: cst.For) -> Any:
    """``for m in self.modules():`` → ``for _, m in nnx.iter_modules(self):``."""
    call = node.iter
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    kind = rw.ctx.facts.kind(call.func)
    name = kind.name if isinstance(kind, k.Function) else ""
    if name not in ("Module.modules", "Module.children") or not isinstance(node.target, cst.Name):
        return None
    if is_sequential(rw, call.func.value) and name == "Module.children":
        return None
    rw.ctx.helpers.use("nnx")
    function = "nnx.iter_modules" if name == "Module.modules" else "nnx.iter_children"
    iterator = cst.Call(syntax.parse(function), [cst.Arg(rw.visit(call.func.value))])
    target = cst.Tuple(
        [
            cst.Element(cst.Name("_"), cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))),
            cst.Element(node.target),
        ],
        lpar=[],
        rpar=[],
    )
    return syntax.changed(node, target=target, iter=iterator, body=rw.block(node.body))


@converts(cst.For)
def loop(rw: Rewriter, node: cst.For) -> Any:
    """``for layer in self.net:``."""
    if not is_sequential(rw, node.iter):
        return None
    return syntax.changed(node, iter=layers_of(rw, node.iter), body=rw.block(node.body))
