"""Which calls of libraries and layers give memory of what they are handed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.sharing import VIEWS, inplace_argument, operands, run_layer
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.source import dotted

_PASSING_LAYERS = frozenset(
    "Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout "
    "Sequential".split()
)


def makes_new(ctx: Context, node: cst.Call, name: str) -> bool:
    """Whether what a function or layer of LIBRARIES makes shares no memory with what it is handed."""
    short = name.rpartition(".")[2]
    if name.endswith("()"):
        may_pass = _may_pass(ctx, node, short.removesuffix("()"))
        return not may_pass and k.in_place(ctx.kind(node.func)) is False
    if short == "einsum" and operands(node) > 1:
        return True  # a product; of one operand it may be a view
    in_place = short.endswith("_") and not short.endswith("__")
    return not (in_place or short in VIEWS or inplace_argument(name, node) is not None)


def _may_pass(ctx: Context, node: cst.Call, cls: str) -> bool:
    """Whether a layer may return memory of its input: a Sequential does only if all of its children may."""
    if cls != "Sequential":
        kept = isinstance(node.func, cst.Attribute) and node.func.attr.value
        return cls in _PASSING_LAYERS or (bool(kept) and is_replaced(ctx, {str(kept)}))
    kind = ctx.kind(node.func)
    return _all_pass(ctx, kind) if isinstance(kind, k.Module) else True


def _all_pass(ctx: Context, sequential: k.Module) -> bool:
    names = {name for name, child in sequential.args if isinstance(child, k.Kind)}
    children = [child for name, child in sequential.args if name.isdigit()]
    own = ctx.facts.classes.get(sequential.cls)
    if own is not None or not children:
        names |= {""}
    if is_replaced(ctx, names):
        return True
    if _takes_layers(ctx):  # what is left may be one of them alone
        return any(passes(ctx, child) for child in children or [sequential.item])
    added = [] if own is None else list(_added(ctx, own))
    if children or not _is_of_several(sequential.item):
        children = children or [sequential.item]
    else:  # a list that was filled: what is known of it is which classes it holds
        children = list(sequential.item.among)
        if not children:
            return False
    return all(passes(ctx, child) for child in [*children, *added])


def _is_of_several(kind: object) -> TypeGuard[k.Module]:
    return isinstance(kind, k.Module) and kind.cls == "torch.nn.Module"


_NUMBERED, _ANY = "#", ""


def is_replaced(ctx: Context, names: set[str]) -> bool:
    """Whether the file may put a layer that returns its input in the place of a child of one of these names.

    ``seq[0] = nn.Identity()``, ``setattr(net, name, nn.Identity())``; "" is a name that is not known.
    """
    if ctx.replaced is None:
        ctx.replaced = (
            frozenset()
        )  # what takes a place may be a Sequential, which is asked the same
        ctx.replaced = frozenset(_replaced(ctx))
    asked = names | {_NUMBERED for name in names if name.isdigit()}
    return _ANY in ctx.replaced or bool(ctx.replaced and (_ANY in names or asked & ctx.replaced))


def _replaced(ctx: Context) -> Iterator[str]:
    tree = ctx.facts.tree
    for node in tree.of_type(cst.Assign):
        for one in node.targets:
            target = one.target
            if isinstance(target, cst.Subscript) and _may_be_module(ctx, target.value):
                if _surely_passes(ctx, node.value):
                    yield _NUMBERED
    for call in tree.of_type(cst.Call) if "setattr" in ctx.words else ():
        if dotted(call.func) != "setattr" or len(call.args) != 3:
            continue
        owner, name, value = (one.value for one in call.args)
        if _may_be_module(ctx, owner) and _surely_passes(ctx, value):
            text = name.evaluated_value if isinstance(name, cst.SimpleString) else _ANY
            yield str(text)


def _surely_passes(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a layer of torch that may return its input, be it one of several.

    One of the file's own is not asked: what its forward pass returns may be what is being found out.
    """
    kind = ctx.kind(node)
    if not isinstance(kind, k.Module):
        return False
    every = kind.among if _is_of_several(kind) else (kind,)
    return any(passes(ctx, one) for one in every if one.cls not in ctx.facts.classes)


def _takes_layers(ctx: Context) -> bool:
    """Whether the file takes layers out of a container, so that those behind them have other numbers."""
    if ctx.takes_layers is None:
        ctx.takes_layers = any(isinstance(ctx.kind(one), k.Module) for one in _taken_from(ctx))
    return ctx.takes_layers


