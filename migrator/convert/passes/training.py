"""``self.training`` becomes ``not self.deterministic``, which ``.train()`` and ``.eval()`` set."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


def _is_training(rw: Rewriter, node: cst.CSTNode) -> bool:
    return (
        type(node) is cst.Attribute
        and node.attr.value == "training"
        and (isinstance(rw.ctx.kind(node.value), k.Module) or _has_modes(rw, node.value))
    )


def _has_modes(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether something of which nothing is known is set to a mode in the same function: a module."""
    frame = rw.ctx.frame
    if frame is None or not isinstance(node, cst.Name):
        return False
    if not isinstance(rw.ctx.kind(node), k.Unknown):
        return False
    return any(
        item.attr.value in ("train", "eval")
        and isinstance(item.value, cst.Name)
        and item.value.value == node.value
        for item in rw.ctx.source.index.within(frame.info.node, cst.Attribute)
    )


def _flag(rw: Rewriter, node: cst.Attribute) -> cst.BaseExpression:
    info = rw.ctx.class_of(rw.ctx.kind(node.value))
    if not rw.ctx.is_self(node.value):
        handed = info is None and (_is_handed(rw, node.value) or _is_decorated(rw, node.value))
        if not handed and (info is None or not any(c.asks_training for c in info.lineage())):
            raise Failure(
                node,
                "API010",
                "the training mode of another module is asked for",
                "keep the mode in this module",
            )
    return syntax.changed(node, value=rw.visit(node.value), attr=cst.Name("deterministic"))


_ANY = "torch.nn.Module"
_MODULES = frozenset("self model module net network m layer".split())
"""Names of modules, where nothing else tells."""


def _check_module(rw: Rewriter, node: cst.Attribute) -> None:
    """Raise a Failure where a class that modules derive from, or what must be a module, is asked for its mode."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if node.attr.value != "training" or not isinstance(node.value, cst.Name):
        return
    if owner is not None and ctx.is_self(node.value):
        lineage = owner.lineage()
        plain = owner.torch_base is None and not owner.gradient
        has_it = any(c.attribute("training") or "training" in c.statics for c in lineage)
        if not plain or has_it or owner.method("training") is not None:
            return
    elif node.value.value not in _MODULES or not isinstance(ctx.kind(node.value), k.Unknown):
        return
    raise Failure(
        node,
        "API010",
        f"the training mode of `{node.value.value}` is asked for, which is not known to be a module here",
        "derive the class from nn.Module, or annotate the parameter",
    )


def _is_handed(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether a name is a parameter for which modules of the file, which carry a mode then, hand themselves over."""
    frame = rw.ctx.frame
    if frame is None or not isinstance(node, cst.Name) or node.value not in frame.info.params:
        return False
    kind = rw.ctx.kind(node)
    if isinstance(kind, k.Module) and kind.cls.startswith("torch.nn.") and kind.cls != _ANY:
        return False  # a layer of torch's is handed, which keeps its mode otherwise or not at all
    return any(c.asks_training for c in rw.ctx.facts.classes.values())


def _is_decorated(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether a name is the instance in the wrapper that a decorator makes: its class carries a mode then."""
    frame = rw.ctx.frame
    if frame is None or frame.info.outer is None or frame.info.outer.owner is not None:
        return False
    params = frame.info.node.params.params
    return isinstance(node, cst.Name) and bool(params) and params[0].name.value == node.value


def _is_put_back(rw: Rewriter, node: cst.Attribute) -> bool:
    """Whether a mode is only kept to be put back: ``mode = net.training; net.eval(); …; net.train(mode)``."""
    frame, tree = rw.ctx.frame, rw.ctx.source.index
    around = tree.around(node) if tree.has(node) else []
    assign = around[-1] if around else None
    if frame is None or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return False
    kept, module = assign.targets[0].target, syntax.code(node.value)
    if not isinstance(kept, cst.Name):
        return False
    reads = {id(kept)}
    for item in tree.within(frame.info.node, cst.If, cst.Call, cst.Attribute):
        if isinstance(item, cst.If) and _only_evaluates(item, module):
            reads.add(id(item.test))
        elif isinstance(item, cst.Call) and syntax.code(item.func) == f"{module}.train":
            reads.update(id(given.value) for given in item.args)
        elif isinstance(item, cst.Attribute):
            reads.add(id(item.attr))
    names = tree.within(frame.info.node, cst.Name)
    return {id(name) for name in names if name.value == kept.value} <= reads


def _only_evaluates(node: cst.If, module: str) -> bool:
    """``if mode: net.eval()``."""
    body = node.body.body
    if (
        node.orelse is not None
        or len(body) != 1
        or not isinstance(body[0], cst.SimpleStatementLine)
    ):
        return False
    return [syntax.code(small) for small in body[0].body] == [f"{module}.eval()"]


@converts(cst.UnaryOperation)
def not_training(rw: Rewriter, node: cst.UnaryOperation) -> Any:
    """``not self.training`` → ``self.deterministic``."""
    if isinstance(node.operator, cst.Not) and _is_training(rw, node.expression):
        return _flag(rw, node.expression)  # type: ignore[arg-type]
    return None


@converts(cst.Attribute, named=("training",))
def training(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.training`` → ``not self.deterministic``."""
    if not _is_training(rw, node):
        _check_module(rw, node)
        return None
    if not rw.ctx.is_self(node.value) and _is_put_back(rw, node):
        helper = rw.ctx.helpers.need(module_file("rules.compat.modes"), "is_training")
        return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(node.value))])
    return cst.UnaryOperation(cst.Not(whitespace_after=cst.SimpleWhitespace(" ")), _flag(rw, node))


@converts(cst.Assign, named=("training",), targets=(cst.Attribute,))
def set_training(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.training = flag`` → ``self.deterministic = not flag``."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not _is_training(rw, target):
        return None
    value = syntax.fitted(_NOT, "expression", rw.visit(node.value))
    return syntax.changed(
        node,
        targets=[cst.AssignTarget(_flag(rw, target))],  # type: ignore[arg-type]
        value=syntax.changed(_NOT, expression=value),
    )


def add_to_training(rw: Rewriter, node: cst.AugAssign) -> cst.Assign | None:
    """``self.training |= self.export`` → ``self.deterministic = not ((not self.deterministic) | self.export)``."""
    if not _is_training(rw, node.target):
        return None
    flag = _flag(rw, node.target)  # type: ignore[arg-type]
    whole = cst.parse_expression(f"a {syntax.code(node.operator).strip()[:-1]} b")
    assert isinstance(whole, cst.BinaryOperation)
    mode = syntax.fitted(whole, "left", syntax.changed(_NOT, expression=flag))
    value = syntax.changed(
        whole, left=mode, right=syntax.fitted(whole, "right", rw.visit(node.value))
    )
    inner = syntax.fitted(_NOT, "expression", value)
    return cst.Assign([cst.AssignTarget(flag)], syntax.changed(_NOT, expression=inner))  # type: ignore[arg-type]


_NOT = cst.UnaryOperation(cst.Not(whitespace_after=cst.SimpleWhitespace(" ")), cst.Name("x"))
