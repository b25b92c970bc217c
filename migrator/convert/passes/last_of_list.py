"""``feats.append(x)`` and then ``x = self.relu(x)`` in place: in torch the list shows what has become of ``x``.

The list of the output gets the new value, too; so does the entry of a dict.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by
from migrator.convert.alias import innermost, root_name
from migrator.convert.context import Context
from migrator.convert.memory import aliases
from migrator.convert.parts import NOT_KNOWN, OVERLAP, TWICE, is_new, shared
from migrator.convert.passes.mutation import in_place_function, in_place_name, surely_in_place
from migrator.convert.passes.mutation import written as written_by
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_ONCE = (cst.If, cst.Else, cst.IndentedBlock)
"""What may stand between the block that puts a tensor into a list and the write: it runs once at most."""
_READING = ("torch.", "builtins.len", "builtins.zip", "builtins.enumerate", "builtins.sum")
"""Functions that keep no list which they are handed, and put nothing into it."""


@converts(cst.AugAssign)
def added(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``x += y`` → ``x += y`` and ``feats[-1] = x``."""
    name = root_name(node.target, rw.ctx)
    return _with_items(rw, node, name, name)


@converts(cst.Assign)
def assigned(rw: Rewriter, node: cst.Assign) -> Any:
    """``x = self.relu(x)``, ``x[:, 0] = 0``."""
    target = node.targets[0].target if len(node.targets) == 1 else None
    if isinstance(target, cst.Subscript):
        name = root_name(target, rw.ctx)
        return _with_items(rw, node, name, name)
    if isinstance(target, cst.Name) and isinstance(node.value, cst.Call):
        return _with_items(rw, node, _written(rw, node.value), target)
    return None


@converts(cst.Expr)
def called(rw: Rewriter, node: cst.Expr) -> Any:
    """``x.relu_()``, ``F.relu(x, inplace=True)``."""
    name = _written(rw, node.value) if isinstance(node.value, cst.Call) else None
    return _with_items(rw, node, name, name)


def _written(rw: Rewriter, call: cst.Call) -> cst.Name | None:
    """The name of the tensor that a call surely writes to, and returns."""
    if in_place_name(rw, call) is not None:
        name = written_by(rw, call)
        return name if isinstance(name, cst.Name) else None
    first = call.args[0] if call.args else None
    if first is None or first.star or not isinstance(first.value, cst.Name):
        return None
    if in_place_function(rw, call) is not None:
        return first.value if surely_in_place(rw, call) else None
    kind = rw.ctx.kind(call.func)
    layer = isinstance(kind, k.Module) and not kind.among and len(call.args) == 1
    return first.value if layer and k.in_place(kind) is True and _is_plain(kind) else None


def _is_plain(kind: k.Kind) -> bool:
    """Whether a layer is an activation of torch's, which gives back what it was handed."""
    return isinstance(kind, k.Module) and kind.cls in _ACTIVATIONS


_ACTIVATIONS = frozenset(
    f"torch.nn.{name}"
    for name in "ReLU ReLU6 LeakyReLU ELU SELU CELU SiLU Mish Hardswish Hardsigmoid Hardtanh Threshold RReLU".split()
)


def _with_items(
    rw: Rewriter, node: cst.BaseSmallStatement, name: cst.Name | None, value: cst.Name | None
) -> Any:
    """What the other handlers make of a write, and the places that hold what was written."""
    ctx, key = rw.ctx, ("last_of_list", node)
    if name is None or value is None or key in ctx.asking or ctx.frame is None:
        return None
    if name.value not in _put_somewhere(ctx) or not isinstance(ctx.kind(name), k.Tensor):
        return None
    places = _holding(ctx, node, name)
    if not places:
        return None
    before, ctx.in_step = ctx.in_step, ctx.in_step | {_owner(one) for one in places}
    try:
        made = rw.visit_for(key)
    finally:
        ctx.in_step = before
    lines = made if isinstance(made, list) else [made]
    return [*lines, *(cst.Assign([cst.AssignTarget(one)], value) for one in places)]


def _owner(place: cst.Subscript) -> str:
    assert isinstance(place.value, cst.Name)
    return place.value.value


def _put_somewhere(ctx: Context) -> frozenset[str]:
    """The names whose tensors a function puts into a list or a dict."""
    info = innermost(ctx)
    if info not in ctx.put_somewhere:
        found = set()
        for one in ctx.facts.tree.within(info.node.body, cst.Expr, cst.Assign):
            for _, name in _puts(one):
                found.add(name)
        ctx.put_somewhere[info] = frozenset(found)
    return ctx.put_somewhere[info]


def _puts(node: cst.CSTNode) -> Iterator[tuple[cst.Subscript, str]]:
    """``feats[-1]`` and ``x`` of ``feats.append(x)``; ``out["a"]`` of ``out["a"] = x``."""
    match node:
        case cst.Expr(
            cst.Call(
                cst.Attribute(cst.Name() as holder, cst.Name("append")),
                [cst.Arg(cst.Name(name), keyword=None, star="")],
            )
        ):
            last = cst.UnaryOperation(cst.Minus(), cst.Integer("1"))
            yield cst.Subscript(holder, [cst.SubscriptElement(cst.Index(last))]), name
        case cst.Assign(
            [
                cst.AssignTarget(
                    cst.Subscript(
                        cst.Name(), [cst.SubscriptElement(cst.Index(cst.SimpleString()))]
                    ) as place
                )
            ],
            cst.Name(name),
        ):
            yield place, name


