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
    if not targets.is_weight_by_name(rw.ctx, node) or not _is_worked_with(rw.ctx, node):
        return None
    return targets.dereferenced(rw.rebuild(node))


def _is_set(ctx: Context, body: cst.CSTNode, name: str) -> bool:
    """``setattr(self, key, w)``."""
    calls = [c for c in ctx.facts.tree.within(body, cst.Call) if syntax.code(c.func) == "setattr"]
    return any(
        isinstance(a.value, cst.Name) and a.value.value == name for c in calls for a in c.args
    )


def _is_worked_with(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether something is done with a weight there, and nothing keeps it under another name."""
    above, outer = (*reversed(ctx.facts.tree.around(node)), None, None)[:2]
    if isinstance(above, cst.Arg):
        name = ctx.facts.callee(outer) if isinstance(outer, cst.Call) else None
        made = (name or "").startswith(("torch.nn.Parameter", "torch.nn.ParameterList"))
        return (name or "").startswith(("torch.", "builtins.len")) and not made
    kept = (cst.Attribute, cst.Subscript, cst.BinaryOperation, cst.UnaryOperation)
    return isinstance(above, kept)


@converts(cst.Assign, values=(cst.Call,), when=lambda ctx: "getattr" in ctx.words)
def named(rw: Rewriter, node: cst.Assign) -> Any:
    """``bias = getattr(self.rnn, name)``: the name stands for the Variable, which is written through it."""
    target, value = node.targets[0].target, node.value
    if len(node.targets) != 1 or not isinstance(target, cst.Name) or rw.ctx.frame is None:
        return None
    if not targets.is_weight_by_name(rw.ctx, value):
        return None
    body = rw.ctx.frame.info.node.body
    if not holds_weights(rw.ctx.facts, body, target, value):
        return None
    if "setattr" in rw.ctx.words and _is_set(rw.ctx, body, target.value):
        what = "a weight of a recurrent layer is kept under a second name that is made up"
        raise Failure(node, "API005", what, "assign it to an attribute by its name")
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
