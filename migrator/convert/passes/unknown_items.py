"""``x[i] = v`` of an argument that may be an array or a list: only the run knows which of the two it is."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation, innermost
from migrator.convert.context import Context, Failure
from migrator.convert.expand import make_tuple
from migrator.convert.later_reads import may_be_tensors
from migrator.convert.memory import aliases
from migrator.convert.parts import takes_items
from migrator.convert.rewriter import Rewriter
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.evidence import ASKED
from migrator.views import written_base
from rules import definitions
from rules.definitions import module_file


def may_be_a_list(rw: Rewriter, target: cst.Subscript) -> bool:
    """``features[i] = …`` of a tensor, as it seems, that is only ever asked for an item: or a list of them."""
    name, info = _argument(rw, target)
    index = target.slice[0].slice
    if info is None or not isinstance(index, cst.Index):
        return False
    told = info.sites.get(name, k.UNKNOWN) != k.UNKNOWN or name in info.evidence
    alone = not told and (info.uses or {}).get(name) == {"indexed"}
    return alone and not isinstance(rw.ctx.kind(index.value), k.Tensor)


def may_be_either(rw: Rewriter, target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    """Whether an item is written of an argument of which nothing is known, and that is read afterwards.

    A name or number for an index tells nothing; who is asked for ``items()`` or a text is a dict."""
    ctx = rw.ctx
    name, info = _argument(rw, target)
    if not isinstance(target, cst.Subscript) or not ctx.statements:
        return False
    if info is None:
        known = _is_copied(rw, target) or _is_given(rw, target) or _is_an_array_s(rw, target, value)
        return known or _is_an_item_s(rw, target, value)
    index = target.slice[0].slice
    itself = info.owner is not None and name == info.node.params.params[0].name.value
    if itself or not isinstance(ctx.kind(target.value), k.Unknown) or innermost(ctx) is not info:
        return False
    if isinstance(index, cst.Index) and k.scalar_type(ctx.kind(index.value)) == "str":
        return False
    if isinstance(ctx.kind(value), (k.Sequence, k.Tuple, k.Mapping)):
        return False  # an item of a list of lists
    if (info.uses or {}).get(name, set()) & _TOLD:
        return False
    return name in aliases(ctx, info).read_after(ctx.statements[-1].node)


def _argument(rw: Rewriter, target: cst.BaseExpression) -> tuple[str, FunctionInfo | None]:
    """The parameter without a hint of which an item is meant, and its function."""
    frame = rw.ctx.frame
    if frame is None or type(target) is not cst.Subscript or len(target.slice) != 1:
        return "", None
    name = target.value.value if type(target.value) is cst.Name else ""
    params = frame.info.node.params.params
    plain = any(p.name.value == name and p.annotation is None for p in params)
    return name, frame.info if plain else None


def _is_copied(rw: Rewriter, target: cst.Subscript) -> bool:
    """``y[..., 0] = v`` of ``y = x.clone() if isinstance(x, torch.Tensor) else x.copy()``."""
    frame, name = rw.ctx.frame, target.value
    if (
        frame is None
        or not isinstance(name, cst.Name)
        or not isinstance(rw.ctx.kind(name), k.Unknown)
    ):
        return False
    every = rw.ctx.facts.tree.within(frame.info.node.body, cst.Assign)
    given = [a.value for a in every if any(name.deep_equals(t.target) for t in a.targets)]
    return bool(given) and all(
        isinstance(value, cst.IfExp)
        and "isinstance(" in syntax.code(value.test)
        and _copies(value.body)
        and _copies(value.orelse)
        for value in given
    )


def _is_given(rw: Rewriter, target: cst.Subscript) -> bool:
    """``y[0] = v`` of a ``y`` that a function of the project gives, of which it is not known what it returns."""
    frame, name, index = rw.ctx.frame, target.value, target.slice[0].slice
    if (
        frame is None
        or not isinstance(name, cst.Name)
        or not isinstance(rw.ctx.kind(name), k.Unknown)
    ):
        return False
    if isinstance(index, cst.Index) and k.scalar_type(rw.ctx.kind(index.value)) == "str":
        return False
    given = _values(rw.ctx, name.value)
    return any(
        isinstance(value, cst.Call) and (rw.ctx.facts.callee(value) or "") in rw.ctx.facts.names
        for value in given
    )


def _is_an_array_s(rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression) -> bool:
    """``y[:, 0] = v``, and ``y[0] = v`` of a ``y`` that is computed: ``y = batch["x"] * 2``, no list or dict."""
    from migrator.convert.passes.freezing import forward_reaches

    ctx, frame, root = rw.ctx, rw.ctx.frame, target.value
    if frame is None or not isinstance(ctx.kind(root), k.Unknown):
        return False
    if frame.info.owner is not None and not forward_reaches(ctx, frame.info):
        return False  # what a module is built from is numpy's or scipy's as often
    while isinstance(root, cst.Subscript) and isinstance(ctx.kind(root.value), k.Unknown):
        root = root.value
    if not isinstance(root, cst.Name) or _holds_numpy(ctx, root.value):
        return False
    if _is_for_arrays(ctx, target, value):
        return True
    index = target.slice[0].slice
    if root is not target.value or not isinstance(index, (cst.Index, cst.Slice)):
        return False
    if isinstance(index, cst.Index) and k.scalar_type(ctx.kind(index.value)) == "str":
        return False
    return any(_computes(ctx, one) for one in _values(ctx, root.value))


def _is_an_item_s(rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression) -> bool:
    """``d[0][1] = v`` of a list or dict of the function that holds tensors beside something else."""
    ctx, item, index = rw.ctx, target.value, target.slice[0].slice
    if not isinstance(item, cst.Subscript) or not isinstance(ctx.kind(item), k.Unknown):
        return False
    root = item.value
    if not takes_items(ctx.kind(root)):
        return False
    if isinstance(ctx.kind(value), (k.Sequence, k.Tuple, k.Mapping)):
        return False
    if isinstance(index, cst.Index) and k.scalar_type(ctx.kind(index.value)) == "str":
        return False
    state = aliases(ctx, innermost(ctx)).before.get(ctx.statements[-1].node, {})
    memory = state.get(root.value, frozenset()) if isinstance(root, cst.Name) else frozenset()
    return any(one.startswith("new:") for one in memory)


def _holds_numpy(ctx: Context, name: str) -> bool:
    """Whether a name is given an array of numpy somewhere in a function, or one is written into it."""
    assert ctx.frame is not None
    for line in ctx.facts.tree.within(ctx.frame.info.node.body, cst.Assign):
        for to in line.targets:
            root = to.target
            while isinstance(root, cst.Subscript):
                root = root.value
            if isinstance(root, cst.Name) and root.value == name:
                if ctx.facts.kind(line.value) == k.NUMPY:
                    return True
    return False


def _is_for_arrays(ctx: Context, target: cst.Subscript, value: cst.BaseExpression) -> bool:
    """``[:, 0]``, ``[..., 0]``, ``[y > 0]``, and ``[1:]`` that gets a number: no list or dict takes such an index."""
    parts = [one.slice for one in target.slice]
    if len(parts) > 1 and any(isinstance(one, cst.Slice) for one in parts):
        return True
    given = [one.value for one in parts if isinstance(one, cst.Index)]
    if any(isinstance(one, (cst.Ellipsis, cst.Comparison)) for one in given):
        return True
    if any(isinstance(ctx.kind(one), k.Tensor) and ctx.kind(one).rank != 0 for one in given):  # type: ignore[attr-defined]
        return True
    return not given and k.scalar_type(ctx.kind(value)) is not None


def _computes(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression gives no list and no dict: arithmetic, a method that only tensors have."""
    if isinstance(node, cst.UnaryOperation):
        return not isinstance(node.operator, cst.Not)
    if isinstance(node, (cst.BinaryOperation, cst.Comparison)):
        return True
    if not isinstance(node, cst.Call):
        return False
    if isinstance(node.func, cst.Name):  # of functions that a loop goes through, of an argument
        several = isinstance(ctx.kind(node.func), (k.Unknown, k.Function))
        return several and ctx.facts.callee(node) is None
    if not isinstance(node.func, cst.Attribute):
        return False
    name = node.func.attr.value
    unknown = isinstance(ctx.kind(node.func.value), k.Unknown)
    return unknown and name not in _OF_CONTAINERS and bool(definitions.ops(f"Tensor.{name}"))


