"""Local lists and dicts of a module's parameters: ``dict(m.named_parameters())``, ``[p for p in m.parameters()]``.

They hold the Variables, as a write to an entry is one to the module's own parameter.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax, views
from migrator.convert.becoming import becomes_attribute
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

WALKS = frozenset("parameters named_parameters buffers named_buffers".split())
_COLLECTING = frozenset(f"builtins.{name}" for name in "list dict tuple".split())
_READING = frozenset("items keys values get".split())
_ASKING = frozenset(f"builtins.{name}" for name in "len zip enumerate sorted reversed".split())


def _asked(ctx: Context) -> bool:
    return not WALKS.isdisjoint(ctx.words)


@converts(cst.ListComp, cst.DictComp, when=_asked)
def comprehension(rw: Rewriter, node: cst.ListComp | cst.DictComp) -> Any:
    """``{n: p for n, p in m.named_parameters()}``: of the Variables where all its readers take them for such."""
    _check_copied(rw.ctx, node)
    name = _given_to(rw.ctx, node)
    if name is None or not holds_variables(rw.ctx, name):
        return None
    with rw.ctx.no_hoisting():
        made: Any = rw.rebuild(node)
    if isinstance(node, cst.ListComp):
        return syntax.changed(made, elt=node.elt)
    return syntax.changed(made, value=node.value)


@converts(cst.Subscript, when=_asked)
def entry(rw: Rewriter, node: cst.Subscript) -> Any:
    """``params[name]`` → ``params[name][...]``."""
    if not is_entry(rw.ctx, node):
        return None
    if _is_kept(rw.ctx, node) and _writes(rw.ctx):
        raise _shown(node)
    if becomes_attribute(rw.ctx, node):
        return rw.rebuild(node)
    return targets.dereferenced(rw.rebuild(node))


@converts(cst.AugAssign, when=_asked)
def augmented(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``params[name] += step``."""
    target = views.undressed(node.target)
    if not isinstance(target, cst.Subscript) or not targets.is_variable(rw.ctx, target):
        return None
    if not isinstance(target.value, cst.Name):
        return None
    check_entry(rw.ctx, target)
    from migrator.convert.passes.past_gradients import augmented_past

    read = targets.dereferenced(rw.rebuild(target))
    return augmented_past(rw, node, target, read, target is not node.target)


def _check_copied(ctx: Context, node: cst.ListComp | cst.DictComp) -> None:
    """Raise a Failure for ``{k: v for k, v in params.items()}`` beside writes to the parameters: torch keeps them."""
    value = views.undressed(node.elt if isinstance(node, cst.ListComp) else node.value)
    if isinstance(value, cst.Subscript):
        return  # an entry, which is looked at itself
    roots = ctx.facts.tree.within(node.for_in.iter, cst.Name)
    named = isinstance(value, cst.Name) and value.value in syntax.names(node.for_in.target)
    if named and any(holds_variables(ctx, one) for one in roots) and _writes(ctx):
        raise _shown(node)


def _shown(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "MUT001",
        "a parameter out of a list has another name here, and parameters are written in place",
        "keep a copy (`.clone()`), or write to the parameter by one name",
    )


