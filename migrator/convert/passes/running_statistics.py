"""``F.batch_norm`` of a module's own running statistics, which it updates in training."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import Facts
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file

_NAMES = frozenset(["torch.nn.functional.batch_norm"])
_STATISTICS = ("running_mean", "running_var")


@converts(cst.Call, called=_NAMES)
def batch_norm(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """The call of a helper that is handed the statistics themselves, not their values."""
    given = updated_statistics(rw.ctx.facts, node)
    if given is None:
        return None
    file = module_file("rules.compat.norm_functional")
    name = rw.ctx.helpers.need(file, "batch_norm_with_update")
    args = []
    for param, value in given.items():
        made = rw.visit(value)
        if param in _STATISTICS:
            made = _itself(made)
        positional = param in ("input", *_STATISTICS)
        args.append(syntax.arg(made, None if positional else param))
    rw.ctx.effect(node)
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def updated_statistics(facts: Facts, node: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """The arguments of a call by name, if it may update buffers of a module; None for any other call."""
    name = facts.callee(node) or ""
    if name not in _NAMES or any(item.star for item in node.args):
        return None
    values = [item.value for item in node.args]
    keywords = [item.keyword.value if item.keyword else None for item in node.args]
    order = [p.name for p in definitions.ops(name)[0].params]
    given = {
        keyword or order[i]: value
        for i, (keyword, value) in enumerate(zip(keywords, values, strict=True))
    }
    if not set(given) <= set(order):
        return None
    training = given.get("training")
    if training is None or facts.kind(training) in (k.Const(False), k.NONE):
        return None
    if not all(n in given and _is_buffer(facts, given[n]) for n in _STATISTICS):
        return None
    return given


def _is_buffer(facts: Facts, node: cst.BaseExpression) -> bool:
    """Whether an expression is a buffer of a module, or that or None."""
    if isinstance(node, cst.IfExp):
        return _is_buffer(facts, node.body) and facts.kind(node.orelse) == k.NONE
    kind = facts.kind(node)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(node, cst.Attribute) and isinstance(kind, k.Tensor) and kind.role == "buffer"


def _itself(node: cst.BaseExpression) -> cst.BaseExpression:
    """``self.running_mean[...]``, or that or None, as the Variable."""
    if isinstance(node, cst.Subscript):
        return node.value
    if isinstance(node, cst.IfExp):
        return syntax.changed(node, body=_itself(node.body))
    return node
