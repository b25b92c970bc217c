"""What a constructor puts into a container that begins empty: by append, under a key, by update, under another name."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import PUTTING, constructing, holds_tensor, put_into
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

_ONE = frozenset({"append", "insert", "setdefault", "__setitem__", "appendleft"})
_MANY = frozenset({"update", "extend"})


def filled(ctx: Context, owner: ClassInfo, name: str) -> k.Kind | None:
    """The kind of an entry with arrays that the constructor puts into the container ``self.name``.

    None where there is none, and for one of modules.
    """
    for method in constructing(ctx, owner):
        own = _aliases(ctx, method, name)
        for node in _putting(ctx, method):
            for kind in _entries(ctx, method, node, name, own):
                if not isinstance(kind, k.Module) and holds_tensor(kind):
                    return kind
            for value in _values(node, name, own):
                given = _given(ctx, method, value) if isinstance(value, cst.Name) else ()
                if any(makes_numpy(ctx, one) for one in (value, *given)):
                    return k.NUMPY
    return None


def _putting(ctx: Context, method: FunctionInfo) -> list[Any]:
    """What in a method may put something into some container: each attribute of a class is asked for."""
    if method not in ctx.putting:
        every = ctx.facts.tree.within(method.node.body, *PUTTING)
        ctx.putting[method] = [node for node in every if _may_put(node)]
    return ctx.putting[method]


def _may_put(node: Any) -> bool:
    if isinstance(node, cst.Assign):
        return isinstance(node.targets[0].target, (cst.Attribute, cst.Subscript))
    if isinstance(node, cst.Call):
        func = node.func
        return isinstance(func, cst.Attribute) and bool(node.args) and func.attr.value in _PUTTING
    return True


_PUTTING = _ONE | _MANY
_ARRAYS = frozenset(
    f"numpy.{name}"
    for name in (
        "array asarray zeros ones empty full arange linspace logspace eye identity zeros_like ones_like full_like "
        "concatenate stack vstack hstack tile repeat outer tril triu"
    ).split()
)
"""Functions of numpy that give an array, whatever they are given."""
_ELEMENTWISE = frozenset(
    f"numpy.{name}"
    for name in "exp log log2 log10 sqrt square abs sin cos tan tanh sign floor ceil clip where power".split()
)
_KEEPING = frozenset("astype reshape copy transpose ravel flatten".split())
"""Methods of an array that give one."""


def makes_numpy(ctx: Context, value: cst.CSTNode) -> bool:
    """Whether a value is or holds an array that numpy makes there, which Flax takes for data: not a number of numpy's."""
    if isinstance(value, cst.Call):
        called = ctx.facts.callee(value) or ""
        if called in ("builtins.dict", "builtins.list", "builtins.tuple"):
            return any(makes_numpy(ctx, item.value) for item in value.args)
        if called in _ELEMENTWISE:
            return any(makes_numpy(ctx, item.value) for item in value.args)
        if isinstance(value.func, cst.Attribute) and value.func.attr.value in _KEEPING:
            return makes_numpy(ctx, value.func.value)
        drawn = called.startswith("numpy.random.") and ctx.kind(value) == k.NUMPY
        return called in _ARRAYS or drawn
    if isinstance(value, cst.IfExp):
        return makes_numpy(ctx, value.body) or makes_numpy(ctx, value.orelse)
    if isinstance(value, cst.BinaryOperation):
        return makes_numpy(ctx, value.left) or makes_numpy(ctx, value.right)
    if isinstance(value, cst.UnaryOperation):
        return makes_numpy(ctx, value.expression)
    if isinstance(value, (cst.List, cst.Tuple, cst.Dict)):
        return any(makes_numpy(ctx, one.value) for one in value.elements)
    if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        return makes_numpy(ctx, value.elt)
    return isinstance(value, cst.DictComp) and makes_numpy(ctx, value.value)


def _values(node: cst.CSTNode, name: str, own: Collection[str]) -> Iterator[cst.BaseExpression]:
    """What a statement or a call puts into the container, as it is written."""
    found = put_into(node)
    if found is not None and _is_it(found[0], name, own):
        yield found[1]
    elif isinstance(node, cst.AugAssign) and _is_it(node.target, name, own):
        yield node.value
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if node.func.attr.value in _PUTTING and _is_it(node.func.value, name, own):
            yield from (item.value for item in node.args)


def _aliases(ctx: Context, method: FunctionInfo, name: str) -> frozenset[str]:
    """Local names of ``self.name``."""
    return frozenset(
        item.targets[0].target.value
        for item in ctx.facts.tree.within(method.node.body, cst.Assign)
        if isinstance(item.targets[0].target, cst.Name) and _is_it(item.value, name, frozenset())
    )


def _is_it(node: cst.CSTNode, name: str, own: Collection[str]) -> bool:
    """``self.name``, or a local name of it."""
    return syntax.is_own(node, name) or (isinstance(node, cst.Name) and node.value in own)


def _entries(
    ctx: Context, method: FunctionInfo, node: cst.CSTNode, name: str, own: Collection[str]
) -> Iterator[k.Kind]:
    """The kinds of what a statement or a call puts into it, also of what that was before."""
    found = put_into(node)
    if found is not None and _is_it(found[0], name, own):
        value = found[1]
        yield ctx.kind(value)
        yield from map(ctx.kind, _given(ctx, method, value))
        return
    if found is not None and isinstance(found[0], cst.Subscript):
        if _is_it(found[0].value, name, own):  # self.name[key][other] = value
            yield k.Sequence(ctx.kind(found[1]), "list")
        return
    if isinstance(node, cst.AugAssign) and _is_it(node.target, name, own):
        yield from _items(ctx.kind(node.value))
    elif isinstance(node, cst.Assign) and _is_it(node.targets[0].target, name, ()):
        yield from _items(ctx.kind(node.value))
    elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
        word = node.func.attr.value
        if word not in _PUTTING or not _is_it(node.func.value, name, own):
            return
        for item in node.args if word in _MANY else node.args[-1:]:
            kind = ctx.kind(item.value)
            if word in _ONE or item.keyword is not None:
                yield kind
            else:
                yield from _items(kind)


def _items(kind: k.Kind) -> Iterator[k.Kind]:
    """The kinds of what a dict, a list or a list of pairs holds."""
    if isinstance(kind, k.Mapping):
        yield kind.value
        yield from (one for _, one in kind.items)
    elif isinstance(kind, (k.Sequence, k.Tuple)):
        item = k.element(kind)
        if isinstance(item, k.Tuple) and len(item.items) == 2:
            yield item.items[1]
        yield item


def _given(
    ctx: Context, method: FunctionInfo, value: cst.BaseExpression
) -> Iterator[cst.BaseExpression]:
    """What a method assigns to the local names in an expression: one may be of this kind or that."""
    names = syntax.names(value)
    for node in ctx.facts.tree.within(method.node.body, cst.Assign):
        target = node.targets[0].target
        if isinstance(target, cst.Name) and target.value in names:
            yield node.value
