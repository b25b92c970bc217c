"""What is kept that shows the memory of parameters: ``{n: p.data for n, p in model.named_parameters()}``.

In torch it changes with them, at the next step of an optimizer say; the port keeps the values of that moment.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import innermost, is_variable, root_name
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.sharing import STORING, VIEWS, is_view_index
from migrator.infer import kinds as k

_COMPREHENSIONS = (cst.ListComp, cst.DictComp, cst.SetComp, cst.GeneratorExp)
_MAKING = frozenset(
    "builtins.list builtins.dict builtins.tuple builtins.sorted collections.OrderedDict".split()
)
_BARE = frozenset({"data", "detach"})
_WRITING = frozenset({"step", "load_state_dict", "reset_parameters", "apply"})
"""Methods of optimizers and modules that write to parameters."""


@converts(cst.Assign, targets=(cst.Name,), values=(cst.Attribute,))
def unread(rw: Rewriter, node: cst.Assign) -> Any:
    """``w = up.weight.data`` goes where nothing reads it: what is written is the parameter."""
    ctx, target, value = rw.ctx, node.targets[0].target, node.value
    if ctx.frame is None or len(node.targets) != 1 or not isinstance(target, cst.Name):
        return None
    if not isinstance(value, cst.Attribute) or value.attr.value != "data":
        return None
    if not isinstance(value.value, cst.Attribute) or not value.value.attr.value.startswith(
        ("weight", "bias")
    ):
        return None
    named = syntax.names(ctx.frame.info.node.body).get(target.value, 0)
    return [] if named == 1 else None


@converts(
    cst.Assign,
    cst.AnnAssign,
    cst.Return,
    cst.Call,
    when=lambda ctx: not _BARE.isdisjoint(ctx.words),
)
def kept(rw: Rewriter, node: cst.CSTNode) -> None:
    """Raise a Failure for what outlives a later write to the parameters it shows."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.statements:
        return
    for holder, value in _kept(ctx, node):
        shown = _shown(ctx, value) or _whole_data(ctx, node)
        if shown is None:
            continue
        if isinstance(holder, cst.Name):
            lasts = _is_read_after_write(ctx, holder.value)
        else:
            lasts = not (_is_itself(node, shown) or _is_replaced(ctx, node, shown))
        if lasts:
            text = " ".join(syntax.code(shown).split())[:40]
            raise Failure(
                node,
                "MUT001",
                f"what is kept of `{text}` changes in torch whenever the parameter is written in place",
                "keep a copy (`.clone()`), or the parameter itself",
            )


def _kept(
    ctx: Context, node: cst.CSTNode
) -> Iterator[tuple[cst.BaseExpression | None, cst.BaseExpression]]:
    """What holds a value from now on, None for who calls the function; and the value."""
    if isinstance(node, cst.Assign):
        for one in node.targets:
            if not _copies(ctx, one.target):
                yield _holder(one.target), node.value
    elif isinstance(node, cst.AnnAssign) and node.value is not None:
        yield _holder(node.target), node.value
    elif isinstance(node, cst.Return) and node.value is not None:
        if _comprehension(ctx, node.value) is not None:  # of one tensor a property may give a view
            yield None, node.value
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value in STORING:
            if not isinstance(ctx.kind(node.func.value), (k.Tensor, k.Module)):
                for item in node.args:
                    yield _holder(node.func.value), item.value


def _copies(ctx: Context, target: cst.BaseExpression) -> bool:
    """``w[0] = p.data[1]``: a tensor takes numbers, and keeps nothing."""
    return isinstance(target, cst.Subscript) and isinstance(ctx.kind(target.value), k.Tensor)


def _holder(target: cst.BaseExpression) -> cst.BaseExpression | None:
    while isinstance(target, cst.Subscript):
        target = target.value
    return target


def _comprehension(ctx: Context, node: cst.CSTNode) -> cst.CSTNode | None:
    """The comprehension that a container is made of."""
    if isinstance(node, cst.Call) and ctx.facts.callee(node) in _MAKING and len(node.args) == 1:
        node = node.args[0].value
    return node if isinstance(node, _COMPREHENSIONS) else None


