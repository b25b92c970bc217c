"""The one walk over a file: passes are asked in order what a node becomes, everything else is rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from functools import lru_cache
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure, Statement
from migrator.convert.stand_ins import stand_ins
from migrator.convert.untracked import without_gradient

Handler = Callable[["Rewriter", Any], Any]
HANDLERS: dict[type, list[Handler]] = {}
_CONDITIONS: dict[Handler, Callable[[Context], bool]] = {}
_NAMES: dict[tuple[type, Handler], tuple[Container[str], Container[str]]] = {}
"""What those passes are asked about that say so: the last names of calls and attributes, the callees of calls."""


def converts(
    *types: type,
    when: Callable[[Context], bool] | None = None,
    named: Container[str] = (),
    called: Container[str] = (),
) -> Callable[[Handler], Handler]:
    """Register a pass for node types.

    The handler gets the rewriter and the original node; it returns what the node becomes, or None when the
    node is not its business. Passes are asked in the order of ``passes.ORDER``.

    Args:
      when: whether a file has anything that could be its business; it is asked once a file, since most passes have
        nothing to do in most files, and there are many passes.
      named: the last names of the calls (``numel`` of ``x.numel()``) or attributes that alone are its business.
      called: the callees that are, as ``Facts.callee`` tells them. Most nodes are the business of few passes, and
        are looked at by no others."""

    def register(handler: Handler) -> Handler:
        if when is not None:
            _CONDITIONS[handler] = when
        _without.cache_clear()
        for kind in types:
            HANDLERS.setdefault(kind, []).append(handler)
            if named or called:
                _NAMES[kind, handler] = named, called
        return handler

    return register


class Starting:
    """The names that start with one of some words, as a container."""

    def __init__(self, *starts: str) -> None:
        self.starts = starts

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(self.starts)


class _Table:
    """The passes of each type of node but for some."""

    def __init__(self, idle: frozenset[Handler]) -> None:
        self.every = {
            kind: tuple(handler for handler in every if handler not in idle)
            for kind, every in HANDLERS.items()
        }
        self._named: dict[tuple[type, str, str | None], tuple[Handler, ...]] = {}

    def of(self, kind: type, name: str, callee: str | None) -> tuple[Handler, ...]:
        """The passes that a call or an attribute of this name may be the business of."""
        key = kind, name, callee
        found = self._named.get(key)
        if found is None:
            every = self.every.get(kind, ())
            found = tuple(one for one in every if _concerns(kind, one, name, callee))
            self._named[key] = found
        return found


def _concerns(kind: type, handler: Handler, name: str, callee: str | None) -> bool:
    if (kind, handler) not in _NAMES:
        return True
    named, called = _NAMES[kind, handler]
    return name in named or (callee is not None and callee in called)


@lru_cache(maxsize=64)
def _without(idle: frozenset[Handler]) -> _Table:
    return _Table(idle)


class Rewriter:
    """Rewrites one file under a context."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.pending: list[cst.EmptyLine] = []
        self._table = _without(frozenset(h for h, when in _CONDITIONS.items() if not when(ctx)))
        self._handlers = self._table.every

    def visit(self, node: cst.CSTNode) -> Any:
        """What an expression or clause of the original tree becomes."""
        blocked = self.ctx.blocked
        if blocked and node in blocked:
            raise Failure(node, *blocked[node])
        made = self.ctx.everywhere
        if made and node in made:
            return made[node]
        for handler in self._asked(node):
            new = handler(self, node)
            if new is not None:
                return new
        return syntax.rebuild(node, self.visit)

    def _asked(self, node: Any) -> tuple[Handler, ...]:
        """The passes that are asked about a node."""
        kind = type(node)
        if kind is cst.Call:
            func = node.func
            last = func.attr if type(func) is cst.Attribute else func
            name = last.value if type(last) is cst.Name else ""
            return self._table.of(kind, name, self.ctx.facts.callee(node))
        if kind is cst.Attribute:
            return self._table.of(kind, node.attr.value, None)
        return self._handlers.get(kind, ())

    def rebuild(self, node: cst.CSTNode) -> Any:
        """The node with its children converted."""
        return syntax.rebuild(node, self.visit)

    # --- statements -----------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Convert a list of statements; each may become several or none."""
        found: list[cst.BaseStatement] = []
        for statement in statements:
            if statement in self.ctx.facts.dead:
                continue
            before, self.pending = self.pending, []
            made = self.statement(statement)
            if made and before and hasattr(made[0], "leading_lines"):
                lines = [*before, *made[0].leading_lines]
                made = [syntax.changed(made[0], leading_lines=lines), *made[1:]]
            elif before:
                self.pending = [*before, *self.pending]
            found.extend(made)
        self.pending = []
        return found

    def statement(self, node: cst.BaseStatement) -> list[cst.BaseStatement]:
        """Convert one statement; what cannot be converted stays under a TODO."""
        ctx = self.ctx
        saved = ctx.helpers.snapshot()
        ctx.statements.append(Statement(node))
        try:
            made = self._statement(node)
        except Failure as failure:
            ctx.helpers.restore(saved)
            return self.left_in_place(node, failure)
        finally:
            statement = ctx.statements.pop()
        if statement.todo and made and hasattr(made[0], "leading_lines"):
            lines = [*made[0].leading_lines, *statement.todo]
            made = [syntax.changed(made[0], leading_lines=lines), *made[1:]]
        if not statement.before:
            return made
        first, *rest = statement.before
        if made and isinstance(made[0], (cst.SimpleStatementLine, cst.BaseCompoundStatement)):
            leading = made[0].leading_lines
            first = syntax.changed(first, leading_lines=leading)
            made = [syntax.changed(made[0], leading_lines=[]), *made[1:]]
        return [first, *rest, *made]

    def _statement(self, node: cst.BaseStatement) -> list[cst.BaseStatement]:
        for handler in self._handlers.get(type(node), ()):
            new = handler(self, node)
            if new is not None:
                return new if isinstance(new, list) else [new]
        if isinstance(node, cst.SimpleStatementLine):
            return self._line(node)
        return [self.rebuild(node)]

    def _line(self, node: cst.SimpleStatementLine) -> list[cst.BaseStatement]:
        """Convert the small statements of a line; one may become several, or a compound one, or none."""
        lines: list[cst.BaseStatement] = []
        small: list[cst.BaseSmallStatement] = []
        for item in node.body:
            self.ctx.statements[-1].target = _single_target(item)
            made = without_gradient(self, self.visit(item))
            if _says_nothing(item, made):
                made = []
            for new in made if isinstance(made, list) else [made]:
                if isinstance(new, cst.BaseSmallStatement):
                    if isinstance(made, list) and small:
                        lines.append(cst.SimpleStatementLine([_alone(s) for s in small]))
                        small = []
                    small.append(new)
                else:
                    if small:
                        lines.append(cst.SimpleStatementLine([_alone(s) for s in small]))
                        small = []
                    lines.append(new)
        if small == list(node.body):
            return [node]
        if small:
            body = [*small[:-1], _alone(small[-1])]
            lines.append(
                cst.SimpleStatementLine(body, trailing_whitespace=node.trailing_whitespace)
            )
        elif lines and isinstance(lines[-1], cst.SimpleStatementLine):
            lines[-1] = syntax.changed(lines[-1], trailing_whitespace=node.trailing_whitespace)
        if lines:
            lines[0] = syntax.changed(lines[0], leading_lines=node.leading_lines)
        else:
            self.pending.extend(line for line in node.leading_lines if line.comment is not None)
            if node.trailing_whitespace.comment is not None:
                self.pending.append(cst.EmptyLine(comment=node.trailing_whitespace.comment))
        return lines

    def told(self, failure: Failure) -> Failure:
        """Report why something is not converted; a flag rule may know more about the very place."""
        ctx = self.ctx
        if failure.node in ctx.blocked:
            failure = Failure(failure.node, *ctx.blocked[failure.node])
        ctx.report(failure.node, failure.rule, failure.message, failure.advice)
        return failure

    def left_in_place(self, node: cst.BaseStatement, failure: Failure) -> list[cst.BaseStatement]:
        """The statement as it was, or names that raise, under a comment that says why, with a finding."""
        failure = self.told(failure)
        instead = stand_ins(self.ctx, node, failure)
        if instead is None:
            lines = [*getattr(node, "leading_lines", ()), comment(failure)]
            return [syntax.changed(node, leading_lines=lines)]
        first, *rest = instead or [PASS]
        return [syntax.changed(first, leading_lines=with_source(node, failure)), *rest]

    def block(self, node: cst.BaseSuite) -> cst.BaseSuite:
        """Convert a suite; an empty one becomes ``pass``."""
        if isinstance(node, cst.SimpleStatementSuite):
            line = cst.SimpleStatementLine(node.body)
            made = self.statement(line)
            if (
                len(made) == 1
                and isinstance(made[0], cst.SimpleStatementLine)
                and not made[0].leading_lines
            ):
                return syntax.changed(node, body=made[0].body)
            return cst.IndentedBlock(made)
        made = self.body(node.body)  # type: ignore[arg-type]
        return syntax.changed(node, body=made or [PASS])


