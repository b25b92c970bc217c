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
from migrator.convert.context import Context
from migrator.convert.counted import asked_count, counting
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.source import Source
from migrator.tree import Tree

_FUNCTIONS = frozenset(
    f"torch.nn.functional.{name}"
    for name in "silu gelu relu sigmoid tanh dropout leaky_relu elu softplus relu6 hardswish mish linear".split()
) | frozenset({"torch.sigmoid", "torch.tanh", "torch.relu"})
"""What looks at each row by itself, at any finite number."""
_METHODS = frozenset(
    "float half bfloat16 to type_as clone contiguous detach sigmoid tanh relu".split()
)
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in "Linear Identity Dropout ReLU GELU SiLU Sigmoid Tanh LeakyReLU ELU Mish Hardswish ReLU6 "
    "Softplus LayerNorm".split()
)
_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply)
_SHAPES = frozenset({"torch.zeros", "torch.ones"})
_MOST = 6
"""Calls of forward passes within one another that are looked into."""


class NotByRow(Exception):
    """Rows are used otherwise."""


@dataclass
class Selection:
    """A statement that finds the rows of a mask, and what becomes of all that hangs on it."""

    statement: cst.Assign
    call: cst.Call
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
        return node is self.call or any(tree.holds(one, node) for one in (*tests, *self.counted))

    def lines(self, source: Source) -> range:
        """The lines from the selection to the last that hangs on it."""
        first, last = source.span(self.region[0]), source.span(self.region[-1])
        return range(first.line, last.end_line + 1)


def selections(ctx: Context) -> Iterator[Selection]:
    """The selections of a file that can be converted."""
    for node in ctx.source.index.of_type(cst.Assign):
        found = _selecting(ctx, node)
        if found is None:
            continue
        try:
            _Region(ctx, found).follow()
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
    return Selection(node, value, given[0])


class _Region:
    """The statements from a selection to the end of its suite."""

    def __init__(self, ctx: Context, found: Selection) -> None:
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
        self.own: set[str] = set()
        """Other names that only this region reads."""

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
        rest = suite.body[position + 1 :]
        self.after = rest[0] if rest else None
        within = around[-3]
        before = self._guard_before(suite.body[:position])
        if before is not None:
            self.found.guards.append(before)
        elif isinstance(within, cst.If) and position == 0 and self._asks_any(within):
            self.found.opened.append(within)
        self._block(rest, bool(self.found.guards or self.found.opened))
        if not self.found.writes:
            raise NotByRow
        self.found.region = [line, *rest]
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
            name = _read_only(one)
            if name is None:
                return None
            between.add(name)
        return None

    def _skips(self, node: cst.If) -> bool:
        """Whether an ``if`` leaves the turn of a loop where nothing is selected."""
        if node.orelse is not None or not isinstance(node.body, cst.IndentedBlock):
            return False
        lines = node.body.body
        small = [s for one in lines if isinstance(one, cst.SimpleStatementLine) for s in one.body]
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
                by_row = self.by_row(node.value)
                reckoned = by_row and self._by_row().is_place(node.value)
                (self.numbers.add if reckoned else self.numbers.discard)(target.value)
                self.places.discard(target.value)
                if by_row:
                    self.rows.add(target.value)
                    return
                self.rows.discard(target.value)
                if not guarded:
                    return
                if not any(isinstance(n, (cst.Call, cst.Await)) for n in syntax.walk(node.value)):
                    self.own.add(target.value)
                    return
        elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            operators = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)
            if node.target.value in self.rows and isinstance(node.operator, operators):
                if not self.by_row(node.value):
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
        if not fits or not isinstance(target, cst.Subscript) or not self._reads(target.slice[0]):
            return False
        base = target.value
        if not isinstance(base, cst.Name) or base.value in self.rows:
            raise NotByRow
        if not isinstance(self.ctx.kind(base), k.Tensor):
            raise NotByRow
        rows = self._by_row()
        if not rows.indexes(target) or not (rows.of(node.value) or rows.is_for_each(node.value)):
            raise NotByRow
        return True

    def _is_index_add(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.Call) or self.ctx.facts.callee(node) != "Tensor.index_add_":
            return False
        if len(node.args) != 3 or any(a.keyword is not None or a.star for a in node.args):
            return False
        base = node.func.value if isinstance(node.func, cst.Attribute) else None
        dim, index, value = (a.value for a in node.args)
        if not isinstance(base, cst.Name) or base.value in self.rows:
            return False
        if syntax.code(dim) != "0" or not self.by_row(index) or not self.by_row(value):
            raise NotByRow
        if not self._by_row().is_place(index):
            raise NotByRow
        return True

    def _reads(self, node: cst.CSTNode) -> bool:
        return bool(self.rows & set(syntax.names(node)))

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

    def by_row(self, node: cst.BaseExpression) -> bool:
        """Whether an expression has a row for each place; False where it has nothing to do with them.

        Raises:
          NotByRow: it is made of rows otherwise.
        """
        return self._by_row().of(node)

    def _by_row(self) -> _ByRow:
        return _ByRow(self.ctx, self.rows, self.places, self.numbers)


