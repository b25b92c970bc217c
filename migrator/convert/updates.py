"""Which attributes of modules a call may write to in place: running statistics, counters, caches."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.memory import aliases, written_base
from migrator.convert.writers import target_of
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_KEEPS_STATISTICS = ("BatchNorm", "SyncBatchNorm", "InstanceNorm")
_HOLDS_OTHERS = frozenset(
    {"torch.nn.Module", "torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"}
)
_NORMALISING = frozenset({"batch_norm", "instance_norm", "native_batch_norm"})


def written_names(ctx: Context) -> frozenset[str]:
    """The names of attributes that the file may write to in place, and of a batch norm's statistics.

    What a local name stands for that is written counts as well: ``c = self.cache; c[0] = 1``."""
    if ctx.written_names is None:
        index = ctx.source.index
        bases = [_syntactic(n) for n in index.of_type(cst.AugAssign, cst.Assign, cst.Call)]
        found = {b.attr.value for b in bases if isinstance(b, cst.Attribute)}
        local = {b.value for b in bases if isinstance(b, cst.Name)}
        for node in index.of_type(cst.Assign):
            if any(local & set(syntax.names(t.target)) for t in node.targets):
                values = syntax.walk(node.value)
                found |= {n.attr.value for n in values if isinstance(n, cst.Attribute)}
        found |= _handed(ctx, local)
        foreign = [f.settled.updates for f in ctx.facts.names.values() if f.settled is not None]
        ctx.written_names = frozenset(found | STATISTICS).union(*foreign)
    return ctx.written_names


def _handed(ctx: Context, local: set[str]) -> set[str]:
    """The attributes that are handed to functions which write to an argument: ``ema_(self.mean, x)``."""
    found: set[str] = set()
    for call in ctx.source.index.of_type(cst.Call):
        kind = ctx.facts.kind(call.func)
        info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
        if info is None:
            continue
        writes = info.settled.mutates if info.settled is not None else local & set(info.params)
        if writes:
            values = [n for a in call.args for n in syntax.walk(a.value)]
            found |= {n.attr.value for n in values if isinstance(n, cst.Attribute)}
    return found


def _syntactic(node: cst.CSTNode) -> cst.CSTNode | None:
    """What a node writes to in place by its form: ``x += 1``, ``x[i] = 1``, ``x.add_(1)``, ``f_(x)``, ``out=x``."""
    if isinstance(node, cst.AugAssign):
        return _base(node.target)
    if isinstance(node, cst.Assign):
        written = [t.target for t in node.targets if isinstance(t.target, cst.Subscript)]
        return _base(written[0]) if written else None
    if not isinstance(node, cst.Call):
        return None
    func = node.func
    name = func.attr.value if isinstance(func, cst.Attribute) else getattr(func, "value", "")
    out = [a.value for a in node.args if a.keyword is not None and a.keyword.value == "out"]
    if out:
        return _base(out[0])
    if not isinstance(name, str) or not name.endswith("_") or name.endswith("__"):
        return None
    if node.args and not isinstance(func, cst.Attribute):
        return _base(node.args[0].value)
    if isinstance(func, cst.Attribute):
        base = _base(func.value)
        library = isinstance(base, cst.Attribute) and base.attr.value == "init"
        return _base(node.args[0].value) if node.args and library else base
    return None


def _base(node: cst.CSTNode) -> cst.CSTNode:
    """``self.cache`` of ``self.cache[0].data.view(-1)``."""
    while True:
        node = written_base(node)
        if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
            return node
        node = node.func.value


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
            return written_names(ctx)
        normalises = any(one.rpartition(".")[2].startswith(_KEEPS_STATISTICS) for one in base)
        return STATISTICS if normalises else frozenset()
    info = ctx.facts.names.get(name)
    if info is not None:
        return updates(ctx, info)
    if name.rpartition(".")[2] in _NORMALISING and name.startswith("torch."):
        given = [n for a in call.args for n in syntax.walk(a.value) if isinstance(n, cst.Attribute)]
        return frozenset(n.attr.value for n in given)
    if name == "torch.utils.checkpoint.checkpoint":
        return written_names(ctx)
    if isinstance(kind, (k.Function, k.Class)) and kind.name:
        return frozenset()  # of torch, numpy, Python
    return written_names(ctx)


def updates(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    """The names of the attributes that a function, or what it calls, may write to in place."""
    if info.settled is not None:
        return info.settled.updates
    if info not in ctx.updates:
        ctx.updates[info] = frozenset()  # a recursive one writes what its other lines do
        ctx.updates[info] = _updates(ctx, info)
    return ctx.updates[info]


def _updates(ctx: Context, info: FunctionInfo) -> frozenset[str]:
    every = written_names(ctx)
    facts = aliases(ctx, info)
    found: set[str] = set()
    for statement, state in facts.before.items():
        parts = statement.body if isinstance(statement, cst.SimpleStatementLine) else ()
        for part in parts:
            for node in syntax.walk(part):
                target = target_of(ctx, node)
                if target is not None:
                    memory = facts.memory(target, state)
                    found |= {m.rpartition(".")[2] for m in memory if m.startswith("attr:")}
    for node in ctx.facts.tree.below(info.node.body):
        if isinstance(node, cst.Call) and not every <= found:
            found |= updated_by(ctx, node)
    return frozenset(found) & every
