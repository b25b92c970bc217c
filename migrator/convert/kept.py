"""Which tensors a constructor keeps that it is handed: as a parameter, as a buffer or just as an attribute."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.convert.context import Context
from migrator.convert.memory import LIBRARIES, aliases
from migrator.convert.parts import holds_layers, is_plain, whole
from migrator.convert.passing import makes_new
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.construction import PARAMETERS

Kept = tuple[str, str, str]
"""Parameter of the constructor, attribute that keeps it (empty: not known), "param", "buffer" or "plain"."""
MAKING = frozenset({"torch.nn.Parameter", "torch.nn.Buffer"})


def constructor(ctx: Context, call: cst.Call) -> FunctionInfo | None:
    """The constructor of an own class of modules that a call runs: ``Head(w)``, ``super().__init__(w)``."""
    kind, func = ctx.kind(call.func), call.func
    if isinstance(kind, k.Class):
        info = ctx.facts.classes.get(kind.name)
        return info.method("__init__") if info is not None and info.torch_base else None
    if not isinstance(func, cst.Attribute) or func.attr.value != "__init__" or ctx.owner is None:
        return None
    if not isinstance(func.value, cst.Call) or ctx.facts.callee(func.value) != "builtins.super":
        return None
    inits = (parent.method("__init__") for parent in ctx.owner.parents)
    return next((one for one in inits if one is not None), None)


def kept(ctx: Context, info: FunctionInfo) -> tuple[Kept, ...]:
    """What a constructor keeps of its arguments' memory."""
    if info.settled is not None:
        return info.settled.keeps
    if info not in ctx.kept:
        ctx.kept[info] = ()
        ctx.kept[info] = tuple(sorted(set(_kept(ctx, info))))
    return ctx.kept[info]


def _kept(ctx: Context, info: FunctionInfo) -> Iterator[Kept]:
    nodes = ctx.facts.tree.within(info.node.body, cst.Assign, cst.AnnAssign, cst.Call)
    if not any(may_share(ctx, value) for node in nodes for value, _, _ in _keeping(ctx, node)):
        return
    facts = aliases(ctx, info)
    for statement, state in facts.before.items():
        if not isinstance(statement, cst.SimpleStatementLine):
            continue
        for node in ctx.facts.tree.within(statement, cst.Assign, cst.AnnAssign, cst.Call):
            for value, attribute, how in _keeping(ctx, node):
                for one in facts.memory(value, state):
                    if one.startswith("param:"):
                        yield whole(one).removeprefix("param:"), attribute, how


