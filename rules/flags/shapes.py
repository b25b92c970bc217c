"""DYN001, DYN003, DYN005, DYN006: shapes that depend on the values of tensors."""

from __future__ import annotations

from typing import Any, NamedTuple

import libcst as cst

from rules.flags import _lines as lines
from rules.flags._guards import guards
from rules.flags._masked import masked_loss, masked_select
from rules.flags._selected import Write, selected_write
from rules.registry import Advice, FlagContext, flag

_LOSSES = [
    "cross_entropy",
    "mse_loss",
    "l1_loss",
    "smooth_l1_loss",
    "nll_loss",
    "kl_div",
    "huber_loss",
]
_SIZES = frozenset(["numel", "size", "dim", "nelement", "__len__"])


class Sized(NamedTuple):
    """A name whose length depends on data: the mask it comes from, and what was selected (if anything)."""

    mask: cst.BaseExpression
    text: str
    group: tuple[str, ...]
    source: cst.BaseExpression | None = None


# --- masks ------------------------------------------------------------------------------------------


def _mask(node: cst.Subscript, ctx: FlagContext) -> cst.BaseExpression | None:
    """The boolean tensor among the indices."""
    for element in node.slice:
        index = element.slice
        if not isinstance(index, cst.Index) or ctx.rank(index.value) == 0:
            continue
        if ctx.dtype(index.value) == "bool" or _called_mask(index.value, ctx):
            return index.value
    return None


def _called_mask(node: cst.BaseExpression, ctx: FlagContext) -> bool:
    """Whether a tensor that may be of any dtype is called a mask: nobody indexes by the numbers 0 and 1."""
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.BitInvert):
        return _called_mask(node.expression, ctx)
    if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, (cst.BitAnd, cst.BitOr)):
        sides = (node.left, node.right)
        return ctx.dtype(node) is None and any(_called_mask(one, ctx) for one in sides)
    name = ctx.text(node).rpartition(".")[2] if isinstance(node, (cst.Name, cst.Attribute)) else ""
    return "mask" in name.lower() and ctx.is_tensor(node) and ctx.dtype(node) is None


@flag(
    "DYN001",
    "boolean-mask-indexing",
    cst.Subscript,
    what="indexing by a boolean mask gives a shape that depends on the data",
    why="JAX compiles for fixed shapes; how many elements a mask keeps is known only when it runs. A mask that hangs on"
    " sizes alone, such as `~torch.eye(n).bool()`, or that a constructor makes and keeps (not as a buffer, which is"
    " loaded), becomes one of numpy, which is known then.",
    example="def loss(x: torch.Tensor):\n    return x[x > 0].mean(0)",
    instead="def loss(x: torch.Tensor):\n    return torch.where(x > 0, x, 0).sum() / (x > 0).sum()",
)
def boolean_mask(node: cst.Subscript, ctx: FlagContext) -> Advice | str | None:
    """Reads ``x[mask]`` and writes through a mask that have no ``jnp.where`` form."""
    if not ctx.in_forward:
        return None
    mask = _mask(node, ctx)
    if mask is None or not (
        ctx.is_tensor(node.value) or type(ctx.kind(node.value)).__name__ == "Unknown"
    ):
        return None
    parent = ctx.parents[-1]
    if guards(node, ctx):
        return None
    write = _of_a_write(ctx)
    if write is not None and (node is write.target or node in write.selections):
        return None
    if isinstance(parent, cst.AssignTarget) or (
        isinstance(parent, cst.AugAssign) and parent.target is node
    ):
        return _written(node, mask, ctx)
    if isinstance(parent, cst.Del) or _same_mask_assigned(node, mask, parent):
        return None
    if _is_reduced(node, mask, ctx) or _is_in_a_loss(ctx):
        return None
    for name in lines.targets(parent):
        ctx.memo[name] = Sized(mask, ctx.text(mask), (name,), node.value)
    return _read(node.value, mask, parent, ctx)


def _of_a_write(ctx: FlagContext) -> Write | None:
    """The write through a mask around a node that the converter computes everywhere."""
    for parent in reversed(ctx.parents):
        if isinstance(parent, cst.BaseSmallStatement):
            found = selected_write(
                parent, ctx.callee, lambda n: ctx.scalar(n) is not None, ctx.rank
            )
            kinds = ("bool", None) if found is not None and not found.selections else ("bool",)
            known = found is not None and ctx.dtype(found.mask) in kinds
            return found if known and ctx.is_tensor(found.target.value) else None  # type: ignore[union-attr]
    return None


