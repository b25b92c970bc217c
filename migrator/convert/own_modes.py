"""``def train(self, mode=True)`` of a module: what it does besides ``super().train(mode)``, whoever sets the mode."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo, FunctionInfo
from rules.definitions import module_file

NAME = "set_mode"


def sets_mode(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a method ``train`` sets the modes below as torch does, and then does more."""
    owner = info.owner
    if owner is None or owner.torch_base != "torch.nn.Module" or info.short != "train":
        return False
    if any(NAME in one.methods for one in owner.lineage()) or info.settled is not None:
        return False
    above = [p.method("train") for p in owner.parents]
    if any(one is not None and not sets_mode(ctx, one) for one in above):
        return False
    params = info.node.params
    plain = len(params.params) == 2 and not (params.kwonly_params or params.posonly_params)
    stars = isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None
    return plain and not stars and _place(ctx, info) is not None


def _place(ctx: Context, info: FunctionInfo) -> range | None:
    """The statements of a method ``train`` that do what torch's does; None where none do, or not first."""
    calls = [n for n in ctx.facts.tree.within(info.node.body, cst.Call) if _is_super(n)]
    if not calls:
        return None if _is_heirs(info) else _written_out(info)
    at = _at(info, calls[0]) if len(calls) == 1 else None
    return range(at, at + 1) if at is not None else None


def _is_heirs(info: FunctionInfo) -> bool:
    """Whether a base or a method of the class may do otherwise than torch's ``train`` and ``children``."""
    owner = info.owner
    assert owner is not None
    above = (one for one in owner.lineage() if one is not owner)
    return any("train" in one.methods for one in above) or owner.method("children") is not None


def _written_out(info: FunctionInfo) -> range | None:
    """``self.training = mode`` and ``for m in self.children(): m.train(mode)``, which is all that torch's does."""
    body = list(info.node.body.body)
    at = 1 if body and syntax.is_docstring(body[0]) else 0
    mode = info.node.params.params[1].name.value
    first, loop = (*body[at : at + 2], None, None)[:2]
    if not isinstance(first, cst.SimpleStatementLine) or not isinstance(loop, cst.For):
        return None
    if syntax.code(first).strip() != f"self.training = {mode}" or len(loop.body.body) != 1:
        return None
    name = loop.target.value if isinstance(loop.target, cst.Name) else ""
    walk, line = syntax.code(loop.iter).strip(), syntax.code(loop.body.body[0]).strip()
    if name in ("", mode, "self") or walk != "self.children()" or loop.orelse is not None:
        return None
    if any(name in syntax.names(one) for one in body[at + 2 :]):
        return None  # the last child, which the loop leaves behind
    return range(at, at + 2) if line == f"{name}.train({mode})" else None


def _at(info: FunctionInfo, call: cst.Call) -> int | None:
    """The place of ``super().train(mode)`` among the statements: the first, but for what computes nothing."""
    mode = info.node.params.params[1].name.value
    if [syntax.code(a.value) for a in call.args if not _is_self(a.value)] != [mode]:
        return None
    for i, statement in enumerate(info.node.body.body):
        small = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
        if len(small) != 1:
            return None
        if isinstance(small[0], (cst.Expr, cst.Return)) and small[0].value is call:
            return i
        if not (isinstance(small[0], cst.Expr) and isinstance(small[0].value, cst.BaseString)):
            return None
    return None


def _is_super(call: cst.Call) -> bool:
    """``super().train(mode)``, ``super(Net, self).train(mode)``, ``nn.Module.train(self, mode)``."""
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "train":
        return False
    owner = func.value
    if isinstance(owner, cst.Call):
        return syntax.is_super(owner)
    return bool(call.args) and _is_self(call.args[0].value)


def _is_self(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Name) and node.value == "self"


def besides(ctx: Context, info: FunctionInfo) -> cst.BaseSuite:
    """What the method does besides ``super().train(mode)``."""
    place = _place(ctx, info)
    assert place is not None
    statements: list[Any] = list(info.node.body.body)
    kept = [*statements[: place.start], *statements[place.stop :]]
    return syntax.changed(info.node.body, body=kept)


def with_base(info: FunctionInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    """The converted body, behind what a base class of the file does besides."""
    assert info.owner is not None
    if not any(p.method("train") is not None for p in info.owner.parents):
        return body
    mode = info.node.params.params[1].name.value
    line = syntax.statement(f"super().{NAME}({mode})")
    return syntax.changed(body, body=[line, *body.body])


def with_mode(rw: Rewriter, info: ClassInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    """``deterministic = Mode()`` at the top of a class with such a method."""
    method = info.methods.get("train")
    if method is None or not sets_mode(rw.ctx, method):
        return body
    if any("train" in p.methods for p in info.lineage()[1:]):
        return body
    name = rw.ctx.helpers.need(module_file("rules.compat.modes"), "Mode")
    statements: list[Any] = list(body.body)
    first = statements[0].body[0] if isinstance(statements[0], cst.SimpleStatementLine) else None
    documented = isinstance(first, cst.Expr) and isinstance(first.value, cst.BaseString)
    at = 1 if documented else 0
    line = syntax.statement(f"deterministic = {name}()")
    if documented:
        line = syntax.changed(line, leading_lines=[cst.EmptyLine(indent=False)])
    rest = statements[at:]
    if rest and not any(one.comment is None for one in rest[0].leading_lines):
        blank = cst.EmptyLine(indent=False)
        rest[0] = syntax.changed(rest[0], leading_lines=[blank, *rest[0].leading_lines])
    return syntax.changed(body, body=[*statements[:at], line, *rest])
