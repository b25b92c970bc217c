"""Lists of a module's own layers that a constructor fills line by line: ``self._all = []``, ``self._all += [self.rnn]``.

They are written where the last of these lines stands, as one list: ``self._all = [self.rnn, self.fc]``.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_functions

_FILLED = re.compile(r"\bself\.(\w+)(?: *\+= *\[|\.append\(|\.extend\(\[) *self\.\w+")


def in_one_list(tree: cst.Module, text: str) -> cst.Module:
    """A file whose constructors write down the lists of layers that they have made before."""
    names = dict.fromkeys(_FILLED.findall(text))
    if not names or "= []" not in text:
        return tree

    def change(function: cst.FunctionDef) -> cst.FunctionDef:
        if function.name.value == "__init__" and isinstance(function.body, cst.IndentedBlock):
            for name in names:
                lines = _gathered(list(function.body.body), name)
                if lines is not None:
                    body = syntax.changed(function.body, body=lines)
                    function = syntax.changed(function, body=body)
        return function

    return with_functions(tree, change)


def _gathered(lines: list[Any], name: str) -> list[Any] | None:
    """The lines of a constructor with a list in one; None where it is not filled with nothing but own layers."""
    made = [i for i, line in enumerate(lines) if _is_empty(line, name)]
    if len(made) != 1:
        return None
    (first,) = made
    filling = {i: one for i, line in enumerate(lines) if (one := _added(line, name))}
    if not filling or min(filling) < first:
        return None
    last = max(filling)
    for i, line in enumerate(lines[: last + 1]):
        if i == first or i in filling:
            continue
        for node in syntax.walk(line):
            if isinstance(node, cst.Attribute) and node.attr.value == name:
                return None
            if i > first and _may_read(node):
                return None
    added = [one for i in sorted(filling) for one in filling[i]]
    held: set[str] = set()
    for i in range(first, last):
        held |= {syntax.code(one) for one in filling.get(i, ())}
        targets = (one for one in syntax.walk(lines[i]) if isinstance(one, cst.AssignTarget))
        if any(syntax.code(one.target) in held for one in targets):
            return None  # a layer that is made anew is another one
    elements = [cst.Element(one) for one in added]
    target: Any = cst.Attribute(cst.Name("self"), cst.Name(name))
    whole = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], cst.List(elements))])
    found: list[Any] = []
    for i, line in enumerate(lines):
        if i == last:
            found.append(syntax.changed(whole, leading_lines=line.leading_lines))
        elif i != first and i not in filling:
            found.append(line)
    return found


def _may_read(node: cst.CSTNode) -> bool:
    """Whether a line may read the list without naming it: a method of the module, what is handed the module."""
    match node:
        case cst.Call(func=cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value=name))):
            return name not in ("register_buffer", "register_parameter", "add_module")
        case cst.Arg(value=cst.Name(value="self")) | cst.FunctionDef() | cst.Lambda():
            return True
        case cst.Return():
            return True
    return False


def _is_own(node: Any, name: str | None = None) -> bool:
    """``self.rnn``."""
    return (
        isinstance(node, cst.Attribute)
        and isinstance(node.value, cst.Name)
        and node.value.value == "self"
        and (name is None or node.attr.value == name)
    )


def _is_empty(line: Any, name: str) -> bool:
    """``self._all = []``."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign([cst.AssignTarget(target)], cst.List(elements))]
        ):
            return _is_own(target, name) and not elements
    return False


def _added(line: Any, name: str) -> list[cst.BaseExpression] | None:
    """The layers that ``self._all += [self.rnn, self.fc]`` or ``self._all.append(self.rnn)`` adds."""
    given: list[cst.BaseExpression] = []
    match line:
        case cst.SimpleStatementLine(
            body=[cst.AugAssign(target, cst.AddAssign(), cst.List(elements))]
        ) if _is_own(target, name):
            given = [one.value for one in elements if isinstance(one, cst.Element)]
            if len(given) != len(elements):
                return None
        case cst.SimpleStatementLine(
            body=[
                cst.Expr(
                    cst.Call(
                        func=cst.Attribute(value=target, attr=cst.Name(value=method)),
                        args=[cst.Arg(value=value, keyword=None, star="")],
                    )
                )
            ]
        ) if _is_own(target, name):
            if method == "append":
                given = [value]
            elif method == "extend" and isinstance(value, cst.List):
                given = [one.value for one in value.elements if isinstance(one, cst.Element)]
                if len(given) != len(value.elements):
                    return None
    return given if given and all(map(_is_own, given)) else None