def _is_reduced(node: cst.Subscript, mask: cst.CSTNode, ctx: FlagContext) -> bool:
    """``x[mask].mean()`` and ``.sum()`` over all that is selected, which the converter takes over the mask."""
    if len(node.slice) > 1 or len(ctx.parents) < 2 or ctx.dtype(mask) != "bool":
        return False
    parent, call = ctx.parents[-1], ctx.parents[-2]
    called = (
        isinstance(parent, cst.Attribute) and isinstance(call, cst.Call) and call.func is parent
    )
    if not called or call.args or parent.attr.value not in ("mean", "sum"):
        return False
    return bool(ctx.is_tensor(node.value)) and ctx.dtype(node.value) not in ("int", "bool")


def _is_in_a_loss(ctx: FlagContext) -> bool:
    """``F.mse_loss(x[mask], y[mask])``, which the converter takes over the mask."""
    if len(ctx.parents) < 2 or not isinstance(ctx.parents[-1], cst.Arg):
        return False
    return masked_loss(ctx.parents[-2], ctx.callee, ctx.is_tensor, ctx.dtype) is not None


def _same_mask_assigned(node: cst.Subscript, mask: cst.CSTNode, parent: cst.CSTNode) -> bool:
    """``y[mask]`` in ``x[mask] = y[mask]``, which is ``x = jnp.where(mask, y, x)``."""
    if not isinstance(parent, cst.Assign) or parent.value is not node or len(parent.targets) != 1:
        return False
    target = parent.targets[0].target
    if not isinstance(target, cst.Subscript) or len(target.slice) != 1 or len(node.slice) != 1:
        return False
    index = target.slice[0].slice
    return isinstance(index, cst.Index) and index.value.deep_equals(mask)


def _written(node: cst.Subscript, mask: cst.BaseExpression, ctx: FlagContext) -> str | None:
    owner = ctx.parents[-1]
    statement = owner if isinstance(owner, cst.AugAssign) else ctx.parents[-2]
    value = getattr(statement, "value", None)
    if value is None or ctx.scalar(value) is not None or ctx.rank(value) == 0:
        return None
    if len(node.slice) > 1:
        return None  # the converter looks at these itself
    if isinstance(value, cst.Subscript) and isinstance(statement, cst.Assign):
        if _same_mask_assigned(value, mask, statement):
            return None
    x, where = ctx.text(node.value), lines.widened(ctx, node.value, mask)
    if isinstance(statement, cst.AugAssign):
        return f"give `{ctx.text(value)}` the shape of `{x}` and write `{x} = jnp.where({where}, {x} … values, {x})`"
    return (
        f"compute the values for every element (the shape of `{x}`) and write "
        f"`{x} = jnp.where({where}, values, {x})`"
    )


def _read(
    x: cst.BaseExpression, mask: cst.BaseExpression, parent: cst.CSTNode, ctx: FlagContext
) -> str:
    text, where = ctx.text(x), lines.widened(ctx, x, mask)
    m = lines.grouped(ctx.text(mask), mask)
    if isinstance(parent, cst.Attribute):
        call = ctx.parents[-2]
        name = parent.attr.value
        if name in lines.REDUCTIONS and isinstance(call, cst.Call):
            axis = ctx.text(call.args[0]) if call.args else None
            made = lines.masked_reduction(ctx, x, mask, name, _axis(axis))
            return f"write `{made}`{lines.widening(ctx, x, mask)}"
        if name in ("shape", "numel", "size", "nelement"):
            return f"how many are selected is `{m}.sum()`, a 0-d array"
    if isinstance(parent, cst.Arg):
        advice = _argument(text, where, m, ctx)
        if advice:
            return advice
    note = lines.widening(ctx, x, mask)
    keep = f"keep the shape with `jnp.where({where}, {text}, 0)`{note} and leave the rest out where it is reduced"
    bound = f"`{text}[jnp.nonzero({ctx.text(mask)}, size=n, fill_value=0)]`"
    if isinstance(parent, cst.Return):
        return (
            f"return `{text}` together with `{ctx.text(mask)}`, or {keep}; with a bound n: {bound}"
        )
    return f"{keep}; with a bound n: {bound}"


