"""``eval("torch." + name)`` is written as what it stands for: ``getattr(torch, name)``.

A text within a text is out of reach of everything that reads the file. Where the text is known, or known to name an
attribute of something known, the same is said without it; what remains is found by rule API013.
"""

from __future__ import annotations

import keyword
import re

import libcst as cst

from migrator import syntax

_CALL = re.compile(r"(?<![\w.])eval\(\s*\(?\s*[fFrRbBuU]{0,2}[\"']")
_OWNER = re.compile(r"\s*([^\W\d]\w*(?:\.[^\W\d]\w*)*)\.(?=[\w%{]|$)()", re.ASCII)
_WORDS = re.compile(r"\w*", re.ASCII)
_PLACES = re.compile(r"(?:\w|%\d*[ds]|\{\w*\})*", re.ASCII)
"""A text of one name, with the places that ``%`` or ``format`` fill."""


def spelled_out(tree: cst.Module, text: str) -> cst.Module:
    """A file with the texts that ``eval`` is given put in its place, where they are known."""
    if "eval(" not in text or not _CALL.search(text) or _is_bound(tree):
        return tree

    def visit(node: cst.CSTNode) -> cst.CSTNode:
        made = syntax.rebuild(node, visit)
        return _evaluated(made) or made if isinstance(made, cst.Call) else made

    made = visit(tree)
    assert isinstance(made, cst.Module)
    return made


def _is_bound(tree: cst.Module) -> bool:
    """Whether ``eval`` may be anything but Python's own; a method of that name is called otherwise."""
    methods = set[cst.CSTNode]()
    for node in syntax.walk(tree):  # a class comes before what it holds
        if isinstance(node, cst.ClassDef):
            methods.update(node.body.body)
        bound: tuple[cst.CSTNode | None, ...] = ()
        if isinstance(node, cst.FunctionDef):
            bound = () if node in methods else (node.name,)
        elif isinstance(node, cst.Param):
            bound = (node.name,)
        elif isinstance(node, cst.ImportAlias):
            bound = (node.name, node.asname.name if node.asname else None)
        elif isinstance(node, (cst.AssignTarget, cst.AnnAssign, cst.For, cst.NamedExpr)):
            bound = (node.target,)
        if any(map(_is_eval, bound)):
            return True
    return False


def _is_eval(node: cst.CSTNode | None) -> bool:
    return isinstance(node, cst.Name) and node.value == "eval"


def _evaluated(node: cst.Call) -> cst.BaseExpression | None:
    if not _is_eval(node.func) or len(node.args) != 1:
        return None
    (arg,) = node.args
    if arg.keyword is not None or arg.star:
        return None
    return _constant(arg.value) or _named(arg.value)


def _constant(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The expression that a text is."""
    said = (
        node.evaluated_value
        if isinstance(node, (cst.SimpleString, cst.ConcatenatedString))
        else None
    )
    if not isinstance(said, str):
        return None
    try:
        return cst.parse_expression(said.strip())
    except (
        Exception
    ):  # whatever libcst says of a text that is no expression: the call stays as it is
        return None


def _named(node: cst.BaseExpression) -> cst.Call | None:
    """``getattr(self, "layer%d" % i)`` for the text ``"self.layer%d" % i``, which begins with who has the name."""
    found = _divided(node)
    if found is None:
        return None
    owner, name = found
    if any(map(keyword.iskeyword, owner.split("."))):
        return None
    bare = syntax.unparenthesized(name)
    return cst.Call(cst.Name("getattr"), [cst.Arg(cst.parse_expression(owner)), cst.Arg(bare)])


def _divided(node: cst.BaseExpression) -> tuple[str, cst.BaseExpression] | None:
    """The owner that a text begins with, and the text of the name that is asked of it."""
    if isinstance(node, cst.SimpleString):
        return _string(node)
    if isinstance(node, cst.FormattedString):
        return _formatted(node)
    if isinstance(node, cst.BinaryOperation):
        found = _divided(node.left)
        if found is None or not isinstance(node.operator, (cst.Add, cst.Modulo)):
            return None
        owner, rest = found
        if isinstance(node.operator, cst.Modulo):
            return owner, node.with_changes(left=rest)
        if not _is_of_words(node.right):
            return None
        empty = isinstance(rest, cst.SimpleString) and not rest.raw_value
        return owner, node.right if empty else node.with_changes(left=rest)
    if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        found = _divided(node.func.value) if node.func.attr.value == "format" else None
        if found is None:
            return None
        return found[0], node.with_changes(func=node.func.with_changes(value=found[1]))
    return None


def _string(node: cst.SimpleString) -> tuple[str, cst.BaseExpression] | None:
    found = _OWNER.match(node.raw_value) if not node.prefix else None
    rest = node.raw_value[found.start(2) :] if found is not None else ""
    if found is None or not _PLACES.fullmatch(rest):
        return None
    quote = node.quote
    return found[1], cst.SimpleString(f"{quote}{rest}{quote}")


def _formatted(node: cst.FormattedString) -> tuple[str, cst.BaseExpression] | None:
    first, *others = node.parts
    if not isinstance(first, cst.FormattedStringText) or "r" in node.prefix.lower():
        return None
    found = _OWNER.match(first.value)
    texts = [part.value for part in others if isinstance(part, cst.FormattedStringText)]
    if found is None or not all(
        _WORDS.fullmatch(t) for t in [first.value[found.start(2) :], *texts]
    ):
        return None
    rest = first.value[found.start(2) :]
    kept = [first.with_changes(value=rest), *others] if rest else others
    return found[1], node.with_changes(parts=kept)


def _is_of_words(node: cst.BaseExpression) -> bool:
    """Whether nothing written in a text is more than a part of a name."""
    if isinstance(node, cst.SimpleString):
        return not node.prefix and bool(_WORDS.fullmatch(node.raw_value))
    if isinstance(node, cst.BinaryOperation):
        return _is_of_words(node.left) and _is_of_words(node.right)
    if isinstance(node, cst.FormattedString):
        texts = [part.value for part in node.parts if isinstance(part, cst.FormattedStringText)]
        return all(_WORDS.fullmatch(text) for text in texts)
    return True
