"""What a library nothing is known of makes, where it becomes a part of a module: only modules of torch can be one.

``Net(filters.build(8))`` hands a module over where ``Net`` calls what it is handed, and ``nn.Sequential`` takes nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator.assignments import cases
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context, Failure
from migrator.convert.neighbours import as_well
from migrator.convert.passes.foreign import library_of, outside
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.source import dotted

_CONTAINERS = frozenset(f"torch.nn.{name}" for name in ("Sequential", "ModuleList", "ModuleDict"))


@converts(cst.Call)
def part_of_a_module(rw: Rewriter, node: cst.Call) -> Any:
    """Raise a Failure for ``nn.Sequential(filters.build(8))`` and ``Net(filters.build(8))``."""
    if not outside(rw):
        return None
    for value in _parts(rw.ctx, node):
        for one in _origins(rw.ctx, value):
            library = library_of(rw, one.func)
            if library is not None and library in outside(rw):
                raise Failure(
                    value,
                    "API004",
                    f"{library} makes a part of a module, and it is not known here whether it is built on torch",
                    as_well(rw.ctx.source.path, library),
                )
    return None


@converts(cst.Expr, named=("__init__",), values=(cst.Call,))
def part_of_a_base(rw: Rewriter, node: cst.Expr) -> Any:
    """Raise a Failure for ``super().__init__(filters.build(8))``, which is converted as a whole line."""
    return part_of_a_module(rw, node.value) if isinstance(node.value, cst.Call) else None


def _parts(ctx: Context, node: cst.Call) -> Iterator[cst.BaseExpression]:
    """The arguments of a call that must be modules."""
    if ctx.facts.callee(node) in _CONTAINERS:
        for item in node.args:
            yield from _elements(item.value)
        return
    for init in _built(ctx).get(node, ()):
        given = bound_arguments(node, init)
        called = _called(ctx, init) if given and init.settled is None else set()
        yield from (item.value for name, item in given if name in called)


def _built(ctx: Context) -> dict[cst.CSTNode, list[FunctionInfo]]:
    """Call → the constructors of modules of the file that it may run."""
    if ctx.built is None:
        ctx.built = {}
        for info in ctx.facts.classes.values():
            init = info.methods.get("__init__")
            if info.torch_base is not None and init is not None:
                for call in init.call_sites:
                    ctx.built.setdefault(call, []).append(init)
    return ctx.built


def _elements(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The single layers of an argument of a container."""
    if isinstance(value, (cst.List, cst.Tuple)):
        return [one for element in value.elements for one in _elements(element.value)]
    if isinstance(value, cst.Dict):
        return [one.value for one in value.elements if isinstance(one, cst.DictElement)]
    if isinstance(value, (cst.ListComp, cst.GeneratorExp)):
        return [value.elt]
    return [value]


def _called(ctx: Context, init: FunctionInfo) -> set[str]:
    """The parameters of a constructor that it keeps in attributes which methods of the class call."""
    owner, tree = init.owner, ctx.facts.tree
    kin = [c for c in ctx.facts.classes.values() if owner in c.lineage() or c in owner.lineage()]  # type: ignore[union-attr]
    calls = {
        dotted(call.func)
        for one in kin
        if tree.has(one.node)
        for call in tree.within(one.node.body, cst.Call)
        if isinstance(call.func, cst.Attribute) and isinstance(call.func.value, cst.Name)
    }
    kept = set()
    for line in tree.within(init.node.body, cst.Assign):
        if isinstance(line.value, cst.Name):
            names = {dotted(target.target) for target in line.targets}
            if names & calls:
                kept.add(line.value.value)
    return kept


def _origins(ctx: Context, value: cst.BaseExpression) -> list[cst.Call]:
    """The calls that a value may come from, by one name in the same function."""
    found = []
    for one in cases(value):
        if isinstance(one, cst.Name) and isinstance(ctx.facts.kind(one), (k.Unknown, k.Other)):
            where = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
            for line in ctx.facts.tree.within(where, cst.Assign):
                if any(_binds(target.target, one.value) for target in line.targets):
                    found += [c for c in cases(line.value) if isinstance(c, cst.Call)]
        elif isinstance(one, cst.Call):
            found.append(one)
    return found


def _binds(target: cst.BaseExpression, name: str) -> bool:
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_binds(element.value, name) for element in target.elements)
    return isinstance(target, cst.Name) and target.value == name