def _taken_from(ctx: Context) -> Iterator[cst.CSTNode]:
    for node in ctx.facts.tree.of_type(cst.Del):
        several = node.target.elements if isinstance(node.target, cst.Tuple) else ()
        for one in [node.target, *(element.value for element in several)]:
            if isinstance(one, cst.Subscript):
                yield one.value
    for call in ctx.facts.tree.of_type(cst.Call) if "pop" in ctx.words else ():
        if isinstance(call.func, cst.Attribute) and call.func.attr.value == "pop":
            owner = call.func.value
            if isinstance(owner, cst.Attribute) and owner.attr.value == "_modules":
                owner = owner.value
            yield owner


def _added(ctx: Context, own: ClassInfo) -> Iterator[k.Kind]:
    """What the constructor of a class derived from Sequential adds in any case, and nothing takes out again."""
    init = own.method("__init__")
    if init is None or init.settled is not None:
        return
    for line in init.node.body.body:
        if not isinstance(line, cst.SimpleStatementLine):
            if ctx.facts.tree.within(line, cst.Return):
                return
            continue
        for small in line.body:
            child = _child(small)
            kind = ctx.kind(child[1]) if child is not None else None
            if child is None or not isinstance(kind, k.Module):
                continue
            name, later = child[0], own.attribute(child[0])
            if not _is_deleted(ctx, name) and (later is None or isinstance(later, k.Module)):
                yield later or kind


def _child(small: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """The name of a child and the child: ``self.add_module("c", conv)``, ``self.append(conv)``, ``self.c = conv``."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
        if isinstance(target, cst.Attribute) and dotted(target.value) == "self":
            return target.attr.value, small.value
        return None
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or any(a.keyword or a.star for a in call.args):
        return None
    given = [argument.value for argument in call.args]
    if dotted(call.func) == "self.append" and len(given) == 1:
        return "", given[0]
    named = dotted(call.func) in ("self.add_module", "self.register_module") and len(given) == 2
    if not named or not isinstance(given[0], cst.SimpleString):
        return None
    return str(given[0].evaluated_value), given[1]


def _is_deleted(ctx: Context, name: str) -> bool:
    """Whether the file may take a child out of some Sequential: ``del seq.bn``, ``seq.pop(0)``, ``delattr(m, n)``."""
    for one in ctx.facts.tree.of_type(cst.Del):
        if not isinstance(one.target, cst.Attribute):
            if not isinstance(one.target, cst.Subscript) or _may_be_module(ctx, one.target.value):
                return True
        elif not name or one.target.attr.value == name:
            return True
    return any(_takes_out(ctx, call, name) for call in ctx.facts.tree.of_type(cst.Call))


def _takes_out(ctx: Context, call: cst.Call, name: str) -> bool:
    if isinstance(call.func, cst.Name) and call.func.value == "delattr" and len(call.args) == 2:
        word = call.args[1].value
        return not isinstance(word, cst.SimpleString) or word.evaluated_value == name
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in ("pop", "clear"):
        return False
    owner = call.func.value
    if isinstance(owner, cst.Attribute) and owner.attr.value == "_modules":
        return True
    text = bool(call.args) and isinstance(call.args[0].value, cst.SimpleString)
    return call.func.attr.value == "pop" and not text and _may_be_module(ctx, owner)


def _may_be_module(ctx: Context, node: cst.CSTNode) -> bool:
    return isinstance(ctx.kind(node), (k.Module, k.Unknown, k.Optional))


def passes(ctx: Context, kind: object) -> bool:
    """Whether a layer of a Sequential may return memory of its input."""
    if not isinstance(kind, k.Module):
        return True
    if _is_of_several(kind):  # of one of them, or of any
        return any(passes(ctx, one) for one in kind.among or (None,))
    own = ctx.facts.classes.get(kind.cls)
    if own is not None and (forward := own.method("forward")) is not None:
        from migrator.convert.returned import returns_argument

        return returns_argument(ctx, forward)
    cls = run_layer(ctx, kind).rpartition(".")[2]
    if cls == "Sequential" and k.in_place(kind) is False:
        return _all_pass(ctx, kind)
    return cls in _PASSING_LAYERS or k.in_place(kind) is not False
