"""Masks that hang on sizes alone: ``~torch.eye(n, dtype=torch.bool)``, and what is selected with them.

How much such a mask selects is known while JAX traces, if numpy makes it: jax.numpy would make it part of the program.
So the statements that lead to the mask become numpy's. And ``x[mask].view(n, n - 1)`` says itself how much there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.given_sizes import given_sizes
from migrator.convert.host_masks import host_masks, is_held
from migrator.infer import kinds as k
from migrator.tree import Tree

_FACTORIES = frozenset(f"torch.{name}" for name in "arange eye ones zeros full tensor".split())
_FUNCTIONS = frozenset(
    f"torch.{name}"
    for name in "cat concat stack triu tril logical_not logical_and logical_or logical_xor eq ne gt ge lt le".split()
)
_METHODS = frozenset(
    f"Tensor.{name}"
    for name in "bool float int long to type unsqueeze view reshape t repeat expand triu tril logical_not logical_and "
    "logical_or eq ne gt ge lt le clone contiguous flatten transpose cpu cuda".split()
)
_OPERATORS = (
    *(cst.BitAnd, cst.BitOr, cst.BitXor, cst.Add, cst.Subtract, cst.Multiply),
    *(cst.FloorDivide, cst.Modulo),
)
_SELECTS = frozenset({"torch.masked_select", "Tensor.masked_select"})


@dataclass(eq=False)
class Known:
    """A mask of known values.

    Attributes:
      failure: what was said of the selection, which holds after all where a line turns out to need more than numpy.
      failed: one did.
    """

    failure: tuple[str, str, str]
    failed: bool = False


@dataclass(eq=False)
class Sized:
    """A selection whose result is given a shape of known sizes, whose product is how much the mask selects."""

    x: cst.BaseExpression
    mask: cst.BaseExpression
    sizes: Sequence[cst.BaseExpression]
    broadcast: bool


@dataclass(eq=False)
class Places:
    """Where something of known values is not zero.

    Attributes:
      apart: the places along each axis are asked for, not those of each element.
    """

    mask: cst.BaseExpression
    apart: bool


@dataclass
class KnownMasks:
    """The masks of a file, by node."""

    masks: dict[cst.CSTNode, Known] = field(default_factory=dict)
    lines: dict[cst.CSTNode, list[Known]] = field(default_factory=dict)
    sized: dict[cst.CSTNode, Sized] = field(default_factory=dict)
    places: dict[cst.CSTNode, Places] = field(default_factory=dict)
    taken: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    """``n.tolist()`` and ``n.item()`` of whole numbers of known values, and ``n``."""
    attributes: frozenset[tuple[str, str]] = frozenset()
    """Attributes that numpy holds, and their classes."""


def known_masks(ctx: Context) -> KnownMasks:
    """The masks of a file, looked for once; what was said of selections with them is taken back."""
    if ctx.known_masks is None:
        ctx.known_masks = KnownMasks()
        flagged = {
            node: failure
            for node, failure in ctx.blocked.items()
            if failure[0] in ("DYN001", "DYN004", "DYN005") and ctx.source.index.has(node)
        }
        every = {**flagged, **dict.fromkeys(ctx.source.index.of_type(cst.Subscript))}
        chosen = {node: one for node in every if (one := _selection(ctx, node)) is not None}
        told = {node: places for node in flagged if (places := _places(ctx, node)) is not None}
        masks = [mask for _, mask, _ in chosen.values()]
        masks += [places.mask for places in told.values()]
        taken = {node: n for node in flagged if (n := _taken(ctx, node)) is not None}
        ctx.known_masks.attributes = host_masks(ctx, masks)
        masks += taken.values()
        for node, numbers in taken.items():
            if _is_whole(ctx, numbers, masks) and _lead_to(
                ctx, node, numbers, masks, ctx.known_masks
            ):
                ctx.known_masks.taken[node] = numbers
        for node, places in told.items():
            _settle_places(ctx, node, places, masks, ctx.known_masks)
        for node, selection in chosen.items():
            _settle(ctx, node, selection, masks, ctx.known_masks)
    found: KnownMasks = ctx.known_masks
    return found


def _places(ctx: Context, node: cst.CSTNode) -> Places | None:
    """The parts of ``adj.nonzero()``, ``torch.where(adj > 0)``."""
    if not isinstance(node, cst.Call) or any(arg.star for arg in node.args):
        return None
    name, given = ctx.facts.callee(node), [a.value for a in node.args if a.keyword is None]
    options = {a.keyword.value: a.value for a in node.args if a.keyword is not None}
    if name in ("Tensor.nonzero", "Tensor.argwhere") and isinstance(node.func, cst.Attribute):
        given.insert(0, node.func.value)
    elif name not in ("torch.nonzero", "torch.argwhere", "torch.where"):
        return None
    apart = options.pop("as_tuple", cst.Name("True" if name == "torch.where" else "False"))
    if len(given) != 1 or options or not isinstance(apart, cst.Name):
        return None
    return Places(given[0], apart.value == "True") if apart.value in ("True", "False") else None


def _settle_places(
    ctx: Context,
    node: cst.CSTNode,
    places: Places,
    masks: Sequence[cst.BaseExpression],
    found: KnownMasks,
) -> None:
    """Have numpy look for the places, where it knows the values."""
    if not isinstance(ctx.kind(places.mask), k.Tensor):
        return
    if _lead_to(ctx, node, places.mask, masks, found):
        found.places[node] = places


def _lead_to(
    ctx: Context,
    node: cst.CSTNode,
    known: cst.BaseExpression,
    others: Sequence[cst.BaseExpression],
    found: KnownMasks,
) -> bool:
    """Have numpy compute what hangs on sizes alone; what was said of the node is taken back."""
    lines = _Lines(ctx, found, others).leading_to(known)
    if lines is None:
        return False
    found.masks[known] = Known(ctx.blocked.pop(node, _DEPENDS))
    for line in lines:
        found.lines.setdefault(line, []).append(found.masks[known])
    return True


_DEPENDS = (
    "DYN001",
    "indexing by a boolean mask gives a shape that depends on the data",
    "use jnp.where(mask, x, fill), or a reduction over x * mask",
)


def _taken(ctx: Context, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The whole numbers that ``n.tolist()`` and ``n.item()`` take out of a tensor."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute) or node.args:
        return None
    if ctx.facts.callee(node) not in ("Tensor.tolist", "Tensor.item"):
        return None
    kind = ctx.kind(node.func.value)
    return (
        node.func.value
        if isinstance(kind, k.Tensor) and kind.dtype in ("int", "bool", None)
        else None
    )


def _is_whole(ctx: Context, node: cst.BaseExpression, others: Sequence[cst.BaseExpression]) -> bool:
    """Whether a tensor is of whole numbers: it is made of nothing else, or torch says so."""
    if getattr(ctx.kind(node), "dtype", None) in ("int", "bool"):
        return True
    lines = _Lines(ctx, KnownMasks(), others).leading_to(node)
    if lines is None:
        return False
    for one in [n for part in (node, *(line.value for line in lines)) for n in syntax.walk(part)]:
        if (
            isinstance(one, (cst.Float, cst.Divide))
            or k.scalar_type(ctx.facts.kind(one)) == "float"
        ):
            return False
        if isinstance(one, cst.Call) and ctx.facts.callee(one) in _OF_FRACTIONS:
            return False
    return True


_OF_FRACTIONS = frozenset(
    [*(f"torch.{name}" for name in "eye ones zeros full".split())]
    + [f"Tensor.{name}" for name in "float to type".split()]
)
"""Functions whose result may be of no whole numbers where their arguments are."""


_Selection = tuple[cst.BaseExpression, cst.BaseExpression, bool]
"""What is selected from, the mask, and whether nothing but the mask is the index."""


def _settle(
    ctx: Context,
    node: cst.CSTNode,
    selection: _Selection,
    masks: Sequence[cst.BaseExpression],
    found: KnownMasks,
) -> None:
    x, mask, all_axes = selection
    kind = ctx.kind(mask)
    by_method = isinstance(node, cst.Call)
    if not isinstance(kind, k.Tensor) or not (
        kind.dtype == "bool" or (by_method and kind.dtype is None)  # which takes only booleans
    ):
        return
    if isinstance(node, cst.Subscript) and _lead_to(ctx, node, mask, masks, found):
        return
    if by_method and isinstance(ctx.kind(x), k.Tensor):
        if _lead_to(ctx, node, mask, masks, found):
            found.sized[node] = Sized(x, mask, (), True)
            return
    sizes = given_sizes(ctx, node)
    of_x = ctx.kind(x)
    if sizes is None or not all_axes or not isinstance(of_x, k.Tensor):
        return
    same = of_x.rank is not None and of_x.rank == kind.rank
    if same or by_method:
        found.sized[node] = Sized(x, mask, sizes, by_method)
        ctx.blocked.pop(node, None)


def _selection(ctx: Context, node: cst.CSTNode) -> _Selection | None:
    """The parts of ``x[mask]`` and ``x.masked_select(mask)``."""
    if isinstance(node, cst.Subscript):
        parent = ctx.source.index.around(node)[-1]
        if isinstance(parent, (cst.AssignTarget, cst.AugAssign, cst.Del)):
            return None
        masks = [
            one.slice.value
            for one in node.slice
            if isinstance(one.slice, cst.Index)
            and isinstance(kind := ctx.kind(one.slice.value), k.Tensor)
            and kind.dtype == "bool"
        ]
        return (node.value, masks[0], len(node.slice) == 1) if len(masks) == 1 else None
    if isinstance(node, cst.Call) and (name := ctx.facts.callee(node)) in _SELECTS:
        values = [arg.value for arg in node.args if not arg.star]
        if name == "Tensor.masked_select" and isinstance(node.func, cst.Attribute):
            values.insert(0, node.func.value)
        if len(values) == 2 and all(
            arg.keyword is None or arg.keyword.value == "mask" for arg in node.args
        ):
            return values[0], values[1], True
    return None


def _is_exact(kind: k.Kind) -> bool:
    """Whether numpy computes with a number as torch does in float32: an integer, or half of one."""
    if isinstance(kind, k.Const) and isinstance(kind.value, float):
        return (2 * kind.value).is_integer()
    return k.scalar_type(kind) in ("int", "bool", None)


class _No(Exception):
    """Values that hang on more than sizes, or are not known to."""


class _Lines:
    """The statements that lead to one mask."""

    def __init__(
        self, ctx: Context, found: KnownMasks, masks: Sequence[cst.BaseExpression]
    ) -> None:
        self.ctx = ctx
        self.tree: Tree = ctx.source.index
        self.found = found
        self.lines: dict[cst.Assign, None] = {}
        self.inside: list[cst.CSTNode] = list(masks)
        """What numpy computes."""

    def leading_to(self, mask: cst.BaseExpression) -> frozenset[cst.Assign] | None:
        """The assignments; None where not all of it is known from sizes."""
        self.function = next(
            (n for n in reversed(self.tree.around(mask)) if isinstance(n, cst.FunctionDef)), None
        )
        if self.function is None:
            return None
        try:
            self._known(mask)
            self._check_reads()
        except _No:
            return None
        return frozenset(self.lines)

    def _known(self, node: cst.BaseExpression) -> None:
        """Follow an expression.

        Raises:
          _No: it is not known from sizes alone."""
        ctx = self.ctx
        if node in ctx.blocked and node not in self.found.masks:
            raise _No
        kind = ctx.facts.kind(node)
        if k.scalar_type(kind) is not None or isinstance(kind, (k.DType, k.Device)):
            if not _is_exact(kind):
                raise _No
            self._number(node, set())
            return
        if self._is_shape(node):
            return
        match node:
            case cst.Name():
                line = self._line(node)
                if line not in self.lines:
                    self.lines[line] = None
                    self.inside.append(line)
                    self._known(line.value)
            case cst.Call():
                self._call(node)
            case cst.BinaryOperation(right=right) if isinstance(node.operator, cst.Divide):
                self._known(node.left)  # a half of a whole number is one in float32, too
                if not isinstance(right, cst.Integer) or right.value not in ("2", "4", "8", "16"):
                    raise _No
            case cst.BinaryOperation() if isinstance(node.operator, cst.Power):
                for side in (node.left, node.right):
                    of = ctx.kind(side)
                    if "int" not in (k.scalar_type(of), getattr(of, "dtype", None)):
                        raise _No
                    self._known(side)
            case cst.BinaryOperation() if isinstance(node.operator, _OPERATORS):
                self._known(node.left)
                self._known(node.right)
            case cst.UnaryOperation() if isinstance(node.operator, (cst.BitInvert, cst.Minus)):
                self._known(node.expression)
            case cst.Comparison():
                self._known(node.left)
                for target in node.comparisons:
                    if isinstance(target.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)):
                        raise _No
                    self._known(target.comparator)
            case cst.Attribute() if is_held(ctx, node, self.found.attributes):
                pass
            case cst.Attribute(value=value) if node.attr.value == "T":
                self._known(value)
            case cst.Subscript():
                self._subscript(node)
            case cst.List() | cst.Tuple():
                for element in node.elements:
                    self._known(element.value)
            case cst.ListComp(elt=elt, for_in=cst.CompFor(inner_for_in=None, ifs=[], iter=of)):
                if not isinstance(of, cst.Call) or ctx.facts.callee(of) != "builtins.range":
                    raise _No
                self._known(elt)
                for arg in of.args:
                    self._known(arg.value)
            case _:
                raise _No

    def _number(self, node: cst.CSTNode, seen: set[str]) -> None:
        """Follow a number of Python, which may have been taken out of a tensor.

        Raises:
          _No: it was."""
        assert self.function is not None
        if any(self.ctx.facts.callee(c) in _TAKEN for c in self.tree.within(node, cst.Call)):
            raise _No
        names = {n.value for n in self.tree.within(node, cst.Name)} - seen
        if not names:
            return
        seen |= names
        for line in self.tree.within(self.function, cst.Assign, cst.AnnAssign, cst.AugAssign):
            targets = line.targets if isinstance(line, cst.Assign) else [line]
            if line.value is not None and any(names & set(syntax.names(t.target)) for t in targets):
                self._number(line.value, seen)

    def _is_shape(self, node: cst.BaseExpression) -> bool:
        """``x.shape``, ``x.size()``."""
        if isinstance(node, cst.Call):
            return self.ctx.facts.callee(node) == "Tensor.size" and not node.args
        return isinstance(node, cst.Attribute) and node.attr.value == "shape"

    def _call(self, node: cst.Call) -> None:
        name = self.ctx.facts.callee(node)
        if name not in _FACTORIES | _FUNCTIONS | _METHODS or any(a.star for a in node.args):
            raise _No
        if name in _METHODS and isinstance(node.func, cst.Attribute):
            self._known(node.func.value)
        for arg in node.args:
            if arg.keyword is not None and arg.keyword.value in ("device", "out", "generator"):
                if arg.keyword.value != "device":
                    raise _No
                continue
            kind = self.ctx.facts.kind(arg.value)
            if name not in ("Tensor.to",) or not isinstance(kind, (k.Device, k.Unknown)):
                self._known(arg.value)

    def _subscript(self, node: cst.Subscript) -> None:
        if node in self.found.sized:
            raise _No
        self._known(node.value)
        for element in node.slice:
            index = element.slice
            parts = (
                (index.lower, index.upper, index.step)
                if isinstance(index, cst.Slice)
                else (cst.ensure_type(index, cst.Index).value,)
            )
            for part in parts:
                plain = isinstance(part, cst.Ellipsis) or (
                    isinstance(part, cst.Name) and part.value == "None"
                )
                if part is not None and not plain:
                    self._known(part)

    # --- names --------------------------------------------------------------------------------------------------

    def _line(self, use: cst.Name) -> cst.Assign:
        """The assignment that a name has its value from, in the same block or one around it.

        Raises:
          _No: there may be several, or none of them is a plain assignment."""
        around = [*self.tree.around(use), use]
        place = next(i for i in range(len(around) - 1, -1, -1) if around[i] is self.function)
        body = around[place + 1 :]
        for depth in range(len(body) - 1, -1, -1):
            block = body[depth]
            if isinstance(block, _SCOPES):
                raise _No
            if not isinstance(block, cst.IndentedBlock):
                continue
            statements = list(block.body)
            before = statements[: statements.index(body[depth + 1])]
            for statement in reversed(before):
                if use.value not in _bound(self.tree, statement):
                    continue
                match statement:
                    case cst.SimpleStatementLine(
                        [cst.Assign([cst.AssignTarget(cst.Name(name))]) as line]
                    ) if name == use.value:
                        return line
                raise _No
        raise _No

    def _check_reads(self) -> None:
        """Numpy's values may be read as masks, and for their shapes; for numbers JAX's have other dtypes.

        Raises:
          _No: they are read otherwise, or written in place."""
        assert self.function is not None
        names = self._names()
        for node in self.tree.within(self.function, cst.Name):
            if node.value not in names or not self._is_read(node):
                continue
            if any(self.tree.holds(one, node) for one in self.inside):
                continue
            line = self._line(node)
            if line not in self.lines:
                continue
            parent = self.tree.around(node)[-1]
            if isinstance(parent, cst.Attribute) and parent.attr.value in ("shape", "size", "ndim"):
                continue
            kind = self.ctx.kind(line.value)
            if not isinstance(kind, k.Tensor) or kind.dtype != "bool":
                raise _No
            if not self._takes_numpy(node, parent):
                raise _No
        self._check_written(names)

    def _takes_numpy(self, node: cst.Name, parent: cst.CSTNode) -> bool:
        """Whether what reads a mask does with an array of numpy what it does with one of JAX: it asks for no ``.at``."""
        if isinstance(parent, cst.Arg):
            call = self.tree.around(node)[-2]
            return (self.ctx.facts.callee(call) or "").rpartition(".")[2] in (
                "where",
                "masked_fill",
            )
        if not isinstance(parent, cst.BinaryOperation):
            return False
        other = parent.right if parent.left is node else parent.left
        of_jax = not self._tensors(other) <= self._names()
        return isinstance(self.ctx.kind(other), k.Tensor) and of_jax

    def _names(self) -> set[str]:
        """The names that hold arrays of numpy, somewhere in the function."""
        return {cst.ensure_type(line.targets[0].target, cst.Name).value for line in self.lines}

    def _tensors(self, node: cst.CSTNode) -> set[str]:
        """The names in an expression that may be tensors."""
        return {
            one.value
            for one in self.tree.within(node, cst.Name)
            if isinstance(self.ctx.kind(one), (k.Tensor, k.Optional))
        }

    def _is_known(self, index: cst.BaseSlice, known: set[str]) -> bool:
        """Whether an index is made of numbers, and of masks of numpy."""
        parts = (
            (index.lower, index.upper, index.step)
            if isinstance(index, cst.Slice)
            else (cst.ensure_type(index, cst.Index).value,)
        )
        for part in parts:
            if part is None or isinstance(part, cst.Ellipsis):
                continue
            kind, read = self.ctx.kind(part), self._tensors(part)
            of_numpy = bool(read) and read <= known
            if k.scalar_type(kind) is None and kind != k.NONE and not of_numpy:
                return False
        return True

    def _check_written(self, names: set[str]) -> None:
        """What is computed of nothing but these is numpy's, too, and must not be written in place.

        Raises:
          _No: it is."""
        assert self.function is not None
        known, before = set(names), 0
        assigns = self.tree.within(self.function, cst.Assign)
        while before < len(known):
            before = len(known)
            for line in assigns:
                read = self._tensors(line.value)
                if read and read <= known:
                    known |= {word for t in line.targets for word in syntax.names(t.target)}
        for item in self.tree.within(self.function, cst.Subscript):
            of = self._tensors(item.value)
            if (
                of
                and of <= known
                and not all(self._is_known(one.slice, known) for one in item.slice)
            ):
                raise _No  # numpy takes no index that JAX only traces
        for line in (*self.tree.within(self.function, cst.AugAssign), *assigns):
            targets = [t.target for t in line.targets] if isinstance(line, cst.Assign) else None
            for target in targets or [getattr(line, "target", line)]:
                base: cst.BaseExpression = target
                while isinstance(base, (cst.Subscript, cst.Attribute)):
                    base = base.value
                written = base is not target or targets is None
                if written and isinstance(base, cst.Name) and base.value in known:
                    raise _No

    def _is_read(self, node: cst.Name) -> bool:
        """Whether a name is that of the variable, and not merely given a value.

        Raises:
          _No: what it holds may be written into."""
        around = self.tree.around(node)
        parent = around[-1]
        if isinstance(parent, cst.Attribute) and parent.attr is node:
            return False
        if isinstance(parent, cst.Arg) and parent.keyword is node:
            return False
        for inner, outer in zip([*around[1:], node], around, strict=True):
            if isinstance(outer, cst.AssignTarget):
                if inner is node:
                    return False
                raise _No
            if (
                isinstance(outer, (cst.AugAssign, cst.Del))
                and getattr(outer, "target", inner) is inner
            ):
                raise _No
            called = isinstance(outer, cst.Attribute) and outer.attr.value.endswith("_")
            if called and not outer.attr.value.endswith("__"):
                raise _No
        return True


_TAKEN = frozenset({"Tensor.item", "Tensor.tolist", "builtins.int", "builtins.float"})
_SCOPES = (cst.Lambda, cst.For, cst.While, cst.Try, cst.ClassDef, cst.FunctionDef)
"""Where a name may have another value than the lines above say."""


def _bound(tree: Tree, statement: cst.CSTNode) -> set[str]:
    """The names that a statement, or something in it, may bind."""
    found: set[str] = set()
    for node in tree.within(statement, *_BINDING, cst.Del):
        found.update(syntax.names(node.target))
    for node in tree.within(statement, cst.AsName):
        found.update(syntax.names(node.name))
    for node in tree.within(statement, cst.FunctionDef, cst.ClassDef):
        found.add(node.name.value)
    return found


_BINDING = (cst.AssignTarget, cst.AugAssign, cst.AnnAssign, cst.For, cst.NamedExpr, cst.CompFor)
