"""``z, det = flow.backward(z)``: a method of that name that goes back through a module, where tensors have one as well."""

from __future__ import annotations

import libcst as cst

from migrator.assignments import bound
from migrator.infer import kinds as k
from migrator.infer.facts import Facts, FunctionInfo

_NOTHING = frozenset({"backward"})
"""Methods of tensors that give None."""
_CONTAINERS = frozenset(f"torch.nn.{name}" for name in ("ModuleList", "Sequential"))
_ORDERED = frozenset({"builtins.reversed", "builtins.list", "builtins.tuple"})
"""What gives the same children in some order."""


def is_of_no_tensor(facts: Facts, function: FunctionInfo | None, call: cst.Call) -> bool:
    """Whether a method that tensors have is called of something else, of which nothing is known.

    A tensor's gives None, which is not taken apart; and what stands in a ModuleList is a module.
    """
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _NOTHING:
        return False
    if not isinstance(facts.kind(func.value), k.Unknown) or not facts.tree.has(call):
        return False
    above = facts.tree.parent(call)
    if isinstance(above, cst.Assign):
        if any(isinstance(one.target, cst.Tuple | cst.List) for one in above.targets):
            return True
    return is_child(facts, function, func.value)


def is_child(facts: Facts, function: FunctionInfo | None, node: cst.BaseExpression) -> bool:
    """Whether something is a child of a ModuleList: ``self.flows[0]``, ``flow`` of ``for flow in self.flows[::-1]``."""
    if isinstance(node, cst.Subscript):
        return _is_container(facts, node.value)
    if not isinstance(node, cst.Name) or function is None:
        return False
    name, own = node.value, _own_loop(facts, node)
    if own is not None:
        return isinstance(own.target, cst.Name) and _is_walk(facts, own.iter)
    body = function.node.body
    if name in function.params or any(
        name in bound(one.target)
        for one in facts.tree.within(body, cst.AssignTarget, cst.AnnAssign, cst.NamedExpr)
    ):
        return False
    binding = [one for one in facts.tree.within(body, cst.For) if name in bound(one.target)]
    return bool(binding) and all(
        isinstance(one.target, cst.Name) and _is_walk(facts, one.iter) for one in binding
    )


def _own_loop(facts: Facts, node: cst.Name) -> cst.CompFor | None:
    """The loop of a comprehension that gives a name its value within it."""
    above: cst.CSTNode | None = node
    while above is not None and not isinstance(above, (cst.FunctionDef, cst.Module)):
        loop = getattr(above, "for_in", None)
        while isinstance(loop, cst.CompFor):
            if node.value in bound(loop.target):
                return loop
            loop = loop.inner_for_in
        above = facts.tree.parent(above) if facts.tree.has(above) else None
    return None


def _is_walk(facts: Facts, node: cst.BaseExpression) -> bool:
    """``self.flows``, ``self.flows[::-1]``, ``reversed(self.flows)``."""
    if isinstance(node, cst.Call) and facts.callee(node) in _ORDERED and len(node.args) == 1:
        node = node.args[0].value
    if isinstance(node, cst.Subscript):
        item = node.slice[0].slice if len(node.slice) == 1 else None
        return isinstance(item, cst.Slice) and _is_container(facts, node.value)
    return _is_container(facts, node)


def _is_container(facts: Facts, node: cst.BaseExpression) -> bool:
    kind = facts.kind(node)
    return isinstance(kind, k.Module) and kind.cls in _CONTAINERS
