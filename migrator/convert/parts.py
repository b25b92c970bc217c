"""Parts of memory that share nothing with one another: the pieces of ``a, b = x.chunk(2)``, of ``h, c = state``.

A label of memory names such a part by the statement that took it apart, and by its place among the parts. Nothing is
said of parts that two statements took: one may have seen the memory turned round.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.ranges import apart
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.construction import CONTAINERS, PARAMETERS

TWICE = "twice"
"""Stands in the memory of a container that may hold one tensor more than once."""
OVERLAP = "overlap"
"""Stands in the memory of a view whose rows may share memory with one another."""
NOT_KNOWN = "may overlap"
"""Stands in the memory of what a function of another file returns, of which nothing more is known."""
_MARK = "\0"
_MARKERS = ("box:", TWICE, OVERLAP, NOT_KNOWN)
_SPLITTING = frozenset(
    "chunk split unbind tensor_split split_with_sizes hsplit vsplit dsplit unsafe_chunk unsafe_split".split()
)


def whole(label: str) -> str:
    """The memory that a part is of."""
    return label.partition(_MARK)[0]


def shared(mine: frozenset[str], theirs: frozenset[str]) -> frozenset[str]:
    """The memory of tensors that is in both; a container that both stand for is no tensor."""
    found = mine & theirs
    if any(_MARK in one for one in (*mine, *theirs)):
        found |= {one for one in mine if any(_meets(one, other) for other in theirs)}
    return frozenset(one for one in found if not one.startswith(_MARKERS))


def _meets(one: str, other: str) -> bool:
    """Whether two labels may be of the same memory: not of two parts that one statement took."""
    mine, theirs = one.split(_MARK), other.split(_MARK)
    if mine[0] != theirs[0]:
        return False
    for a, b in zip(mine[1:], theirs[1:], strict=False):
        if a != b:
            return a.partition(".")[0] != b.partition(".")[0]
    return True


def rejoined(memory: frozenset[str], statement: int) -> frozenset[str]:
    """Memory without the parts that an earlier run of a statement took."""
    mark = f"{_MARK}{statement}."
    return frozenset(one.partition(mark)[0] for one in memory)


def piece(memory: frozenset[str], statement: int, place: int) -> frozenset[str]:
    """One of the parts that a statement takes."""
    return frozenset(f"{one}{_MARK}{statement}.{place}" for one in memory)


def is_part(label: str) -> bool:
    """Whether a label is of a part of some memory."""
    return _MARK in label


def is_new(memory: frozenset[str]) -> bool:
    """Whether memory is of something that a function has made itself."""
    return bool(memory) and all(one.startswith(("new:", OVERLAP, NOT_KNOWN)) for one in memory)


def is_made(memory: frozenset[str]) -> bool:
    """Whether memory is of a tensor, or of a container of such, that a function has made itself."""
    return bool(memory) and all(
        is_new(frozenset({o})) or o in boxes(memory) | {TWICE} for o in memory
    )


def together(several: Sequence[frozenset[str]]) -> frozenset[str]:
    """The memory of what a container holds."""
    found: frozenset[str] = frozenset()
    for one in several:
        found |= one | ({TWICE} if shared(found, one) else set())
    return found


OBJECT = "box:object"
"""An instance of a class: a container that arithmetic does not put together."""


def lists(memory: frozenset[str]) -> bool:
    """Whether memory may be that of a list or tuple, which ``+`` and ``*`` put together."""
    return any(not one.startswith(OBJECT) for one in boxes(memory))


def paths(node: cst.CSTNode, held: frozenset[str]) -> list[str]:
    """``o.x``, and ``self.o.x`` where o stands for ``self.o``; not that of a chain: ``node = node.next``."""
    if not isinstance(node, cst.Attribute):
        return [syntax.code(node)]
    of = (m.removeprefix("attr:").split(".") for m in held if m.startswith("attr:"))
    short = sorted(".".join(one) for one in of if len(one) < 3 and node.attr.value not in one)
    return [syntax.code(node), *(f"{one}.{node.attr.value}" for one in short)]


def in_another(kind: k.Kind, held: frozenset[str], box: frozenset[str]) -> frozenset[str]:
    """The memory of a list or dict that holds what another one does: ``a[1:]``, ``d.copy()``."""
    container = boxes(held) or isinstance(kind, (k.Sequence, k.Tuple, k.Mapping))
    return held - boxes(held) | box if container else held


def takes_items(kind: k.Kind) -> bool:
    """Whether a value is a list or dict, whose items may be given anew; no tuple."""
    return isinstance(kind, k.Mapping) or (isinstance(kind, k.Sequence) and kind.type == "list")


def is_of_item(ctx: Context, target: cst.CSTNode) -> bool:
    """Whether what is written is an item of what may be a list or dict, or a part of one: ``hs[0][:, 1]``."""
    holders = (k.Sequence, k.Tuple, k.Mapping, k.Optional, k.Unknown)
    while isinstance(target, (cst.Subscript, cst.Attribute)):
        if isinstance(target, cst.Subscript) and isinstance(ctx.kind(target.value), holders):
            return True
        target = target.value
    return False


def is_container(ctx: Context, info: FunctionInfo, name: str) -> bool:
    """Whether a name of a function stands for a list or dict wherever it is written, and for no tensor out of one."""
    nodes = ctx.facts.tree.within(info.node, cst.Name)
    kinds = [ctx.kind(node) for node in nodes if node.value == name]
    kinds = [one.inner if isinstance(one, k.Optional) else one for one in kinds]
    return any(isinstance(one, (k.Sequence, k.Tuple, k.Mapping)) for one in kinds) and not any(
        isinstance(one, k.Tensor) for one in kinds
    )


def takes_slice(node: cst.Subscript) -> bool:
    """``a[1:]``, which of a list is another list."""
    return any(isinstance(one.slice, cst.Slice) for one in node.slice)


def boxes(memory: frozenset[str]) -> frozenset[str]:
    """The containers among what some memory is of."""
    return frozenset(one for one in memory if one.startswith("box:"))


def holds_layers(kind: k.Kind) -> bool:
    """Whether a value is a list of layers: what a layer of it returns is not memory of the list."""
    return isinstance(kind, k.Module) and kind.cls in CONTAINERS and kind.cls not in PARAMETERS


def as_kind(kind: k.Kind, memory: frozenset[str]) -> frozenset[str]:
    """The memory of what is taken out of a container: none of a number, no container's of a tensor."""
    if is_plain(kind):
        return frozenset()
    return memory - boxes(memory) - {TWICE} if isinstance(kind, k.Tensor) else memory


