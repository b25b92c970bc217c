"""One statement a line: ``a = b; a += 1`` is read as two lines, so that "the line after" means "the statement after"."""

from __future__ import annotations

import keyword
from typing import Any

import libcst as cst

from migrator import syntax

_LEAVING = (cst.Return, cst.Raise, cst.Break, cst.Continue, cst.Pass)


def split(tree: cst.Module) -> cst.Module:
    """A file whose lines have one statement each; a comment stays with the last of them.

    The statements are the same in the same order, so where each stands in the text can still be told. What only
    leaves (``if x is None: return y``) stays on its line: nothing comes after it. What calls something as it does
    (``def forward(self, x): return self.act(x)``) may write to memory, which is looked for in lines.
    """
    if not _holds_packed(tree):
        return tree
    made: cst.Module = _apart(tree)
    return made


def _holds_packed(node: Any) -> bool:
    """Whether a line or suite below is to be split; expressions, which hold none, are not looked into."""
    if _is_packed(node):
        return True
    if type(node) is cst.SimpleStatementLine:
        return False
    parts = [getattr(node, name, None) for name in ("body", "orelse", "finalbody")]
    parts += [*getattr(node, "handlers", ()), *getattr(node, "cases", ())]
    for part in parts:
        if isinstance(part, (list, tuple)):
            if any(map(_holds_packed, part)):
                return True
        elif isinstance(part, _HOLDING) and _holds_packed(part):
            return True
    return False


_HOLDING = (
    cst.BaseSuite,
    cst.BaseCompoundStatement,
    cst.Else,
    cst.Finally,
    cst.ExceptHandler,
    cst.ExceptStarHandler,
    cst.MatchCase,
)


def _is_packed(node: Any) -> bool:
    kind = type(node)
    if kind is not cst.SimpleStatementLine and kind is not cst.SimpleStatementSuite:
        return False
    several = len(node.body) > 1 or type(node.body[0].semicolon) is cst.Semicolon
    return several or (kind is cst.SimpleStatementSuite and not _only_leaves(node.body[0]))


def _only_leaves(node: cst.BaseSmallStatement) -> bool:
    if isinstance(node, cst.Return) and node.value is not None:
        return not any(isinstance(one, cst.Call | cst.NamedExpr) for one in syntax.walk(node.value))
    return isinstance(node, _LEAVING)


def _lines(
    node: cst.SimpleStatementLine | cst.SimpleStatementSuite,
) -> list[cst.SimpleStatementLine]:
    lines = [
        cst.SimpleStatementLine([small.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)])
        for small in node.body
    ]
    after = node.trailing_whitespace
    if after.comment is not None and after.whitespace.empty:  # the space belonged to a semicolon
        after = after.with_changes(whitespace=cst.SimpleWhitespace("  "))
    lines[-1] = lines[-1].with_changes(trailing_whitespace=after)
    return lines


def _apart(node: Any) -> Any:
    """A file, suite or compound statement with each small statement in it on a line of its own."""
    if type(node) is cst.SimpleStatementSuite:
        return cst.IndentedBlock(_lines(node)) if _is_packed(node) else node
    if type(node) is not cst.Module and type(node) is not cst.IndentedBlock:
        return syntax.rebuild(node, _apart) if isinstance(node, _HOLDING) else node
    body: list[cst.CSTNode] = []
    for one in node.body:
        if type(one) is not cst.SimpleStatementLine:
            body.append(_apart(one))
        elif _is_packed(one):
            first, *rest = _lines(one)
            body += [first.with_changes(leading_lines=one.leading_lines), *rest]
        else:
            body.append(one)
    same = len(body) == len(node.body) and all(a is b for a, b in zip(body, node.body, strict=True))
    return node if same else syntax.changed(node, body=body)


def assigned(tree: cst.Module, text: str) -> cst.Module:
    """``setattr(self, "act", layer)`` as the assignment that it is: ``self.act = layer``."""
    if "setattr(" not in text or "def setattr" in text:
        return tree
    if not any(type(node) is cst.Expr and _assignment(node) for node in syntax.walk(tree)):
        return tree
    made: cst.Module = _with_assignments(tree)
    return made


def _with_assignments(node: Any) -> Any:
    if type(node) is cst.Expr:
        return _assignment(node) or node
    return node if isinstance(node, cst.BaseExpression) else syntax.rebuild(node, _with_assignments)


def _assignment(node: cst.Expr) -> cst.Assign | None:
    """The assignment that a call of ``setattr`` is."""
    call = node.value
    if not isinstance(call, cst.Call) or len(call.args) != 3:
        return None
    if not isinstance(call.func, cst.Name) or call.func.value != "setattr":
        return None
    if any(one.keyword is not None or one.star for one in call.args):
        return None
    owner, name, value = (one.value for one in call.args)
    if not isinstance(owner, cst.Name) or not isinstance(name, cst.SimpleString):
        return None
    word = name.evaluated_value
    if not isinstance(word, str) or not word.isidentifier() or keyword.iskeyword(word):
        return None
    if word.startswith("__") or word == "forward":  # a class would rename it; the other is no state
        return None
    target = cst.AssignTarget(cst.Attribute(owner, cst.Name(word)))
    return cst.Assign([target], value, semicolon=node.semicolon)
