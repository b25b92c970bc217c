"""``F.embedding`` of a module's own weight: as ``nn.Embedding`` looks its rows up itself, and with a limit to their norm."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.targets import names_variable, variable_reference
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_LOOKUP = "torch.nn.functional.embedding"
_OWN = "weight padding_idx max_norm norm_type scale_grad_by_freq sparse".split()
"""What ``nn.Embedding.forward`` hands on, in the order of the parameters of ``F.embedding``."""


def _derives(ctx: Context) -> bool:
    return any(c.torch_base == "torch.nn.Embedding" for c in ctx.facts.classes.values())


@converts(cst.Call, when=_derives)
def looked_up(rw: Rewriter, node: cst.Call) -> Any:
    """``F.embedding(i, self.weight, self.padding_idx, self.max_norm, …)`` → ``super().__call__(i)``.

    That is all torch's own forward pass does, the cut of the rows to ``max_norm`` included.
    """
    ctx = rw.ctx
    owner, frame = ctx.owner, ctx.frame
    if owner is None or owner.torch_base != "torch.nn.Embedding" or frame is None:
        return None
    if ctx.facts.callee(node) != _LOOKUP or any(p.torch_base for p in owner.parents):
        return None
    given = _given(node)
    taken = given.pop("input", None)
    if (
        taken is None
        or "max_norm" not in given
        or any(name not in given or not _is_own(rw, given[name], name) for name in _OWN[:-1])
    ):
        return None
    static = frame.info.node.decorators or frame.info.outer is not None
    if static or any(name in owner.attributes for name in _OWN):
        return None
    call = syntax.parse("super().__call__")
    return syntax.with_args(cst.Call(call), [cst.Arg(rw.visit(taken))])


def _given(node: cst.Call) -> dict[str, cst.BaseExpression]:
    """The arguments of a call by name; none where a star hands some over."""
    given: dict[str, cst.BaseExpression] = {}
    for name, arg in zip(["input", *_OWN], node.args, strict=False):
        if arg.star:
            return {}
        given[arg.keyword.value if arg.keyword is not None else name] = arg.value
    return given


@converts(cst.Call, called=(_LOOKUP,))
def limited(rw: Rewriter, node: cst.Call) -> Any:
    """``F.embedding(i, self.table, max_norm=m)``: the helper is handed the table itself, whose rows it cuts.

    Raises:
      Failure: it is not known whose rows are to be cut.
    """
    ctx = rw.ctx
    if ctx.facts.callee(node) != _LOOKUP:
        return None
    given = _given(node)
    if ctx.kind(given.get("max_norm", cst.Name("None"))) == k.NONE or "max_norm" not in given:
        return None
    weight, transposed = given.get("weight"), True
    if weight is not None and names_variable(ctx, weight):
        weight, transposed = variable_reference(rw, weight)
    if weight is None or transposed or "input" not in given:
        if k.scalar_type(ctx.kind(given["max_norm"])) is None:
            return None  # None as a rule (``embed.max_norm``); the definition refuses anything else
        what = (
            "max_norm cuts the rows of the weight in place, which is no parameter of a module here"
        )
        raise Failure(node, "API002", what, "use nn.Embedding, or hand over the parameter")
    name = ctx.helpers.need(module_file("rules.compat.embedding"), "limited_embedding")
    args = [syntax.arg(rw.visit(given["input"])), syntax.arg(weight)]
    rest = [(one, given[one]) for one in _OWN[1:-1] if one in given]
    args += [syntax.arg(rw.visit(value), one) for one, value in rest]
    ctx.effect(node)
    return syntax.with_args(cst.Call(cst.Name(name)), args)


def _is_own(rw: Rewriter, node: cst.BaseExpression, name: str) -> bool:
    return (
        isinstance(node, cst.Attribute) and node.attr.value == name and rw.ctx.is_self(node.value)
    )
