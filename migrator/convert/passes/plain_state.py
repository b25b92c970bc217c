"""State that a module keeps a second time: torch writes loaded weights and training steps into both.

``self.register_buffer("start", t)`` and then ``self.rows = [t]``: ``load_state_dict`` copies into the memory of the
buffer, which the list shows too. Arrays do not, so the list would keep what it was built with.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.containing import constructing, holds_parameter, holds_tensor, put_into
from migrator.convert.context import Context, Failure
from migrator.convert.kept import (
    MAKING,
    constructor,
    either_or,
    handed_on,
    is_loaded,
    registered,
    registers,
)
from migrator.convert.memory import Aliases, aliases
from migrator.convert.parts import shared
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.updates import written_names
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


@converts(cst.AnnAssign, cst.AugAssign)
@converts(cst.Assign, targets=(cst.Attribute, cst.Subscript))
@converts(cst.Expr, named=("append", "insert", "extend"), values=(cst.Call,))
def kept_twice(rw: Rewriter, node: cst.CSTNode) -> None:
    """What a constructor keeps that shows the memory of a parameter or buffer is a finding."""
    ctx = rw.ctx
    frame = ctx.frame
    if frame is None or frame.owner is None or frame.owner.torch_base is None:
        return
    kept = _kept(ctx, node)
    if kept is None or not ctx.statements:
        return
    if frame.info not in set(constructing(ctx, frame.owner)):
        return
    name, value = kept
    facts = aliases(ctx, frame.info)
    state = facts.before.get(ctx.statements[-1].node)
    if state is None:
        return
    memory = facts.memory(value, state) - {f"attr:{name}"}
    written = name.removeprefix("self.") in written_names(ctx)
    for theirs, where, other in _state(ctx, facts, frame.info, written):
        if where is node or not shared(memory, theirs) or _only_one(ctx, where, node):
            continue
        if not _unpacked(ctx, frame.info, value, where):
            raise Failure(
                node,
                "MUT001",
                f"`{name}` shares memory with `{other}`: in torch, loading a state_dict, training or writing to one changes both",
                "keep a copy (`.clone()`) if it is meant to stay, or read the parameter or buffer itself",
            )


def _only_one(ctx: Context, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether a constructor runs only one of two statements; in a loop it may run one now and the other then."""
    around = ctx.facts.tree.around
    loops = [n for n in around(one) if isinstance(n, (cst.For, cst.While)) and n in around(other)]
    return not loops and (either_or(ctx, one, other) or either_or(ctx, other, one))


def _unpacked(
    ctx: Context, info: FunctionInfo, value: cst.BaseExpression, where: cst.CSTNode
) -> bool:
    """Whether two values are taken apart from one, as in ``sin, cos = tables(n)``, and so seem to be one memory."""
    mine, theirs = set(syntax.names(value)), set(syntax.names(where))
    bound = [
        set(syntax.names(target.target))
        for node in ctx.facts.tree.within(info.node.body, cst.Assign)
        for target in node.targets
        if isinstance(target.target, (cst.Tuple, cst.List))
    ]
    return any(mine & names and theirs & names and not mine & theirs & names for names in bound)


def _kept(ctx: Context, node: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """The name and value of a tensor, or container of tensors, that ``self`` keeps as it is."""
    call = node.value if isinstance(node, cst.Expr) else None
    put = put_into(call if call is not None else node)
    if put is not None:
        holder, value = put
        if not isinstance(holder, cst.Attribute) or not ctx.is_self(holder.value):
            return None
        if not _is_plain_tensor(ctx, value):
            return None
        return syntax.code(holder), value
    if isinstance(node, cst.Assign) and len(node.targets) == 1:
        target, value = node.targets[0].target, node.value
    elif isinstance(node, cst.AnnAssign) and node.value is not None:
        target, value = node.target, node.value
    else:
        return None
    if not isinstance(target, cst.Attribute) or not ctx.is_self(target.value):
        return None
    if isinstance(value, cst.Call) and ctx.facts.callee(value) in MAKING:
        return None
    return (syntax.code(target), value) if _is_plain_tensor(ctx, value) else None


def _is_plain_tensor(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether a value is a tensor or holds some, of which none is a parameter, which stays one under each name."""
    kind = ctx.kind(value)
    if not isinstance(kind, k.Tensor) and holds_parameter(kind):
        return False
    return holds_tensor(kind) and not _is_state(ctx, value)


def _is_state(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether an expression is a parameter or buffer itself."""
    kind = ctx.kind(value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(value, cst.Name) and _names_parameter(ctx, value.value):
        return True
    whole = isinstance(value, (cst.Name, cst.Attribute)) and not _is_data(value)
    return whole and isinstance(kind, k.Tensor) and kind.role in ("param", "buffer")


def _names_parameter(ctx: Context, name: str) -> bool:
    """Whether a constructor gives a parameter that it makes this name."""
    for node in ctx.facts.tree.within(ctx.frames[-1].info.node.body, cst.Assign):
        if isinstance(node.value, cst.Call):
            names = {t.target.value for t in node.targets if isinstance(t.target, cst.Name)}
            if name in names and ctx.facts.callee(node.value) in MAKING:
                return True
    return False


def _is_data(value: cst.CSTNode) -> bool:
    return isinstance(value, cst.Attribute) and value.attr.value == "data"


def _state(
    ctx: Context, facts: Aliases, info: FunctionInfo, written: bool
) -> Iterator[tuple[frozenset[str], cst.CSTNode, str]]:
    """The memory of each parameter and buffer that a constructor makes or names, the statement, and its name."""
    for node in ctx.facts.tree.within(info.node.body, cst.Attribute):
        if not _is_data(node):
            kind = ctx.kind(node)
            if isinstance(kind, k.Tensor) and kind.role in ("param", "buffer"):
                yield frozenset({f"attr:{syntax.code(node)}"}), node, syntax.code(node)
    for statement in facts.before:
        for small in getattr(statement, "body", ()) if _is_line(statement) else (statement,):
            found = _made_state(ctx, small)
            if found is not None:
                name, value = found
                yield facts.memory(value, facts.before[statement]), small, name
            for name, value in _kept_by_another(ctx, small, written):
                yield facts.memory(value, facts.before[statement]), small, name


def _kept_by_another(
    ctx: Context, node: cst.CSTNode, written: bool
) -> Iterator[tuple[str, cst.BaseExpression]]:
    """What ``self.layer = Layer(t)`` keeps of ``t`` itself: as a parameter, as a buffer that is saved, or to write to it.

    Args:
      written: whether what ``self`` keeps of it may be written to in place.
    """
    for call in ctx.facts.tree.within(node, cst.Call):
        init = constructor(ctx, call)
        if init is None or registers(call) or not call.args:
            continue
        for item, attribute, how in handed_on(ctx, call, init):
            own = how != "plain" and is_loaded(ctx, attribute)
            if own or written or attribute in written_names(ctx):
                yield attribute, item.value


def _is_line(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine)


def _made_state(ctx: Context, node: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    call = node.value if isinstance(node, cst.Expr) else None
    if isinstance(call, cst.Call) and registers(call):
        value, name = registered(call, 1, "tensor", "param"), registered(call, 0, "name")
        return (syntax.code(name), value) if value is not None and name is not None else None
    if isinstance(node, cst.Assign) and isinstance(node.value, cst.Call):
        if ctx.facts.callee(node.value) in MAKING:
            return syntax.code(node.targets[0].target), node.value
    return None
