"""``x[index[mask]] = v``: one value at the places that a mask selects, as many as the data say.

The places keep their shape: those that the mask leaves out become a place that ``x`` does not have, where nothing is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._selected import index_of


@dataclass
class Places:
    """The selections of a file that are nothing but places to write to.

    Attributes:
      selections: ``index[mask]``, what is written to, and the axis of the places.
      writes: the targets of the writes.
      masks: ``torch.where(mask)`` as the index of a write, and the mask.
    """

    selections: dict[cst.CSTNode, tuple[cst.BaseExpression, int]] = field(default_factory=dict)
    writes: set[cst.CSTNode] = field(default_factory=set)
    masks: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)


def places(ctx: Context) -> Places:
    """The places of a file, looked for once; what was said against their selection is taken back."""
    if ctx.places is None:
        ctx.places = Places()
        tree = ctx.source.index
        flagged = [node for node, (rule, _, _) in ctx.blocked.items() if rule == "DYN001"]
        for node in flagged:
            if tree.has(node) and isinstance(node, cst.Subscript) and _is_selection(ctx, node):
                _note(ctx, node, ctx.places)
        for node in [n for n, (rule, _, _) in ctx.blocked.items() if rule == "DYN005"]:
            mask = _located(ctx, node) if tree.has(node) else None
            written = _written(ctx, node) if mask is not None else None
            if mask is not None and written is not None and len(written[0].slice) == 1:
                ctx.places.masks[node] = mask
                del ctx.blocked[node]
    found: Places = ctx.places
    return found


def _is_selection(ctx: Context, node: cst.Subscript) -> bool:
    """``index[mask]`` of whole numbers."""
    mask, index = index_of(node), ctx.kind(node.value)
    kind = ctx.kind(mask) if mask is not None else None
    if not isinstance(kind, k.Tensor) or kind.dtype != "bool" or kind.rank == 0:
        return False
    return isinstance(index, k.Tensor) and index.dtype == "int"


def _located(ctx: Context, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The mask of ``torch.where(mask)`` and ``mask.nonzero(as_tuple=True)``, which is as good an index."""
    if not isinstance(node, cst.Call):
        return None
    name, args = ctx.facts.callee(node), node.args
    given = [a.value for a in args if a.keyword is None and not a.star]
    if name == "Tensor.nonzero" and isinstance(node.func, cst.Attribute):
        given = [node.func.value, *given]
    elif name not in ("torch.where", "torch.nonzero"):
        return None
    named = {a.keyword.value: a.value for a in args if a.keyword is not None}
    tuples = {"as_tuple"} if name != "torch.where" else set()
    if len(given) != 1 or named.keys() != tuples or not all(map(syntax.is_true, named.values())):
        return None
    kind = ctx.kind(given[0])
    return given[0] if isinstance(kind, k.Tensor) and kind.dtype == "bool" else None


def _note(ctx: Context, node: cst.Subscript, found: Places) -> None:
    above = ctx.source.index.around(node)[-1]
    named = isinstance(above, cst.Assign) and above.value is node
    uses = _uses(ctx, above) if named else [node]
    written = [one for one in (_written(ctx, use) for use in uses) if one is not None]
    if len(written) != len(uses) or len(written) != 1:
        return
    (target, axis), *_ = written
    if named and not _keeps_size(ctx, above, target):
        return
    found.selections[node] = (target.value, axis)
    found.writes.add(target)
    del ctx.blocked[node]
    line = ctx.source.span(target).line
    ctx.findings[:] = [f for f in ctx.findings if f.rule != "DYN006" or f.line != line]


def _uses(ctx: Context, assign: cst.Assign) -> list[cst.Name]:
    """Where a name is read that holds the places there; none where it may be read elsewhere."""
    tree, target = ctx.source.index, assign.targets[0].target
    *around, block, line = tree.around(assign)
    function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
    if len(assign.targets) != 1 or not isinstance(target, cst.Name) or function is None:
        return []
    if not isinstance(block, cst.IndentedBlock):
        return []
    after = block.body[block.body.index(line) + 1 :]
    later = [n for one in after for n in tree.within(one, cst.Name) if n.value == target.value]
    if any(isinstance(tree.parent(n), cst.AssignTarget) for n in later):
        return []
    others = [
        n
        for n in tree.within(function, cst.Name)
        if n.value == target.value and n is not target and n not in later
    ]
    again = any(isinstance(n, (cst.For, cst.While)) for n in around[around.index(function) :])
    behind = [n for n in others if tree.place(n) > tree.place(assign)]
    return [] if behind or (again and others) else later


