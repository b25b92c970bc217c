"""Reading items: list indices, what masks select, components of tuple results."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import is_target
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.known_masks import known_index
from migrator.convert.passes.unknown_items import check_selected
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.selected_first import apart, is_told_by_a_run
from migrator.infer import kinds as k
from rules.definitions import module_file
from rules.flags._masked import LOSSES, masked_loss, masked_select


@converts(cst.Subscript)
def truth_beside_none(rw: Rewriter, node: cst.Subscript) -> Any:
    """``x[None, True]`` → ``x[None, None]``: torch makes an axis of one of it, which JAX puts elsewhere beside None."""
    parts = [e.slice.value for e in node.slice if isinstance(e.slice, cst.Index)]
    kinds = [rw.ctx.kind(one) for one in parts]
    if k.NONE not in kinds or not isinstance(rw.ctx.kind(node.value), (k.Tensor, k.Unknown)):
        return None
    truths = [one for one, kind in zip(parts, kinds, strict=True) if k.scalar_type(kind) == "bool"]
    if not truths:
        return None
    several = any(isinstance(one, (k.Tensor, k.Sequence, k.Unknown)) for one in kinds)
    if several or not all(map(syntax.is_true, truths)):
        what = "a truth value beside None and what selects in an index"
        raise Failure(node, "API002", what, "write `None` for True")
    slices = [
        syntax.changed(e, slice=cst.Index(cst.Name("None")))
        if isinstance(e.slice, cst.Index) and syntax.is_true(e.slice.value)
        else e
        for e in node.slice
    ]
    return rw.visit(syntax.changed(node, slice=slices))


@converts(cst.Subscript)
def subscript(rw: Rewriter, node: cst.Subscript) -> Any:
    """Read an item."""
    ctx = rw.ctx
    kind = ctx.kind(node.value)
    if isinstance(node.value, cst.Call) and isinstance(kind, k.Tuple):
        component = _component(rw, node)
        if component is not None:
            return component
    if isinstance(kind, k.Tensor):
        return rw_index(rw, node)
    if isinstance(kind, (k.Sequence, k.Tuple)):
        return _picked(rw, node, kind)
    if isinstance(kind, k.Unknown):
        check_selected(ctx, node)
    return None


def _picked(rw: Rewriter, node: cst.Subscript, kind: k.Kind) -> cst.BaseExpression | None:
    """``chain[parents[i]]``: an item of a list of tensors whose place a tensor says."""
    index = node.slice[0].slice
    if not isinstance(index, cst.Index) or rw.ctx.concrete or rw.ctx.in_init:
        return None
    asked, item = rw.ctx.kind(index.value), k.element(kind)
    if not isinstance(asked, k.Tensor) or asked.dtype == "bool" or not isinstance(item, k.Tensor):
        return None
    if not rw.ctx.facts.tree.has(node) or is_target(rw.ctx.facts.tree.around(node), node):
        return None
    name = rw.ctx.helpers.need(module_file("rules.compat.indexing"), "picked")
    parts = [syntax.unparenthesized(rw.visit(one)) for one in (node.value, index.value)]
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(one) for one in parts])


@converts(cst.Call, named=("mean", "sum"))
def masked_reduction(rw: Rewriter, node: cst.Call) -> Any:
    """``x[mask].mean()`` → ``jnp.mean(x, where=mask)``; without a shape that depends on the data."""
    ctx, func = rw.ctx, node.func
    item = func.value if isinstance(func, cst.Attribute) else None
    if node.args or not isinstance(item, cst.Subscript) or len(item.slice) != 1:
        return None
    name, index, kind = func.attr.value, item.slice[0].slice, ctx.kind(item.value)  # type: ignore[attr-defined]
    if name not in ("mean", "sum") or not isinstance(index, cst.Index):
        return None
    mask = ctx.kind(index.value)
    if not isinstance(mask, k.Tensor) or mask.dtype != "bool" or not isinstance(kind, k.Tensor):
        return None
    if kind.dtype in ("int", "bool") or mask.rank == 0:
        return None
    compared = index.value.left if isinstance(index.value, cst.Comparison) else None
    equal = compared is not None and compared.deep_equals(item.value)
    if equal or (mask.rank is not None and mask.rank == kind.rank):
        ctx.helpers.use("jnp")
        made = cst.Call(syntax.parse(f"jnp.{name}"), [cst.Arg(rw.visit(item.value))])
        return syntax.add_keyword(made, "where", rw.visit(index.value))
    helper = ctx.helpers.need(module_file("rules.compat.masks"), f"masked_{name}")
    args = [cst.Arg(rw.visit(item.value)), cst.Arg(rw.visit(index.value))]
    return syntax.with_args(cst.Call(cst.Name(helper)), args)


@converts(cst.Call, named=("mean", "sum"))
def reduced_selection(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.masked_select(x, mask).mean()`` → ``selected_mean(x, mask)``."""
    ctx, func = rw.ctx, node.func
    inner = func.value if isinstance(func, cst.Attribute) else None
    if node.args or not isinstance(inner, cst.Call) or inner in ctx.blocked:
        return None
    name = func.attr.value  # type: ignore[attr-defined]
    if name not in ("mean", "sum"):
        return None

    def dtype(one: cst.BaseExpression) -> str | None:
        return getattr(ctx.kind(one), "dtype", None)

    callee = ctx.facts.callee(inner) or ""
    found = masked_select(inner, callee, lambda n: isinstance(ctx.kind(n), k.Tensor), dtype)
    if found is None:
        return None
    helper = ctx.helpers.need(module_file("rules.compat.masks"), f"selected_{name}")
    args = [cst.Arg(syntax.unparenthesized(rw.visit(one))) for one in found]
    return syntax.with_args(cst.Call(cst.Name(helper)), args)


