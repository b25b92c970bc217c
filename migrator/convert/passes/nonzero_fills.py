"""Rows that are looked up to be filled: ``rows = torch.nonzero(t == pad)``, ``x.index_fill_(0, rows.squeeze(), 0)``.

How many there are the data say. The mask itself says where they are, whatever it selects.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.opening import opened
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_FLAT = frozenset("squeeze view reshape flatten".split())


@dataclass
class Fills:
    """The lookups of a file that nothing but fills read.

    Attributes:
      masks: the call that looks rows up, and the mask.
      tests: branches that ask whether there are any.
      writes: the fills, with the tensor, the name of the rows and the number.
    """

    masks: dict[cst.CSTNode, cst.BaseExpression] = field(default_factory=dict)
    tests: set[cst.CSTNode] = field(default_factory=set)
    writes: dict[cst.CSTNode, tuple[cst.BaseExpression, str, cst.BaseExpression]] = field(
        default_factory=dict
    )


def fills(ctx: Context) -> Fills:
    """The lookups of a file, looked for once; what was said against them is taken back."""
    if ctx.nonzero_fills is None:
        ctx.nonzero_fills = Fills()
        tree = ctx.source.index
        for node in [n for n, (rule, _, _) in ctx.blocked.items() if rule == "DYN005"]:
            mask = _mask(ctx, node) if tree.has(node) else None
            if mask is not None and _note(ctx, node, ctx.nonzero_fills):
                ctx.nonzero_fills.masks[node] = mask
                del ctx.blocked[node]
    found: Fills = ctx.nonzero_fills
    return found


def _mask(ctx: Context, node: cst.CSTNode) -> cst.BaseExpression | None:
    """The mask of ``torch.nonzero(mask)`` and ``mask.nonzero()``, one row for each of its elements that is set.

    Of more axes than one torch takes no such index for a fill."""
    if not isinstance(node, cst.Call) or any(a.keyword is not None or a.star for a in node.args):
        return None
    given = [a.value for a in node.args]
    if ctx.facts.callee(node) == "Tensor.nonzero" and isinstance(node.func, cst.Attribute):
        given.insert(0, node.func.value)
    elif ctx.facts.callee(node) != "torch.nonzero":
        return None
    kind = ctx.kind(given[0]) if len(given) == 1 else None
    if not isinstance(kind, k.Tensor) or kind.dtype != "bool" or kind.rank not in (None, 1):
        return None
    return given[0]


def _note(ctx: Context, node: cst.CSTNode, found: Fills) -> bool:
    """Whether all that reads the rows asks whether there are any, or fills them with a number."""
    tree = ctx.source.index
    around = tree.around(node)
    assign, function = (
        around[-1],
        next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None),
    )
    if function is None or not isinstance(assign, cst.Assign) or assign.value is not node:
        return False
    target = assign.targets[0].target
    if len(assign.targets) != 1 or not isinstance(target, cst.Name):
        return False
    tests: set[cst.If] = set()
    writes: dict[cst.CSTNode, tuple[cst.BaseExpression, str, cst.BaseExpression]] = {}
    for read in tree.within(function, cst.Name):
        if read.value != target.value or read is target:
            continue
        above = tree.around(read)
        test = _asks(above, read)
        write = _filled(ctx, above, read)
        if test is None and write is None:
            return False
        if test is not None:
            tests.add(test)
        elif write is not None:
            writes[write[0]] = write[1], target.value, write[2]
    before = [one for one in (*tests, *writes) if tree.place(one) < tree.place(assign)]
    if before or not writes or not all(_only_fills(one, writes) for one in tests):
        return False
    found.tests |= tests
    lines = {ctx.source.span(one.test).line for one in tests}
    ctx.findings[:] = [f for f in ctx.findings if f.rule != "DYN006" or f.line not in lines]
    found.writes.update(writes)
    return True


def _only_fills(test: cst.If, writes: Container[cst.CSTNode]) -> bool:
    """Whether a branch does nothing else, as it is taken in any case."""
    return all(
        isinstance(line, cst.SimpleStatementLine) and all(one in writes for one in line.body)
        for line in test.body.body
    )


def _asks(above: Sequence[Any], read: cst.Name) -> cst.If | None:
    """``if rows.dim() > 0:``, ``if len(rows) > 0:``, ``if rows.numel():`` without ``else``, around fills."""
    test = next((one for one in reversed(above) if isinstance(one, cst.If)), None)
    if test is None or test.orelse is not None:
        return None
    asked = syntax.code(syntax.unparenthesized(test.test))
    name = read.value
    counts = [
        f"{name}.dim()",
        f"{name}.numel()",
        f"len({name})",
        f"{name}.size(0)",
        f"{name}.shape[0]",
    ]
    asks = [*(f"{one} > 0" for one in counts), *(f"{one} != 0" for one in counts), *counts]
    return test if asked in asks and any(one is test.test for one in above) else None


def _filled(
    ctx: Context, above: Sequence[Any], read: cst.Name
) -> tuple[cst.CSTNode, cst.BaseExpression, cst.BaseExpression] | None:
    """``x.index_fill_(0, rows.squeeze(), 0)`` as a statement: it, x and the number."""
    line = next((one for one in reversed(above) if isinstance(one, cst.Expr)), None)
    call = line.value if line is not None else None
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "Tensor.index_fill_":
        return None
    if len(call.args) != 3 or any(a.keyword is not None or a.star for a in call.args):
        return None
    axis, rows, number = (one.value for one in call.args)
    match rows:
        case cst.Call(func=cst.Attribute(value=of, attr=cst.Name(word))) if of is read:
            if word not in _FLAT:
                return None
        case _:
            return None
    if syntax.code(axis) != "0" or k.scalar_type(ctx.facts.kind(number)) is None:
        return None
    assert isinstance(call.func, cst.Attribute)
    return line, call.func.value, number  # type: ignore[return-value]


# --- the output --------------------------------------------------------------------------------------------------------


@converts(cst.Call, when=lambda ctx: bool(fills(ctx).masks))
def mask(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.nonzero(t == pad)`` → ``t == pad``."""
    found = fills(rw.ctx).masks.get(node)
    return rw.visit(found) if found is not None else None


@converts(cst.If, when=lambda ctx: bool(fills(ctx).tests))
def asked(rw: Rewriter, node: cst.If) -> Any:
    """``if rows.dim() > 0:`` → the body, which fills nothing where the mask is empty."""
    return opened(rw, node) if node in fills(rw.ctx).tests else None


@converts(cst.Expr, when=lambda ctx: bool(fills(ctx).writes))
def filled(rw: Rewriter, node: cst.Expr) -> Any:
    """``x.index_fill_(0, rows.squeeze(), 0)`` → what ``x[rows] = 0`` becomes for a mask."""
    found = fills(rw.ctx).writes.get(node)
    if found is None:
        return None
    x, name, number = found
    rows, kinds = cst.Name(name), rw.ctx.facts.kinds
    place = cst.Subscript(x, [cst.SubscriptElement(cst.Index(rows))])
    kinds[rows], kinds[place] = k.Tensor(1, "bool"), k.TENSOR
    made = cst.Assign([cst.AssignTarget(place)], number)
    rw.ctx.facts.tree.put(made, node)
    return rw.visit(made)
