"""``W = nn.Parameter if learnable else Variable``, and ``W(x)``: each is called where the choice is known.

``Variable`` is no class of JAX, and a parameter is one where Flax is shown it.
"""

from __future__ import annotations

import re

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_CHOSEN = re.compile(r"\bVariable\s+if\b|\belse\s+(?:[\w.]+\.)?Variable\b")


def called_apart(tree: cst.Module, text: str) -> cst.Module:
    """A file with calls of what is chosen as choices between calls, where one of two is ``Variable``."""
    chosen = "Variable" in text and _CHOSEN.search(text)
    return with_functions(tree, _function) if chosen else tree


def _function(function: cst.FunctionDef) -> cst.FunctionDef:
    choices: dict[str, cst.IfExp] = {}
    nodes = syntax.walk(function)
    for node in nodes:
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
            if isinstance(target, cst.Name) and _is_choice(node.value):
                choices[target.value] = node.value  # type: ignore[assignment]
    changing = [n.value for n in nodes if isinstance(n, cst.Name)]
    stays = {
        name: choice
        for name, choice in choices.items()
        if changing.count(name) == 1 + _calls(nodes, name) and _is_settled(nodes, choice.test)
    }

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        if isinstance(node, cst.Assign) and node.value in stays.values():
            return cst.Pass(semicolon=node.semicolon)
        made = syntax.rebuild(node, visit)
        if not isinstance(made, cst.Call) or not isinstance(node, cst.Call):
            return made
        choice = stays.get(node.func.value) if isinstance(node.func, cst.Name) else node.func
        return (
            _apart(made, choice) if isinstance(choice, cst.IfExp) and _is_choice(choice) else made
        )

    return syntax.changed(function, body=visit(function.body))


def _apart(call: cst.Call, choice: cst.IfExp) -> cst.IfExp:
    body, orelse = (
        syntax.changed(call, func=one, lpar=[], rpar=[]) for one in (choice.body, choice.orelse)
    )
    made: cst.IfExp = syntax.parenthesized(  # type: ignore[assignment]
        cst.IfExp(test=choice.test, body=body, orelse=orelse)
    )
    return made


def _is_choice(node: cst.CSTNode) -> bool:
    """``nn.Parameter if learnable else Variable``."""
    if not isinstance(node, cst.IfExp):
        return False
    both = [syntax.code(one).rpartition(".")[2] for one in (node.body, node.orelse)]
    plain = all(isinstance(one, (cst.Name, cst.Attribute)) for one in (node.body, node.orelse))
    return plain and "Variable" in both and isinstance(node.test, (cst.Name, cst.Attribute))


def _calls(nodes: list[cst.CSTNode], name: str) -> int:
    """How often a name is called."""
    called = (n.func for n in nodes if isinstance(n, cst.Call))
    return sum(isinstance(f, cst.Name) and f.value == name for f in called)


def _is_settled(nodes: list[cst.CSTNode], test: cst.BaseExpression) -> bool:
    """Whether a function gives what a test names no value, but for ``self.learnable = learnable`` beside it."""
    own = isinstance(test, cst.Attribute)
    text, times = syntax.code(test), 0
    for node in nodes:
        if isinstance(node, (cst.NamedExpr, cst.CompFor, cst.AsName, cst.AnnAssign)):
            bound = node.name if isinstance(node, cst.AsName) else node.target
            times += 2 * (text in syntax.code(bound))
        if isinstance(node, (cst.AssignTarget, cst.AugAssign, cst.For)):
            target = node.target
            if syntax.code(target) == text:
                times += 1 if isinstance(node, cst.AssignTarget) else 2
            elif isinstance(target, (cst.Tuple, cst.List)) and text in syntax.code(target):
                times += 2
    return times <= own