@converts(cst.Call, called=LOSSES)
def loss_of_a_selection(rw: Rewriter, node: cst.Call) -> Any:
    """``F.mse_loss(x[mask], y[mask])`` → ``masked_loss(mse_loss, x, y, mask)``."""
    ctx = rw.ctx

    def dtype(one: cst.BaseExpression) -> str | None:
        return getattr(ctx.kind(one), "dtype", None)

    found = masked_loss(node, ctx.facts.callee, lambda n: isinstance(ctx.kind(n), k.Tensor), dtype)
    if found is None:
        return None
    parts = [rw.visit(one) for one in (found.input, found.target, found.mask)]
    name = ctx.helpers.need(module_file("rules.compat.masks"), "masked_loss")
    file = "loss_layers" if found.name in ("mse_loss", "l1_loss") else "losses"
    loss = ctx.helpers.need(module_file(f"rules.compat.{file}"), found.name)
    given = [cst.Name(loss), *(syntax.unparenthesized(one) for one in parts)]
    made = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(one) for one in given])
    if found.reduction == "mean":
        return made
    return syntax.add_keyword(made, "reduction", syntax.parse(f'"{found.reduction}"'))


def _component(rw: Rewriter, node: cst.Subscript) -> cst.BaseExpression | None:
    """``x.max(1)[0]``: only the component that is used is computed."""
    from migrator.convert.passes.calls import torch_call

    index = node.slice[0].slice
    if len(node.slice) != 1 or not isinstance(index, cst.Index):
        return None
    kind = rw.ctx.kind(index.value)
    if not isinstance(kind, k.Const) or not isinstance(kind.value, int):
        return None
    assert isinstance(node.value, cst.Call)
    result = torch_call(rw, node.value, only=kind.value)
    if result is None or result.is_tuple:
        return None
    if len(result.nodes) == 1 and not _whole(rw, node.value, result.nodes[0]):
        return result.nodes[0]
    return syntax.changed(node, value=syntax.fitted(node, "value", result.nodes[0]))


def _whole(rw: Rewriter, call: cst.Call, made: cst.BaseExpression) -> bool:
    """Whether an expansion still stands for the whole tuple (a call that returns one)."""
    from migrator.convert.passes.calls import expands_to_components

    return not expands_to_components(rw, call)


def rw_index(rw: Rewriter, node: cst.Subscript) -> cst.BaseExpression:
    """``x[…]`` on a tensor."""
    value = rw.visit(node.value)
    if targets.is_variable(rw.ctx, node.value) and isinstance(value, cst.Subscript):
        value = value.value  # a Variable is indexed like the array it holds
    slices = convert_slices(rw, node)
    if is_told_by_a_run(rw.ctx, node):
        rw.ctx.helpers.use("jnp")
        name = rw.ctx.helpers.need(module_file("rules.compat.indexing"), "item")
        index = cst.Subscript(syntax.parse("jnp.s_"), slices)
        return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(value), cst.Arg(index)])
    parts = apart(rw.ctx, node, slices)
    if parts is not None:
        value, slices = cst.Subscript(syntax.fitted(node, "value", value), parts[0]), parts[1]
    return syntax.changed(node, value=syntax.fitted(node, "value", value), slice=slices)


