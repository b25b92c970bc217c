"""Results that are built in an attribute: ``self.outputs = {}`` and its entries, in the forward pass that returns it.

They are built under a name of the method's own, and the module keeps them when they are whole::

    self.outputs = {}                                  outputs = {}
    for i in self.scales:                              for i in self.scales:
        self.outputs[("disp", i)] = head(x)    ⟶           outputs[("disp", i)] = head(x)
    return self.outputs                                self.outputs = outputs
                                                       return outputs
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import with_statements

_MADE = re.compile(r"\bself\.(\w+) *= *(?:\{\}|(?:collections\.)?(?:OrderedDict|dict)\(\))")
_ENTRY = re.compile(r"\bself\.(\w+)\[[^\n]*\] *=[^=]")


def under_own_names(tree: cst.Module, text: str) -> cst.Module:
    """A file whose methods build dicts that the module keeps when they are whole."""
    names = set(_MADE.findall(text)) & set(_ENTRY.findall(text))
    if not names:
        return tree
    every = list(syntax.walk(tree))
    texts = {n.value.strip("'\"") for n in every if isinstance(n, cst.SimpleString)}
    others = {n.attr.value for n in every if isinstance(n, cst.Attribute) and not _of_self(n)}
    names -= texts | others  # asked for by its name, or of another object
    classes = [n for n in every if isinstance(n, cst.ClassDef)]

    def change(node: Any) -> Any:
        if not isinstance(node, cst.ClassDef) or not isinstance(node.body, cst.IndentedBlock):
            return node
        related = [one for one in classes if _are_related(one, node)]
        if any(one.name.value == node.name.value for one in related):
            return node  # two of one name
        body = list(node.body.body)
        for place, line in enumerate(body):
            if isinstance(line, cst.FunctionDef) and not line.name.value.startswith("__"):
                made = line
                for name in sorted(names):
                    rest = [*body[:place], *body[place + 1 :], *related]
                    if not any(_is_own(n, name) for one in rest for n in syntax.walk(one)):
                        made = _built(made, name) or made
                body[place] = made
        same = all(new is old for new, old in zip(body, node.body.body, strict=True))
        return node if same else syntax.changed(node, body=syntax.changed(node.body, body=body))

    return with_statements(tree, change)


def _of_self(node: cst.Attribute) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value == "self"


def _are_related(one: cst.ClassDef, other: cst.ClassDef) -> bool:
    """Whether one of two classes may derive from the other, or something from both: where a class of the file does."""
    if one is other:
        return False
    bases = {syntax.code(base.value).rpartition(".")[2] for base in (*one.bases, *other.bases)}
    return bool(bases - _OF_TORCH)


_OF_TORCH = frozenset({"Module", "object", "ABC"})


def _is_named(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == name


def _is_own(node: Any, name: str) -> bool:
    return _is_named(node, name) and isinstance(node.value, cst.Name) and node.value.value == "self"


def _built(function: cst.FunctionDef, name: str) -> cst.FunctionDef | None:
    """A method that builds a dict under a name of its own; None where more is done with it."""
    if not isinstance(function.body, cst.IndentedBlock) or name in syntax.names(function):
        return None
    if list(syntax.parameters(function))[:1] != ["self"]:
        return None
    lines = list(function.body.body)
    made = [i for i, line in enumerate(lines) if _is_made(line, name)]
    if len(made) != 1:
        return None
    (first,) = made
    rest = lines[first + 1 :]
    if any(_is_named(n, name) for line in lines[:first] for n in syntax.walk(line)):
        return None
    ended = bool(rest) and _returns(rest[-1])
    for line in rest[:-1] if ended else rest:
        for node in syntax.walk(line):
            if isinstance(node, (cst.Return, cst.Yield, cst.Try)):
                return None
    for line in rest:
        for node in syntax.walk(line):
            if isinstance(node, (cst.FunctionDef, cst.ClassDef, cst.Lambda)):
                if any(_is_named(n, name) for n in syntax.walk(node)):
                    return None
            if _is_named(node, name) and not _is_own(node, name):
                return None
            if isinstance(node, cst.AssignTarget) and _is_own(node.target, name):
                return None

    if not _are_alike(rest, name):
        return None

    def visit(node: cst.CSTNode) -> Any:
        return cst.Name(name) if _is_own(node, name) else syntax.rebuild(node, visit)

    body = [*lines[:first], *map(visit, lines[first:])]
    keep = syntax.statement(f"self.{name} = {name}\n")
    body.insert(len(body) - ended, keep)
    return syntax.changed(function, body=syntax.changed(function.body, body=body))


def _is_made(line: Any, name: str) -> bool:
    """``self.outputs = {}``."""
    match line:
        case cst.SimpleStatementLine(
            body=[cst.Assign(targets=[cst.AssignTarget(target=target)], value=value)]
        ) if _is_own(target, name):
            if isinstance(value, cst.Call):
                return not value.args
            return isinstance(value, cst.Dict) and not value.elements
    return False


def _returns(line: Any) -> bool:
    return isinstance(line, cst.SimpleStatementLine) and isinstance(line.body[-1], cst.Return)


def _are_alike(lines: list[Any], name: str) -> bool:
    """Whether the keys of a dict can be put in order, which a module that keeps it does: texts, or tuples of one make."""
    makes: set[str] = set()
    for line in lines:
        for node in syntax.walk(line):
            match node:
                case cst.AssignTarget(target=cst.Subscript(value=held) as place) if _is_own(
                    held, name
                ):
                    key = syntax.key_of(place)
                    if key is None:
                        return False
                    makes.add(_make(key))
    return len(makes) == 1


def _make(key: cst.BaseExpression) -> str:
    if isinstance(key, (cst.SimpleString, cst.FormattedString)):
        return "text"
    if isinstance(key, cst.Tuple):
        return f"({', '.join(_make(one.value) for one in key.elements)})"
    return "number" if isinstance(key, cst.Integer) else syntax.code(key)