def holds(kind: k.Kind, memory: frozenset[str]) -> bool:
    """Whether ``a += b`` puts what b holds into a."""
    return isinstance(kind, (k.Sequence, k.Tuple)) or (
        bool(boxes(memory)) and not isinstance(kind, k.Tensor)
    )


def is_plain(kind: k.Kind) -> bool:
    """Whether a value holds no memory of a tensor: a number, a shape, a list of shapes."""
    if isinstance(kind, k.Tuple):
        return bool(kind.items) and all(map(is_plain, kind.items))
    if isinstance(kind, k.Sequence):
        return is_plain(kind.item)
    return k.scalar_type(kind) is not None or isinstance(kind, (k.DType, k.Device))


def separable(memory: frozenset[str], tensor: bool) -> bool:
    """Whether what is taken of some memory at several places shares nothing.

    What an argument holds is taken to be of several tensors, as two arguments are; who calls with others is looked at.
    """
    known = ("param:", "new:") if tensor else ("param:",)
    return bool(memory) and all(one.startswith(known) for one in memory)


def pieces(
    ctx: Context, target: cst.BaseExpression, value: cst.BaseExpression
) -> tuple[cst.BaseExpression, list[cst.BaseExpression]] | None:
    """What an assignment takes apart, and the target of each piece; None where it does no such thing."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return None
    targets = [element.value for element in target.elements]
    if any(isinstance(element, cst.StarredElement) for element in target.elements):
        return None
    if isinstance(value, cst.Tuple):
        base = _indexed(ctx, value)
        return (base, targets) if base is not None and len(value.elements) == len(targets) else None
    if isinstance(value, cst.Name):
        return value, targets
    if (each := _of_each(ctx, value)) is not None:
        return pieces(ctx, target, each)
    name = (ctx.facts.callee(value) or "") if isinstance(value, cst.Call) else ""
    if not isinstance(value, cst.Call) or name.rpartition(".")[2] not in _SPLITTING:
        return None
    if name.startswith("Tensor.") and isinstance(value.func, cst.Attribute):
        return value.func.value, targets
    first = value.args[0] if value.args else None
    plain = first is not None and not first.star and first.keyword is None
    return (first.value, targets) if name.startswith("torch.") and first and plain else None


def _of_each(ctx: Context, value: cst.BaseExpression) -> cst.BaseExpression | None:
    """What something is computed of each item of, and of nothing else: ``map(lambda t: rearrange(t, …), x.chunk(3))``."""
    match value:
        case cst.Call(
            args=[
                cst.Arg(value=cst.Lambda(params=cst.Parameters(params=[param])) as function),
                cst.Arg(value=every, star=""),
            ]
        ) if ctx.facts.callee(value) == "builtins.map":
            item, result = param.name.value, function.body
        case (
            cst.ListComp(elt=result, for_in=clause) | cst.GeneratorExp(elt=result, for_in=clause)
        ) if not clause.ifs and clause.inner_for_in is None:
            if not isinstance(clause.target, cst.Name):
                return None
            item, every = clause.target.value, clause.iter
        case _:
            return None
    if not ctx.facts.tree.has(result):
        return None  # of another file in the same circle
    for one in syntax.walk(result):
        if isinstance(one, (cst.Lambda, cst.NamedExpr)):
            return None
        if isinstance(one, cst.Call):
            called = ctx.facts.callee(one) or ""
            if not called.startswith(("torch.", "Tensor.", "einops.")):
                return None  # which may give a tensor that it keeps
    for one in ctx.facts.tree.within(result, cst.Name, cst.Attribute):
        named = isinstance(one, cst.Name) and one.value == item
        kind = ctx.kind(one)
        if not named and not isinstance(kind, k.Function) and k.scalar_type(kind) is None:
            above = ctx.facts.tree.parent(one)
            word = getattr(above, "attr", getattr(above, "keyword", None))
            if word is not one and not ctx.is_module(one):
                return None
    return every


def _indexed(ctx: Context, value: cst.Tuple) -> cst.Name | None:
    """``qkv`` of ``qkv[0], qkv[1], qkv[2]``, and ``x`` of ``x[:n], x[n:]``."""
    found = [_of_name(element.value) for element in value.elements]
    if None in found or len({one[0].value for one in found if one}) != 1:
        return None
    (base, _), each = found[0], [one[1] for one in found if one]  # type: ignore[misc]
    places = [_place(one.value) for one in value.elements]
    if None not in places:
        return base if len(set(places)) == len(places) else None
    known = is_tensor(ctx, base) or any(map(_of_axes, each))
    return base if known and apart(ctx, each) else None


def _of_axes(node: cst.Subscript) -> bool:
    """Whether an index is of an array's kind: of several axes, or with an ellipsis."""
    index = node.slice[0].slice
    dots = isinstance(index, cst.Index) and isinstance(index.value, cst.Ellipsis)
    return dots or len(node.slice) > 1


