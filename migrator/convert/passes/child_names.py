"""Names of children that a Sequential of named layers has for itself in the output."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.children import REGISTERING
from migrator.convert.context import Context, Failure
from migrator.convert.passes.applying import is_apply
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

OWN = frozenset({"layers", "names"})
"""Attributes of ``rules.compat.containers.NamedSequential``."""


def _may_clash(ctx: Context) -> bool:
    return "Sequential" in ctx.source.text and any(name in ctx.source.text for name in OWN)


@converts(cst.Assign, when=_may_clash)
def child_by_assignment(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.layers = nn.Sequential()`` in a class derived from Sequential: a child that is called so."""
    owner = rw.ctx.owner
    if owner is None or owner.torch_base != "torch.nn.Sequential":
        return None
    for one in node.targets:
        target = one.target
        if not isinstance(target, cst.Attribute) or not rw.ctx.is_self(target.value):
            continue
        if target.attr.value in OWN and isinstance(rw.ctx.kind(node.value), (k.Module, k.Unknown)):
            raise _clash(node, target.attr.value)
    return None


@converts(cst.Expr, when=_may_clash)
def added_by_name(rw: Rewriter, node: cst.Expr) -> Any:
    """``net.add_module("layers", …)``, a statement of its own."""
    return child_by_name(rw, node.value) if isinstance(node.value, cst.Call) else None


@converts(cst.Call, when=_may_clash)
def child_by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``nn.Sequential(OrderedDict(layers=…))``, ``net.add_module("layers", …)``."""
    from migrator.convert.passes.containers import is_sequential  # which is asked after this

    if rw.ctx.facts.callee(node) == "torch.nn.Sequential":
        given = node.args[0].value if len(node.args) == 1 else None
        names = _keys(given) if given is not None else []
    elif isinstance(node.func, cst.Attribute) and node.func.attr.value in REGISTERING:
        sequential = bool(node.args) and is_sequential(rw, node.func.value)
        names = [_text(node.args[0].value)] if sequential else []
    else:
        return None
    for name in names:
        if name in OWN:
            raise _clash(node, name)
    return None


_OF_MODULES = (*REGISTERING, "apply")
"""Methods that every module of torch has, and none of Flax."""


@converts(cst.Call, named=_OF_MODULES)
def of_plain(rw: Rewriter, node: cst.Call) -> None:
    """``self.add_module(name, layer)`` in a plain class, which has that from the modules that derive from it.

    Raises:
      Failure: the class has no such method, and Flax's modules have none.
    """
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _OF_MODULES:
        return
    kind = rw.ctx.kind(func.value)
    info = rw.ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    if info is None or info.method(func.attr.value) is not None or _has_others(info):
        return
    if is_apply(rw.ctx, node) and not any(
        "apply" in c.methods for c in rw.ctx.facts.classes.values()
    ):
        return  # a loop over the modules of what derives from it
    if all(func.attr.value not in one.attributes for one in info.lineage()):
        what = f"{func.attr.value}() of what is not known to be a module here"
        raise Failure(node, "API005", what, "derive the class from nn.Module")


def _has_others(info: ClassInfo) -> bool:
    """Whether a class derives from one that is not the project's: a table of data has an ``apply`` too."""
    own = {one.name for one in info.lineage()} | {"builtins.object"}
    bases = [base for one in info.lineage() for base in one.bases]
    return any(not isinstance(base, k.Class) or base.name not in own for base in bases)


@converts(cst.Call, named=("get_submodule",))
def at_path(rw: Rewriter, node: cst.Call) -> Any:
    """``net.get_submodule("encoder.0")``."""
    func = node.func
    if not isinstance(func, cst.Attribute) or func.attr.value != "get_submodule":
        return None
    plain = len(node.args) == 1 and not node.args[0].star
    if not plain or not isinstance(rw.ctx.kind(func.value), (k.Module, k.Unknown)):
        return None
    helper = rw.ctx.helpers.need(module_file("rules.compat.numbered"), "submodule")
    args = [cst.Arg(rw.visit(func.value)), cst.Arg(rw.visit(node.args[0].value))]
    return syntax.with_args(cst.Call(cst.Name(helper)), args)


def _keys(node: cst.BaseExpression) -> list[str]:
    """The names in ``OrderedDict([("a", …)])``, ``OrderedDict(a=…)`` and ``{"a": …}``."""
    if isinstance(node, cst.Call):
        named = [a.keyword.value for a in node.args if a.keyword is not None]
        return named + [n for a in node.args if a.keyword is None for n in _keys(a.value)]
    if isinstance(node, cst.Dict):
        return [_text(e.key) for e in node.elements if isinstance(e, cst.DictElement)]
    if isinstance(node, (cst.List, cst.Tuple)):
        pairs = [e.value for e in node.elements if isinstance(e.value, (cst.List, cst.Tuple))]
        return [_text(pair.elements[0].value) for pair in pairs if pair.elements]
    return []


def _text(node: cst.BaseExpression) -> str:
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else ""


def _clash(node: cst.CSTNode, name: str) -> Failure:
    what = f"a child of a Sequential is called `{name}`, which the output's has for itself"
    return Failure(node, "API007", what, "call it otherwise, and its keys in the checkpoint too")
