"""Expressions over names that have a row for each selected place, of which each row is reckoned from the same row alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules.flags._first import COMPARED

_FUNCTIONS = frozenset(
    f"torch.nn.functional.{name}"
    for name in "silu gelu relu sigmoid tanh dropout leaky_relu elu softplus relu6 hardswish mish linear".split()
) | frozenset({"torch.sigmoid", "torch.tanh", "torch.relu", "torch.square", "torch.erf"})
"""What looks at each row by itself, at any finite number."""
_METHODS = frozenset(
    "float half bfloat16 to type_as clone contiguous detach sigmoid tanh relu square erf".split()
)
_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in "Linear Identity Dropout ReLU GELU SiLU Sigmoid Tanh LeakyReLU ELU CELU SELU Mish Hardswish ReLU6 "
    "Softplus LayerNorm RMSNorm".split()
)
_SIZED = frozenset({"torch.nn.Linear", "torch.nn.LayerNorm", "torch.nn.RMSNorm"})
"""What takes a last axis of one size only."""
_OPERATORS = (cst.Add, cst.Subtract, cst.Multiply)
_SHAPES = frozenset({"torch.zeros", "torch.ones"})
_MOST = 6
"""Calls of forward passes within one another that are looked into."""


class NotByRow(Exception):
    """Rows are used otherwise."""


@dataclass
class ByRow:
    """Expressions over names that have a row for each place."""

    ctx: Context
    rows: set[str]
    places: set[str]
    numbers: set[str]
    depth: int = 0
    masks: tuple[cst.BaseExpression, ...] = ()
    """Masks by which ``x[mask]`` takes rows."""
    axes: int | None = 1
    """How many axes the port has for the one of the rows: as many as the mask; None if that is not known."""
    wide: set[str] = field(default_factory=set)
    """Names of rows that surely have a second axis."""

    def touches(self, node: cst.CSTNode) -> bool:
        """Whether rows stand in it."""
        if self.rows & set(syntax.names(node)):
            return True
        return bool(self.masks) and any(
            isinstance(n, cst.Subscript) and self.is_masked(n) for n in syntax.walk(node)
        )

    def is_masked(self, node: cst.Subscript) -> bool:
        """``x[mask]``, ``x[mask, 0]``."""
        first = node.slice[0].slice
        if not isinstance(first, cst.Index):
            return False
        return any(first.value.deep_equals(mask) for mask in self.masks)

    def of(self, node: cst.CSTNode) -> bool:
        """See ``Region.by_row``."""
        if not self.touches(node):
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
        elif isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            only = node.comparisons[0]
            plain = isinstance(only.operator, COMPARED) and not self.touches(only.comparator)
            if plain and self.of(node.left) and self.is_for_each(only.comparator):
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
        if not self.is_masked(node):
            if not isinstance(first, cst.Index) or not self.of(first.value):
                return False
            if not self.is_place(first.value):
                return False
        for element in node.slice[1:]:
            item = element.slice
            if not isinstance(item, cst.Index):
                if self.touches(item):
                    return False
            elif self.of(item.value):
                if self.is_masked(node) or not self.is_place(item.value):
                    return False
            else:
                kind = self.ctx.kind(item.value)
                if k.scalar_type(kind) != "int" and kind != k.NONE:
                    return False
        return True

    def is_place(self, node: cst.BaseExpression) -> bool:
        """Whether rows are whole numbers: by those that are true or not, others would be selected once more."""
        if self.masks:
            return False  # where the mask does not hold they may be anything
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
        if any(self.touches(e) for e in node.slice):
            raise NotByRow
        if isinstance(first, cst.Slice) and not (first.lower or first.upper or first.step):
            if self.axes == 1:
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
            if not any(self.touches(a) for a in given[1:]):
                return True
            raise NotByRow
        func = node.func
        if name.startswith("Tensor.") and isinstance(func, cst.Attribute):
            method = name.removeprefix("Tensor.")
            if method == "sum" and self._sums_last(node, func.value):
                return True
            return self._method(func, method, given)
        if name == "torch.pow" and len(given) == 2 and self.of(given[0]) and is_power(given[1]):
            return True
        by_row = [self.of(one) for one in given]
        if not by_row or not by_row[0] or any(by_row[1:]) or self.touches(func):
            raise NotByRow
        if name in _FUNCTIONS or (name.endswith("()") and self._layer(self.ctx.kind(func))):
            return True
        info = self.ctx.facts.names.get(name)
        if info is not None and info.owner is None and node.args[0].keyword is None:
            if self.depth <= _MOST and self._passes(info, 0):
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
        if method in ("unsqueeze", "squeeze") and len(given) == 1:
            axis = syntax.code(given[0])
            if axis == "1" and self.axes == 1:
                return True
            if axis == "-1" and (method == "unsqueeze" or self.is_wide(func.value)):
                return True
        if method in _METHODS or (method == "pow" and len(given) == 1 and is_power(given[0])):
            return True
        raise NotByRow

    def _sums_last(self, node: cst.Call, rows: cst.BaseExpression) -> bool:
        """``rows.sum(dim=-1, keepdim=True)`` over an axis of the rows' own."""
        names = [a.keyword.value if a.keyword is not None else "dim" for a in node.args]
        if names not in (["dim"], ["dim", "keepdim"]) or not self.of(rows):
            return False
        if len(node.args) == 2 and syntax.code(node.args[1].value) not in ("True", "False"):
            return False
        return syntax.code(node.args[0].value) == "-1" and self.is_wide(rows)

    def _under_one(self, node: cst.BaseExpression, given: list[cst.BaseExpression]) -> bool:
        """``x[None, idx].reshape(-1, width)``: the axis of one goes again; ``x[idx]`` has none to lose.

        Rows of another width would be of another number, and are not written where these are."""
        if not isinstance(node, cst.Subscript) or len(given) != 2 or syntax.code(given[0]) != "-1":
            raise NotByRow
        if self.axes != 1:
            raise NotByRow
        kind = self.ctx.kind(node.value)
        if len(node.slice) == 1 and isinstance(kind, k.Tensor) and kind.rank == 2:
            if self.of(node) and not self.of(node.value) and not self.of(given[1]):
                return True
        if len(node.slice) != 2:
            raise NotByRow
        first, second = (e.slice for e in node.slice)
        if isinstance(second, cst.Index) and not self.is_place(second.value):
            raise NotByRow
        none = isinstance(first, cst.Index) and syntax.code(first.value) == "None"
        if not none or not isinstance(second, cst.Index):
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
        if kind.among:
            return all(self._layer(one) for one in kind.among)
        info = self.ctx.facts.classes.get(kind.cls)
        if info is None:
            return bool(kind.cls) and all(one in _LAYERS for one in kind.cls.split("|"))
        forward = info.method("forward")
        return forward is not None and self._forward(forward)

    def _forward(self, info: FunctionInfo) -> bool:
        """Whether a forward pass of one argument gives a row for each."""
        return len(info.node.params.params) == 2 and self._passes(info, 1)

    def _passes(self, info: FunctionInfo, place: int) -> bool:
        """Whether a function gives a row for each of what its parameter at a place has, whatever the others are."""
        if info.settled is not None:
            return info.settled.by_row and place == (info.owner is not None)
        params = [p.name.value for p in info.node.params.params]
        if not isinstance(info.node.body, cst.IndentedBlock) or info.generator:
            return False
        if len(params) <= place or info.decorators:
            return False
        inner = ByRow(self.ctx, {params[place]}, set(), set(), self.depth + 1, axes=self.axes)
        return inner._body(info.node.body.body) is True

    def _body(
        self, statements: Sequence[cst.BaseStatement | cst.BaseSmallStatement]
    ) -> bool | None:
        """Whether statements end by giving back rows; None where they go on to what follows."""
        for statement in statements:
            if isinstance(statement, cst.If):
                found = self._branches(statement)
            elif isinstance(statement, cst.SimpleStatementLine):
                found = self._body(statement.body)
            else:
                found = self._small(statement)
            if found is not None:
                return found
        return None

    def _branches(self, node: cst.If) -> bool | None:
        """``if bias is not None: y += bias``; both ways must leave the same names with rows."""
        if self.touches(node.test):
            return False
        other: Sequence[Any] = ()
        if isinstance(node.orelse, cst.Else):
            other = node.orelse.body.body
        elif node.orelse is not None:
            other = (node.orelse,)
        ways = [replace(self, rows=set(self.rows), wide=set(self.wide)) for _ in range(2)]
        first, second = ways[0]._body(node.body.body), ways[1]._body(other)
        if first is False or second is False:
            return False
        going = [way for way, ends in zip(ways, (first, second), strict=True) if ends is None]
        if not going:
            return True
        if any(way.rows != going[0].rows for way in going):
            return False
        self.rows = going[0].rows
        self.wide = set.intersection(*(way.wide for way in going))
        return None

    def _small(self, node: cst.BaseStatement | cst.BaseSmallStatement) -> bool | None:
        if isinstance(node, cst.Return):
            return node.value is not None and self.of(node.value)
        if isinstance(node, cst.Raise):
            return True
        if isinstance(node, cst.Pass) or (
            isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString)
        ):
            return None
        if isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
            operators = (cst.AddAssign, cst.SubtractAssign, cst.MultiplyAssign)
            fits = node.target.value in self.rows and isinstance(node.operator, operators)
            return None if fits and (self.of(node.value) or self.is_for_each(node.value)) else False
        if not isinstance(node, cst.Assign) or len(node.targets) != 1:
            return False
        target = node.targets[0].target
        if isinstance(target, cst.Tuple):
            return None if self.parts(target, node.value) else False
        if not isinstance(target, cst.Name):
            return False
        self.bind(target.value, node.value)
        return None

    def bind(self, name: str, value: cst.BaseExpression) -> bool:
        """Note what a name holds from now on; whether it is rows."""
        by_row = self.of(value)
        wide = by_row and self.is_wide(value)
        (self.rows.add if by_row else self.rows.discard)(name)
        (self.wide.add if wide else self.wide.discard)(name)
        return by_row

    def parts(self, target: cst.Tuple, value: cst.BaseExpression) -> bool:
        """``a, b = rows.chunk(2, dim=-1)``: whether it is that, the names noted."""
        if not isinstance(value, cst.Call) or self.ctx.facts.callee(value) != "Tensor.chunk":
            return False
        func, names = value.func, [e.value for e in target.elements]
        axis = [a.value for a in value.args[1:]]
        fits = len(axis) == 1 and syntax.code(axis[0]) == "-1" and isinstance(func, cst.Attribute)
        if not fits or not all(isinstance(one, cst.Name) for one in names):
            return False
        assert isinstance(func, cst.Attribute)
        if not self.of(func.value) or not self.is_wide(func.value) or self.touches(value.args[0]):
            return False
        for one in names:
            assert isinstance(one, cst.Name)
            self.rows.add(one.value)
            self.wide.add(one.value)
        return True

    def is_wide(self, node: cst.BaseExpression) -> bool:
        """Whether rows surely have another axis: a layer fixes its size, which is not that of what the data select."""
        kind = self.ctx.kind(node)
        if isinstance(kind, k.Tensor) and (kind.rank or 0) > 1:
            return True
        if isinstance(node, cst.Name):
            return node.value in self.wide
        if isinstance(node, cst.BinaryOperation):
            return self.is_wide(node.left) or self.is_wide(node.right)
        if isinstance(node, cst.Comparison):
            return self.is_wide(node.left)
        if isinstance(node, cst.Subscript) and len(node.slice) == 1 and self.axes is not None:
            whole = self.ctx.kind(node.value)
            return isinstance(whole, k.Tensor) and (whole.rank or 0) > self.axes
        if isinstance(node, cst.Call):
            name = self.ctx.facts.callee(node) or ""
            if name == "torch.nn.functional.linear":
                return True
            layer = self.ctx.kind(node.func)
            if isinstance(layer, k.Module) and layer.cls in _SIZED:
                return True
            within = [a.value for a in node.args[:1]]
            if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
                within = [node.func.value] if name.removeprefix("Tensor.") in _METHODS else []
            elif name not in _FUNCTIONS and not name.endswith("()"):
                within = []
            return any(map(self.is_wide, within))
        return False


