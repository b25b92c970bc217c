"""Lists and dicts that a constructor keeps in attributes until it has made modules of them.

``self.blocks = []`` and later ``self.blocks = nn.ModuleList([nn.ModuleList(b) for b in self.blocks])``: until then they
are lists of Python for torch, which nobody else sees. Flax wants to be told what a list in an attribute holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from migrator import syntax

_EMPTY = ("list", "dict", "OrderedDict")
_OWN = r"self\.(?<!\wself\.)"
"""``\\bself\\.``, found many times as fast: a pattern is looked for at once where it starts with plain characters."""
_DRAFT = re.compile(rf"{_OWN}(\w+)\s*=\s*(?:[\[{{]|(?:collections\.)?(?:{'|'.join(_EMPTY)})\(\))")
_NESTED = rf"{_OWN}{{0}}(?:\s*\+=\s*\[\s*|\.append\(\s*|\s*=\s*\[\s*|\[[^\]]*\]\s*=\s*)[\[(]"
_FINISHED = rf"{_OWN}{{0}}\s*=\s*(?:\w+\.)*(?:ModuleList|ModuleDict|Sequential)\("
_MODULES = ("ModuleList", "ModuleDict", "Sequential")


def in_variables(tree: cst.Module, text: str) -> cst.Module:
    """A file whose constructors keep lists of lists in variables until they have made modules of them."""
    if not any(f"{name}(" in text for name in _MODULES):
        return tree
    names = {
        name
        for name in set(_DRAFT.findall(text))
        if all(re.search(one.format(name), text) for one in (_FINISHED, _NESTED))
    }
    if not names:
        return tree

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        if isinstance(node, cst.FunctionDef) and node.name.value == "__init__":
            for name in sorted(names):
                node = _constructor(node, name, tree)
            return node
        return syntax.rebuild(node, visit)

    made = visit(tree)
    assert isinstance(made, cst.Module)
    return made


def _constructor(function: cst.FunctionDef, name: str, tree: cst.Module) -> cst.FunctionDef:
    """A constructor with ``blocks = []`` for ``self.blocks = []``, as long as that is no module."""
    body, first = function.body, function.params.params[:1]
    if not isinstance(body, cst.IndentedBlock) or not first or first[0].name.value != "self":
        return function
    begins = [i for i, line in enumerate(body.body) if _is_draft(line, name)]
    ends = [i for i, line in enumerate(body.body) if _is_finished(line, name)]
    if not begins or not ends or begins[0] > ends[0] or name in syntax.names(function):
        return function
    begin, end = begins[0], ends[0]
    methods = {n.name.value for n in syntax.walk(tree) if isinstance(n, cst.FunctionDef)}
    drafted = body.body[begin:end]
    if any(_leaves(node, name) for line in drafted for node in syntax.walk(line)):
        return function
    if _mentions(body.body[:begin], name) or any(
        _lets_out(line, methods) for line in body.body[begin : end + 1]
    ):
        return function

    def renamed(node: cst.CSTNode) -> cst.CSTNode:
        if syntax.is_own(node, name):
            return cst.Name(name, lpar=node.lpar, rpar=node.rpar)  # type: ignore[attr-defined]
        return syntax.rebuild(node, renamed)

    made = [renamed(line) for line in body.body[begin:end]]
    line = body.body[end]
    assert isinstance(line, cst.SimpleStatementLine)
    assert isinstance(line.body[0], cst.Assign)
    finished = syntax.changed(line.body[0], value=renamed(line.body[0].value))
    made.append(syntax.changed(line, body=[finished]))
    lines = [*body.body[:begin], *made, *body.body[end + 1 :]]
    return syntax.changed(function, body=syntax.changed(body, body=lines))


def _leaves(node: cst.CSTNode, name: str) -> bool:
    """Whether a constructor ends early, makes modules of a list in one case, or keeps it by another name."""
    if isinstance(node, cst.Return):
        return True
    if not isinstance(node, cst.Assign):
        return False
    finished = any(syntax.is_own(one.target, name) for one in node.targets)
    if finished and isinstance(node.value, cst.Call):
        return _last_name(node.value.func) in _MODULES
    return syntax.is_own(node.value, name)


def _assigned(line: cst.CSTNode, name: str) -> cst.BaseExpression | None:
    """What a line assigns to ``self.blocks`` and to nothing else."""
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return None
    only = line.body[0]
    if not isinstance(only, cst.Assign) or len(only.targets) != 1:
        return None
    return only.value if syntax.is_own(only.targets[0].target, name) else None


def _is_draft(line: cst.CSTNode, name: str) -> bool:
    value = _assigned(line, name)
    if isinstance(value, cst.Call):
        return not value.args and _last_name(value.func) in _EMPTY
    made = isinstance(value, (cst.List, cst.ListComp, cst.Dict, cst.DictComp))
    return value is not None and made and not _mentions([value], name)


def _is_finished(line: cst.CSTNode, name: str) -> bool:
    value = _assigned(line, name)
    return isinstance(value, cst.Call) and _last_name(value.func) in _MODULES


def _last_name(node: cst.BaseExpression) -> str:
    last = node.attr if isinstance(node, cst.Attribute) else node
    return last.value if isinstance(last, cst.Name) else ""


def _mentions(nodes: Iterable[cst.CSTNode], name: str) -> bool:
    return any(syntax.is_own(one, name) for node in nodes for one in syntax.walk(node))


def _is_self(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def _lets_out(line: cst.CSTNode, methods: set[str]) -> bool:
    """Whether somebody else may ask the module for the list meanwhile, or a function does later."""
    read = 0
    for node in syntax.walk(line):
        if isinstance(node, (cst.Lambda, cst.FunctionDef)) and any(
            map(_is_self, syntax.walk(node))
        ):
            return True
        if isinstance(node, cst.Attribute) and _is_self(node.value):
            read -= 1
            if node.attr.value in methods:
                return True
        if isinstance(node, cst.Call) and syntax.is_super(node):
            return True
        read += _is_self(node)
    return read != 0
