"""Which attributes of modules a call may write to in place: running statistics, counters, caches."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.bindings import given_to
from migrator.convert.context import Context
from migrator.convert.memory import aliases
from migrator.convert.overriding import overriding
from migrator.convert.passes.freezing import forward_pass
from migrator.convert.writers import has_writes, target_of, writing
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.symbols import tensor_attribute

STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_KEEPS_STATISTICS = ("BatchNorm", "SyncBatchNorm", "InstanceNorm")
_HOLDS_OTHERS = frozenset(
    {"torch.nn.Module", "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"}
)
_NORMALISING = frozenset({"batch_norm", "instance_norm", "native_batch_norm"})


def may_be_written(ctx: Context, names: set[str]) -> frozenset[str]:
    """Those of some names of attributes that could be among these: a tensor's, a statistic's, another file's."""
    foreign = (f.settled.updates for f in ctx.facts.names.values() if f.settled is not None)
    return frozenset(names & (_tensors(ctx) | STATISTICS)).union(*(names & one for one in foreign))


def written_names(ctx: Context) -> frozenset[str]:
    """The names of attributes that the project may write to in place, while a model is built too."""
    if ctx.written_names is None:
        foreign = [f.settled.updates for f in ctx.facts.names.values() if f.settled is not None]
        own = [_directly(ctx, info) for info in ctx.facts.functions.values()]
        given = [_statistics(call, first) for call, first in _normalising(ctx)]
        ctx.written_names = STATISTICS.union(*foreign, *own, *given)
    return ctx.written_names


def writes_state(ctx: Context) -> bool:
    """Whether a function of the project may write to a tensor of a module in place."""
    functions = ctx.facts.names.values()
    foreign = any(one.settled.updates for one in functions if one.settled is not None)
    own = any(_directly(ctx, info) for info in ctx.facts.functions.values())
    return foreign or own or any(True for _ in _normalising(ctx))


def _normalising(ctx: Context) -> Iterator[tuple[cst.Call, int]]:
    """The calls of functions that normalise, and where their statistics stand among the arguments."""
    if not ctx.words.isdisjoint(_NORMALISING):
        for call in ctx.source.index.of_type(cst.Call):
            name = ctx.facts.callee(call) or ""
            if name.startswith("torch.") and name.rpartition(".")[2] in _NORMALISING:
                yield call, 1 if name.startswith("torch.nn.") else 3


def _anything(ctx: Context) -> frozenset[str]:
    """What a call may write to of which nothing is known: it may be the forward pass of any module."""
    if ctx.forward_writes is None:
        foreign = [f.settled.updates for f in ctx.facts.names.values() if f.settled is not None]
        reached = forward_pass(ctx)
        own = [_directly(ctx, info) for info in reached if not ctx.plan.builds_time(info)]
        given = [_statistics(call, first) for call, first in _normalising(ctx)]
        ctx.forward_writes = STATISTICS.union(*foreign, *own, *given)
    return ctx.forward_writes


def _tensors(ctx: Context) -> frozenset[str]:
    """The names of attributes that are tensors in some class, or may be."""
    if ctx.tensor_names is not None:
        return ctx.tensor_names
    found: set[str] = set()
    for info in ctx.facts.classes.values():
        for name, kind in info.attributes.items():
            inner = kind.inner if isinstance(kind, k.Optional) else kind
            if isinstance(inner, (k.Tensor, k.Unknown, k.NumberOrTensor)):
                found.add(name)
        found |= info.state or frozenset()
    if ctx.facts.linked is not None:
        elsewhere = ctx.facts.linked.registered_elsewhere(ctx.facts.module)
        found |= {one.rpartition(".")[2] for one in elsewhere}
    ctx.tensor_names = frozenset(found)
    return ctx.tensor_names


def _trained(ctx: Context, info: FunctionInfo, path: str) -> bool:
    """Whether ``self.weight`` is a parameter: torch refuses to write to one in place, but where it is told otherwise."""
    if info.owner is None or ctx.facts.tree.spells(info.node, _UNTRACKED):
        return False
    receiver, _, name = path.rpartition(".")
    first = next(iter(info.node.params.params), None)
    if first is None or receiver != first.name.value:
        return False
    kind = info.owner.attribute(name)
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    if inner is None:
        return name in ("weight", "bias")
    return isinstance(inner, k.Tensor) and inner.role == "param"


_UNTRACKED = frozenset({"no_grad", "inference_mode", "set_grad_enabled", "data", "detach"})


