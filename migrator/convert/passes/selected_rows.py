"""Rows that a mask selects, computed and written back: as many as the mask has places, and no test whether there are any."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert import rows
from migrator.convert.alias import check_mutation
from migrator.convert.context import Context, Failure
from migrator.convert.masked_rows import Masked, masked_rows
from migrator.convert.opening import opened
from migrator.convert.passes import targets
from migrator.convert.passes.indexing import convert_slices
from migrator.convert.passes.item_writes import binary, separated
from migrator.convert.passes.mutation import narrow_dtypes
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.rows import Selection, selections
from migrator.infer import kinds as k
from rules.definitions import module_file


class Selected:
    """What becomes of the selections of a file, by node."""

    def __init__(self, ctx: Context) -> None:
        self.statements: dict[cst.CSTNode, Selection] = {}
        self.writes: dict[cst.CSTNode, Selection] = {}
        self.guards: set[cst.CSTNode] = set()
        self.opened: set[cst.CSTNode] = set()
        self.counted: set[cst.CSTNode] = set()
        self.names: dict[int, str] = {}
        self.reads: dict[cst.CSTNode, Masked] = {}
        self.masked: dict[cst.CSTNode, Masked] = {}
        blocked = {rule for rule, _, _ in ctx.blocked.values()}
        if "DYN001" in blocked:
            for masked in masked_rows(ctx):
                self.reads |= dict.fromkeys(masked.reads, masked)
                self.masked |= dict.fromkeys(masked.writes, masked)
                self._settle(ctx, masked)
        if "DYN005" in blocked:
            for found in selections(ctx):
                self.statements[found.statement] = found
                self.writes |= dict.fromkeys(found.writes, found)
                self._settle(ctx, found)

    def _settle(self, ctx: Context, found: rows.Selected) -> None:
        """Take back what was said against a selection."""
        tree = ctx.source.index
        self.guards |= set(found.guards)
        self.opened |= set(found.opened)
        self.counted |= set(found.counted)
        for node in [n for n in ctx.blocked if tree.has(n)]:
            if found.settles(tree, node):
                del ctx.blocked[node]
        lines = found.lines(ctx.source)
        ctx.findings[:] = [f for f in ctx.findings if f.rule != "DYN006" or f.line not in lines]

    @property
    def concern_assignments(self) -> bool:
        """Whether an assignment of the file selects rows, counts or writes them."""
        return bool(self.statements or self.writes or self.counted or self.masked)


def selected(ctx: Context) -> Selected:
    """The selections of a file, looked for once."""
    if ctx.selected is None:
        ctx.selected = Selected(ctx)
    assert isinstance(ctx.selected, Selected)
    return ctx.selected


@converts(cst.If)
def guard(rw: Rewriter, node: cst.If) -> Any:
    """``if not mask.any(): continue`` goes: without rows nothing is written."""
    if node in selected(rw.ctx).opened:
        return opened(rw, node)
    return [] if node in selected(rw.ctx).guards else None


@converts(cst.Assign, when=lambda ctx: selected(ctx).concern_assignments)
def selection(rw: Rewriter, node: cst.Assign) -> Any:
    """``idx = torch.where(mask)[0]`` → ``jnp.nonzero(mask, size=mask.size)[0]``, and which of them are found."""
    if node in selected(rw.ctx).counted:
        return []  # what it counts is asked by tests that go
    found = selected(rw.ctx).statements.get(node)
    if found is None:
        return _write(rw, node) or _masked_write(rw, node)
    if rw.ctx.no_grad:
        what = "rows are selected where no gradient is recorded"
        raise Failure(node, "DYN005", what, "use jnp.where on all rows")
    made: list[Any] = []
    mask = rw.visit(found.mask)
    if not isinstance(found.mask, cst.Name):
        name = _taken(rw, "mask")
        made.append(cst.Assign([cst.AssignTarget(cst.Name(name))], syntax.unparenthesized(mask)))
        mask = cst.Name(name)
    rw.ctx.helpers.use("jnp")
    name = _taken(rw, "found")
    selected(rw.ctx).names[id(found)] = name
    places = syntax.substitute(syntax.parse("jnp.nonzero(_m, size=_m.size)"), {"_m": mask})
    if isinstance(node.value, cst.Subscript):
        places = syntax.changed(node.value, value=places)
    made.append(syntax.changed(node, value=places))
    count = syntax.parse("jnp.arange(_m.size) < jnp.count_nonzero(_m)")
    made.append(
        cst.Assign([cst.AssignTarget(cst.Name(name))], syntax.substitute(count, {"_m": mask}))
    )
    return made


def _taken(rw: Rewriter, hint: str) -> str:
    name, number = hint, 2
    used = {n.value for n in rw.ctx.source.index.of_type(cst.Name)}
    while name in used or name in rw.ctx.helpers.taken:
        name, number = f"{hint}{number}", number + 1
    rw.ctx.helpers.take(name)
    return name


@converts(cst.AugAssign)
def added(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``out[idx] += rows``, ``out[mask] += rows``."""
    return _write(rw, node) or _masked_write(rw, node)