_OF_CONTAINERS = frozenset(name for one in (list, dict, set, str) for name in dir(one))


def _values(ctx: Context, name: str) -> list[cst.BaseExpression]:
    """What a function gives a name, wherever it does."""
    assert ctx.frame is not None
    lines = ctx.facts.tree.within(ctx.frame.info.node.body, cst.Assign)
    return [v for a in lines for t in a.targets for v in _assigned(t.target, a.value, name)]


def _assigned(
    target: cst.BaseExpression, value: cst.BaseExpression, name: str
) -> Iterator[cst.BaseExpression]:
    """What a name is assigned, in a tuple perhaps: both calls of ``y, z = f(x), g(x)``, the one of ``y, z = f(x)``."""
    if isinstance(target, cst.Name):
        if target.value == name:
            yield value
    elif isinstance(target, cst.Tuple | cst.List):
        pairs = [(one.value, value) for one in target.elements]
        if isinstance(value, cst.Tuple | cst.List) and len(value.elements) == len(pairs):
            pairs = [(one, two.value) for (one, _), two in zip(pairs, value.elements, strict=True)]
        for one, other in pairs:
            yield from _assigned(one, other, name)


def _copies(node: cst.BaseExpression) -> bool:
    """``x.clone()``, ``x.copy()``: to write an item of it changes nothing of x, of an array or of a list."""
    func = node.func if isinstance(node, cst.Call) and not node.args else None
    return isinstance(func, cst.Attribute) and func.attr.value in ("clone", "copy")


