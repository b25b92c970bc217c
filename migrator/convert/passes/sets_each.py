"""``for m in self.modules(): if isinstance(m, Cell): m.state = None``: each is set for itself, in any order."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules import definitions

_ASKING = frozenset({"builtins.isinstance", "builtins.hasattr"})


def sets_each(ctx: Context, call: cst.Call) -> bool:
    """Whether a loop over modules does nothing but give attributes of each a value that hangs on no other module."""
    loop = ctx.facts.tree.around(call)[-1]
    if not isinstance(loop, cst.For) or loop.iter is not call or loop.orelse is not None:
        return False
    target: cst.BaseExpression = loop.target
    if isinstance(target, cst.Tuple) and len(target.elements) == 2:
        target = target.elements[1].value  # of named_modules()
    if not isinstance(target, cst.Name):
        return False
    return _sets(ctx, loop.body, target.value)


def _sets(ctx: Context, body: cst.BaseSuite, name: str) -> bool:
    for statement in body.body:
        if isinstance(statement, cst.If):
            other = statement.orelse
            bodies = [statement.body, *([other.body] if isinstance(other, cst.Else) else [])]
            if isinstance(other, cst.If) or not _is_question(ctx, statement.test):
                return False
            if not all(_sets(ctx, one, name) for one in bodies):
                return False
            continue
        if isinstance(statement, cst.BaseCompoundStatement):
            return False
        for small in getattr(statement, "body", [statement]):
            if not _sets_own(ctx, small, name):
                return False
    return True


def _is_question(ctx: Context, test: cst.BaseExpression) -> bool:
    """What class a module is of, whether it has something: what no round of the loop changes."""
    if isinstance(test, cst.BooleanOperation):
        return _is_question(ctx, test.left) and _is_question(ctx, test.right)
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        return _is_question(ctx, test.expression)
    if not isinstance(test, cst.Call) or ctx.facts.callee(test) not in _ASKING:
        return False
    return all(
        isinstance(one.value, (cst.Name, cst.SimpleString, cst.Attribute, cst.Tuple))
        for one in test.args
    )


def _sets_own(ctx: Context, small: cst.CSTNode, name: str) -> bool:
    """``m.state = None``, ``m.reset()`` of a class whose reset() does nothing else."""
    if isinstance(small, (cst.Pass, cst.Continue)):
        return True
    if isinstance(small, cst.Expr):
        if isinstance(small.value, cst.SimpleString):
            return True
        call = small.value
        return isinstance(call, cst.Call) and (_resets(ctx, call, name) or _fills(ctx, call, name))
    if not isinstance(small, cst.Assign):
        return False
    given = set()
    for one in small.targets:
        target = one.target
        if isinstance(target, cst.Name) and name == "self":
            continue  # a method's own variable
        if not isinstance(target, cst.Attribute) or not _is(target.value, name):
            return False
        given.add(target.attr.value)
    return _hangs_on_itself(ctx, small.value, name, given)


def _hangs_on_itself(ctx: Context, value: cst.BaseExpression, name: str, given: set[str]) -> bool:
    """Whether a value is made of constants, of names of outside the loop and of the module's own tensors alone.

    ``given``: the attributes that get it, which are not read of another module.
    """
    for node in syntax.walk(value):
        if isinstance(node, cst.Call):
            callee = ctx.facts.callee(node) or ""
            if _only_computes(ctx, callee):
                continue
            if not callee.startswith(("torch.", "Tensor.")) or not definitions.ops(callee):
                return False
            if callee.endswith("_"):
                return False
        if isinstance(node, (cst.Attribute, cst.Name)) and isinstance(ctx.kind(node), k.Module):
            if not isinstance(node, cst.Name) or node is value:
                return False
        if isinstance(node, cst.Attribute):
            if not _is(node.value, name) and node.attr.value in given:
                return False
            inner = node.value
            if isinstance(inner, cst.Attribute) and _is(inner.value, name):
                if isinstance(ctx.kind(inner), (k.Unknown, k.Other)):
                    return False  # of a child, which may be set before or behind
        elif isinstance(node, (cst.NamedExpr, cst.Lambda, cst.Await, cst.Yield, cst.BaseComp)):
            return False
    attributes = [
        n for n in syntax.walk(value) if isinstance(n, cst.Attribute) and _is(n.value, name)
    ]
    return syntax.names(value).get(name, 0) == len(attributes)


def _only_computes(ctx: Context, name: str) -> bool:
    """``self.scale(n)`` of a method that computes, or draws, and returns: in whatever order it is asked."""
    info = ctx.facts.names.get(name)
    if info is None or info.settled is not None or info.generator:
        return False
    for line in info.node.body.body:
        for small in getattr(line, "body", [line]) if not isinstance(line, cst.If) else [line]:
            if not isinstance(small, (cst.Assign, cst.Return)) or small.value is None:
                return False
            if isinstance(small, cst.Assign) and not all(
                isinstance(one.target, cst.Name) for one in small.targets
            ):
                return False
            if not _hangs_on_itself(ctx, small.value, "self", set()):
                return False
    return True


def _fills(ctx: Context, call: cst.Call, name: str) -> bool:
    """``m.noise.copy_(x)``, ``m.noise.normal_()``: a tensor of the module is written, and nothing of another is read."""
    func = call.func
    if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Attribute):
        return False
    callee = ctx.facts.callee(call) or ""
    if not callee.startswith("Tensor.") or not callee.endswith("_"):
        return False
    own = func.value
    return _is(own.value, name) and all(
        _hangs_on_itself(ctx, one.value, name, {own.attr.value}) for one in call.args
    )


def _resets(ctx: Context, call: cst.Call, name: str) -> bool:
    func = call.func
    if call.args or not isinstance(func, cst.Attribute) or not _is(func.value, name):
        return False
    methods = _methods(ctx, func)
    return bool(methods) and all(
        one.settled is None and _sets(ctx, one.node.body, "self") for one in methods
    )


def _methods(ctx: Context, func: cst.Attribute) -> list[FunctionInfo]:
    """What ``m.reset`` may be: the method of its class, or of those of the file that have one, where no other file's may."""
    known = ctx.class_of(ctx.kind(func.value))
    name = func.attr.value
    if known is not None:
        heirs = [one for one in ctx.facts.classes.values() if known in one.lineage()]
        found = [one.method(name) for one in heirs]
        return [one for one in found if one is not None] if None not in found else []
    if ctx.facts.linked is not None or name in _OF_TORCH:
        return []
    found = [one.methods.get(name) for one in ctx.facts.classes.values() if one.torch_base]
    return [one for one in found if one is not None]


_OF_TORCH = frozenset("reset_parameters eval train zero_grad flatten_parameters".split())


def _is(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name
