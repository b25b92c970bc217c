"""Weights of recurrent layers by names that are made up, and torch's lists of them."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer.recurrent import TABLES, holds_weights, is_recurrent
from rules.definitions import module_file


@converts(cst.Call, named=("getattr",), when=lambda ctx: "getattr" in ctx.words)
def by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(self.rnn, f"weight_hh_l{i}")`` → ``getattr(self.rnn, f"weight_hh_l{i}")[...]``."""
    if not targets.is_weight_by_name(rw.ctx, node):
        return None
    return targets.dereferenced(rw.rebuild(node))


@converts(cst.Assign, values=(cst.Call,), when=lambda ctx: "getattr" in ctx.words)
def named(rw: Rewriter, node: cst.Assign) -> Any:
    """``bias = getattr(self.rnn, name)``: the name stands for the Variable, which is written through it."""
    target, value = node.targets[0].target, node.value
    if len(node.targets) != 1 or not isinstance(target, cst.Name) or rw.ctx.frame is None:
        return None
    if not targets.is_weight_by_name(rw.ctx, value):
        return None
    if not holds_weights(rw.ctx.facts, rw.ctx.frame.info.node.body, target, value):
        return None
    return syntax.changed(node, value=rw.rebuild(value))


@converts(cst.Attribute, named=TABLES)
def table(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.rnn._all_weights`` → ``weight_names(self.rnn)``, ``self.rnn.all_weights`` → ``weight_lists(self.rnn)``.

    Raises:
      Failure: the weights themselves are used otherwise than by two loops.
    """
    ctx = rw.ctx
    if node.attr.value not in TABLES or not is_recurrent(ctx.kind(node.value)):
        return None
    names = node.attr.value == "_all_weights"
    if not names and not _is_walked(ctx, node):
        what = "the lists of a recurrent layer's weights are used as values"
        raise Failure(node, "API001", what, "name the weights: `rnn.weight_hh_l0`")
    helper = "weight_names" if names else "weight_lists"
    name = ctx.helpers.need(module_file("rules.compat.rnn"), helper)
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(node.value))])


def _is_walked(ctx: Context, node: cst.Attribute) -> bool:
    """``for weights in rnn.all_weights: for w in weights: …``, and nothing else is done with the lists."""
    tree = ctx.facts.tree
    loop = tree.parent(node) if tree.has(node) else None
    if not isinstance(loop, cst.For) or loop.iter is not node or not ctx.in_init:
        return False
    if not isinstance(loop.target, cst.Name):
        return False
    uses = [n for n in tree.within(loop.body, cst.Name) if n.value == loop.target.value]
    around = [(one, tree.parent(one)) for one in uses]
    return all(isinstance(up, cst.For) and up.iter is one for one, up in around)