def _read_only(node: cst.BaseStatement) -> str | None:
    """The name that a line gives to something it reads without a call, if that is all it does."""
    if not isinstance(node, cst.SimpleStatementLine) or len(node.body) != 1:
        return None
    small = node.body[0]
    if not isinstance(small, cst.Assign) or len(small.targets) != 1:
        return None
    target = small.targets[0].target
    called = any(isinstance(n, (cst.Call, cst.Await, cst.NamedExpr)) for n in syntax.walk(small))
    return target.value if isinstance(target, cst.Name) and not called else None


@dataclass
class _ByRow:
    """Expressions over names that have a row for each place."""

    ctx: Context
    rows: set[str]
    places: set[str]
    numbers: set[str]
    depth: int = 0

    def of(self, node: cst.CSTNode) -> bool:
        """See ``_Region.by_row``."""
        if not self.rows & set(syntax.names(node)):
            return False
        if isinstance(node, cst.Name):
            return True
        if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
            return self.of(node.expression)
        if isinstance(node, cst.BinaryOperation):
            left, right = self.of(node.left), self.of(node.right)
            alone = None if left and right else node.right if left else node.left
            if isinstance(node.operator, _OPERATORS) and self.is_for_each(alone):
                return True
            if isinstance(node.operator, cst.Divide) and left and not right:
                if self.is_for_each(alone):
                    return True
                raise NotByRow
            if isinstance(node.operator, cst.MatrixMultiply) and left and not right:
                return True
        elif isinstance(node, cst.Subscript):
            return self._item(node)
        elif isinstance(node, cst.Call):
            return self._call(node)
        raise NotByRow

    def is_for_each(self, node: cst.BaseExpression | None) -> bool:
        """Whether what meets rows is a number or a parameter: another tensor may have just as many rows."""
        if node is None:
            return True
        kind = self.ctx.kind(node)
        return k.scalar_type(kind) is not None or (isinstance(kind, k.Tensor) and bool(kind.role))

    def indexes(self, node: cst.Subscript) -> bool:
        """Whether the first of the indices are places, and the others numbers, places or nothing of the kind."""
        first = node.slice[0].slice
        if not isinstance(first, cst.Index) or not self.of(first.value):
            return False
        if not self.is_place(first.value):
            return False
        for element in node.slice[1:]:
            item = element.slice
            if not isinstance(item, cst.Index):
                if self.rows & set(syntax.names(item)):
                    return False
            elif self.of(item.value):
                if not self.is_place(item.value):
                    return False
            else:
                kind = self.ctx.kind(item.value)
                if k.scalar_type(kind) != "int" and kind != k.NONE:
                    return False
        return True

    def is_place(self, node: cst.BaseExpression) -> bool:
        """Whether rows are whole numbers: by those that are true or not, others would be selected once more."""
        kind = self.ctx.kind(node)
        if isinstance(kind, k.Tensor) and kind.dtype is not None:
            return kind.dtype == "int"
        if any(isinstance(n, (cst.Subscript, cst.Call)) for n in syntax.walk(node)):
            return False
        return self.rows & set(syntax.names(node)) <= self.numbers

    def _item(self, node: cst.Subscript) -> bool:
        if not self.of(node.value):
            if self.indexes(node):
                return True
            raise NotByRow
        first, rest = node.slice[0].slice, node.slice[1:]
        if self.rows & {n for e in node.slice for n in syntax.names(e)}:
            raise NotByRow
        if isinstance(first, cst.Slice) and not (first.lower or first.upper or first.step):
            return True
        dots = isinstance(first, cst.Index) and isinstance(first.value, cst.Ellipsis)
        if dots and all(syntax.code(e.slice) == "None" for e in rest):
            return True
        raise NotByRow

    def _call(self, node: cst.Call) -> bool:
        name = self.ctx.facts.callee(node) or ""
        given = [a.value for a in node.args if not a.star]
        if len(given) != len(node.args):
            raise NotByRow
        if name in _SHAPES and self._counts(given[0]):
            if not any(self.rows & set(syntax.names(a)) for a in given[1:]):
                return True
            raise NotByRow
        func = node.func
        if name.startswith("Tensor.") and isinstance(func, cst.Attribute):
            return self._method(func, name.removeprefix("Tensor."), given)
        by_row = [self.of(one) for one in given]
        if not by_row or not by_row[0] or any(by_row[1:]) or self.rows & set(syntax.names(func)):
            raise NotByRow
        if name in _FUNCTIONS or (name.endswith("()") and self._layer(self.ctx.kind(func))):
            return True
        raise NotByRow

    def _counts(self, node: cst.BaseExpression) -> bool:
        text = syntax.code(node).replace(" ", "")
        forms = ("{}.numel()", "{}.shape[0]", "{}.size(0)", "len({})")
        return any(text == form.format(name) for name in self.places for form in forms)

    def _method(self, func: cst.Attribute, method: str, given: list[cst.BaseExpression]) -> bool:
        if method in ("reshape", "view"):
            return self._under_one(func.value, given)
        if not self.of(func.value) or any(self.of(one) for one in given):
            raise NotByRow
        if method == "unsqueeze" and len(given) == 1 and syntax.code(given[0]) in ("-1", "1"):
            return True
        if method in _METHODS:
            return True
        raise NotByRow

    def _under_one(self, node: cst.BaseExpression, given: list[cst.BaseExpression]) -> bool:
        """``x[None, idx].reshape(-1, width)``: the axis of one goes again."""
        if not isinstance(node, cst.Subscript) or len(given) != 2 or len(node.slice) != 2:
            raise NotByRow
        first, second = (e.slice for e in node.slice)
        if isinstance(second, cst.Index) and not self.is_place(second.value):
            raise NotByRow
        none = isinstance(first, cst.Index) and syntax.code(first.value) == "None"
        if not none or not isinstance(second, cst.Index) or syntax.code(given[0]) != "-1":
            raise NotByRow
        if self.of(node.value) or self.of(given[1]) or not self.of(second.value):
            raise NotByRow
        return True

    def _layer(self, kind: k.Kind) -> bool:
        """Whether a layer looks at each row by itself."""
        if not isinstance(kind, k.Module) or self.depth > _MOST:
            return False
        if kind.cls == "torch.nn.Sequential":
            children = [child for name, child in kind.args if name.isdigit()]
            return bool(children) and all(self._layer(child) for child in children)
        info = self.ctx.facts.classes.get(kind.cls)
        if info is None:
            return bool(kind.cls) and all(one in _LAYERS for one in kind.cls.split("|"))
        forward = info.method("forward")
        return forward is not None and self._forward(forward)

    def _forward(self, info: FunctionInfo) -> bool:
        """Whether a forward pass of one argument gives a row for each."""
        params = [p.name.value for p in info.node.params.params]
        if len(params) != 2 or not isinstance(info.node.body, cst.IndentedBlock) or info.settled:
            return False
        inner = _ByRow(self.ctx, {params[1]}, set(), set(), self.depth + 1)
        body = [s for line in info.node.body.body for s in getattr(line, "body", [line])]
        for small in body:
            if isinstance(small, cst.Expr) and isinstance(small.value, cst.SimpleString):
                continue
            if isinstance(small, cst.Return) and small is body[-1] and small.value is not None:
                return inner.of(small.value)
            if not isinstance(small, cst.Assign) or len(small.targets) != 1:
                return False
            target = small.targets[0].target
            if not isinstance(target, cst.Name):
                return False
            change = inner.rows.add if inner.of(small.value) else inner.rows.discard
            change(target.value)
        return False