def convert_slices(
    rw: Rewriter, node: cst.Subscript, *, writing: bool = False
) -> list[cst.SubscriptElement]:
    """The index of a tensor in JAX's terms."""
    found = []
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Index):
            alone = len(node.slice) == 1
            listed = _read_as_tuple(rw, index.value, writing) if alone else None
            made = listed or _index(rw, index.value, writing)
            if alone and not listed and _may_be_a_list(rw.ctx, index.value):
                made = _whole_index(rw, made)
            new: Any = syntax.changed(index, value=made)
            found.append(
                element if new.value is index.value else syntax.changed(element, slice=new)
            )
            continue
        assert isinstance(index, cst.Slice)
        for part in (index.lower, index.upper, index.step):
            if part is not None and isinstance(rw.ctx.kind(part), k.Tensor) and not rw.ctx.in_init:
                raise Failure(
                    part,
                    "DYN003",
                    "a slice whose bounds are tensors has no static shape",
                    "use lax.dynamic_slice with a fixed size, or a mask",
                )
        new = rw.rebuild(index)
        found.append(element if new is index else syntax.changed(element, slice=new))
    return found


_MOST = 32  # torch takes a longer list for one of places, whatever it holds


def _read_as_tuple(
    rw: Rewriter, node: cst.BaseExpression, writing: bool
) -> cst.BaseExpression | None:
    """``x[[i, j]]`` of tensors, lists, slices, None or ``...``: torch reads such a list as ``x[i, j]``.

    (treatSequenceAsTuple of torch's python_variable_indexing.cpp.) Where only a run tells what a list holds, a helper
    asks it; None where all are numbers.
    """
    ctx = rw.ctx
    if isinstance(node, cst.List):
        if any(not isinstance(e, cst.Element) for e in node.elements):
            return _whole_index(rw, rw.visit(node))
        told = [_has_parts(ctx, e.value) for e in node.elements]
        if len(told) >= _MOST or not told or all(one is False for one in told):
            return None
        if not any(told):
            return _whole_index(rw, rw.visit(node))
        parts = [syntax.unparenthesized(_index(rw, e.value, writing)) for e in node.elements]
        if len(parts) == 1:
            return parts[0]
        return cst.Tuple([cst.Element(one) for one in parts], [], [])
    kind = ctx.kind(node)
    listed = isinstance(kind, k.Sequence) and kind.type == "list"
    if (listed or isinstance(node, cst.ListComp)) and _holds_parts(k.element(kind)) is not False:
        if isinstance(node, cst.Name) and _is_given_slices(ctx, node):
            return None
        return _whole_index(rw, rw.visit(node))
    return None


def _has_parts(ctx: Context, node: cst.BaseExpression) -> bool | None:
    """Whether something in a list makes torch take the list for a tuple; None where only a run tells."""
    if isinstance(node, (cst.List, cst.Tuple, cst.ListComp, cst.Ellipsis)) or _is_slice(ctx, node):
        return True
    return _holds_parts(ctx.kind(node))


def _holds_parts(kind: k.Kind) -> bool | None:
    if isinstance(kind, (k.Tensor, k.Sequence, k.Tuple)) or kind == k.NONE:
        return True
    if kind in (k.Other("slice"), k.Other("ellipsis")):
        return True
    return False if k.scalar_type(kind) is not None else None


def _whole_index(rw: Rewriter, made: cst.BaseExpression) -> cst.BaseExpression:
    name = rw.ctx.helpers.need(module_file("rules.compat.indexing"), "whole")
    return cst.Call(cst.Name(name), [cst.Arg(syntax.unparenthesized(made))])


def _may_be_a_list(ctx: Context, node: cst.BaseExpression) -> bool:
    """``x[idxs]`` and ``x[self.idxs]`` of a constructor's argument of which nothing is known."""
    if not isinstance(ctx.kind(node), k.Unknown) or ctx.owner is None or ctx.frame is None:
        return False
    if isinstance(node, cst.Attribute):
        return ctx.is_self(node.value) and isinstance(
            ctx.owner.attribute(node.attr.value), k.Unknown
        )
    if not isinstance(node, cst.Name) or not ctx.in_init:
        return False
    return node.value in syntax.parameters(ctx.frame.info.node)


def _index(rw: Rewriter, node: cst.BaseExpression, writing: bool) -> cst.BaseExpression:
    ctx = rw.ctx
    kind = ctx.kind(node)
    known = known_index(rw, node)
    if known is not None:
        return known
    if isinstance(kind, k.Tensor) and kind.dtype == "bool" and not ctx.concrete:
        raise Failure(
            node,
            "DYN001",
            "indexing by a boolean mask gives a shape that depends on the data",
            "use jnp.where(mask, x, fill), or a reduction over x * mask",
        )
    check_bytes(rw, node, kind)
    if isinstance(node, cst.Tuple):
        elements = [syntax.changed(e, value=_index(rw, e.value, writing)) for e in node.elements]
        return syntax.changed(node, elements=elements)
    made: cst.BaseExpression = rw.visit(node)
    if isinstance(node, cst.Call) and ctx.facts.callee(node) == "builtins.range":
        ctx.helpers.use("jnp")
        return syntax.changed(made, func=syntax.parse("jnp.arange"))
    if isinstance(node, (cst.List, cst.ListComp)) or (
        isinstance(kind, k.Sequence) and kind.type in ("list", "range")
    ):
        slices = isinstance(node, cst.List) and _holds_slices(ctx, node)
        if slices or (isinstance(node, cst.Name) and _is_given_slices(ctx, node)):
            return cst.Call(cst.Name("tuple"), [cst.Arg(made)])
        # under jit JAX asks that it be known what a mask selects: an array of numpy's is
        library = "np" if isinstance(kind, k.Sequence) and _is_truth(kind.item) else "jnp"
        ctx.helpers.use(library)
        return cst.Call(syntax.parse(f"{library}.array"), [cst.Arg(made)])
    return made


