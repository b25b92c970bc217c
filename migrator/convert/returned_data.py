"""Dataclasses of tensors that a forward pass returns: ``jax.jit`` hands out those that it knows as pytrees."""

from __future__ import annotations

import re

import libcst as cst

from migrator import syntax
from migrator.assignments import cases
from migrator.convert.context import Context
from migrator.infer import kinds as k
from migrator.infer.facts import ClassInfo
from migrator.source import dotted

_DATACLASS = ("dataclass", "dataclasses.dataclass")
_DATA = frozenset(
    "Tensor FloatTensor LongTensor BoolTensor Optional Union None List Tuple Dict list tuple dict torch typing".split()
)
"""All that the hint of a field may name: tensors, and lists, tuples and tables of them."""
_TENSORS = frozenset("Tensor FloatTensor LongTensor BoolTensor".split())


def is_returned_data(ctx: Context, info: ClassInfo) -> bool:
    """Whether a class is a dataclass of tensors alone that a function returns, and that no object keeps."""
    if info.torch_base is not None or info.settled is not None or info.node.keywords:
        return False
    if any(_name(base.value) != "object" for base in info.node.bases):
        return False
    if not any(_name(one.decorator) in _DATACLASS for one in info.node.decorators):
        return False
    if "__post_init__" in info.methods or "__init__" in info.methods or not _holds_tensors(info):
        return False
    kept = [kind for one in ctx.facts.classes.values() for kind in one.attributes.values()]
    for function in ctx.facts.functions.values():
        if function.short == "__init__":
            kept += [*function.params.values(), *function.sites.values()]
    if any(_mentions(kind, info.name) for kind in kept):
        return False
    tree, linked = ctx.source.index, ctx.facts.linked
    if linked is not None and info.node.name.value in linked.given_out(ctx.facts.module):
        return True
    returned = [f.returns for f in ctx.facts.functions.values() if f.owner is not info]
    returned += [  # of several kinds, which together are of none
        ctx.facts.kind(part)
        for one in tree.of_type(cst.Return)
        if one.value is not None and not tree.holds(info.node, one)
        for part in cases(one.value)
    ]
    return any(kind is not None and _mentions(kind, info.name) for kind in returned)


def registered(ctx: Context, decorators: list[cst.Decorator]) -> list[cst.Decorator]:
    """The decorators of such a class, with one that makes it a pytree."""
    ctx.helpers.use("jax")
    first = cst.Decorator(syntax.parse("jax.tree_util.register_dataclass"))
    return [first, *decorators]


def _name(node: cst.BaseExpression) -> str | None:
    return dotted(node.func if isinstance(node, cst.Call) else node)


def _holds_tensors(info: ClassInfo) -> bool:
    fields = [
        small
        for line in info.node.body.body
        if isinstance(line, cst.SimpleStatementLine)
        for small in line.body
        if isinstance(small, cst.AnnAssign)
    ]
    hints = [_words(small.annotation.annotation) for small in fields]
    asked = [small.value for small in fields if isinstance(small.value, cst.Call)]
    if any(a.keyword is not None and a.keyword.value == "init" for c in asked for a in c.args):
        return False
    return all(words <= _DATA for words in hints) and any(words & _TENSORS for words in hints)


def _words(node: cst.CSTNode) -> set[str]:
    """The names of a hint, also of one that is written as text."""
    return set(re.findall(r"\w+", syntax.code(node)))


def _mentions(kind: k.Kind, name: str) -> bool:
    """Whether a value may be, or hold, an instance of a class."""
    if isinstance(kind, k.Other):
        return kind.type == name
    if isinstance(kind, k.Optional):
        return _mentions(kind.inner, name)
    if isinstance(kind, k.Tuple):
        return any(_mentions(one, name) for one in kind.items)
    if isinstance(kind, k.Sequence):
        return _mentions(kind.item, name)
    return isinstance(kind, k.Mapping) and _mentions(kind.value, name)