def _written(ctx: Context, use: cst.CSTNode) -> tuple[cst.Subscript, int] | None:
    """The target ``x[:, use]`` that gets a number there, and the axis of x that the places are on."""
    tree = ctx.source.index
    *_, statement, aim, target, element, index = [None] * 5 + tree.around(use)
    if not isinstance(statement, cst.Assign) or len(statement.targets) != 1:
        return None
    if not isinstance(aim, cst.AssignTarget) or not isinstance(target, cst.Subscript):
        return None
    given = ctx.kind(statement.value)
    if k.scalar_type(given) is None and not (isinstance(given, k.Tensor) and given.rank == 0):
        return None
    if not isinstance(index, cst.Index) or not isinstance(ctx.kind(target.value), k.Tensor):
        return None
    last = len(target.slice) - 1
    own = next(i for i, one in enumerate(target.slice) if one is element)
    axis = own
    for i, one in enumerate(target.slice):
        part = one.slice
        if i == own:
            continue
        if isinstance(part, cst.Index):
            if isinstance(part.value, cst.Ellipsis):
                axis = own - last - 1 if i < own else own
            elif k.scalar_type(ctx.kind(part.value)) != "int":
                return None
    return target, axis


def _keeps_size(ctx: Context, assign: cst.Assign, target: cst.Subscript) -> bool:
    """Whether what is written to is, at the write, as long as where its places are found."""
    tree, whole = ctx.source.index, target.value
    start, end = tree.place(assign), tree.place(target)
    function = next(n for n in reversed(tree.around(assign)) if isinstance(n, cst.FunctionDef))
    bound: set[str] = set()
    for node in tree.within(function.body, cst.AssignTarget, cst.For, cst.AsName, cst.NamedExpr):
        aim = node.name if isinstance(node, cst.AsName) else node.target
        if start < tree.place(node) < end and isinstance(aim, (cst.Name, cst.Tuple, cst.List)):
            bound |= syntax.names(aim).keys()
    bound -= syntax.names(assign.targets[0].target).keys()
    # an item of a list or an attribute may have become another tensor, by a call even
    root = whole.value if isinstance(whole, cst.Subscript) else whole
    if not isinstance(root, cst.Name) or not isinstance(ctx.kind(root), k.Tensor):
        return False
    asks = any(isinstance(n, (cst.Call, cst.NamedExpr)) for n in syntax.walk(whole))
    return not asks and bound.isdisjoint(syntax.names(whole))


@converts(cst.Subscript, when=lambda ctx: bool(places(ctx).selections))
def selected_places(rw: Rewriter, node: cst.Subscript) -> Any:
    """``index[mask]`` → ``jnp.where(mask, index, x.shape[0])``, which ``.at[…].set(…, mode="drop")`` leaves out."""
    from migrator.convert.passes.item_writes import same_rank

    ctx = rw.ctx
    found, mask = places(ctx).selections.get(node), index_of(node)
    if found is None or mask is None:
        return None
    whole, axis = found
    base = syntax.fitted(cst.Attribute(cst.Name("x"), cst.Name("shape")), "value", rw.visit(whole))
    size = syntax.substitute(syntax.parse(f"x.shape[{axis}]"), {"x": base})
    index, chosen = rw.visit(node.value), rw.visit(mask)
    if same_rank(rw, node.value, mask):
        ctx.helpers.use("jnp")
        args = [chosen, index, size]
        return syntax.with_args(cst.Call(syntax.parse("jnp.where")), [cst.Arg(one) for one in args])
    helper = ctx.helpers.need(module_file("rules.compat.masks"), "where_leading")
    inverted = syntax.substitute(syntax.parse("~m"), {"m": chosen})
    args = [inverted, size, index]
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(one) for one in args])
