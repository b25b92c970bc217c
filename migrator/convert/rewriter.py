"""The one walk over a file: passes are asked in order what a node becomes, everything else is rebuilt."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, NamedTuple

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure, Statement
from migrator.convert.stand_ins import stand_ins
from migrator.convert.untracked import without_gradient
from migrator.infer import kinds as k
from migrator.line_breaks import closed

Handler = Callable[["Rewriter", Any], Any]
HANDLERS: dict[type, list[Handler]] = {}
_CONDITIONS: dict[Handler, Callable[[Context], bool]] = {}
Kinds = tuple[type[k.Kind], ...]
Types = tuple[type[cst.CSTNode], ...]


@dataclass(frozen=True)
class _Business:
    """Which nodes of a type a pass is asked about, as the arguments of ``converts``; what is empty says nothing."""

    named: Container[str] = ()
    called: Container[str] = ()
    of: Kinds = ()
    kinds: Kinds = ()
    targets: Types = ()
    values: Types = ()

    def concerns(self, sort: _Sort) -> bool:
        """Whether a node of a sort may be its business."""
        if self.named or self.called:
            known = sort.callee is not None and sort.callee in self.called
            if not known and sort.name not in self.named:
                return False
        return (
            _is_one(sort.of, self.of)
            and _is_one(sort.kind, self.kinds)
            and _is_one(sort.target, self.targets)
            and _is_one(sort.value, self.values)
        )


def _is_one(own: type | None, wanted: tuple[type, ...]) -> bool:
    return not wanted or (own is not None and issubclass(own, wanted))


class _Sort(NamedTuple):
    """What of a node tells which passes it may be the business of.

    Attributes:
      form: the type of the node.
      name: of a call or an attribute; of the attribute that an assignment is to, of the call that a statement is.
      callee: of a call, or of the call that a statement is or assigns.
      of: the kind of what is called, or has the attribute.
      kind: of the node, or of what is assigned.
      target, value: of what type these are in a statement.
    """

    form: type
    name: str = ""
    callee: str | None = None
    of: type | None = None
    kind: type | None = None
    target: type | None = None
    value: type | None = None


_BUSINESS: dict[tuple[type, Handler], _Business] = {}


def converts(
    *types: type,
    when: Callable[[Context], bool] | None = None,
    named: Container[str] = (),
    called: Container[str] = (),
    of: Kinds = (),
    kinds: Kinds = (),
    targets: Types = (),
    values: Types = (),
) -> Callable[[Handler], Handler]:
    """Register a pass for node types.

    The handler gets the rewriter and the original node; it returns what the node becomes, or None when the
    node is not its business. Passes are asked in the order of ``passes.ORDER``.

    Most nodes are the business of few passes, and are looked at by no others. What is given here must follow from
    what the handler asks itself.

    Args:
      when: whether a file has anything that could be its business; it is asked once a file, since most passes have
        nothing to do in most files, and there are many passes.
      named: the last names of the calls (``numel`` of ``x.numel()``) or attributes that alone are its business; for
        an ``Expr`` those of the call that it is, for an ``Assign`` those of the attribute that it is to.
      called: the callees that are, as ``Facts.callee`` tells them; for an ``Expr`` or ``Assign`` those of its call.
      of: the kinds of what is called, or of what an attribute is asked, as ``Context.kind`` tells them.
      kinds: those of a Name or Attribute itself, or of what an ``Assign`` assigns.
      targets: what an ``Assign`` with one target is to.
      values: what an ``Assign`` with one target assigns, or an ``Expr`` is."""

    def register(handler: Handler) -> Handler:
        if when is not None:
            _CONDITIONS[handler] = when
        _without.cache_clear()
        _concerned.cache_clear()
        _words.cache_clear()
        business = _Business(named, called, of, kinds, targets, values)
        for kind in types:
            HANDLERS.setdefault(kind, []).append(handler)
            if business != _ALL:
                _BUSINESS[kind, handler] = business
        return handler

    return register


_ALL = _Business()
_NAMED: Types = (cst.Call, cst.Attribute, cst.Expr, cst.Assign)
"""The types of nodes that have a name, or are a call that has."""


def in_order(modules: Sequence[str]) -> None:
    """Have the passes of some modules asked in the order of the modules, each one's own as they stand in it."""
    place = {name: number for number, name in enumerate(modules)}
    for handlers in HANDLERS.values():
        handlers.sort(key=lambda handler: place[handler.__module__])
    _without.cache_clear()
    _concerned.cache_clear()


class Starting:
    """The names that start with one of some words, as a container."""

    def __init__(self, *starts: str) -> None:
        self.starts = starts

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.startswith(self.starts)


@cache
def _concerned(sort: _Sort) -> tuple[Handler, ...]:
    """All passes that a node of a sort may be the business of."""
    every = ((one, _BUSINESS.get((sort.form, one), _ALL)) for one in HANDLERS.get(sort.form, ()))
    return tuple(one for one, business in every if business.concerns(sort))


