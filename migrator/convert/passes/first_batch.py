"""What a module does once: ``if self.initialized.item() == 0: self.initialize(x)`` → ``nnx.cond`` over the module."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.flags._first import start


@converts(cst.If)
def once(rw: Rewriter, node: cst.If) -> Any:
    """A function of the module that does it, and ``nnx.cond(self.initialized[...] == 0, it, lambda self: None, self)``."""
    ctx = rw.ctx
    if ctx.frame is None or ctx.in_init or ctx.owner is None or not ctx.facts.tree.has(node):
        return None
    found = start(node, ctx.facts.tree.around(node), ctx.facts.kind)
    if found is None:
        return None
    ctx.helpers.use("nnx")
    name = _name(rw)
    ctx.frame.starts += 1
    with ctx.no_hoisting():
        body = rw.block(node.body)
    _check_names(rw, node, body)
    made = syntax.statement(f"def {name}(self):\n    pass\n")
    function = syntax.changed(made, body=body, leading_lines=node.leading_lines)
    kind = ctx.kind(found.state)
    test = f"__state__ {found.operator} {found.number}"
    if not isinstance(kind, k.Tensor) or kind.rank != 0:
        ctx.helpers.use("jnp")
        test = f"jnp.all({test})"
    call = syntax.parse(f"nnx.cond({test}, {name}, lambda self: None, self)")
    call = syntax.substitute(call, {"__state__": rw.visit(found.state)})
    lines: list[Any] = [function, cst.SimpleStatementLine([cst.Expr(call)])]
    if found.settled is None:
        return lines
    first = syntax.changed(function, leading_lines=[])
    settled = rw.visit(found.settled)
    whole = cst.If(syntax.unparenthesized(settled), cst.IndentedBlock([first, lines[1]]))
    return syntax.changed(whole, leading_lines=node.leading_lines)


def _name(rw: Rewriter) -> str:
    """``start``, or another name that the method has no other use for."""
    assert rw.ctx.frame is not None
    taken = {n.value for n in rw.ctx.facts.tree.within(rw.ctx.frame.info.node, cst.Name)}
    return rw.ctx.unused("start") if "start" in taken or rw.ctx.frame.starts else "start"


def _check_names(rw: Rewriter, node: cst.If, body: cst.BaseSuite) -> None:
    """What the converted branch binds is its own: a function cannot give the names around it new values."""
    assert rw.ctx.frame is not None
    bound = {
        item.target.value
        for item in syntax.walk(body)
        if isinstance(item, (cst.AssignTarget, cst.AugAssign)) and isinstance(item.target, cst.Name)
    }
    tree = rw.ctx.facts.tree
    function = rw.ctx.frame.info.node
    inside = {id(n) for n in tree.within(node, cst.Name)}
    outside = {n.value for n in tree.within(function, cst.Name) if id(n) not in inside}
    if bound & outside:
        what = "a branch on a tensor's value cannot be traced"
        raise Failure(node.test, "DYN002", what, "choose by jnp.where or lax.cond")