def _is_kept(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an entry, or its ``data``, is given a name, is put into something or is returned."""
    tree = ctx.facts.tree
    while True:
        parent = tree.parent(node)
        if isinstance(parent, cst.Attribute) and parent.attr.value in ("data", "detach"):
            node = parent
        elif isinstance(parent, cst.Call) and parent.func is node:
            node = parent  # x.detach()
        elif isinstance(parent, (cst.Element, cst.Tuple, cst.List, cst.DictElement, cst.Dict)):
            node = parent
        elif isinstance(parent, (cst.Assign, cst.AnnAssign)):
            return parent.value is node
        else:
            return isinstance(parent, (cst.Return, cst.ListComp, cst.DictComp))


def _writes(ctx: Context) -> bool:
    """Whether a function writes to parameters in place: ``p.data.mul_(2)``, ``params[k] += 1``, ``nn.init.ones_(p)``."""
    tree = ctx.facts.tree
    body = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
    for call in tree.within(body, cst.Call):
        word = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        if (ctx.facts.callee(call) or "").startswith("torch.nn.init."):
            return True
        if word.endswith("_") and not word.endswith("__") and word != "requires_grad_":
            assert isinstance(call.func, cst.Attribute)
            if isinstance(ctx.kind(call.func.value), (k.Tensor, k.Unknown)):
                return True
    for item in tree.within(body, cst.AugAssign, cst.AssignTarget):
        target = item.target
        if isinstance(target, cst.Attribute) and target.attr.value == "data":
            return True
        if isinstance(views.undressed(target), cst.Subscript) and isinstance(item, cst.AugAssign):
            return True
    return False


def is_entry(ctx: Context, node: cst.Subscript) -> bool:
    """Whether a subscript takes one parameter out of a local list or dict of a module's."""
    if not isinstance(node.value, cst.Name) or isinstance(node.slice[0].slice, cst.Slice):
        return False
    return targets.is_variable(ctx, node) and holds_variables(ctx, node.value)


def check_entry(ctx: Context, node: cst.Subscript) -> None:
    """Raise a Failure where an entry is written of what does not hold the Variables in the port."""
    if isinstance(node.value, cst.Name) and not holds_variables(ctx, node.value):
        if isinstance(given(ctx, node.value), (cst.ListComp, cst.DictComp)):
            raise _values_only(node)


def check_walked(ctx: Context, loop: cst.For) -> None:
    """Raise a Failure where a loop writes to what it finds in a list of the values of parameters."""
    for name in ctx.facts.tree.within(loop.iter, cst.Name):
        made = given(ctx, name)
        if isinstance(made, (cst.ListComp, cst.DictComp)) and _walks(ctx, made):
            if not holds_variables(ctx, name):
                raise _values_only(loop.iter)


def _values_only(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "MUT001",
        "a parameter is written as an element of a list",
        "write to each parameter by its own name",
    )


def is_collected(ctx: Context, node: cst.Name | cst.Call) -> bool:
    """Whether this is a list or dict of a module's parameters or a local name of one, by Variable or by value."""
    value = given(ctx, node) if isinstance(node, cst.Name) else node
    return value is not None and (
        _collects(ctx, value) if isinstance(value, cst.Call) else _walks(ctx, value)
    )


def holds_variables(ctx: Context, name: cst.Name) -> bool:
    """Whether a local name stands for a list or dict of a module's parameters, and is only read as such."""
    value = given(ctx, name)
    if value is None or ctx.frame is None:
        return False
    if isinstance(value, cst.Call):
        return _collects(ctx, value)
    if not _walks(ctx, value):
        return False
    names = ctx.facts.tree.within(ctx.frame.info.node.body, cst.Name)
    return all(_is_reader(ctx, one) for one in names if one.value == name.value)


def given(ctx: Context, name: cst.Name) -> cst.BaseExpression | None:
    """What a local name is given, if it is given one value only."""
    if ctx.frame is None:
        return None
    body, found = ctx.frame.info.node.body, list[cst.BaseExpression]()
    for item in ctx.facts.tree.within(body, cst.AssignTarget, cst.AnnAssign):
        if isinstance(item.target, cst.Name) and item.target.value == name.value:
            parent = item if isinstance(item, cst.AnnAssign) else ctx.facts.tree.parent(item)
            if parent.value is not None:
                found.append(parent.value)
    return found[0] if len(found) == 1 else None


def _given_to(ctx: Context, node: cst.BaseExpression) -> cst.Name | None:
    parent = ctx.facts.tree.parent(node) if ctx.facts.tree.has(node) else None
    if isinstance(parent, cst.AnnAssign):
        target = parent.target
    elif isinstance(parent, cst.Assign) and len(parent.targets) == 1:
        target = parent.targets[0].target
    else:
        return None
    return target if isinstance(target, cst.Name) else None


def _collects(ctx: Context, value: cst.Call) -> bool:
    """``dict(m.named_parameters())``, ``list(filter(f, m.parameters()))``."""
    if ctx.facts.callee(value) not in _COLLECTING or len(value.args) != 1:
        return False
    inner = value.args[0].value
    if isinstance(inner, cst.Call) and ctx.facts.callee(inner) == "builtins.filter":
        inner = inner.args[-1].value
    return is_walk(ctx, inner)


def is_walk(ctx: Context, node: cst.CSTNode) -> bool:
    """``m.parameters()``, ``m.named_buffers()``."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return False
    item = k.element(ctx.kind(node))
    item = item.items[-1] if isinstance(item, k.Tuple) and item.items else item
    return node.func.attr.value in WALKS and getattr(item, "role", "") == "param"


def _walks(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a comprehension takes the parameters as they come."""
    if not isinstance(node, (cst.ListComp, cst.DictComp)):
        return False
    element = node.elt if isinstance(node, cst.ListComp) else node.value
    loop = node.for_in
    if not isinstance(element, cst.Name) or loop.inner_for_in is not None:
        return False
    target: cst.BaseExpression = loop.target
    if isinstance(target, cst.Tuple):
        target = target.elements[-1].value
    named = isinstance(target, cst.Name) and target.value == element.value
    return named and is_walk(ctx, loop.iter)


def _is_reader(ctx: Context, name: cst.Name) -> bool:
    """``params[i]``, ``params.items()``, ``for p in params``, ``zip(params, others)``, ``name in params``."""
    parent = ctx.facts.tree.parent(name)
    if isinstance(parent, (cst.AssignTarget, cst.AnnAssign, cst.NameItem)):
        return True
    if isinstance(parent, cst.Attribute):
        return parent.attr is name or parent.attr.value in _READING - {"get"}
    if isinstance(parent, cst.Subscript):
        return parent.value is name and not isinstance(parent.slice[0].slice, cst.Slice)
    if isinstance(parent, cst.Arg):
        return parent.keyword is name or ctx.facts.callee(ctx.facts.tree.parent(parent)) in _ASKING
    if isinstance(parent, (cst.For, cst.CompFor)):
        return True
    return isinstance(parent, cst.ComparisonTarget) and isinstance(
        parent.operator, (cst.In, cst.NotIn)
    )