class _Words(dict[str | None, str | None]):
    """The names, or callees, that some pass asks for among the nodes of a type; all others are as good as none.

    Most names of a file are asked for by nobody, and what is known of the sorts of nodes serves more of them."""

    def __init__(self, kind: type, what: str, none: str | None) -> None:
        every = (business for (one, _), business in _BUSINESS.items() if one is kind)
        self._wanted = [getattr(business, what) for business in every]
        self._none = none

    def __missing__(self, name: str | None) -> str | None:
        asked = any(name in wanted for wanted in self._wanted)
        self[name] = found = name if asked else self._none
        return found


class _Table(dict[_Sort | tuple[Any, ...], tuple[Handler, ...]]):
    """The passes of each sort of node but for some."""

    def __init__(self, idle: frozenset[Handler]) -> None:
        self.idle = idle
        self.every = {
            kind: tuple(handler for handler in every if handler not in idle)
            for kind, every in HANDLERS.items()
        }

    def __missing__(self, sort: tuple[Any, ...]) -> tuple[Handler, ...]:
        every = _concerned(_Sort(*sort))
        self[sort] = found = tuple(one for one in every if one not in self.idle)
        return found


@lru_cache(maxsize=64)
def _without(idle: frozenset[Handler]) -> _Table:
    return _Table(idle)


@cache
def _words(kind: type) -> tuple[_Words, _Words]:
    """The names and the callees that are asked for among the nodes of a type."""
    return _Words(kind, "named", ""), _Words(kind, "called", None)


class Rewriter:
    """Rewrites one file under a context."""

    def __init__(self, ctx: Context) -> None:
        self.ctx = ctx
        self.pending: list[cst.EmptyLine] = []
        self._table = _without(frozenset(h for h, when in _CONDITIONS.items() if not when(ctx)))
        self._handlers = self._table.every
        self._words: dict[type, tuple[_Words, _Words]] = {kind: _words(kind) for kind in _NAMED}

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
        if kind is cst.Name:
            return self._table[kind, "", None, None, self._form(node)]
        if kind is cst.Attribute:
            name = self._words[kind][0][node.attr.value]
            return self._table[kind, name, None, self._form(node.value), self._form(node)]
        if kind is cst.Call:
            return self._table[kind, *self._call(kind, node)]
        if kind is cst.Expr:
            value = node.value
            if type(value) is cst.Call:
                return self._table[kind, *self._call(kind, value), None, None, cst.Call]
            return self._table[kind, "", None, None, None, None, type(value)]
        if kind is cst.Assign and len(node.targets) == 1:
            return self._table[kind, *self._assignment(node)]
        return self._handlers.get(kind, ())

    def _form(self, node: cst.CSTNode) -> type:
        """The type of the kind of an expression, None taken out of an Optional."""
        kind = self.ctx.facts.kinds.get(node, k.UNKNOWN)
        return type(kind.inner) if type(kind) is k.Optional else type(kind)

    def _call(self, kind: type, node: cst.Call) -> tuple[str | None, str | None, type]:
        """The name and callee of a call, as a node of a type asks for them, and the kind of what is called."""
        func = node.func
        last = func.attr if type(func) is cst.Attribute else func
        names, callees = self._words[kind]
        name = names[last.value if type(last) is cst.Name else ""]
        return name, callees[self._callee(node)], self._form(func)

    def _callee(self, node: cst.Call) -> str | None:
        """What a call reaches, be it a function or, as far as is known, what an import leads to."""
        kind = self.ctx.facts.kinds.get(node.func)
        return kind.name if type(kind) is k.Namespace else self.ctx.facts.callee(node)

    def _assignment(self, node: cst.Assign) -> tuple[Any, ...]:
        """The sort of an assignment to one target."""
        target, value = node.targets[0].target, node.value
        names, callees = self._words[cst.Assign]
        name = names[target.attr.value if type(target) is cst.Attribute else ""]
        callee = callees[self._callee(value)] if type(value) is cst.Call else None
        return name, callee, None, self._form(value), type(target), type(value)

    def rebuild(self, node: cst.CSTNode) -> Any:
        """The node with its children converted."""
        return syntax.rebuild(node, self.visit)

    # --- statements -----------------------------------------------------------------------------------------------

    def body(self, statements: Sequence[cst.BaseStatement]) -> list[cst.BaseStatement]:
        """Convert a list of statements; each may become several or none."""
        found: list[cst.BaseStatement] = []
        for statement in statements:
            if statement in self.ctx.facts.dead or statement in self.ctx.moved:
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
        made = [
            one if one is node else closed(one, new=type(one) is not type(node)) for one in made
        ]
        if not statement.before:
            return made
        first, *rest = map(closed, statement.before)
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
            made = without_gradient(self, self.visit(item), item)
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

    def visit_for(self, key: tuple[str, Any]) -> Any:
        """What the other handlers make of a node, for the one that asks: it is in ``ctx.asking`` under its name."""
        self.ctx.asking.add(key)
        try:
            return self.visit(key[1])
        finally:
            self.ctx.asking.discard(key)

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