def _is_truth(kind: k.Kind) -> bool:
    return k.scalar_type(kind) == "bool"


def _is_given_slices(ctx: Context, node: cst.Name) -> bool:
    """Whether slices are put into a list of the function: torch takes one that holds any for a tuple."""
    body = ctx.frame.info.node.body if ctx.frame is not None else None
    if body is None:
        return False
    for line in ctx.facts.tree.within(body, cst.Assign, cst.AugAssign, cst.Expr):
        into: cst.CSTNode | None = line.targets[0].target if isinstance(line, cst.Assign) else None
        if isinstance(line, cst.AugAssign):
            into = line.target
        elif isinstance(line, cst.Expr) and isinstance(line.value, cst.Call):
            into = line.value.func  # rows.append(slice(1))
        while isinstance(into, (cst.Subscript, cst.Attribute)):
            into = into.value
        if isinstance(into, cst.Name) and into.value == node.value:
            if any(_is_slice(ctx, one) for one in ctx.facts.tree.within(line.value, cst.Call)):
                return True
    return False


def _is_slice(ctx: Context, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and ctx.facts.callee(node) == "builtins.slice"


def check_bytes(rw: Rewriter, node: cst.BaseExpression, kind: k.Kind) -> None:
    if isinstance(kind, k.Tensor) and kind.dtype != "bool" and _of_bytes(rw, node):
        raise Failure(
            node,
            "API002",
            "a tensor of uint8 as an index is a mask in torch, and a list of places in JAX",
            "make the mask boolean (`.bool()`)",
        )


_BYTES = re.compile(r"\b(?:uint8|byte|ByteTensor)\b")
_OTHERS = frozenset({"long", "int", "bool"})


@lru_cache(maxsize=8)
def _names_bytes(text: str) -> bool:
    """Whether a file says so of anything."""
    return _BYTES.search(text) is not None


def _of_bytes(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether an index, or what the file keeps under a name in it, is said to be of uint8."""
    if not _names_bytes(rw.ctx.source.text):
        return False
    index = rw.ctx.source.index
    read = {syntax.code(n) for n in syntax.walk(node) if isinstance(n, (cst.Name, cst.Attribute))}
    found: list[cst.CSTNode] = [node]
    for item in _handed_for(rw, read):  # what a call hands over is read too, in the caller
        read |= {
            syntax.code(n) for n in syntax.walk(item) if isinstance(n, (cst.Name, cst.Attribute))
        }
        found.append(item)
    lines = index.of_type(cst.Assign)
    for line in (*lines, *lines):  # twice, for another name of the same tensor
        if any(syntax.code(one.target) in read for one in line.targets):
            found.append(line.value)
            read |= {line.value.value} if isinstance(line.value, cst.Name) else set()
    for param in index.of_type(cst.Param):
        if param.name.value in read and param.annotation is not None:
            found.append(param.annotation.annotation)
    for call in index.of_type(cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "register_buffer":
            name = call.args[0].value if len(call.args) > 1 else None
            if isinstance(name, cst.SimpleString) and f"self.{name.raw_value}" in read:
                found.append(call.args[1].value)
    return any(_BYTES.search(syntax.code(one)) and not _is_cast(one) for one in found)


def _handed_for(rw: Rewriter, names: set[str]) -> list[cst.BaseExpression]:
    """What the calls in the file hand over for parameters of the function."""
    if not rw.ctx.frames:
        return []
    info = rw.ctx.frames[-1].info
    return [
        item.value
        for call in info.call_sites
        if isinstance(call, cst.Call)
        for name, item in bound_arguments(call, info)
        if name in names
    ]


def _is_cast(node: cst.CSTNode) -> bool:
    """``m.byte().long()``, whatever it was before."""
    func = node.func if isinstance(node, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value in _OTHERS


def _holds_slices(ctx: Context, node: cst.List) -> bool:
    return any(_is_slice(ctx, e.value) for e in node.elements)
