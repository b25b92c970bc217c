"""``F.batch_norm`` and ``F.instance_norm`` of a module's own running statistics, which they update in training."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import Facts
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file

_NAMES = {
    "torch.nn.functional.batch_norm": ("training", "batch_norm_with_update"),
    "torch.nn.functional.instance_norm": ("use_input_stats", "instance_norm_with_update"),
}
"""Functions, the argument that says whether they take the statistics of their input, and the helper for that."""
_STATISTICS = ("running_mean", "running_var")


@converts(cst.Call, called=_NAMES)
def with_update(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """The call of a helper that is handed the statistics themselves, not their values."""
    given = updated_statistics(rw.ctx.facts, node)
    if given is None:
        _check_not_updated(rw.ctx, node)
        return None
    file = module_file("rules.compat.norm_functional")
    name = rw.ctx.helpers.need(file, _NAMES[rw.ctx.facts.callee(node) or ""][1])
    args = []
    for param, value in given.items():
        made = rw.visit(value)
        if param in _STATISTICS:
            made = _itself(made)
        positional = param in ("input", *_STATISTICS)
        args.append(syntax.arg(made, None if positional else param))
    rw.ctx.effect(node)
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def _check_not_updated(ctx: Context, node: cst.Call) -> None:
    """Raise a Failure where tensors that are no attributes would be written: ``mean = self.mean; F.batch_norm(x, mean, …)``."""
    given = _given(ctx.facts, node)
    if given is None or not _may_update(ctx.facts, node, given):
        return
    kind = ctx.kind(given[_STATISTICS[0]]) if _STATISTICS[0] in given else k.NONE
    if isinstance(kind.inner if isinstance(kind, k.Optional) else kind, k.Tensor):
        norm = (ctx.facts.callee(node) or "").rpartition(".")[2]
        what = f"{norm} updates running_mean and running_var in place"
        raise Failure(node, "API002", what, "hand over buffers of the module, or use its layer")


def _may_update(facts: Facts, node: cst.Call, given: dict[str, cst.BaseExpression]) -> bool:
    word, _ = _NAMES[facts.callee(node) or ""]
    if word not in given:
        return word == "use_input_stats"
    return facts.kind(given[word]) not in (k.Const(False), k.NONE)


def _given(facts: Facts, node: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """The arguments of a call of such a function by name; None for any other call, and where a star hands some over."""
    name = facts.callee(node) or ""
    if name not in _NAMES or any(item.star for item in node.args):
        return None
    order = [p.name for p in definitions.ops(name)[0].params]
    if len(node.args) > len(order):
        return None
    named = ((item.keyword.value if item.keyword else order[i]) for i, item in enumerate(node.args))
    given = dict(zip(named, (item.value for item in node.args), strict=True))
    return given if set(given) <= set(order) else None


def updated_statistics(facts: Facts, node: cst.Call) -> dict[str, cst.BaseExpression] | None:
    """The arguments of a call by name, if it may update buffers of a module; None for any other call."""
    given = _given(facts, node)
    if given is None or not _may_update(facts, node, given):
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
        body = _itself(node.body)
        if isinstance(node.test, cst.Comparison) and node.test.left.deep_equals(body):
            return body  # if it is not None, else None
        return syntax.changed(node, body=body)
    return node
