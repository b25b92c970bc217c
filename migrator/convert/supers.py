"""Calls of constructors by ``super()`` that do not mean the next base: what it passes over, and what it hands on."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.classes import takes_rngs
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo


def leaves_out(ctx: Context, parents: list[ClassInfo]) -> bool:
    """Whether ``super().__init__()`` of the first base, a plain module, means the next base and not torch's own class."""
    first = parents[0] if len(parents) > 1 else None
    init = first.methods.get("__init__") if first is not None else None
    if first is None or init is None or first.torch_base != "torch.nn.Module":
        return False
    if any(one.method("__init__") is not None for one in first.parents):
        return False
    others = [one for one in parents[1:] if one not in first.lineage()]
    calls = any(map(syntax.is_super, ctx.facts.tree.within(init.node.body, cst.Call)))
    return calls and any(one.method("__init__") is not None for one in others)


def left_out(node: cst.CSTNode, parents: list[ClassInfo]) -> Failure:
    """What is said where a constructor is left out."""
    name = parents[1].name.rpartition(".")[2]
    what = f"the constructor of {name} runs by super() in the one before it, which in the output ends there"
    return Failure(node, "API005", what, f"call {name}.__init__(self, …) as well")


def handed_on(rw: Rewriter, node: cst.Expr, call: cst.Call, owner: ClassInfo) -> Any:
    """``super().__init__(*args)`` of a plain class: of one that builds modules, or mixed in before a module, which takes rngs."""
    ctx = rw.ctx
    if ctx.frame is None or ctx.plan.how(ctx.frame.info) != "param":
        return None
    own = (one.methods.get("__init__") for one in ctx.facts.after(call.func, owner))
    first = next((one for one in own if one is not None), None)
    behind = [
        one
        for info in ctx.facts.classes.values()
        if owner in info.parents
        for one in info.parents[info.parents.index(owner) + 1 :]
    ]
    taken = first is not None and ctx.plan.how(first) == "param"
    if not taken and not any(one.torch_base and takes_rngs(ctx, one) for one in behind):
        return None
    made = syntax.with_args(call, [rw.visit(a) for a in call.args])
    return syntax.changed(node, value=syntax.add_keyword(made, "rngs", ctx.rngs(node)))


def past(rw: Rewriter, node: cst.Expr, call: cst.Call, skipped: ClassInfo) -> Any:
    """``super(A, self).__init__(n)`` in a class that derives from A, whose constructor does not run."""
    ctx = rw.ctx
    owner = ctx.owner
    assert owner is not None
    parents = [p for p in ctx.facts.after(call.func, owner) if p.method("__init__") is not None]
    if not parents:
        if skipped.torch_base == "torch.nn.Module" and not call.args:
            return []
        what = f"super({skipped.name.rpartition('.')[2]}, self) passes over a class that derives from a layer"
        raise Failure(call, "API001", what, "derive from the layer itself")
    made = syntax.with_args(call, [rw.visit(a) for a in call.args])
    if takes_rngs(ctx, parents[0]):
        made = syntax.add_keyword(made, "rngs", ctx.rngs(node))
    return syntax.changed(node, value=made)


def builds_first(ctx: Context, line: list[ClassInfo], where: cst.CSTNode) -> ClassInfo | None:
    """The plain class whose constructor comes first in a line of classes, if it builds layers.

    Raises:
      Failure: it is of another file, and hands no generator on to a constructor behind it that needs one.
    """
    first = next((one for one in line if "__init__" in one.methods), None)
    if first is None or first.torch_base is not None:
        return None
    if ctx.plan.how(first.methods["__init__"]) != "param":
        return None
    behind = line[line.index(first) + 1 :] if first.settled is not None else []
    for one in behind:
        if one.torch_base is not None and one not in first.lineage() and takes_rngs(ctx, one):
            what = f"the constructor of {first.short} takes the generator, and hands none on to that of {one.short}"
            advice = f"call both by name: {first.short}.__init__(self, …)"
            raise Failure(where, "API005", what, advice)
    return first
