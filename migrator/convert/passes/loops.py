"""Loops over what Flax iterates in another way: modules, children of a Sequential."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.passes.containers import NAMES, has_layers, layers_of
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k


@converts(cst.For)
def over_modules(rw: Rewriter, node: cst.For) -> Any:
    """``for m in self.modules():`` → ``for _, m in nnx.iter_modules(self):`` where no order matters."""
    call = node.iter
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    kind = rw.ctx.facts.kind(call.func)
    name = kind.name if isinstance(kind, k.Function) else ""
    if name != "Module.modules" or not isinstance(node.target, cst.Name):
        return None
    if call.args or not _in_any_order(rw, node.target.value, node.body):
        return None
    rw.ctx.helpers.use("nnx")
    iterator = cst.Call(syntax.parse("nnx.iter_modules"), [cst.Arg(rw.visit(call.func.value))])
    target = cst.Tuple(
        [
            cst.Element(cst.Name("_"), cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))),
            cst.Element(node.target),
        ],
        lpar=[],
        rpar=[],
    )
    return syntax.changed(node, target=target, iter=iterator, body=rw.block(node.body))


def _in_any_order(rw: Rewriter, name: str, body: cst.BaseSuite) -> bool:
    """Whether a loop body initialises torch's own layers, or one thing only, so that no order matters."""
    if len(body.body) != 1 or not isinstance(body.body[0], cst.If):
        return False
    if body.body[0].orelse is None and _only_initializes(rw, body.body[0].body):
        return True
    branch: cst.If | cst.Else | None = body.body[0]
    while branch is not None:
        if isinstance(branch, cst.Else) or not _asks_leaf(rw, name, branch.test):
            return False
        if not _only_initializes(rw, branch.body):
            return False
        branch = branch.orelse
    return True


def _only_initializes(rw: Rewriter, body: cst.BaseSuite) -> bool:
    """Whether statements only write weights: ``nn.init.…``, ``m.bias.data.zero_()``, maybe under a test."""
    for statement in body.body:
        if isinstance(statement, cst.If):
            other = statement.orelse
            if not _only_initializes(rw, statement.body):
                return False
            if other is not None and not (
                isinstance(other, cst.Else) and _only_initializes(rw, other.body)
            ):
                return False
            continue
        if isinstance(statement, cst.BaseCompoundStatement):
            return False
        for small in getattr(statement, "body", [statement]):
            call = small.value if isinstance(small, cst.Expr) else None
            name = rw.ctx.facts.callee(call) or "" if isinstance(call, cst.Call) else ""
            in_place = isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)
            in_place = in_place and call.func.attr.value.endswith("_")  # type: ignore[union-attr]
            if not (name.startswith("torch.nn.init.") or in_place or isinstance(small, cst.Pass)):
                return False
    return True


def _asks_leaf(rw: Rewriter, name: str, test: cst.BaseExpression) -> bool:
    """Whether a test is ``isinstance(m, …)`` of layers without children."""
    if isinstance(test, cst.BooleanOperation):
        return _asks_leaf(rw, name, test.left)
    if not isinstance(test, cst.Call) or rw.ctx.facts.callee(test) != "builtins.isinstance":
        return False
    first, classes = test.args[0].value, test.args[1].value
    nodes = [e.value for e in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
    names = [rw.ctx.facts.qualified_name(n) or "" for n in nodes]
    return (
        isinstance(first, cst.Name)
        and first.value == name
        and all(n.startswith("torch.nn.") and n not in _PARENTS for n in names)
    )


_PARENTS = frozenset({"torch.nn.Module", *NAMES})


@converts(cst.For)
def loop(rw: Rewriter, node: cst.For) -> Any:
    """``for layer in self.net:``."""
    if not has_layers(rw, node.iter):
        return None
    return syntax.changed(node, iter=layers_of(rw, node.iter), body=rw.block(node.body))
