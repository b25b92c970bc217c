"""Parameters that are changed through a view and made anew of it: biases of detection heads.

``b = conv.bias.view(na, -1); b.data[:, 4] += 1.0; conv.bias = nn.Parameter(b.view(-1))``: the parameter that the view
is of is given up, so that a copy does as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_statements

_VIEWED = re.compile(r"\b(\w+) *= *[\w.\[\]]+\.(?:bias|weight)(?:\.data)?\.(?:view|reshape)\(")
_SHAPING = ("view", "reshape")


def on_copies(tree: cst.Module, text: str) -> cst.Module:
    """A file that changes copies of the parameters which it then replaces by what became of them."""
    if "Parameter(" not in text or not _VIEWED.search(text):
        return tree
    return with_statements(
        tree, lambda node: _block(node) if isinstance(node, cst.IndentedBlock) else node
    )


def _block(block: cst.IndentedBlock) -> cst.IndentedBlock:
    body = list(block.body)
    for place, line in enumerate(body):
        found = _view(line)
        if found is not None and _is_given_back(body[place + 1 :], *found[:2]):
            call = found[2]
            copied = cst.Call(cst.Attribute(call, cst.Name("clone")))
            body[place] = _with(line, call, copied)
    return syntax.changed(block, body=body) if body != list(block.body) else block


def _with(line: Any, old: cst.CSTNode, new: cst.CSTNode) -> Any:
    def visit(node: cst.CSTNode) -> Any:
        return new if node is old else syntax.rebuild(node, visit)

    return visit(line)


def _view(line: Any) -> tuple[str, str, cst.Call] | None:
    """The variable, the parameter and the call of ``b = conv.bias.view(na, -1)``."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                cst.Assign(
                    [cst.AssignTarget(cst.Name(value=name))],
                    cst.Call(func=cst.Attribute(value=viewed, attr=cst.Name(value=how))) as call,
                )
            ]
        ) if how in _SHAPING:
            if isinstance(viewed, cst.Attribute) and viewed.attr.value == "data":
                viewed = viewed.value
            if isinstance(viewed, cst.Attribute) and viewed.attr.value in ("bias", "weight"):
                return name, syntax.code(viewed), call
    return None


def _is_given_back(rest: Sequence[Any], name: str, parameter: str) -> bool:
    """Whether the lines behind a view write to it, and then make the parameter of it and nothing else."""
    for line in rest:
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if small is None or len(line.body) != 1:
            return False
        if isinstance(small, cst.Assign) and len(small.targets) == 1:
            if syntax.code(small.targets[0].target) == parameter:
                return _is_made_of(small.value, name) and not _is_read(rest, line, name)
        if not _writes(small, name, parameter):
            return False
    return False


def _is_made_of(value: cst.BaseExpression, name: str) -> bool:
    """``nn.Parameter(b.view(-1), requires_grad=True)``."""
    match value:
        case cst.Call(func=func, args=[cst.Arg(value=given), *_]):
            last = func.attr if isinstance(func, cst.Attribute) else func
            if not isinstance(last, cst.Name) or last.value != "Parameter":
                return False
            match given:
                case cst.Call(
                    func=cst.Attribute(value=cst.Name(value=viewed), attr=cst.Name(value=how))
                ):
                    return viewed == name and how in _SHAPING
    return False


def _is_read(rest: Sequence[Any], line: Any, name: str) -> bool:
    """Whether a block goes on to use the view, whose memory the new parameter shares."""
    behind = rest[list(rest).index(line) + 1 :]
    for one in behind:
        again = _view(one)
        if again is not None and again[0] == name and name not in syntax.names(again[2]):
            return False
        if name in syntax.names(one):
            return True
    return False


def _writes(small: Any, name: str, parameter: str) -> bool:
    """Whether a line writes to the view and reads nothing of the parameter: ``b.data[:, 4] += 1``."""
    if isinstance(small, cst.Expr) and isinstance(small.value, cst.Call):
        func = small.value.func
        if not isinstance(func, cst.Attribute) or not func.attr.value.endswith("_"):
            return False
        target, values = func.value, [one.value for one in small.value.args]
    elif isinstance(small, cst.AugAssign):
        target, values = small.target, [small.value]
    elif isinstance(small, cst.Assign) and len(small.targets) == 1:
        target, values = small.targets[0].target, [small.value]
        if isinstance(target, cst.Name):
            return False
    else:
        return False
    while isinstance(target, (cst.Subscript, cst.Attribute)):
        if isinstance(target, cst.Attribute) and target.attr.value != "data":
            return False
        target = target.value
    if not isinstance(target, cst.Name) or target.value != name:
        return False
    owner = parameter.rpartition(".")[0]
    return not any(owner in syntax.code(one) for one in values)