def _shown(ctx: Context, value: cst.CSTNode) -> cst.BaseExpression | None:
    """The view of a parameter in a value that is kept: the value itself, or an element of what it makes."""
    made = _comprehension(ctx, value)
    if isinstance(made, cst.DictComp):
        return _view(ctx, made.value)
    if isinstance(made, (cst.ListComp, cst.SetComp, cst.GeneratorExp)):
        parts = made.elt.elements if isinstance(made.elt, cst.Tuple) else ()
        found = (_view(ctx, one) for one in [made.elt, *(part.value for part in parts)])
        return next((one for one in found if one is not None), None)
    if isinstance(value, (cst.Dict, cst.List, cst.Tuple)):
        views = (_view(ctx, one.value) for one in value.elements)
        return next((one for one in views if one is not None), None)
    return _view(ctx, value)


def _view(ctx: Context, node: cst.CSTNode) -> cst.BaseExpression | None:
    """``p.data``, ``p.detach().view(-1)`` of a parameter or buffer: its memory under no gradient."""
    whole, bare = node, False
    while True:
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            name = ctx.facts.callee(node) or ""
            if not name.startswith("Tensor.") or name.rpartition(".")[2] not in VIEWS:
                return None
            bare = bare or node.func.attr.value in _BARE
            node = node.func.value
        elif isinstance(node, cst.Subscript) and is_view_index(ctx, node):
            node = node.value
        elif (
            isinstance(node, cst.Attribute)
            and node.attr.value in VIEWS
            and not isinstance(ctx.kind(node.value), k.Module)
        ):
            bare = bare or node.attr.value in _BARE
            node = node.value
        else:
            break
    variable = isinstance(node, (cst.Name, cst.Attribute)) and is_variable(ctx.kind(node))
    return whole if variable and bare and isinstance(whole, cst.BaseExpression) else None


def _whole_data(ctx: Context, node: cst.CSTNode) -> cst.BaseExpression | None:
    """``other`` of ``self.mean.data = self.other``: from now on the two share memory."""
    if not isinstance(node, cst.Assign) or not is_variable(ctx.kind(node.value)):
        return None
    datas = [t.target for t in node.targets if isinstance(t.target, cst.Attribute)]
    given = any(t.attr.value == "data" and is_variable(ctx.kind(t.value)) for t in datas)
    return node.value if given and isinstance(node.value, (cst.Name, cst.Attribute)) else None


def _is_itself(node: cst.CSTNode, shown: cst.BaseExpression) -> bool:
    """``self.weight.data = self.weight.data.t()``, ``self.hidden = self.hidden.detach()``: its own memory again."""
    if not isinstance(node, cst.Assign) or len(node.targets) != 1:
        return False
    target = syntax.code(node.targets[0].target)
    return syntax.code(shown).startswith(f"{target}.")


def _is_replaced(ctx: Context, node: cst.CSTNode, shown: cst.BaseExpression) -> bool:
    """Whether the parameter gets other memory next: ``backup[n] = p.data; p.data = shadow[n]``."""
    name = root_name(shown)
    block = next(
        (n for n in reversed(ctx.facts.tree.around(node)) if isinstance(n, cst.IndentedBlock)), None
    )
    later = False
    for statement in block.body if block is not None and name is not None else ():
        below = ctx.facts.tree.below(statement)
        if later and any(
            isinstance(n, cst.AssignTarget)
            and isinstance(n.target, cst.Attribute)
            and n.target.attr.value == "data"
            and isinstance(n.target.value, cst.Name)
            and name is not None
            and n.target.value.value == name.value
            for n in below
        ):
            return True
        later = later or node in below
    return False


def _is_read_after_write(ctx: Context, name: str) -> bool:
    """Whether a name is read once something that comes after this statement may have written to parameters."""
    facts, now = aliases(ctx, innermost(ctx)), ctx.statements[-1].node
    began = False
    for statement, _, loops in facts.order:
        again = bool(loops) and any(loop in ctx.facts.tree.around(now) for loop in loops)
        if (began or again) and statement is not now and _writes(ctx, statement):
            if name in facts.read_after(statement):
                return True
        began = began or statement is now
    return False


def _writes(ctx: Context, statement: cst.CSTNode) -> bool:
    if isinstance(statement, (cst.If, cst.For, cst.While, cst.With, cst.Try)):
        return False  # what stands in it is asked by itself
    for node in ctx.facts.tree.within(statement, cst.AugAssign, cst.Call):
        if isinstance(node, cst.AugAssign):
            if is_variable(ctx.kind(node.target)):
                return True
            continue
        name = ctx.facts.callee(node) or ""
        short = node.func.attr.value if isinstance(node.func, cst.Attribute) else ""
        if name.startswith("torch.nn.init.") or short in _WRITING:
            return True
        if short.endswith("_") and not short.endswith("__") and short != "requires_grad_":
            return True
    return False