def _axis(text: str | None) -> str | None:
    if text is None:
        return None
    text = text.replace("dim=", "axis=").replace("keepdim=", "keepdims=")
    return text if "=" in text else f"axis={text}"


def _argument(text: str, where: str, mask: str, ctx: FlagContext) -> str | None:
    """``x[mask]`` as an argument of a reduction, a loss or len()."""
    call = ctx.parents[-2]
    if not isinstance(call, cst.Call):
        return None
    name = ctx.callee(call) or ""
    short = name.rpartition(".")[2]
    if name == "builtins.len":
        return f"how many are selected is `{mask}.sum()`, a 0-d array"
    if name.startswith("torch.") and short in lines.REDUCTIONS and call.args[0] is ctx.parents[-1]:
        return f"write `jnp.{short}({text}, where={where})`"
    if short in _LOSSES or short.endswith("_loss"):
        return (
            f'take the loss of every element (reduction="none") and average it over the mask: '
            f"`jnp.where({mask}, loss, 0).sum() / {mask}.sum()`"
        )
    return None


# --- results ------------------------------------------------------------------------------------------


def _nonzero(x: str, names: list[str]) -> str:
    bound = f"`jnp.nonzero({x}, size=n, fill_value={x}.size)`"
    if names:
        bound = f"`{', '.join(names)} = jnp.nonzero({x}, size=n, fill_value={x}.size)`"
    return f"use the condition itself as a mask (`jnp.where({x}, …, 0)`); with a bound n: {bound}"


def _where(x: str, names: list[str], mask: str) -> str:
    left = f"{', '.join(names)} = " if names else ""
    places = f" in place of what is indexed by {', '.join(names)}" if names else ""
    return (
        f"keep every element and use the condition as a mask: `jnp.where({x}, …, 0)`{places}; "
        f"with a bound: `{left}jnp.where({x}, size={mask}.size, fill_value={mask}.size)`, whose places beyond "
        f"the end .at[] leaves out"
    )


_RESULTS = {
    "unique": "bound the number of values: `jnp.unique({x}, size=n, fill_value=-1)`",
    "unique_consecutive": "mark where a run starts instead: "
    "`jnp.concatenate([jnp.ones(1, bool), {x}[1:] != {x}[:-1]])`",
    "bincount": "give the number of bins: `jnp.bincount({x}, length=n)`",
    "one_hot": "give the number of classes: `F.one_hot({x}, num_classes)`",
    "nms": "keep all boxes and suppress scores instead, a fixed number of times: "
    "`lax.fori_loop(0, n, …)` that sets the scores of overlapping boxes to -inf",
    "batched_nms": "keep all boxes and suppress scores instead, a fixed number of times",
}


@flag(
    "DYN005",
    "result-sized-by-data",
    cst.Call,
    what="the shape of the result depends on the data",
    why="How many elements are nonzero, distinct or selected is known only when the program runs.",
    example="def places(x: torch.Tensor):\n    return torch.nonzero(x > 0)",
    instead="def places(x: torch.Tensor):\n    return torch.nonzero_static(x > 0, size=8)",
)
def sized_by_data(node: cst.Call, ctx: FlagContext) -> Advice | str | None:
    """``nonzero``, ``unique``, ``masked_select``, ``where(condition)`` and friends."""
    name = ctx.callee(node) or ""
    if not ctx.in_forward or not name.startswith(("torch.", "Tensor.", "torchvision.ops.")):
        return None
    short = name.rpartition(".")[2]
    if short == "masked_select" and _summed(node, name, ctx):
        return None
    function = _FUNCTIONS.get(short)
    return function(node, short, name, ctx) if function is not None else None


def _summed(node: cst.Call, name: str, ctx: FlagContext) -> bool:
    """``torch.masked_select(x, mask).mean()``, which the converter takes over the mask."""
    found = masked_select(node, name, ctx.is_tensor, ctx.dtype)
    if found is None or len(ctx.parents) < 2:
        return False
    parent, call = ctx.parents[-1], ctx.parents[-2]
    called = isinstance(parent, cst.Attribute) and isinstance(call, cst.Call) and not call.args
    return called and call.func is parent and parent.attr.value in ("mean", "sum")


def _operand(node: cst.Call, name: str) -> cst.BaseExpression | None:
    if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
        return node.func.value
    return next((a.value for a in node.args if not a.star), None)


