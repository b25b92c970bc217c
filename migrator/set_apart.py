"""Attributes that are set together and mean more than that: ``self.attend, self.heads = self._plain, 4``.

What a module keeps of its methods, what it is asked to run instead of ``forward``, what no longer is trained: each of these
is told by its own assignment, so they are read as one after the other, where that gives the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by, with_functions

_NAME = r"[A-Za-z_][\w.]*[ \t]*"
_SEVERAL = re.compile(
    rf"^[ \t]*(?:[(\[]?[ \t]*{_NAME},|[(\[][ \t]*{_NAME}[)\]][ \t]*=|{_NAME}=[ \t]*{_NAME}=)", re.M
)
"""How a line begins that may set several attributes."""
_SEQUENCES = (cst.Tuple, cst.List)
_TELLING = frozenset("forward requires_grad training weight bias".split())
"""Attributes by which a module is another one."""
_DEFERRING = (cst.Await, cst.Yield, cst.NamedExpr)


def set_apart(tree: cst.Module, text: str) -> cst.Module:
    """A file whose functions set such attributes one after the other."""
    if _SEVERAL.search(text) is None:
        return tree
    computed = "property" in text or "__setattr__" in text or "__getattr__" in text
    own = frozenset(re.findall(r"\bdef (\w+)", text))

    if not any(_is_more(_pairs(line), own) for line in _lines_of(tree)):
        return tree

    def visit(function: cst.FunctionDef) -> cst.FunctionDef:
        found = {
            line: pairs
            for line in _lines_of(function.body)
            if (pairs := _pairs(line))
            and _is_more(pairs, own)
            and _in_turn(function, pairs, computed)
        }
        return _with(function, found) if found else function

    return with_functions(tree, visit)


def _lines_of(node: Any) -> Iterator[cst.SimpleStatementLine]:
    """The lines of a file or suite, and of the suites in it; expressions, which hold none, are not looked into."""
    for one in getattr(node, "body", ()):
        if isinstance(one, cst.SimpleStatementLine):
            yield one
            continue
        parts = [getattr(one, name, None) for name in ("body", "orelse", "finalbody")]
        parts += [*getattr(one, "handlers", ()), *getattr(one, "cases", ())]
        while parts:
            part = parts.pop(0)
            if isinstance(part, cst.IndentedBlock):
                yield from _lines_of(part)
            elif part is not None and not isinstance(part, cst.SimpleStatementSuite):
                parts += [getattr(part, "body", None), getattr(part, "orelse", None)]


_Pairs = list[tuple[cst.BaseExpression, cst.BaseExpression]]


def _pairs(line: cst.SimpleStatementLine) -> _Pairs:
    """The targets with what each of them gets."""
    only = line.body[0] if len(line.body) == 1 else None
    if not isinstance(only, cst.Assign):
        return []
    if len(only.targets) > 1:  # self.a.bias = self.b.bias = None
        return [(one.target, only.value) for one in only.targets] if _is_constant(only) else []
    target, value = only.targets[0].target, only.value
    if not isinstance(target, _SEQUENCES) or not isinstance(value, _SEQUENCES):
        return []
    both = [*target.elements, *value.elements]
    if len(target.elements) != len(value.elements) or not target.elements:
        return []
    if any(isinstance(one, cst.StarredElement) for one in both):
        return []
    if not all(isinstance(one.value, cst.Name | cst.Attribute) for one in target.elements):
        return []
    values = [one.value for one in value.elements]
    return list(zip([one.value for one in target.elements], values, strict=True))


def _is_constant(line: cst.Assign) -> bool:
    """Whether an assignment gives several names and attributes None, or whether something is."""
    value = line.value
    known = isinstance(value, cst.Name) and value.value in ("None", "True", "False")
    return known and all(isinstance(o.target, cst.Name | cst.Attribute) for o in line.targets)


def _is_more(pairs: _Pairs, own: frozenset[str]) -> bool:
    """Whether an attribute is a telling one, or may get a function: a lambda, or a method, of the file or inherited."""
    for target, value in pairs:
        if not isinstance(target, cst.Attribute):
            continue
        for one in _given(value):
            method = isinstance(one, cst.Attribute) and (
                one.attr.value in own
                or (isinstance(one.value, cst.Name) and one.value.value == "self")
            )
            if method or isinstance(one, cst.Lambda) or target.attr.value in _TELLING:
                return True
    return False


def _given(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What an expression may give: the values of its branches."""
    if isinstance(value, cst.IfExp):
        yield from _given(value.body)
        yield from _given(value.orelse)
    elif isinstance(value, cst.BooleanOperation):
        yield from _given(value.left)
        yield from _given(value.right)
    else:
        yield value


