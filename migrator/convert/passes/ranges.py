"""Ranges of floats that become whole numbers: one digit less in the last place and it is another number."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_CUTTING = frozenset("long int short floor ceil round trunc".split())
_WHOLE = frozenset("long int short int64 int32 int16 int8 uint8".split())
_LEFT_OUT = frozenset("dtype device layout requires_grad pin_memory".split())


@converts(cst.Call, called=("torch.linspace",))
def cut_range(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.linspace(0, n - 1, 8).long()``: jnp.linspace rounds otherwise, and 2.9999998 is cut to 2."""
    if rw.ctx.facts.callee(node) != "torch.linspace" or not rw.ctx.facts.tree.has(node):
        return None
    given = [a for a in node.args if a.keyword is None or a.keyword.value not in _LEFT_OUT]
    named = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
    if "dtype" in named and rw.ctx.kind(named["dtype"]) != k.DType("float32"):
        return None
    if any(a.star or k.scalar_type(rw.ctx.kind(a.value)) is None for a in given):
        return None
    if not _is_cut(rw, node):
        return None
    rw.ctx.helpers.use("jnp")
    helper = rw.ctx.helpers.need(module_file("rules.compat.ranges"), "exact_linspace")
    args = [rw.visit(a) for a in given]
    args[-1] = syntax.changed(args[-1], comma=cst.MaybeSentinel.DEFAULT)
    made = syntax.with_args(cst.Call(cst.Name(helper)), args)
    return cst.Call(syntax.parse("jnp.asarray"), [cst.Arg(made)])


def _is_cut(rw: Rewriter, node: cst.Call) -> bool:
    """Whether a call that the range, or the name it is given, is part of may make whole numbers of it."""
    around = rw.ctx.facts.tree.around(node)
    for one in reversed(around):
        if isinstance(one, cst.Call) and _cuts(one):
            return True
        if isinstance(one, cst.Assign):
            names = {t.target.value for t in one.targets if isinstance(t.target, cst.Name)}
            scope = next((f for f in reversed(around) if isinstance(f, cst.FunctionDef)), around[0])
            calls = [c for c in rw.ctx.facts.tree.below(scope) if isinstance(c, cst.Call)]
            return any(_cuts(call) and names & set(syntax.names(call)) for call in calls)
        if isinstance(one, cst.BaseCompoundStatement):
            return False
    return False


def _cuts(call: cst.Call) -> bool:
    """``times.long()``, ``torch.round(times)``, ``times.to(torch.int64)``."""
    name = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
    if name in ("to", "type"):
        words = {n.value for a in call.args for n in syntax.walk(a) if isinstance(n, cst.Name)}
        return bool(words & _WHOLE)
    return name in _CUTTING
