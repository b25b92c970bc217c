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
        return cls in _PASSING_LAYERS
    kind = ctx.kind(node.func)
    return _all_pass(ctx, kind) if isinstance(kind, k.Module) else True


def _all_pass(ctx: Context, sequential: k.Module) -> bool:
    children = [child for name, child in sequential.args if name.isdigit()]
    own = ctx.facts.classes.get(sequential.cls)
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
        from migrator.convert.memory import returns_argument

        return returns_argument(ctx, forward)
    cls = run_layer(ctx, kind).rpartition(".")[2]
    if cls == "Sequential" and k.in_place(kind) is False:
        return _all_pass(ctx, kind)
    return cls in _PASSING_LAYERS or k.in_place(kind) is not False
