"""Rows that a mask selects and that are written back where they were: a mixture of experts.

``idx = torch.where(mask)[0]`` has as many places as the data says. JAX can give as many as the mask has, of which the
last select the first row once more, if nothing else is done with what hangs on them than what looks at each row by
itself and has a derivative everywhere, and if all of it ends in a write to those very rows, which leaves the others
out. Then ``if not mask.any(): continue`` around it is not needed either.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator import syntax
from migrator.convert.by_row import ByRow, NotByRow, is_smooth
from migrator.convert.context import Context
from migrator.convert.counted import asked_count, counting
from migrator.infer import kinds as k
from migrator.source import Source
from migrator.tree import Tree


@dataclass
class Selected:
    """The rows of a mask, and what becomes of all that hangs on them."""

    mask: cst.BaseExpression
    guards: list[cst.If] = field(default_factory=list)
    """``if not mask.any(): continue``."""
    opened: list[cst.If] = field(default_factory=list)
    """``if mask.any():`` around what is done with the rows."""
    counted: list[cst.Assign] = field(default_factory=list)
    """``counts = torch.bincount(…).tolist()`` that only these tests read."""
    region: list[cst.CSTNode] = field(default_factory=list)
    writes: list[cst.CSTNode] = field(default_factory=list)

    def settles(self, tree: Tree, node: cst.CSTNode) -> bool:
        """Whether what stands at a node in the way is none: the selection, or a test whether it is empty."""
        tests = (one.test for one in (*self.guards, *self.opened))
        return any(tree.holds(one, node) for one in (*tests, *self.counted))

    def lines(self, source: Source) -> range:
        """The lines from the selection to the last that hangs on it."""
        first, last = source.span(self.region[0]), source.span(self.region[-1])
        return range(first.line, last.end_line + 1)


@dataclass(kw_only=True)
class Selection(Selected):
    """A statement that finds the rows of a mask."""

    statement: cst.Assign
    call: cst.Call

    def settles(self, tree: Tree, node: cst.CSTNode) -> bool:
        """See the base."""
        return node is self.call or super().settles(tree, node)


def selections(ctx: Context) -> Iterator[Selection]:
    """The selections of a file that can be converted."""
    for node in ctx.source.index.of_type(cst.Assign):
        found = _selecting(ctx, node)
        if found is None:
            continue
        try:
            Places(ctx, found).follow()
        except NotByRow:
            continue
        yield found


def _selecting(ctx: Context, node: cst.Assign) -> Selection | None:
    """``a, b = torch.where(mask)``, ``idx = mask.nonzero(as_tuple=True)[0]``."""
    value = node.value
    if isinstance(value, cst.Subscript):
        value = value.value
    if not isinstance(value, cst.Call) or len(node.targets) != 1:
        return None
    name = ctx.facts.callee(value) or ""
    given = [a.value for a in value.args if a.keyword is None and not a.star]
    named = {a.keyword.value: a.value for a in value.args if a.keyword is not None}
    if name == "torch.where":
        fits = len(given) == 1 and not named
    else:
        if name == "Tensor.nonzero" and isinstance(value.func, cst.Attribute):
            given = [value.func.value, *given]
        tuples = [ctx.kind(one) for one in named.values()] == [k.Const(True)]
        fits = name in ("Tensor.nonzero", "torch.nonzero") and tuples and "as_tuple" in named
    if not fits or len(given) != 1:
        return None
    return Selection(given[0], statement=node, call=value)


class Region:
    """The statements from a selection to the end of its suite."""

    def __init__(self, ctx: Context, found: Selected) -> None:
        self.ctx = ctx
        self.found = found
        self.rows: set[str] = set()
        self.places: set[str] = set()
        """Names of the places themselves, which have one axis."""
        self.numbers: set[str] = set()
        """Names of rows that are places too, or reckoned from them."""
        self.same_mask = True
        """Whether nothing has been done since the selection: the mask is what it was."""
        self.after: cst.CSTNode | None = None
        self.wide: set[str] = set()
        """Names of rows with a second axis."""
        self.own: set[str] = set()
        """Other names that only this region reads."""

    def go_on(
        self,
        around: list[cst.CSTNode],
        earlier: Sequence[cst.BaseStatement],
        rest: Sequence[cst.BaseStatement],
        line: cst.SimpleStatementLine | None = None,
    ) -> None:
        """Look at all that hangs on the selection.

        Args:
          around: the nodes around the suite and the first statement, those two last.
          earlier: what stands before it in the suite.
          rest: the statements to look at.
          line: the statement that selects, where it is one of its own.

        Raises:
          NotByRow: something else is done with the rows.
        """
        self.after = rest[0] if rest else None
        within = around[-3]
        before = self._guard_before(earlier)
        if before is not None:
            self.found.guards.append(before)
        elif isinstance(within, cst.If) and self._asks_any(within):
            names = [_read_only(self.ctx, one) for one in earlier]
            if None not in names and not syntax.names(self.found.mask).keys() & set(names):
                self.found.opened.append(within)
                self.own |= {one for one in names if one}
        self._block(rest, bool(self.found.guards or self.found.opened))
        if not self.found.writes:
            raise NotByRow
        self.found.region = [line, *rest] if line is not None else list(rest)
        self._read_nowhere_else(around)

    # --- statements -----------------------------------------------------------------------------------------------

    def _guard_before(self, earlier: Sequence[cst.BaseStatement]) -> cst.If | None:
        """``if not mask.any(): continue`` before the selection, with nothing but reads between the two."""
        between: set[str] = set()
        for one in reversed(earlier):
            if isinstance(one, cst.If):
                apart = not between & set(syntax.names(self.found.mask))
                if not apart or not self._skips(one):
                    return None
                self.own |= between  # which get their meaning in every turn then
                return one
            name = _read_only(self.ctx, one)
            if name is None:
                return None
            between.add(name)
        return None

    def _skips(self, node: cst.If) -> bool:
        """Whether an ``if`` leaves the turn of a loop where nothing is selected."""
        if node.orelse is not None:
            return False
        lines = node.body.body
        small = [s for one in lines if isinstance(one, cst.SimpleStatementLine) for s in one.body]
        if isinstance(node.body, cst.SimpleStatementSuite):
            small = list(node.body.body)  # on the same line
        loop = self.ctx.source.index.around(node)[-2]
        leaves = len(lines) == len(small) == 1 and isinstance(small[0], cst.Continue)
        return leaves and isinstance(loop, cst.For) and self._asks_empty(node.test)

    def _asks_empty(self, test: cst.BaseExpression) -> bool:
        if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            return self._is_any(test.expression)
        return self._compares(test, (cst.Equal,)) or self._counted(test, (cst.Equal,))

    def _asks_any(self, node: cst.If) -> bool:
        """``if mask.any():``, ``if idx.numel() > 0:`` without an ``else``."""
        if node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
            return False
        above = (cst.GreaterThan, cst.NotEqual)
        test = node.test
        return self._is_any(test) or self._compares(test, above) or self._counted(test, above)

    def _counted(self, test: cst.BaseExpression, how: tuple[type, ...]) -> bool:
        """``counts[i] == 0``, where ``counts`` says how often each number stands in what the mask compares."""
        asked = asked_count(test, how)
        made = counting(self.ctx, asked, self.found.mask) if asked is not None else None
        if made is not None:
            self.found.counted.append(made)
        return made is not None

    def _is_any(self, node: cst.BaseExpression) -> bool:
        """``mask.any()``."""
        if not isinstance(node, cst.Call) or self.ctx.facts.callee(node) != "Tensor.any":
            return False
        if node.args or not isinstance(node.func, cst.Attribute) or not self.same_mask:
            return False
        return bool(node.func.value.deep_equals(self.found.mask))

    def _compares(self, test: cst.BaseExpression, how: tuple[type, ...]) -> bool:
        """Whether a number of places is compared with 0 in one of these ways."""
        if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
            return False
        only = test.comparisons[0]
        zero = isinstance(only.operator, how) and syntax.code(only.comparator) == "0"
        return zero and (self._counts(test.left) or self._sums(test.left))

    def _sums(self, node: cst.BaseExpression) -> bool:
        """``mask.sum()``."""
        if not isinstance(node, cst.Call) or node.args or not isinstance(node.func, cst.Attribute):
            return False
        if not self.same_mask:
            return False
        kind = self.ctx.kind(node.func.value)
        same = node.func.value.deep_equals(self.found.mask)
        return same and isinstance(kind, k.Tensor) and kind.dtype == "bool"

    def _counts(self, node: cst.BaseExpression) -> bool:
        """``idx.numel()``, ``idx.shape[0]``, ``idx.size(0)``, ``len(idx)`` of the places."""
        text = syntax.code(node).replace(" ", "")
        forms = ("{}.numel()", "{}.shape[0]", "{}.size(0)", "len({})")
        return any(text == form.format(name) for name in self.places for form in forms)

    def _block(self, statements: Sequence[cst.BaseStatement], guarded: bool) -> None:
        """Follow statements; guarded ones run only where something is selected."""
        for statement in statements:
            self.same_mask &= statement is self.after
            if isinstance(statement, cst.If) and self._skips(statement):
                self.found.guards.append(statement)
                guarded = True
            elif isinstance(statement, cst.If) and self._asks_any(statement):
                self.found.opened.append(statement)
                self._block(statement.body.body, True)  # type: ignore[arg-type]
            elif isinstance(statement, cst.SimpleStatementLine):
                for small in statement.body:
                    self._small(small, guarded)
            elif guarded or self._reads(statement):
                raise NotByRow

    def _small(self, node: cst.BaseSmallStatement, guarded: bool) -> None:
        if self._is_write(node):
            self.found.writes.append(node)
            return
        if isinstance(node, cst.Assign) and len(node.targets) == 1:
            target = node.targets[0].target
            if isinstance(target, cst.Name):
                rows = self.by_row()
                reckoned = rows.of(node.value) and rows.is_place(node.value)
                (self.numbers.add if reckoned else self.numbers.discard)(target.value)
                self.places.discard(target.value)
                if rows.bind(target.value, node.value):
                    return
                if not guarded:
                    return
                called = any(isinstance(n, (cst.Call, cst.Await)) for n in syntax.walk(node.value))
                if not called or is_smooth(self.ctx, node.value):
                    self.own.add(target.value)
                    return
            if isinstance(target, cst.Tuple) and self.by_row().parts(target, node.value):
                return
        elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            operators = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)
            if node.target.value in self.rows and isinstance(node.operator, operators):
                if not self.by_row().of(node.value):
                    raise NotByRow
                return
        if guarded or self._reads(node):
            raise NotByRow

    def _is_write(self, node: cst.BaseSmallStatement) -> bool:
        """``out[idx] += rows``, ``out[idx] = rows``, ``out.index_add_(0, idx, rows)``."""
        if isinstance(node, cst.Expr):
            return self._is_index_add(node.value)
        if isinstance(node, cst.AugAssign):
            target, fits = (
                node.target,
                isinstance(node.operator, (cst.AddAssign, cst.SubtractAssign)),
            )
        elif isinstance(node, cst.Assign) and len(node.targets) == 1:
            target, fits = node.targets[0].target, True
        else:
            return False
        if not fits or not isinstance(target, cst.Subscript) or not self.selects(target):
            return False
        base = target.value
        if not isinstance(base, cst.Name) or base.value in self.rows:
            raise NotByRow
        if not isinstance(self.ctx.kind(base), k.Tensor):
            raise NotByRow
        rows = self.by_row()
        if not rows.indexes(target) or not (rows.of(node.value) or rows.is_for_each(node.value)):
            raise NotByRow
        return True

    def selects(self, target: cst.Subscript) -> bool:
        """Whether a target is one of rows."""
        return self._reads(target.slice[0])

    def _is_index_add(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.Call) or self.ctx.facts.callee(node) != "Tensor.index_add_":
            return False
        if len(node.args) != 3 or any(a.keyword is not None or a.star for a in node.args):
            return False
        base = node.func.value if isinstance(node.func, cst.Attribute) else None
        dim, index, value = (a.value for a in node.args)
        if not isinstance(base, cst.Name) or base.value in self.rows:
            return False
        if syntax.code(dim) != "0" or not self.by_row().of(index) or not self.by_row().of(value):
            raise NotByRow
        if not self.by_row().is_place(index):
            raise NotByRow
        return True

    def _reads(self, node: cst.CSTNode) -> bool:
        return self.by_row().touches(node)

    def _read_nowhere_else(self, around: list[cst.CSTNode]) -> None:
        """Nobody but the region reads what hangs on the rows, also not in the next turn of a loop."""
        tree = self.ctx.source.index
        function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
        loop = next((n for n in around if isinstance(n, (cst.For, cst.While))), None)
        if function is None:
            raise NotByRow
        names = self.rows | self.own | self.places
        region = self.found.region
        first = tree.place(region[0])
        for node in tree.within(function.body, cst.Name):
            if node.value not in names or any(tree.holds(one, node) for one in region):
                continue
            parents = tree.around(node)
            if any(isinstance(one, cst.AssignTarget) for one in parents[-3:]):
                continue
            named = isinstance(parents[-1], (cst.Attribute, cst.Arg))
            if named and parents[-1].value is not node:
                continue
            if any(tree.holds(one, node) for one in (*self.found.guards, *self.found.opened)):
                continue
            if tree.place(node) > first or (loop is not None and tree.holds(loop, node)):
                raise NotByRow

    # --- expressions ----------------------------------------------------------------------------------------------

    def by_row(self) -> ByRow:
        """What tells which expressions have a row for each place; it notes what names get."""
        return ByRow(self.ctx, self.rows, self.places, self.numbers, wide=self.wide)


class Places(Region):
    """What becomes of the places that ``idx = torch.where(mask)[0]`` finds."""

    found: Selection

    def follow(self) -> None:
        """Look at all that hangs on the selection.

        Raises:
          NotByRow: something else is done with the rows.
        """
        tree = self.ctx.source.index
        around = tree.around(self.found.statement)
        line, suite = around[-1], around[-2]
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise NotByRow
        if not isinstance(suite, cst.IndentedBlock):
            raise NotByRow
        target = self.found.statement.targets[0].target
        whole = isinstance(self.found.statement.value, cst.Call)
        names = [e.value for e in target.elements] if isinstance(target, cst.Tuple) else [target]
        if whole != isinstance(target, cst.Tuple):
            raise NotByRow  # a tuple of unknown length under one name
        for one in names:
            if not isinstance(one, cst.Name):
                raise NotByRow
            self.places.add(one.value)
        self.rows |= self.places
        self.numbers |= self.places
        position = [s is line for s in suite.body].index(True)
        self.go_on(around, suite.body[:position], suite.body[position + 1 :], line)


def _read_only(ctx: Context, node: cst.BaseStatement) -> str | None:
    """The name that a line gives to something it reads without a call, or reckons from any numbers, if that is all."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return None
    small = node.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    called = any(isinstance(n, (cst.Call, cst.Await, cst.NamedExpr)) for n in syntax.walk(small))
    if called and not is_smooth(ctx, small.value):
        return None
    return target.value if isinstance(target, cst.Name) else None