@converts(cst.Subscript, when=lambda ctx: bool(selected(ctx).reads))
def masked_read(rw: Rewriter, node: cst.Subscript) -> Any:
    """``x[mask, 0]`` → ``jnp.where(mask, x[:, 0], 0)``: all rows, of which those that the mask leaves out are 0."""
    found = selected(rw.ctx).reads.get(node)
    if found is None:
        return None
    if rw.ctx.no_grad:
        what = "rows are selected where no gradient is recorded"
        raise Failure(node, "DYN001", what, "use jnp.where on all rows")
    mask, x = rw.visit(found.mask), rw.visit(node.value)
    if len(node.slice) > 1:
        whole = [cst.SubscriptElement(cst.Slice(None, None))] * (found.axes or 0)
        rest = convert_slices(rw, syntax.changed(node, slice=node.slice[1:]))
        x = cst.Subscript(syntax.fitted(node, "value", x), separated([*whole, *rest]))
    kind = rw.ctx.kind(node.value)
    plain = isinstance(kind, k.Tensor) and kind.dtype in ("float", "int") and len(node.slice) == 1
    wide = _widened(mask, kind, found.axes) if plain else None
    if wide is None:
        return _call(rw, "zero_unless", [mask, x])
    return _call(rw, "jnp.where", [wide, x, cst.Integer("0")])


def _widened(mask: cst.BaseExpression, x: k.Kind, axes: int | None) -> cst.BaseExpression | None:
    """A mask with as many axes as what it selects from, where both ranks are known."""
    if not isinstance(x, k.Tensor) or x.rank is None or axes is None or x.rank < axes:
        return None
    if x.rank == axes:
        return mask
    whole = ", ".join([":"] * axes) if axes == 1 else "..."
    more = ", None" * (x.rank - axes)
    return syntax.substitute(syntax.parse(f"m[{whole}{more}]"), {"m": mask})


def _call(rw: Rewriter, name: str, args: list[cst.BaseExpression]) -> cst.BaseExpression:
    """A call of jax.numpy, or of a helper for masks."""
    if name.startswith("jnp."):
        rw.ctx.helpers.use("jnp")
        function = syntax.parse(name)
    else:
        function = cst.Name(rw.ctx.helpers.need(module_file("rules.compat.masks"), name))
    given = [cst.Arg(syntax.unparenthesized(one)) for one in args]
    made: cst.BaseExpression = syntax.with_args(cst.Call(function), given)
    return made


