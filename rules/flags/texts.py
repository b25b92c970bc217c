"""API013: code within a text, which nothing that reads the file sees."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import libcst as cst

from rules.below import children
from rules.registry import Advice, FlagContext, flag


@flag(
    "API013",
    "text-evaluated",
    cst.Call,
    effort=0.5,
    what="code within a text is run",
    why="The text names torch's functions and classes, which the output does not import.",
    example='def build(name: str):\n    return eval(f"nn.{name}(4, 4)")',
    instead='def build(name: str):\n    return {"linear": nn.Linear, "bilinear": nn.Bilinear}[name](4, 4)',
)
def text_evaluated(node: cst.Call, ctx: FlagContext) -> Advice | str | None:
    """``eval(name)`` and ``exec(lines)`` in a file that imports torch, without names of their own to look up."""
    name = ctx.callee(node)
    if name not in ("builtins.eval", "builtins.exec") or len(node.args) != 1:
        return None
    imported = _of_torch(ctx.parents[0]) | _through_others(ctx)
    if not imported:
        return None
    text = node.args[0].value
    if name == "builtins.exec":
        return "write out the statements that it runs"
    if any(imported & set(_WORD.findall(said)) for said in _said(text)):
        return "choose among functions or classes by a dict"
    if _expects_torch(ctx, imported):
        return "look the name up in a dict of the layers that it may be"
    return Advice(
        "what a text names is looked up among the names of the output: torch's are not there",
        what="code within a text is run, and only a run tells which",
        severity="warning",
        blocks=False,
        effort=0.1,
    )


def _expects_torch(ctx: FlagContext, imported: set[str]) -> bool:
    """Whether a program has texts that name something of torch, or asks whether what it evaluated is some of it."""
    function = next((p for p in reversed(ctx.parents) if isinstance(p, cst.FunctionDef)), None)
    assign = next((p for p in reversed(ctx.parents) if isinstance(p, cst.Assign)), None)
    target = assign.targets[0].target if assign is not None else None
    pending: list[Any] = [ctx.parents[0]]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.SimpleString):
            said = node.raw_value
            named = said.partition("(")[0].rpartition(".")[2].strip()
            if _PATH.match(said) and said.partition(".")[0] in imported:
                if named[:1].isupper() or "(" in said:  # no tag, nor the name of a module
                    return True
        elif isinstance(node, cst.Comparison) and isinstance(target, cst.Name):
            inside = any(node is one for one in _below(function)) if function is not None else False
            asked = isinstance(node.left, cst.Name) and node.left.value == target.value
            if asked and inside and any(_first_of(one) in imported for one in _below(node)):
                return True
        pending.extend(children(node))
    return False


_PATH = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+\s*(\(.*)?$")


def _below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in children(node):
        yield from _below(child)


def _first_of(node: cst.CSTNode) -> str:
    return _first(node) if isinstance(node, cst.Attribute) else ""


_WORD = re.compile(r"(?<![\w.])[^\W\d]\w*")


def _said(node: cst.CSTNode) -> Iterator[str]:
    """The texts that an expression is made of."""
    if isinstance(node, cst.SimpleString):
        yield node.raw_value
    elif isinstance(node, cst.FormattedStringText):
        yield node.value
    for child in children(node):
        yield from _said(child)


def _of_torch(module: Any) -> set[str]:
    """The names that a file imports of torch, "*" for all of them."""
    found: set[str] = set()
    pending = [module]
    while pending:
        node = pending.pop()
        if isinstance(node, cst.Import):
            found.update(_bound(one) for one in node.names if _first(one.name) == "torch")
        elif isinstance(node, cst.ImportFrom):
            if node.module is None or node.relative or _first(node.module) != "torch":
                continue
            if isinstance(node.names, cst.ImportStar):
                found.add(_ALL)
            else:
                found.update(map(_bound, node.names))
        elif not isinstance(node, cst.BaseExpression):
            pending.extend(children(node))
    return found


def _through_others(ctx: FlagContext) -> set[str]:
    """The names of torch's modules that other files of the program hand on: ``nn`` after ``from .common import *``."""
    names = (
        node.value
        for node in _below(ctx.parents[0])
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name)
    )
    return {n.value for n in names if (ctx.qualified_name(n) or "").partition(".")[0] == "torch"}


_ALL = "*"


def _bound(alias: cst.ImportAlias) -> str:
    """The name that an import binds."""
    return _first(alias.asname.name if alias.asname is not None else alias.name)


def _first(node: cst.BaseExpression) -> str:
    while isinstance(node, cst.Attribute):
        node = node.value
    return node.value if isinstance(node, cst.Name) else ""