def comment(failure: Failure) -> cst.EmptyLine:
    """``# TODO(migrate): …``, the line that says what is left to do and how."""
    text = f"# TODO(migrate): {failure.rule} {failure.message}"
    if failure.advice:
        text += f"; {failure.advice}"
    return cst.EmptyLine(comment=cst.Comment(" ".join(text.split())))


def with_source(node: cst.BaseStatement, failure: Failure) -> list[cst.EmptyLine]:
    """The lines above what stands for a statement: why it is not converted, and its source."""
    source = syntax.code(node.with_changes(leading_lines=[])).rstrip().splitlines()
    lines = [cst.EmptyLine(comment=cst.Comment(f"# {line}".rstrip())) for line in source]
    return [*getattr(node, "leading_lines", ()), comment(failure), *lines]


def _alone(node: cst.BaseSmallStatement) -> cst.BaseSmallStatement:
    return syntax.changed(node, semicolon=cst.MaybeSentinel.DEFAULT)


def _single_target(node: cst.CSTNode) -> str | None:
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        target = node.targets[0].target
        return target.value if isinstance(target, cst.Name) else None
    return None


def _says_nothing(node: cst.CSTNode, made: object) -> bool:
    """Whether a statement became ``x = x``, as ``x = x.contiguous()`` and ``self.h = self.h.cuda()`` do."""
    if not isinstance(node, cst.Assign):
        return False
    target = _single_target(node)
    if target is None:
        return _keeps_value(made)
    return (
        not isinstance(node.value, cst.Name)
        and isinstance(made, cst.Assign)
        and _single_target(made) == target
        and isinstance(made.value, cst.Name)
        and made.value.value == target
    )


def _keeps_value(made: object) -> bool:
    """Whether a Variable gets the value that it has: ``self.h.set_value(self.h[...])``."""
    call = made.value if isinstance(made, cst.Expr) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    if call.func.attr.value != "set_value" or len(call.args) != 1:
        return False
    return syntax.code(call.args[0].value).strip() == f"{syntax.code(call.func.value).strip()}[...]"


PASS = cst.SimpleStatementLine([cst.Pass()])