def _remember(node: cst.Call, ctx: FlagContext, mask: cst.BaseExpression) -> list[str]:
    """Note the names the result is bound to, through ``[0]`` and ``.squeeze()``."""
    found = lines.targets(lines.statement(ctx))
    for one in found:
        ctx.memo[one] = Sized(mask, ctx.text(mask), tuple(found))
    return found


def _check_nonzero(node: cst.Call, short: str, name: str, ctx: FlagContext) -> str | None:
    mask = _operand(node, name)
    if mask is None:
        return None
    parent = ctx.parents[-1]
    if isinstance(parent, cst.Attribute) and parent.attr.value in ("shape", "size", "numel"):
        return f"count with `jnp.count_nonzero({ctx.text(mask)})`, a 0-d array"
    found = _remember(node, ctx, mask)
    direct = isinstance(parent, cst.Assign)
    return _nonzero(ctx.text(mask), found if direct and len(found) > 1 else [])


def _check_where(node: cst.Call, short: str, name: str, ctx: FlagContext) -> str | None:
    if name != "torch.where" or len(node.args) != 1 or node.args[0].star:
        return None
    mask = node.args[0].value
    found = _remember(node, ctx, mask)
    text = ctx.text(mask)
    direct = isinstance(ctx.parents[-1], cst.Assign)
    return _where(text, found if direct else [], lines.grouped(text, mask))


def _check_masked_select(node: cst.Call, short: str, name: str, ctx: FlagContext) -> str | None:
    x = _operand(node, name)
    given = lines.arguments(node, *(("mask",) if name.startswith("Tensor.") else ("input", "mask")))
    mask = given.get("mask")
    if x is None or mask is None:
        return None
    for one in lines.targets(lines.statement(ctx)):
        ctx.memo[one] = Sized(mask, ctx.text(mask), (one,), x)
    return _read(x, mask, ctx.parents[-1], ctx)


def _check_pack(node: cst.Call, short: str, name: str, ctx: FlagContext) -> None:
    """Notes that the lengths of what is packed are values of a tensor."""
    lengths = lines.arguments(node, "input", "lengths", "batch_first", "enforce_sorted").get(
        "lengths"
    )
    if lengths is not None and ctx.is_tensor(lengths):
        ctx.memo[_PACKED] = ctx.text(lengths)


def _check_pad_packed(node: cst.Call, short: str, name: str, ctx: FlagContext) -> str | None:
    given = lines.arguments(node, "sequence", "batch_first", "padding_value", "total_length")
    if _PACKED not in ctx.memo or "total_length" in given:
        return None
    return f"it is as long as the largest of `{ctx.memo[_PACKED]}`: give it total_length, such as that of the input"


_PACKED = "<packed>"
"""Under this name, which no variable has, the lengths of a packed sequence are remembered."""


def _check_repeat(node: cst.Call, short: str, name: str, ctx: FlagContext) -> str | None:
    method = name.startswith("Tensor.")
    given = lines.arguments(node, *(("repeats", "dim") if method else ("input", "repeats", "dim")))
    repeats = given.get("repeats", None if method else given.get("input"))
    if repeats is None or "output_size" in given or not ctx.is_tensor(repeats):
        return None
    x, dim = _operand(node, name), given.get("dim")
    axis = f", axis={ctx.text(dim)}" if dim is not None else ""
    what = (
        ctx.text(x)
        if x is not None and x is not repeats
        else f"jnp.arange(len({ctx.text(repeats)}))"
    )
    return f"give the total length: `jnp.repeat({what}, {ctx.text(repeats)}{axis}, total_repeat_length=n)`"


def _check_bins(node: cst.Call, short: str, name: str, ctx: FlagContext) -> str | None:
    x = _operand(node, name)
    given = {a.keyword.value for a in node.args if a.keyword is not None}
    positional = sum(a.keyword is None for a in node.args) + name.startswith("Tensor.")
    limit = {"bincount": ("minlength", 3), "one_hot": ("num_classes", 2)}.get(short)
    if x is None or (limit and (limit[0] in given or positional >= limit[1])):
        return None
    return _RESULTS[short].format(x=ctx.text(x))


_FUNCTIONS: dict[str, Any] = {
    "nonzero": _check_nonzero,
    "argwhere": _check_nonzero,
    "where": _check_where,
    "masked_select": _check_masked_select,
    "repeat_interleave": _check_repeat,
    "pack_padded_sequence": _check_pack,
    "pad_packed_sequence": _check_pad_packed,
    **dict.fromkeys(_RESULTS, _check_bins),
}


