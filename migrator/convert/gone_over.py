"""What goes over the layers of something it is handed, ``for layer in layers``: a Sequential of Flax does not allow it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.source import dotted

_SEQUENTIAL = "torch.nn.Sequential"
_OVER = frozenset(
    f"builtins.{name}"
    for name in "all any enumerate filter iter len list map next reversed set sorted sum tuple zip".split()
) | frozenset(
    f"itertools.{name}"
    for name in "accumulate chain cycle dropwhile groupby islice pairwise product takewhile zip_longest".split()
)
_OVER |= {"functools.reduce"}
_OWN = "self."


def goes_over(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The parameters, and ``self.x`` of a method, that a function goes over, counts or takes items of.

    What is known to be a Sequential and nothing else is left out: it is written as Flax has it."""
    if info.settled is not None:
        return info.settled.goes_over
    found = ctx.gone_over.get(info)
    if found is None:
        found = ctx.gone_over[info] = frozenset(_gone_over(ctx, info))
    return found


def _gone_over(ctx: Context, info: FunctionInfo) -> Iterator[str]:
    own = next((p.name.value for p in info.node.params.params), "") if info.owner else ""
    told = set(_told_apart(ctx, info.node.body))
    others = _other_names(ctx, info.node.body)
    for named in _sources(ctx, info.node.body):
        if is_sequential(ctx, named) or dotted(named) in told:
            continue
        own_name = isinstance(named, cst.Name) and named.value not in info.params
        for node in others.get(named.value, ()) if own_name else [named]:  # type: ignore[attr-defined]
            yield from _one(info, node, own)


def _one(info: FunctionInfo, node: cst.BaseExpression, own: str) -> Iterator[str]:
    if isinstance(node, cst.Name):
        if node.value in info.params:
            yield node.value
    elif isinstance(node, cst.Attribute) and own and dotted(node.value) == own:
        yield _OWN + node.attr.value


def _other_names(ctx: Context, body: cst.CSTNode) -> dict[str, list[cst.BaseExpression]]:
    """``layers = self.layers`` and ``layers, n = self.layers, 2``: local names with what they stand for."""
    found: dict[str, list[cst.BaseExpression]] = {}
    for line in ctx.facts.tree.within(body, cst.Assign):
        for one in line.targets:
            targets, values = [one.target], [line.value]
            both = isinstance(one.target, (cst.Tuple, cst.List)), isinstance(line.value, cst.Tuple)
            if all(both) and len(one.target.elements) == len(line.value.elements):
                targets = [e.value for e in one.target.elements]
                values = [e.value for e in line.value.elements]
            for target, value in zip(targets, values, strict=True):
                if isinstance(target, cst.Name) and isinstance(value, (cst.Name, cst.Attribute)):
                    found.setdefault(target.value, []).append(value)
    return found


def _told_apart(ctx: Context, body: cst.CSTNode) -> Iterator[str | None]:
    """``layers`` where a function asks ``isinstance(layers, nn.Sequential)``, and goes over its children then."""
    for call in ctx.facts.tree.within(body, cst.Call):
        if ctx.facts.callee(call) == "builtins.isinstance" and len(call.args) == 2:
            named = ctx.facts.tree.within(call.args[1].value, cst.Attribute, cst.Name)
            if any(ctx.facts.qualified_name(one) == _SEQUENTIAL for one in named):
                yield dotted(call.args[0].value)