def updated_by(ctx: Context, call: cst.Call) -> frozenset[str]:
    """The names of the attributes that a call may write to in place."""
    name, kind = ctx.facts.callee(call) or "", ctx.kind(call.func)
    if isinstance(kind, k.Module):
        own = ctx.facts.classes.get(kind.cls)
        forward = own.method("forward") if own is not None else None
        if forward is not None:
            return updates(ctx, forward)
        base = (own.torch_base or "" if own is not None else kind.cls).split("|")
        if any(one in _HOLDS_OTHERS or not one.startswith("torch.") for one in base):
            return _anything(ctx)
        normalises = any(one.rpartition(".")[2].startswith(_KEEPS_STATISTICS) for one in base)
        return STATISTICS if normalises else frozenset()
    info = ctx.facts.names.get(name)
    if info is not None:
        return updates(ctx, info)
    if name.rpartition(".")[2] in _NORMALISING and name.startswith("torch."):
        return _statistics(call, 1 if name.startswith("torch.nn.") else 3)
    if name == "torch.utils.checkpoint.checkpoint":
        return _anything(ctx)
    if isinstance(kind, (k.Function, k.Class)) and kind.name:
        return frozenset()  # of torch, numpy, Python
    if _is_tensors(ctx, call):
        return frozenset()
    methods = _methods_named(ctx, call)
    if methods is None:
        return _anything(ctx)
    return frozenset().union(*(updates(ctx, one) for one in methods))


def _methods_named(ctx: Context, call: cst.Call) -> list[FunctionInfo] | None:
    """The methods that ``head.is_read()`` of what is not known may run, those of the classes that have one of that name.

    None where it may run something else: a layer that an attribute of that name is, what the project has not got, or
    what another file has of which this one knows nothing.
    """
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value in ("forward", "__call__"):
        return None
    if ctx.facts.linked is not None:
        return None
    name, every = func.attr.value, ctx.facts.classes.values()
    if tensor_attribute(name) or any(name in one.attributes for one in every):
        return None
    found = [one.methods[name] for one in every if name in one.methods]
    if any("property" in one.decorators for one in found):
        return None
    return found or None


def _is_tensors(ctx: Context, call: cst.Call) -> bool:
    """``y = x.mean(0)`` of what is not known, where no class that is known has a method of that name.

    ``memory.add(x)``, of which nothing uses the result, is none of a tensor."""
    func, tree = call.func, ctx.facts.tree
    if not isinstance(func, cst.Attribute) or not tensor_attribute(func.attr.value):
        return False
    if not tree.has(call) or isinstance(tree.parent(call), cst.Expr):
        return False
    return not any(func.attr.value in one.methods for one in ctx.facts.classes.values())


def _statistics(call: cst.Call, first: int) -> frozenset[str]:
    """The attributes that a function which normalises is given for the two statistics, from a place on or by name."""
    starred = any(one.star for one in call.args)
    given = [
        one.value
        for place, one in enumerate(call.args)
        if starred
        or (first <= place < first + 2 and one.keyword is None)
        or (one.keyword is not None and one.keyword.value in STATISTICS)
    ]
    every = (n for one in given for n in syntax.walk(one))
    return frozenset(n.attr.value for n in every if isinstance(n, cst.Attribute))


def updates(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The names of the attributes that a function, or what it calls, may write to in place; a method of heirs, too."""
    return _its_own(ctx, info).union(*(_its_own(ctx, one) for one in overriding(ctx, info)))


def _its_own(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    if info.settled is not None:
        return info.settled.updates
    if info not in ctx.updates:
        ctx.updates[info] = frozenset()  # a recursive one writes what its other lines do
        ctx.updates[info] = _updates(ctx, info)
    return ctx.updates[info]


def _updates(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    if ctx.plan.builds_time(info):
        return frozenset()  # a model that is built does not compute yet
    found = set(_directly(ctx, info))
    for node in ctx.facts.tree.within(info.node.body, cst.Call):
        found |= updated_by(ctx, node)
    return frozenset(found)


def _is_put_into(ctx: Context, info: FunctionInfo, node: cst.CSTNode) -> bool:
    """``out[name] = x`` of a dict or list that the function makes: what it holds is left as it is."""
    written = node.targets[0].target if isinstance(node, cst.Assign) else None
    held = written.value if isinstance(written, cst.Subscript) else None
    if isinstance(held, cst.Attribute) and isinstance(ctx.kind(held), (k.Sequence, k.Mapping)):
        return len(node.targets) == 1  # type: ignore[attr-defined]  # self.grids[i] = grid
    if not isinstance(held, cst.Name) or len(node.targets) > 1:  # type: ignore[attr-defined]
        return False
    given = given_to(ctx.facts.tree, info.node, held)
    return bool(given) and all(isinstance(one, _DISPLAYS) for one in given)


_DISPLAYS = (cst.Dict, cst.List, cst.DictComp, cst.ListComp)


def _directly(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The names of attributes whose memory the lines of a function write to, by whatever name."""
    if info.settled is not None:
        return info.settled.updates
    if info not in ctx.direct_writes:
        ctx.direct_writes[info] = frozenset()
        if not has_writes(ctx, info):
            return ctx.direct_writes[info]
        facts, found = aliases(ctx, info), set[str]()
        for statement, state in facts.before.items():
            for node in writing(ctx, statement):
                target = target_of(ctx, node)
                if target is not None and not _is_put_into(ctx, info, node):
                    memory = facts.memory(target, state)
                    paths = [m.removeprefix("attr:") for m in memory if m.startswith("attr:")]
                    if isinstance(target, cst.Name):
                        paths = [one for one in paths if not _trained(ctx, info, one)]
                    found |= {one.rpartition(".")[2] for one in paths}
        ctx.direct_writes[info] = frozenset(found) & _tensors(ctx)
    return ctx.direct_writes[info]