def _of_name(node: cst.CSTNode) -> tuple[cst.Name, cst.Subscript] | None:
    """``x`` and ``x[:n]`` of ``x[:n][..., None]``."""
    while isinstance(node, cst.Subscript) and isinstance(node.value, cst.Subscript):
        node = node.value
    if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Name):
        return node.value, node
    return None


def _place(node: cst.BaseExpression) -> int | None:
    """2 of ``qkv[2]``."""
    if not isinstance(node, cst.Subscript) or not isinstance(node.value, cst.Name):
        return None
    index = node.slice[0].slice
    if len(node.slice) > 1 or not isinstance(index, cst.Index):
        return None
    return index.value.evaluated_value if isinstance(index.value, cst.Integer) else None


def runs(ctx: Context, body: Sequence[cst.CSTNode]) -> dict[cst.Assign, tuple[cst.Assign, int]]:
    """``a = x[:n]`` and then ``b = x[n:]``, which share nothing: the first assignment of such, and the place of each."""
    found: dict[cst.Assign, tuple[cst.Assign, int]] = {}
    run: list[tuple[cst.Assign, cst.Subscript]] = []
    for statement in body:
        taken = _sliced(statement)
        if taken is None:
            run = []
        elif run and _goes_on(ctx, run, taken[1]):
            run.append(taken)
            found |= {node: (run[0][0], i) for i, (node, _) in enumerate(run)}
        else:
            run = [taken]
    return found