def _sources(ctx: Context, body: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    within = ctx.facts.tree.within
    for loop in within(body, cst.For, cst.CompFor):
        yield loop.iter
    for part in within(body, cst.Subscript, cst.StarredElement):
        yield part.value
    for line in within(body, cst.Assign):
        if isinstance(line.targets[0].target, (cst.Tuple, cst.List)):
            yield line.value
    for call in within(body, cst.Call):
        over = ctx.facts.callee(call) in _OVER
        for item in call.args:
            if item.star == "*" or (over and not item.star):
                yield item.value


def is_sequential(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is a Sequential, or of a class that derives from it."""
    kind = ctx.kind(node)
    if not isinstance(kind, k.Module):
        return False
    info = ctx.facts.classes.get(kind.cls)
    return (info.torch_base if info is not None else kind.cls) == _SEQUENTIAL


@dataclass
class Handed:
    """The Sequentials of a file that others go over: such as can be gone over take their place.

    Attributes:
      names: last names of what the file assigns those to.
      made: calls that make one where it is handed over.
      classes: classes of the file that derive from Sequential.
      elsewhere: those that another file makes, whose class this one cannot choose.
    """

    names: set[str] = field(default_factory=set)
    made: set[cst.CSTNode] = field(default_factory=set)
    classes: set[ClassInfo] = field(default_factory=set)
    elsewhere: set[cst.CSTNode] = field(default_factory=set)


def handed(ctx: Context) -> Handed:
    """What the functions called in a file, and the bases of its classes, go over."""
    if ctx.handed_sequentials is None:
        found = ctx.handed_sequentials = Handed()
        _note_by_name(ctx, found)
        for call in ctx.source.index.of_type(cst.Call):
            given = [a for a in call.args if not a.star and is_sequential(ctx, a.value)]
            info = _called(ctx, call) if given else None
            over = _with_kept(ctx, info) if info is not None else ()
            if info is not None and over:
                for name, item in bound_arguments(call, info):
                    if name in over and item in given:
                        _note(ctx, found, item.value)
        for cls in ctx.facts.classes.values():
            if cls.torch_base is not None and cls.settled is None:
                _note_inherited(ctx, found, cls)
    return ctx.handed_sequentials


def _note_by_name(ctx: Context, found: Handed) -> None:
    """``self.body = nn.Sequential(…)`` that another file goes over, where it need not know what ``net.body`` is."""
    linked = ctx.facts.linked
    names = linked.listed(ctx.facts.module) if linked is not None else frozenset()
    found.names |= {name for name in names if _makes(ctx, name)}
    for line in ctx.source.index.of_type(cst.Assign) if names else ():
        for one in line.targets:
            if isinstance(one.target, cst.Attribute) and one.target.attr.value in names:
                cls = ctx.class_of(ctx.kind(one.target))
                if cls is not None and cls.settled is None and is_sequential(ctx, one.target):
                    found.classes.add(cls)


def _called(ctx: Context, call: cst.Call) -> FunctionInfo | None:
    kind = ctx.facts.kind(call.func)
    if isinstance(kind, k.Function):
        return ctx.facts.names.get(kind.name)
    cls = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else ctx.class_of(kind)
    return cls.method("__init__" if isinstance(kind, k.Class) else "forward") if cls else None


def _with_kept(ctx: Context, info: FunctionInfo) -> set[str]:
    """The parameters that are gone over, those too that an object keeps and whose methods go over them."""
    found = set(goes_over(ctx, info))
    owner = info.owner
    kept = _kept(ctx, info) if owner is not None else ()
    if owner is not None and kept:
        over = {n for c in owner.lineage() for m in c.methods.values() for n in goes_over(ctx, m)}
        found |= {name for name, attribute in kept if _OWN + attribute in over}
    return found


def _kept(ctx: Context, info: FunctionInfo) -> set[tuple[str, str]]:
    """``self.layers = layers``."""
    if info.settled is not None:
        return set(info.settled.stored)
    found = set()
    for line in ctx.facts.tree.within(info.node.body, cst.Assign):
        target = line.targets[0].target
        if isinstance(target, cst.Attribute) and isinstance(line.value, cst.Name):
            if isinstance(target.value, cst.Name) and line.value.value in info.params:
                found.add((line.value.value, target.attr.value))
    return found


def _note(ctx: Context, found: Handed, node: cst.BaseExpression) -> None:
    kind = ctx.kind(node)
    cls = ctx.class_of(kind)
    name = node.attr if isinstance(node, cst.Attribute) else node
    if cls is not None:
        if cls.settled is None:
            found.classes.add(cls)
        else:
            found.elsewhere.add(node)
    elif isinstance(node, cst.Call) and ctx.facts.callee(node) == _SEQUENTIAL:
        found.made.add(node)
    elif isinstance(name, cst.Name) and _makes(ctx, name.value):
        found.names.add(name.value)
    else:
        found.elsewhere.add(node)


def _makes(ctx: Context, name: str) -> bool:
    """Whether the file makes the Sequential that it gives a name."""
    for line in ctx.source.index.of_type(cst.Assign):
        for one in line.targets:
            last = one.target.attr if isinstance(one.target, cst.Attribute) else one.target
            if isinstance(last, cst.Name) and last.value == name:
                calls = [n for n in syntax.walk(line.value) if isinstance(n, cst.Call)]
                if any(ctx.facts.callee(call) == _SEQUENTIAL for call in calls):
                    return True
    return False


def _note_inherited(ctx: Context, found: Handed, cls: ClassInfo) -> None:
    """``self.layers = nn.Sequential(…)`` in a class whose base goes over ``self.layers``."""
    bases = cls.lineage()[1:]
    over = {n for c in bases for m in c.methods.values() for n in goes_over(ctx, m)}
    names = {name.removeprefix(_OWN) for name in over if name.startswith(_OWN)}
    if not names:
        return
    for line in ctx.facts.tree.within(cls.node, cst.Assign):
        target = line.targets[0].target
        if isinstance(target, cst.Attribute) and target.attr.value in names:
            if is_sequential(ctx, target):
                _note(ctx, found, target)