def _masked_write(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> Any:
    """``out[mask] += rows`` → ``out = jnp.where(mask[:, None], out + rows, out)``."""
    found = selected(rw.ctx).masked.get(node)
    if found is None:
        return None
    target = _written(rw, node)
    index = target.slice[0].slice
    assert isinstance(index, cst.Index)
    base, value, mask = rw.visit(target.value), rw.visit(node.value), rw.visit(index.value)
    direct = index.value.deep_equals(found.mask)
    if not direct:
        value = _call(rw, "by_places", [mask, value])
    if isinstance(node, cst.AugAssign):
        value = binary(base, type(node.operator).__name__, value)
    wide = _widened(mask, rw.ctx.kind(target.value), found.axes) if direct else None
    if wide is not None and not any(narrow_dtypes(rw)):
        made = _call(rw, "jnp.where", [wide, value, base])
    else:
        made = _call(rw, "where_leading", [mask, value, base])
    return targets.assign(rw, target.value, made)


@converts(cst.Expr, when=lambda ctx: bool(selected(ctx).writes))
def index_added(rw: Rewriter, node: cst.Expr) -> Any:
    """``out.index_add_(0, idx, rows)``."""
    found = selected(rw.ctx).writes.get(node)
    if found is None:
        return None
    call = node.value
    assert isinstance(call, cst.Call)
    assert isinstance(call.func, cst.Attribute)
    base = call.func.value
    check_mutation(rw.ctx, call, base)
    _, index, value = (a.value for a in call.args)
    template = syntax.parse("_b.at[_i].add(_v)")
    parts = {"_b": rw.visit(base), "_v": syntax.unparenthesized(rw.visit(value))}
    parts["_i"] = _kept(rw, found, base, rw.visit(index))
    return targets.assign(rw, base, syntax.substitute(template, parts))


def _kept(
    rw: Rewriter, found: Selection, base: cst.BaseExpression, index: cst.BaseExpression
) -> cst.BaseExpression:
    """The places to write to: what was not found is out of range, and left out."""
    name = selected(rw.ctx).names.get(id(found))
    if name is None:
        what = "the rows that are written to are not selected in the output"
        raise Failure(index, "DYN005", what, "convert their selection first")
    template = syntax.parse("jnp.where(_f, _i, _b.shape[0])")
    return syntax.substitute(template, {"_f": cst.Name(name), "_i": index, "_b": rw.visit(base)})


def _warn_of_doubles(rw: Rewriter, node: cst.CSTNode, found: Selection) -> None:
    """A mask of several axes may find a row more than once, for which torch does not say what a write leaves."""
    target = found.statement.targets[0].target
    if not isinstance(target, cst.Tuple) or len(target.elements) < 2:
        return
    rw.ctx.report(
        node,
        "MUT001",
        "a row that the mask finds twice is written twice: torch leaves open which value stays, "
        "and its gradient counts both, the port's one",
        "select each row once, or add with index_add_()",
        severity="warning",
        blocks=False,
    )


def _written(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> cst.Subscript:
    """The target of a write to rows, which may be written."""
    target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
    assert isinstance(target, cst.Subscript)
    check_mutation(rw.ctx, node, target)
    return target


def _write(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> Any:
    found = selected(rw.ctx).writes.get(node)
    if found is None:
        return None
    target = _written(rw, node)
    slices = convert_slices(rw, target, writing=True)
    base, value = rw.visit(target.value), rw.visit(node.value)
    _warn_of_doubles(rw, node, found)
    if isinstance(node, cst.AugAssign):
        operator = "+" if isinstance(node.operator, cst.AddAssign) else "-"
        read = syntax.changed(target, value=base, slice=slices)
        value = syntax.substitute(syntax.parse(f"_a {operator} _b"), {"_a": read, "_b": value})
    first = slices[0].slice
    assert isinstance(first, cst.Index)
    kept = syntax.changed(first, value=_kept(rw, found, target.value, first.value))
    slices = [syntax.changed(slices[0], slice=kept), *slices[1:]]
    at = syntax.substitute(syntax.parse("_b.at"), {"_b": base})
    item = cst.Subscript(at, slices)
    made = cst.Call(cst.Attribute(item, cst.Name("set")), [cst.Arg(syntax.unparenthesized(value))])
    return targets.assign(rw, target.value, made)