# --- sizes ---------------------------------------------------------------------------------------------

_CREATION = {
    **dict.fromkeys(["zeros", "ones", "empty", "rand", "randn"], None),
    "arange": 3,
    "eye": 2,
    "full": 1,
    "randperm": 1,
}
_SIZED = {
    **dict.fromkeys(["view", "reshape", "expand", "repeat", "tile"], None),
    **dict.fromkeys(["new_zeros", "new_ones", "new_empty"], None),
    "new_full": 1,
}


@flag(
    "DYN003",
    "size-by-tensor-value",
    cst.Slice,
    cst.Call,
    what="a size is taken from the value of a tensor",
    why="A slice, a range or a shape must be known when JAX compiles; a tensor's value is not.",
    example="def head(x: torch.Tensor, n: torch.Tensor):\n    return x[:n]",
    instead="def head(x: torch.Tensor, n: int):\n    return x[:n]",
)
def size_by_value(node: cst.Slice | cst.Call, ctx: FlagContext) -> Advice | str | None:
    """Slices, ``range`` and constructors bounded by tensors."""
    if not ctx.in_forward:
        return None
    return _slice(node, ctx) if isinstance(node, cst.Slice) else _size_argument(node, ctx)


def _slice(node: cst.Slice, ctx: FlagContext) -> Advice | None:
    bounds = [part for part in (node.lower, node.upper, node.step) if part is not None]
    dynamic = [part for part in bounds if ctx.is_given_tensor(part)]
    if not dynamic:
        return None
    owner = next((p for p in reversed(ctx.parents) if isinstance(p, cst.Subscript)), None)
    x = ctx.text(owner.value) if owner is not None else "x"
    axis = 0
    if owner is not None:
        axis = next((i for i, e in enumerate(owner.slice) if e.slice is node), 0)
    length = f"{x}.shape[{axis}]"
    if node.lower is not None and node.upper is not None:
        start = ctx.text(node.lower)
        size = _offset(node.lower, node.upper, ctx) or "size"
        along = f", axis={axis}" if axis else ""
        text = f"take a fixed number: `lax.dynamic_slice_in_dim({x}, {start}, {size}{along})`"
    else:
        bound = ctx.text(dynamic[0])
        compare = f"jnp.arange({length}) {'<' if node.upper is not None else '>='} {bound}"
        text = (
            f"keep the whole of `{x}` and mask it: `{compare}`, or pass `{bound}` as a Python int"
        )
    return Advice(text, node=dynamic[0])


def _offset(lower: cst.BaseExpression, upper: cst.BaseExpression, ctx: FlagContext) -> str | None:
    """``n`` of ``x[i:i + n]``."""
    if isinstance(upper, cst.BinaryOperation) and isinstance(upper.operator, cst.Add):
        if upper.left.deep_equals(lower):
            return ctx.text(upper.right)
        if upper.right.deep_equals(lower):
            return ctx.text(upper.left)
    return None


def _size_argument(node: cst.Call, ctx: FlagContext) -> Advice | None:
    name = ctx.callee(node) or ""
    if name == "builtins.range":
        for item in node.args:
            if ctx.is_given_tensor(item.value):
                bound = ctx.text(item.value)
                loop = ctx.parents[-1]
                if isinstance(loop, cst.For):
                    return Advice(
                        f"loop to a bound that is known and mask, or `lax.fori_loop(0, {bound}, body, state)` "
                        f"with what the loop changes as state",
                        what="the number of rounds is taken from the value of a tensor",
                    )
                return Advice(f"pass `{bound}` as a Python int")
    method = name.startswith("Tensor.")
    short = name.removeprefix("Tensor." if method else "torch.")
    limits = _SIZED if method else _CREATION
    if short not in limits or not name.startswith(("torch.", "Tensor.")):
        return None
    limit = limits[short]
    positional = [a for a in node.args if a.keyword is None and a.star != "**"]
    for item in positional[:limit]:
        value = item.value
        parts = (
            [e.value for e in value.elements]
            if isinstance(value, (cst.Tuple, cst.List))
            else [value]
        )
        for part in parts:
            kind = ctx.kind(part)
            # an argument of which nothing is known is taken for a tensor elsewhere; as a size it is a number
            told = getattr(kind, "rank", None) == 0 or ctx.dtype(part) == "int"
            told |= bool(item.star) and ctx.is_tensor(part)
            if ctx.is_given_tensor(part) and (told or not method):
                size = ctx.text(part)
                mask = f"`jnp.arange(n) < {size}`" if short == "arange" else "a mask"
                return Advice(
                    f"pass `{size}` as a Python int, or make it as long as its largest value n and use {mask}",
                    node=None,
                )
    return None


