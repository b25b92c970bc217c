"""Rows that a mask takes as an index, and that are written back through it: ``y[mask] = expert(x[mask])``.

As many rows as the data says are as good as all of them, if each is reckoned by itself, with a derivative everywhere,
and all of it ends in writes through the same mask, which leave the others alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator import syntax
from migrator.assignments import is_target
from migrator.convert.by_row import ByRow, NotByRow
from migrator.convert.context import Context
from migrator.convert.rows import Region, Selected
from migrator.infer import kinds as k
from migrator.source import Source
from migrator.tree import Tree

_FLAT = ("view", "reshape")


@dataclass(kw_only=True)
class Masked(Selected):
    """What is selected by a mask as an index."""

    axes: int | None
    """Its rank, where it is known."""
    whole: cst.BaseExpression | None = None
    """The mask of which this one is all elements in a row: ``flat = mask.view(-1)``."""
    reads: list[cst.Subscript] = field(default_factory=list)

    def settles(self, tree: Tree, node: cst.CSTNode) -> bool:
        """See the base."""
        mine = [*self.reads, *(_target(one) for one in self.writes)]
        return any(node is one for one in mine) or super().settles(tree, node)

    def lines(self, source: Source) -> range:
        """The lines of what is done to the rows."""
        first, last = source.span(self.region[0]), source.span(self.writes[-1])
        return range(first.line, last.end_line + 1)


def _target(write: cst.CSTNode) -> cst.CSTNode:
    return write.targets[0].target if isinstance(write, cst.Assign) else write.target  # type: ignore[attr-defined]


def masked_rows(ctx: Context) -> Iterator[Masked]:
    """The selections by a mask, of those that are in the way, that can be computed for all rows."""
    tree, settled = ctx.source.index, set[int]()
    flagged = [n for n, (rule, _, _) in ctx.blocked.items() if rule == "DYN001" and tree.has(n)]
    for node in sorted(flagged, key=tree.place):
        if id(node) in settled or not isinstance(node, cst.Subscript):
            continue
        found = _masked(ctx, node)
        if found is None:
            continue
        try:
            MaskRegion(ctx, found, node).follow()
        except NotByRow:
            continue
        settled |= set(map(id, found.reads))
        yield found


def _masked(ctx: Context, node: cst.Subscript) -> Masked | None:
    first = node.slice[0].slice
    if not isinstance(first, cst.Index):
        return None
    kind = ctx.kind(first.value)
    if not isinstance(kind, k.Tensor) or kind.dtype != "bool" or kind.rank == 0:
        return None
    if any(isinstance(n, (cst.Call, cst.NamedExpr, cst.Await)) for n in syntax.walk(first.value)):
        return None  # asked for more than once
    return Masked(first.value, axes=kind.rank)


class MaskRegion(Region):
    """What becomes of the rows of a mask, from the first statement that takes some to the end of its suite."""

    found: Masked

    def __init__(self, ctx: Context, found: Masked, first: cst.Subscript) -> None:
        super().__init__(ctx, found)
        self.first = first
        self.masks: tuple[cst.BaseExpression, ...] = (found.mask,)

    def follow(self) -> None:
        """Look at all that hangs on the selection.

        Raises:
          NotByRow: something else is done with the rows.
        """
        tree = self.ctx.source.index
        around = tree.around(self.first)
        blocks = [i for i, one in enumerate(around) if isinstance(one, cst.IndentedBlock)]
        if not blocks or blocks[-1] + 1 >= len(around):
            raise NotByRow
        suite, line = around[blocks[-1]], around[blocks[-1] + 1]
        if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
            raise NotByRow
        if any(isinstance(one, cst.Lambda) for one in around[blocks[-1] :]):
            raise NotByRow
        around = around[: blocks[-1] + 2]
        position = [s is line for s in suite.body].index(True)
        self.found.whole = self._flattened(around)
        if self.found.whole is not None:
            self.masks += (self.found.whole,)
        self.go_on(around, suite.body[:position], suite.body[position:])
        self.found.region = self._up_to_last_write(self.found.region)
        self._kept()
        self.found.reads = [
            one
            for part in self.found.region
            for one in tree.within(part, cst.Subscript)
            if self._index_is(one, self.found.mask) and not self._is_target(one)
        ]
        if self.found.axes is None and any(len(one.slice) > 1 for one in self.found.reads):
            raise NotByRow  # the place of the other indices is not known

    def by_row(self) -> ByRow:
        """See the base."""
        axes, masks = self.found.axes, (self.found.mask,)
        return ByRow(
            self.ctx, self.rows, self.places, self.numbers, 0, masks, axes=axes, wide=self.wide
        )

    def selects(self, target: cst.Subscript) -> bool:
        """See the base."""
        return len(target.slice) == 1 and any(self._index_is(target, one) for one in self.masks)

    def _is_write(self, node: cst.BaseSmallStatement) -> bool:
        match node:
            case cst.AugAssign(target=cst.Subscript() as target):
                fits = isinstance(
                    node.operator, (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)
                )
            case cst.Assign(targets=[cst.AssignTarget(cst.Subscript() as target)]):
                fits = True
            case _:
                return False
        if not self.selects(target):
            return False
        base, rows = target.value, self.by_row()
        if not fits or not isinstance(base, cst.Name) or base.value in self.rows:
            raise NotByRow
        if not isinstance(self.ctx.kind(base), k.Tensor):
            raise NotByRow
        if not rows.of(node.value):
            if not rows.is_for_each(node.value) or not self._index_is(target, self.found.mask):
                raise NotByRow
        return True

    def _index_is(self, node: cst.Subscript, mask: cst.BaseExpression) -> bool:
        first = node.slice[0].slice
        return isinstance(first, cst.Index) and bool(first.value.deep_equals(mask))

    def _is_target(self, node: cst.CSTNode) -> bool:
        return any(node is _target(one) for one in self.found.writes)

    def _is_any(self, node: cst.BaseExpression) -> bool:
        """``mask.any()``."""
        if not isinstance(node, cst.Call) or self.ctx.facts.callee(node) != "Tensor.any":
            return False
        if node.args or not isinstance(node.func, cst.Attribute):
            return False
        asked = node.func.value
        return any(asked.deep_equals(one) for one in self.masks)

    def _flattened(self, around: Sequence[cst.CSTNode]) -> cst.BaseExpression | None:
        """``mask`` of ``flat = mask.view(-1)``, where neither gets another value."""
        name = self.found.mask
        function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
        if not isinstance(name, cst.Name) or function is None:
            return None
        made = self._assigned(function, name.value)
        value = made.value if made is not None else None
        if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
            return None
        whole, method = value.func.value, value.func.attr.value
        texts = [syntax.code(a) for a in value.args]
        flat = (method in _FLAT and texts == ["-1"]) or (method == "flatten" and not texts)
        if not flat or not isinstance(whole, cst.Name):
            return None
        source = self._assigned(function, whole.value)
        if source is None or made is None:
            return None
        tree, loops = self.ctx.source.index, (cst.For, cst.While, cst.If, cst.Try, cst.With)
        inside = [
            [id(n) for n in tree.around(one) if isinstance(n, loops)] for one in (source, made)
        ]
        same = inside[0] == inside[1] and tree.place(source) < tree.place(made)
        return whole if same else None

    def _assigned(self, function: cst.FunctionDef, name: str) -> cst.Assign | None:
        """The one statement that gives a name its value."""
        tree = self.ctx.source.index
        bound = [
            n
            for n in tree.within(function, cst.Name)
            if n.value == name and is_target(tree.around(n), n)
        ]
        if len(bound) != 1:
            return None
        aim = tree.parent(bound[0])
        made = tree.parent(aim) if isinstance(aim, cst.AssignTarget) else None
        return made if isinstance(made, cst.Assign) and len(made.targets) == 1 else None

    def _up_to_last_write(self, region: Sequence[cst.CSTNode]) -> list[cst.CSTNode]:
        tree = self.ctx.source.index
        last = max(
            i
            for i, one in enumerate(region)
            if any(tree.holds(one, write) for write in self.found.writes)
        )
        return list(region[: last + 1])

    def _kept(self) -> None:
        """The mask is the same at all reads and writes.

        Raises:
          NotByRow: it may get another value in between.
        """
        from migrator.convert.passes.skipping import pure_call

        tree, found = self.ctx.source.index, self.found
        names = {name for one in self.masks for name in syntax.names(one)}
        named = isinstance(found.mask, cst.Name)
        if not named and len(found.writes) > 1:
            raise NotByRow  # of what is written, the mask may be asked the second time
        for part in found.region:
            for node in tree.within(part, cst.Name):
                if node.value in names and is_target(tree.around(node), node):
                    raise NotByRow
            for node in tree.within(part, cst.AssignTarget, cst.AugAssign):
                item = node.target
                if isinstance(item, cst.Name) and isinstance(node, cst.AugAssign):
                    if item.value not in self.rows:
                        raise NotByRow
                elif isinstance(item, (cst.Subscript, cst.Attribute)) and not self._is_target(item):
                    raise NotByRow
            for call in tree.within(part, cst.Call):
                if not pure_call(self.ctx, call, set()) and not self._by_row(call):
                    raise NotByRow
        for write in found.writes:
            target = _target(write)
            assert isinstance(target, cst.Subscript)
            kind = self.ctx.kind(target.value)
            written = isinstance(kind, k.Tensor) and kind.dtype == "bool"
            if named and (written or names & set(syntax.names(target.value))):
                raise NotByRow  # the mask itself, perhaps by another name

    def _by_row(self, call: cst.Call) -> bool:
        try:
            return self.by_row().of(call)
        except NotByRow:
            return False