def _holding(ctx: Context, node: cst.CSTNode, name: cst.Name) -> list[cst.Subscript]:
    """The places that hold the very tensor of a name, which no other place of the same list does.

    The tensor is made in the same run of the lines above, and put there since.
    """
    tree, info = ctx.facts.tree, innermost(ctx)
    if not ctx.statements or not tree.has(node):
        return []
    around = [n for n in tree.around(node) if n is info.node or tree.holds(info.node, n)]
    inner: cst.CSTNode = ctx.statements[-1].node
    if inner not in around or len(getattr(inner, "body", ())) != 1:
        return []
    places: list[cst.Subscript] = []
    mentioned: set[str] = set()
    for above in reversed(around[: around.index(inner)]):
        if not isinstance(above, _ONCE):
            return []
        if isinstance(above, cst.IndentedBlock):
            lines = list(above.body)
            for line in reversed(lines[: next(i for i, n in enumerate(lines) if n is inner)]):
                put = [
                    one for small in _smalls(line) for one, of in _puts(small) if of == name.value
                ]
                if _binds(ctx, line, name.value):
                    own = all(_is_own(ctx, _owner(one)) for one in places)
                    return places if own and _is_fresh(ctx, line, name.value) else []
                if put and (len(_smalls(line)) > 1 or _owner(put[0]) in mentioned):
                    return []
                if any(_owner(one) in syntax.names(line) for one in places):
                    return []
                places += put
                mentioned.update(syntax.names(line))
        inner = above
    return []


def _smalls(line: cst.CSTNode) -> tuple[cst.CSTNode, ...]:
    return tuple(line.body) if isinstance(line, cst.SimpleStatementLine) else ()


def _binds(ctx: Context, line: cst.CSTNode, name: str) -> bool:
    """Whether a line gives a name another tensor; ``x += 1`` writes to the one it has."""
    found = ctx.facts.tree.within(line, *BINDING, cst.Global, cst.Nonlocal, cst.Del)
    return any(
        name in bound(bound_by(one)) if isinstance(one, BINDING) else name in syntax.names(one)
        for one in found
        if not isinstance(one, cst.AugAssign)
    )


def _is_fresh(ctx: Context, line: cst.CSTNode, name: str) -> bool:
    """Whether a line is ``x = …`` of a tensor that no other name and no list has."""
    small = _smalls(line)
    only = small[0] if len(small) == 1 else None
    if not isinstance(only, cst.Assign) or len(only.targets) != 1:
        return False
    target = only.targets[0].target
    facts = aliases(ctx, innermost(ctx))
    state = facts.before.get(line)
    if not isinstance(target, cst.Name) or target.value != name or state is None:
        return False
    memory = facts.memory(only.value, state)
    alone = not any(shared(memory, theirs) for theirs in state.values())
    return is_new(memory) and not memory & {NOT_KNOWN, OVERLAP, TWICE} and alone


def _is_own(ctx: Context, name: str) -> bool:
    """Whether a list or dict is made by the function, which does no more than fill, read and return it."""
    tree, info = ctx.facts.tree, innermost(ctx)
    made = [n for n in tree.within(info.node, *BINDING) if name in bound(bound_by(n))]
    assign = tree.around(made[0])[-1] if len(made) == 1 else None
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return False
    target, value = _of_place(assign, name)
    if not isinstance(value, (cst.List, cst.Dict)) or value.elements:
        return False
    return all(
        _is_harmless(ctx, one)
        for one in tree.within(info.node.body, cst.Name)
        if one.value == name and one is not target
    )


def _of_place(
    assign: cst.Assign, name: str
) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """The target that a name is, and what it gets: ``out`` and ``{}`` of ``feats, out = [], {}``."""
    target, value = assign.targets[0].target, assign.value
    if not isinstance(target, cst.Tuple):
        return target, value
    several = value.elements if isinstance(value, cst.Tuple) else ()
    for one, given in zip(target.elements, several, strict=False):
        if isinstance(one.value, cst.Name) and one.value.value == name:
            alike = len(several) == len(target.elements)
            plain = not any(isinstance(e, cst.StarredElement) for e in (*several, *target.elements))
            return one.value, given.value if alike and plain else None
    return target, None


def _is_harmless(ctx: Context, name: cst.Name) -> bool:
    """Whether a list is filled, read or returned where its name stands."""
    tree = ctx.facts.tree
    around = list(tree.around(name))
    if any(isinstance(n, (cst.Lambda, cst.BaseComp)) for n in around):
        return False
    inside = [n for n in around if isinstance(n, cst.FunctionDef)]
    if not inside or inside[-1] is not innermost(ctx).node:
        return False
    above = around.pop()
    while isinstance(above, (cst.Element, cst.Tuple)):
        above = around.pop()
    match above:
        case cst.Return() | cst.For():
            return True
        case cst.Attribute(value=holder, attr=cst.Name("append")):
            return holder is name and isinstance(around[-1], cst.Call)
        case cst.Subscript(value=holder):
            return holder is name
        case cst.Arg():
            call = around[-1]
            called = ctx.facts.callee(call) if isinstance(call, cst.Call) else None
            return (called or "").startswith(_READING)
    return False