_TOLD = {"container", "called", "attribute", ASKED}
"""Uses that speak against an array."""


def written(
    rw: Rewriter, node: cst.CSTNode, target: cst.BaseExpression, value: cst.BaseExpression
) -> cst.Assign:
    """``x = with_item(x, i, v)``; a Failure where another name for the array is read later."""
    assert isinstance(target, cst.Subscript)
    if isinstance(target.value, cst.Subscript):  # an item of an item, which may have other names
        _check_once(node, target.value)
        check_mutation(rw.ctx, node, written_base(target))
    elif not _is_copied(rw, target):
        check_mutation(rw.ctx, node, target.value)
    return with_item(rw, target, rw.visit(value))


def _check_once(node: cst.CSTNode, target: cst.Subscript) -> None:
    """Raise a Failure where what is read and written would be found by a call that runs twice."""
    if any(isinstance(part, (cst.Call, cst.NamedExpr)) for part in syntax.walk(target)):
        what = (
            "the index is computed by a call, and only a run tells whether an array is written to"
        )
        raise Failure(node, "MUT002", what, "give the index a name first")


def added_to(rw: Rewriter, node: cst.AugAssign, target: cst.Subscript) -> cst.Assign:
    """``x[i] += v`` → ``x = with_item(x, i, x[i] + v)``.

    Raises:
      Failure: the index would be computed twice, by a call.
    """
    _check_once(node, target)
    whole = cst.parse_expression(f"a {syntax.code(node.operator).strip()[:-1]} b")
    assert isinstance(whole, cst.BinaryOperation)
    right = syntax.fitted(whole, "right", node.value)
    return written(rw, node, target, syntax.changed(whole, left=target, right=right))


def with_item(rw: Rewriter, target: cst.Subscript, value: cst.BaseExpression) -> cst.Assign:
    """``x = with_item(x, i, value)``; the value is converted already."""
    name = rw.ctx.helpers.need(module_file("rules.compat.indexing"), "with_item")
    index = target.slice[0].slice
    places = [one.slice for one in target.slice]
    place = _place(index) if len(places) == 1 else make_tuple([_place(one) for one in places])
    given = [cst.Arg(rw.visit(one)) for one in (target.value, place)]
    made = syntax.with_args(cst.Call(cst.Name(name)), [*given, cst.Arg(value)])
    if isinstance(target.value, cst.Subscript):
        return with_item(rw, target.value, made)
    assert isinstance(target.value, cst.Name)
    return cst.Assign([cst.AssignTarget(target.value)], made)


def _place(index: cst.BaseSlice) -> cst.BaseExpression:
    return index.value if isinstance(index, cst.Index) else _slice(index)


def _slice(index: cst.BaseSlice) -> cst.Call:
    """``slice(1, None)`` for ``1:``."""
    assert isinstance(index, cst.Slice)
    parts = [index.lower, index.upper, *([index.step] if index.step is not None else [])]
    given = [cst.Arg(part if part is not None else cst.Name("None")) for part in parts]
    return syntax.with_args(cst.Call(cst.Name("slice")), given)


def check_selected(ctx: Context, node: cst.Subscript) -> None:
    """Raise a Failure where a mask selects of what may be a tensor: ``y = batch["x"] * 2``, ``y[y > 0]``."""
    index, root = node.slice[0].slice, node.value
    if ctx.frame is None or len(node.slice) > 1 or not isinstance(index, cst.Index):
        return
    parent = ctx.facts.tree.parent(node) if ctx.facts.tree.has(node) else None
    if parent is None or isinstance(parent, (cst.AssignTarget, cst.Del)):
        return
    if not _is_a_mask(ctx, index.value, 0):
        return
    while isinstance(root, cst.Subscript):
        root = root.value
    if isinstance(root, cst.Name) and root.value in may_be_tensors(ctx, ctx.frame.info):
        what = "how much a mask selects is known only at run time"
        advice = "compute with all of it, and weigh or choose by the mask: `jnp.where`"
        raise Failure(node, "DYN001", what, advice)


_ORDERS = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual)


def _is_a_mask(ctx: Context, node: cst.BaseExpression, depth: int) -> bool:
    """``y > 0``, two of them joined, and a name that is given nothing else."""
    if isinstance(node, cst.Comparison):
        orders = len(node.comparisons) == 1 and isinstance(node.comparisons[0].operator, _ORDERS)
        return orders and isinstance(ctx.kind(node), k.Unknown)
    if isinstance(node, cst.UnaryOperation):
        return isinstance(node.operator, cst.BitInvert) and _is_a_mask(ctx, node.expression, depth)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
        return _is_a_mask(ctx, node.left, depth) or _is_a_mask(ctx, node.right, depth)
    if not isinstance(node, cst.Name) or ctx.frame is None or depth > 3:
        return False
    given = _values(ctx, node.value)
    return bool(given) and all(_is_a_mask(ctx, one, depth + 1) for one in given)
