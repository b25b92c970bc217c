"""``getattr(x, "mean")(-1)``, ``hasattr(w, "data")``: what is asked of a tensor by its name."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import Facts
from migrator.infer import kinds as k
from rules.torch_names import table


@converts(cst.Call, when=lambda ctx: "getattr" in ctx.words)
def written_out(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(x, "mean")(-1)`` → what ``x.mean(-1)`` becomes."""
    facts = rw.ctx.facts
    if isinstance(node.func, cst.Call):
        func = _attribute(rw, node.func)
        if func is None:
            return None
        call = syntax.changed(node, func=func)
        facts.kinds[call] = facts.kind(node)
        return rw.visit(call)
    found = _attribute(rw, node)
    return rw.visit(found) if found is not None else None


def _attribute(rw: Rewriter, node: cst.Call) -> cst.Attribute | None:
    """``x.mean`` for ``getattr(x, "mean")`` of a tensor.

    Raises:
      Failure: the name is computed.
    """
    facts = rw.ctx.facts
    if facts.callee(node) != "builtins.getattr" or len(node.args) != 2:
        return None
    owner, told = (arg.value for arg in node.args)
    if not isinstance(facts.kind(owner), k.Tensor):
        return None
    moves = _moves(facts, told)
    name = k.Const("cpu") if moves else facts.kind(told)
    if not isinstance(name, k.Const) or not str(name.value).isidentifier():
        text = " ".join(syntax.code(node).split())
        what = f"a method or attribute of a tensor is computed: {text}"
        raise Failure(node, "API001", what, "choose among functions by a dict")
    base: Any = owner
    if not isinstance(owner, (cst.Name, cst.Attribute)):
        base = syntax.parenthesized(owner)
    found = cst.Attribute(base, cst.Name(str(name.value)))
    facts.kinds[base] = facts.kind(owner)
    facts.kinds[found] = k.Function("Tensor.cpu", facts.kind(owner)) if moves else facts.kind(node)
    return found


def _moves(facts: Facts, node: cst.BaseExpression) -> bool:
    """``("cpu", "cuda")[x.is_cuda]``: either way the values stay what they are."""
    choice = node.value if isinstance(node, cst.Subscript) else None
    if not isinstance(choice, cst.Tuple | cst.List) or not choice.elements:
        return False
    names = [facts.kind(one.value) for one in choice.elements]
    return all(isinstance(one, k.Const) and one.value in ("cpu", "cuda") for one in names)


@converts(cst.Call, when=lambda ctx: "hasattr" in ctx.words)
def has_name(rw: Rewriter, node: cst.Call) -> Any:
    """``hasattr(m.bias, "data")``: a tensor has torch's names, which arrays have not; the bias of a layer may be None."""
    facts = rw.ctx.facts
    if facts.callee(node) != "builtins.hasattr" or len(node.args) != 2:
        return None
    owner, told = (arg.value for arg in node.args)
    kind, name = facts.kind(owner), facts.kind(told)
    if not isinstance(name, k.Const) or not _of_tensors(str(name.value)):
        return None
    weight = isinstance(owner, cst.Attribute) and owner.attr.value in ("weight", "bias")
    if isinstance(kind, k.Tensor) and not weight:
        frame = rw.ctx.frame
        if name.value in _SHAPED and isinstance(owner, cst.Name) and frame is not None:
            if owner.value in frame.info.params:  # which may be handed a number as well
                shape = cst.Arg(cst.SimpleString('"shape"'))
                return syntax.with_args(cst.Call(node.func), [cst.Arg(rw.visit(owner)), shape])
        return cst.Name("True")
    whole = kind.inner if isinstance(kind, k.Optional) else kind
    unknown = weight and isinstance(whole, k.Unknown) and name.value == "data"
    if not unknown and not isinstance(whole, k.Tensor):
        return None
    none = cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))
    asked = cst.Comparison(owner, [none])
    facts.kinds[asked] = k.BOOL
    return rw.visit(asked)


_SHAPED = frozenset({"size", "shape", "ndim", "dim", "dtype", "numel"})
"""What is asked of something to find out whether it is an array."""


def _of_tensors(name: str) -> bool:
    names = table()
    return name in names["method"] or name in names["attribute"]