def _in_turn(function: cst.FunctionDef, pairs: _Pairs, computed: bool) -> bool:
    """Whether no value is another one once what stands before it is assigned."""
    owners = {_root(target) for target, _ in pairs if isinstance(target, cst.Attribute)}
    local = _local(function)
    if None in owners or any(
        isinstance(one, cst.Assign)
        and isinstance(one.value, cst.Name)
        and one.value.value in owners
        for one in syntax.walk(function.body)
    ):
        return False  # an object with another name
    names, attributes = set[str](), set[str]()
    for (target, _), (_, value) in pairwise(pairs):
        if isinstance(target, cst.Attribute):
            attributes.add(target.attr.value)
        else:
            names |= set(syntax.names(target))
        for one in syntax.walk(value):
            if isinstance(one, _DEFERRING):
                return False
            if isinstance(one, cst.Attribute) and (computed or one.attr.value in attributes):
                return False
            if isinstance(one, cst.Name) and one.value in names:
                return False
            if isinstance(one, cst.Call) and not _is_of_outside(one, local, owners):
                return False
    return "data" not in attributes


def _root(node: cst.BaseExpression) -> str | None:
    while isinstance(node, cst.Attribute):
        node = node.value
    return node.value if isinstance(node, cst.Name) else None


def _is_of_outside(call: cst.Call, local: set[str], owners: set[str | None]) -> bool:
    """Whether a call is of something that the function did not make, and is not handed what is written."""
    if _root(call.func) in {None, *local}:
        return False
    return not any(
        isinstance(arg.value, cst.Name) and arg.value.value in owners for arg in call.args
    )


def _local(function: cst.FunctionDef) -> set[str]:
    """The names of a function's own."""
    found = set(syntax.parameters(function))
    for one in syntax.walk(function):
        if isinstance(one, BINDING):
            found |= set(bound(bound_by(one)))
        elif isinstance(one, cst.FunctionDef | cst.ClassDef) and one is not function:
            found.add(one.name.value)
    return found


def _with(
    function: cst.FunctionDef, found: dict[cst.SimpleStatementLine, _Pairs]
) -> cst.FunctionDef:
    def visit(node: cst.CSTNode) -> Any:
        if not isinstance(node, cst.IndentedBlock):
            return node if isinstance(node, cst.BaseExpression) else syntax.rebuild(node, visit)
        body: list[Any] = []
        for line in node.body:
            if isinstance(line, cst.SimpleStatementLine) and line in found:
                body.extend(_lines(line, found[line]))
            else:
                body.append(visit(line))
        return syntax.changed(node, body=body)

    return syntax.changed(function, body=visit(function.body))


def _lines(line: cst.SimpleStatementLine, pairs: _Pairs) -> Iterator[cst.SimpleStatementLine]:
    for number, (target, value) in enumerate(pairs):
        made = cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], value)])  # type: ignore[arg-type]
        if number == 0:
            made = syntax.changed(made, leading_lines=line.leading_lines)
        if number == len(pairs) - 1:
            made = syntax.changed(made, trailing_whitespace=line.trailing_whitespace)
        yield made
