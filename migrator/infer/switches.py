"""One of two contexts, of which one switches gradients off: ``torch.no_grad if frozen else nullcontext``."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator.infer.facts import Facts, FunctionInfo

OFF = frozenset("torch.no_grad torch.inference_mode torch.autograd.no_grad".split())
_NOTHING = frozenset({"contextlib.nullcontext"})


@dataclass(frozen=True)
class Switch:
    """Which of the two it is: the first where ``test`` holds."""

    test: cst.BaseExpression
    off_if_true: bool


def choice(facts: Facts, node: cst.CSTNode, *, called: bool) -> Switch | None:
    """The test of such an expression; ``called``: whether its arms are contexts, or what makes them."""
    if not isinstance(node, cst.IfExp):
        return None
    arms = [_switches_off(facts, arm, called) for arm in (node.body, node.orelse)]
    return Switch(node.test, bool(arms[0])) if set(arms) == {True, False} else None


def _switches_off(facts: Facts, node: cst.BaseExpression, called: bool) -> bool | None:
    if isinstance(node, cst.Call) is not called:
        return None
    if isinstance(node, cst.Call):
        if node.args:
            return None
        node = node.func
    name = facts.qualified_name(node)
    if name in OFF:
        return True
    return False if name in _NOTHING or _does_nothing(facts, name) else None


def _does_nothing(facts: Facts, name: str | None) -> bool:
    """Whether a context of the file does nothing: ``@contextmanager def null_context(): yield``."""
    info = facts.names.get(name or "")
    if not isinstance(info, FunctionInfo) or not facts.tree.has(info.node):
        return False
    made = [facts.qualified_name(one.decorator) for one in info.node.decorators]
    lines = [line for line in info.node.body.body if isinstance(line, cst.SimpleStatementLine)]
    body = [part for line in lines for part in line.body]
    if len(lines) < len(info.node.body.body):
        return False
    if len(body) == 2 and isinstance(getattr(body[0], "value", None), cst.SimpleString):
        body = body[1:]  # what it says of itself
    only = body[0].value if len(body) == 1 and isinstance(body[0], cst.Expr) else None
    waits = isinstance(only, cst.Yield) and only.value is None
    return made == ["contextlib.contextmanager"] and waits


def assigned(facts: Facts, node: cst.With, function: cst.FunctionDef) -> cst.Assign | None:
    """The assignment of what a ``with`` enters, ``context()`` or ``context``: it is used for nothing else."""
    item = node.items[0].item
    called = isinstance(item, cst.Call)
    name = item.func if isinstance(item, cst.Call) and not item.args else item
    if not isinstance(name, cst.Name):
        return None
    found = _only_assignment(facts, name.value, function)
    if found is None or choice(facts, found.value, called=not called) is None:
        return None
    return found if found not in facts.tree.below(node.body) else None


def kept(facts: Facts, node: cst.Assign) -> bool:
    """Whether an assignment keeps one of two contexts for nothing but to enter it."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Name):
        return False
    if not isinstance(node.value, cst.IfExp) or not facts.tree.has(node):  # made of one with a hint
        return False
    above = reversed(facts.tree.around(node))
    function = next((one for one in above if isinstance(one, cst.FunctionDef)), None)
    if function is None:
        return False
    called = isinstance(node.value.body, cst.Call)
    if choice(facts, node.value, called=called) is None:
        return False
    if _only_assignment(facts, target.value, function) is not node:
        return False
    withs = facts.tree.within(function.body, cst.With)
    entered = [one for one in withs if assigned(facts, one, function) is node]
    uses = [n for n in facts.tree.within(function.body, cst.Name) if n.value == target.value]
    return len(uses) == 1 + len(entered) and all(
        len(one.items) == 1 and one.items[0].asname is None for one in entered
    )


def _only_assignment(facts: Facts, name: str, function: cst.FunctionDef) -> cst.Assign | None:
    """The one place that binds a name of a function, when that assigns to it alone."""
    params = {p.name.value for p in facts.tree.within(function, cst.Param)}
    found = [
        one
        for one in facts.tree.within(function.body, cst.Assign)
        if any(isinstance(t.target, cst.Name) and t.target.value == name for t in one.targets)
    ]
    return found[0] if len(found) == 1 and name not in params else None