def may_share(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an expression's result may share memory with anything, as far as a look at it alone can tell."""
    kind = ctx.kind(node)
    if is_plain(kind) or holds_layers(kind):
        return False
    if not isinstance(node, cst.Call):
        return True
    name = ctx.facts.callee(node) or ""
    if not name.startswith(LIBRARIES):
        return True
    out = any(a.keyword is not None and a.keyword.value == "out" for a in node.args)
    return out or isinstance(kind, k.Other) or not makes_new(ctx, node, name)


def _keeping(ctx: Context, node: cst.CSTNode) -> Iterator[tuple[cst.BaseExpression, str, str]]:
    """The values that a node keeps, the attribute's name and how it is kept."""
    target: cst.CSTNode | None = None
    given: cst.BaseExpression | None = None
    if isinstance(node, cst.Assign):
        target, given = node.targets[0].target, node.value
        yield from _unpacked(target, given)
    elif isinstance(node, cst.AnnAssign):
        target, given = node.target, node.value
    if isinstance(target, cst.Attribute) and given is not None:
        made = isinstance(given, cst.Call) and ctx.facts.callee(given) in MAKING
        how = "plain" if not made else ("buffer" if is_buffer(ctx, given) else "param")
        yield given, target.attr.value, how
    if not isinstance(node, cst.Call):
        return
    if registers(node):
        value, name = registered(node, 1, "tensor", "param"), registered(node, 0, "name")
        kind = ctx.facts.kind(name) if name is not None else k.UNKNOWN
        told = str(kind.value) if isinstance(kind, k.Const) else ""
        if value is not None:
            yield value, told, "buffer" if "buffer" in _method(node) else "param"
    if ctx.facts.callee(node) == "builtins.setattr" and len(node.args) == 3:
        if not isinstance(ctx.facts.kind(node.args[1].value), k.Const):
            yield node.args[2].value, "", "plain"
    if ctx.facts.callee(node) in PARAMETERS:
        for item in node.args:  # nn.ParameterList([w])
            yield item.value, "", "param"
    init = constructor(ctx, node)
    if init is not None:
        for item, attribute, how in handed_on(ctx, node, init):
            yield item.value, attribute, how


def _unpacked(
    target: cst.BaseExpression, given: cst.BaseExpression
) -> Iterator[tuple[cst.BaseExpression, str, str]]:
    """``self.w, self.b = w, b``, ``self.w, self.b = weights``: what each attribute is given, or a part of it."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return
    values = given.elements if isinstance(given, (cst.Tuple, cst.List)) else ()
    apart = len(values) == len(target.elements)
    for i, one in enumerate(target.elements):
        if isinstance(one.value, cst.Attribute):
            yield values[i].value if apart else given, one.value.attr.value, "plain"


def handed_on(
    ctx: Context, call: cst.Call, init: FunctionInfo
) -> Iterator[tuple[cst.Arg, str, str]]:
    """The arguments of a call that the constructor keeps, the attribute's name and how it is kept."""
    from migrator.convert.alias import bound_arguments

    given = dict(bound_arguments(call, init))
    for parameter, attribute, how in kept(ctx, init):
        if parameter in given:
            yield given[parameter], attribute, how


def either_or(ctx: Context, one: cst.CSTNode, other: cst.CSTNode) -> bool:
    """Whether of two expressions only one runs: they stand in branches of one ``if``, or one leaves before the other."""
    tree = ctx.facts.tree
    if not tree.has(one) or not tree.has(other):  # a class derived from it in another file
        return False
    ours, theirs = (tree.around(node) for node in (one, other))
    common = [a for a, b in zip(ours, theirs, strict=False) if a is b]
    if isinstance(common[-1], cst.If):
        return True
    mine, its = ([*path, node][len(common)] for path, node in ((ours, one), (theirs, other)))
    block = common[-1].body if isinstance(common[-1], (cst.IndentedBlock, cst.Module)) else ()
    places = {id(node): i for i, node in enumerate(block)}
    after = places.get(id(mine), -1) < places.get(id(its), -1)
    between = ours[len(common) :]
    if any(isinstance(node, (cst.FunctionDef, cst.Lambda)) for node in between):
        return False  # it leaves that function only
    return after and any(_leaves(node) for node in between)


def _leaves(node: cst.CSTNode) -> bool:
    """Whether a branch ends the function."""
    last = node.body[-1] if isinstance(node, cst.IndentedBlock) and node.body else None
    line = last.body[-1] if isinstance(last, cst.SimpleStatementLine) else None
    return isinstance(line, (cst.Return, cst.Raise))


def is_buffer(ctx: Context, call: cst.CSTNode) -> bool:
    """Whether what a call makes is written by no optimizer: a buffer, ``nn.Parameter(w, requires_grad=False)``."""
    if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "torch.nn.Parameter":
        return True
    values = [a.value for a in call.args[1:] if not a.star]
    return any(isinstance(one, cst.Name) and one.value == "False" for one in values)


def registers(call: cst.Call) -> bool:
    """Whether a call is ``register_buffer`` or ``register_parameter``."""
    return _method(call) in ("register_buffer", "register_parameter")


def registered(call: cst.Call, place: int, *names: str) -> cst.BaseExpression | None:
    """An argument of ``register_buffer`` or ``register_parameter``."""
    for i, item in enumerate(call.args):
        keyword = item.keyword.value if item.keyword is not None else None
        if keyword in names or (keyword is None and i == place and not item.star):
            return item.value
    return None


def is_loaded(ctx: Context, name: str) -> bool:
    """Whether loading a state_dict may change a buffer: it is not registered as one that is not saved."""
    for call in ctx.source.index.of_type(cst.Call):
        if registers(call) and _says(registered(call, 0, "name"), name):
            if is_false(registered(call, 2, "persistent")):
                return False
    return True


def is_false(node: cst.BaseExpression | None) -> bool:
    """Whether an argument is written as False."""
    return isinstance(node, cst.Name) and node.value == "False"


def _says(node: cst.BaseExpression | None, name: str) -> bool:
    return isinstance(node, cst.SimpleString) and node.evaluated_value == name


def _method(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