# --- what follows from a size that depends on data -----------------------------------------------------


@flag(
    "DYN006",
    "use-of-data-sized-tensor",
    cst.Assign,
    cst.Subscript,
    cst.Call,
    cst.If,
    severity="warning",
    blocks=False,
    effort=0.25,
    what="this line works on a tensor whose length depends on the data",
    why="It follows from a line above that selects by value, and changes together with it.",
    example="def total(x: torch.Tensor):\n    kept = x[x > 0]\n    return kept.sum()",
    instead="def total(x: torch.Tensor):\n    kept = torch.where(x > 0, x, 0)\n    return kept.sum()",
)
def follows(node: Any, ctx: FlagContext) -> Advice | str | None:
    """Lines that use names bound to data-sized results, each with what it becomes."""
    if not ctx.memo:
        return None
    if isinstance(node, cst.Assign):
        bound = lines.targets(node)
        if any(name in ctx.memo for name in bound):
            used = lines.names(node.value)
            for name in bound:
                if name not in used:
                    ctx.memo.pop(name, None)
        return None
    if isinstance(node, cst.If):
        return _size_test(node, ctx)
    statement = lines.statement(ctx)
    if statement is not None and ctx.memo.get("") is statement:
        return None  # one finding a statement
    advice = _indexed(node, ctx) if isinstance(node, cst.Subscript) else _called(node, ctx)
    if advice is not None:
        ctx.memo[""] = statement
    return advice


def _sized(node: cst.CSTNode, ctx: FlagContext) -> Sized | None:
    found = ctx.memo.get(node.value) if isinstance(node, cst.Name) else None
    return found if isinstance(found, Sized) else None


def _size_test(node: cst.If, ctx: FlagContext) -> Advice | None:
    for name in sorted(lines.names(node.test)):
        sized = ctx.memo.get(name)
        if isinstance(sized, Sized) and not ctx.is_tensor(node.test):
            return Advice(
                f"a sum under the mask `{sized.text}` is 0 where nothing is selected, and needs no test; a mean is NaN "
                f"there: choose with `jnp.where(jnp.any(mask), …, …)`",
                node=node.test,
                what="this branches on a length that depends on the data",
            )
    return None


def _indexed(node: cst.Subscript, ctx: FlagContext) -> str | None:
    used = []
    for element in node.slice:
        index = element.slice
        if isinstance(index, cst.Index) and isinstance(index.value, cst.Name):
            if _sized(index.value, ctx) is not None:
                used.append(index.value)
    if not used:
        return None
    sized = _sized(used[0], ctx)
    assert sized is not None
    x = ctx.text(node.value)
    if {n.value for n in used} == set(sized.group) and len(used) > 1:
        last = "-1" if len(used) > 1 else "0"
        return (
            f"keep the shape of `{x}`: `jnp.where({sized.text}, {x}, 0)`, summed over the axis of "
            f"`{used[-1].value}` (`.sum({last})`) where one value a row is meant"
        )
    return f"use all rows of `{x}`; those that `{sized.text}` leaves out get weight 0"


def _called(node: cst.Call, ctx: FlagContext) -> str | None:
    parts = lines.method(node)
    if parts is None:
        return None
    receiver, name = parts
    if name in ("index_add_", "index_add", "index_copy_", "scatter_add_", "index_put_", "scatter_"):
        for item in node.args:
            sized = _sized(item.value, ctx)
            if sized is not None:
                out = ctx.text(receiver)
                value = ctx.text(node.args[-1].value)
                return (
                    f"add a masked value computed for every row: `{out} = {out} + jnp.where(mask, value, 0)`, "
                    f"with `{value}` for all rows and the mask from `{sized.text}`"
                )
    sized = _sized(receiver, ctx)
    if sized is not None and sized.source is not None and name in lines.REDUCTIONS:
        axis = _axis(", ".join(ctx.text(a) for a in node.args) or None)
        made = lines.masked_reduction(ctx, sized.source, sized.mask, name, axis)
        return f"write `{made}`{lines.widening(ctx, sized.source, sized.mask)}"
    return None