def _sliced(statement: cst.CSTNode) -> tuple[cst.Assign, cst.Subscript] | None:
    """The assignment of ``a = x[:n]``."""
    node = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    if not isinstance(node, cst.Assign) or len(node.targets) != 1 or len(statement.body) != 1:  # type: ignore[attr-defined]
        return None
    one = _of_name(node.value)
    plain = isinstance(node.targets[0].target, cst.Name)
    return (node, one[1]) if one is not None and plain else None


def _goes_on(
    ctx: Context, run: Sequence[tuple[cst.Assign, cst.Subscript]], value: cst.Subscript
) -> bool:
    """Whether a slice is of the tensor that those before it are of, and shares nothing with them."""
    each = [one for _, one in run]
    bound = {name for node, _ in run for name in syntax.names(node.targets[0].target)}
    one_base = syntax.code(value.value) == syntax.code(each[0].value)
    return (
        one_base
        and not bound & set(syntax.names(value))
        and (is_tensor(ctx, value.value) or any(map(_of_axes, (*each, value))))
        and apart(ctx, [*each, value])
    )


def is_tensor(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is known to be a tensor."""
    return isinstance(ctx.kind(node), k.Tensor)


_INDEX = re.compile(r"\[[^\]]*\]")


def names_same(memory: str, attribute: str) -> bool:
    """Whether memory may be that of an attribute: ``sub.b`` and ``self.sub.b`` are, where ``sub`` may be any module."""
    one, other = memory.removeprefix("attr:"), attribute
    if one == memory or _INDEX.sub("[]", one) == _INDEX.sub("[]", other):
        pairs = zip(_INDEX.findall(one), _INDEX.findall(other), strict=False)
        apart = any(a != b and a[1:-1].isdigit() and b[1:-1].isdigit() for a, b in pairs)
        return one != memory and not apart  # self.layers[i].b, self.layers[0].b
    local = not (one.startswith("self.") and other.startswith("self."))
    return local and "." in one and one.rpartition(".")[2] == other.rpartition(".")[2]


def gives_tensor(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is no list: it is what a layer gives, or one of several that is not always ``nn.Identity``."""
    if isinstance(node, cst.BinaryOperation):
        return gives_tensor(ctx, node.left) or gives_tensor(ctx, node.right)
    kind = ctx.kind(node.func) if isinstance(node, cst.Call) else None
    if not isinstance(kind, k.Module):
        return False
    several = {one.cls for one in kind.among or (kind,)}
    return bool(several & _LAYERS) and several <= _LAYERS | {"torch.nn.Identity"}


_LAYERS = frozenset(
    f"torch.nn.{name}{axes}"
    for name in ("Conv", "ConvTranspose", "BatchNorm", "InstanceNorm", "MaxPool", "AvgPool")
    for axes in ("1d", "2d", "3d")
) | frozenset(f"torch.nn.{name}" for name in ("Linear", "LayerNorm", "GroupNorm", "Embedding"))
"""Layers that raise for a list."""