_SMOOTH = frozenset(
    "sum float half bfloat16 to type_as unsqueeze squeeze view reshape flatten detach clone contiguous any long int bool "
    "sigmoid tanh relu softmax".split()
)
_PLAIN = (cst.Name, cst.Attribute, cst.Integer, cst.Float, cst.SimpleString)


def is_smooth(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression only computes what is finite, and has a finite derivative, for any finite numbers.

    Then it may be reckoned where nothing is selected too, although nobody asks for it there."""
    if isinstance(node, _PLAIN):
        return not isinstance(node, cst.Attribute) or is_smooth(ctx, node.value)
    if isinstance(node, cst.UnaryOperation):
        return is_smooth(ctx, node.expression)
    if isinstance(node, cst.BinaryOperation):
        fits = isinstance(node.operator, (*_OPERATORS, cst.BitAnd, cst.BitOr))
        return fits and is_smooth(ctx, node.left) and is_smooth(ctx, node.right)
    if isinstance(node, cst.Comparison):
        others = [one.comparator for one in node.comparisons]
        fits = all(isinstance(one.operator, COMPARED) for one in node.comparisons)
        return (
            fits and len(others) == 1 and all(is_smooth(ctx, one) for one in (node.left, *others))
        )
    if not isinstance(node, cst.Call) or any(a.star for a in node.args):
        return False
    prefix, _, last = (ctx.facts.callee(node) or "").rpartition(".")
    given = [a.value for a in node.args if a.keyword is None or a.keyword.value != "dtype"]
    if prefix == "Tensor" and isinstance(node.func, cst.Attribute):
        given.append(node.func.value)
    elif prefix not in ("torch", "torch.nn.functional"):
        return False
    return last in _SMOOTH and all(is_smooth(ctx, one) for one in given)


def is_power(node: cst.BaseExpression) -> bool:
    """A number that is written down as an exponent, with which every number has a power, and that a derivative."""
    text = syntax.code(node)
    return isinstance(node, (cst.Integer, cst.Float)) and float(text) in (1.0, 2.0, 3.0, 4.0)


def is_by_row(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function, or a forward pass of one argument, gives a row for each of what it is given first."""
    if info.owner is not None and (info.short != "forward" or len(info.node.params.params) != 2):
        return False
    try:
        inner = ByRow(ctx, set(), set(), set(), axes=None)
        return inner._passes(info, int(info.owner is not None))
    except NotByRow:
        return False
