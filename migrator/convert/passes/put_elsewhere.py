"""Buffers that one place registers and another gives a new value: a mixin, a base class, a function of another file.

torch registers the new tensor in place of the old one. A line that does not know of a Variable would put an array in its
place, which is no state any more: ``put(self, "mean", x)`` looks at run time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax, texts
from migrator.convert.alias import check_mutation
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.made_up_names import made_up
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.registered import ANY, RUNNING
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute, cst.Tuple, cst.List))
def assigned(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.mean = x`` → ``put(self, "mean", x)``"""
    written = [one.target for one in node.targets]
    if len(written) == 1 and isinstance(written[0], cst.Attribute):
        target = written[0]
        if not _is_tensor(rw.ctx, node.value):
            return None
        certain = _always_registered(rw.ctx, target) and not _is_any(rw.ctx, target.value)
        if not certain and not _may_be_registered(rw.ctx, target, node.value):
            return None
        if _of_layer(rw.ctx, target):
            place = syntax.changed(target, value=rw.visit(target.value))
            func = cst.Attribute(place, cst.Name("set_value"))
            value = syntax.unparenthesized(rw.visit(node.value))
            return cst.Expr(syntax.with_args(cst.Call(func), [cst.Arg(value)]))
        return _put(rw, target, rw.visit(node.value))
    for target in _several(written):
        if _may_be_registered(rw.ctx, target):
            what = f"`{syntax.code(target)}` may be a buffer that is registered elsewhere, and is one of several targets"
            raise Failure(node, "MUT001", what, "assign it in a line of its own")
    return None


@converts(cst.AugAssign)
def added_to(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``self.count += 1``, which a Variable refuses."""
    target = node.target
    if not isinstance(target, cst.Attribute):
        return None
    if not _may_be_registered(rw.ctx, target, node.value):
        return None
    check_mutation(rw.ctx, node, target)
    if _of_layer(rw.ctx, target):
        place = syntax.changed(target, value=rw.visit(target.value))
        return syntax.changed(node, target=targets.dereferenced(place), value=rw.visit(node.value))
    operator = syntax.code(node.operator).strip().removesuffix("=")
    sides = {"__x__": rw.visit(target), "__y__": rw.visit(node.value)}
    value = syntax.substitute(syntax.parse(f"__x__ {operator} __y__"), sides)
    return _put(rw, target, value, syntax.arg(cst.Name("True"), "in_place"))


@converts(cst.Call, called=("builtins.setattr",), named=("__setattr__",))
def set_by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``setattr(m, name, x)``, ``m.__setattr__(name, x)`` → ``put(m, name, x)``"""
    ctx, func = rw.ctx, node.func
    if isinstance(func, cst.Attribute) and func.attr.value == "__setattr__":
        if ctx.is_self(func.value) or isinstance(ctx.kind(func.value), (k.Module, k.Unknown)):
            plain = cst.Call(cst.Name("setattr"), [cst.Arg(func.value), *node.args])
            return _set_by_name(rw, plain)
        return None
    return _set_by_name(rw, node) if ctx.facts.callee(node) == "builtins.setattr" else None


def _set_by_name(rw: Rewriter, node: cst.Call) -> cst.Call | None:
    ctx = rw.ctx
    if len(node.args) != 3:
        return None
    holder, name, value = (one.value for one in node.args)
    if any(one.star or one.keyword for one in node.args) or not _is_tensor(ctx, value):
        return None
    word = name.evaluated_value if isinstance(name, cst.SimpleString) else None
    known = isinstance(word, str)
    tensor = isinstance(ctx.facts.kind(value), k.Tensor)
    if known and not _may_hold(ctx, holder, str(word), tensor):
        return None
    if not known and not _may_hold_one(ctx, holder, texts.pattern(name), tensor):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.named"), "put")
    return syntax.changed(node, func=cst.Name(helper), args=[rw.visit(a) for a in node.args])


@converts(cst.Return)
def given_out(rw: Rewriter, node: cst.Return) -> cst.Return | None:
    """``return m.mean`` gives the tensor, which stays what it is where the buffer gets another one."""
    value = node.value
    if not isinstance(value, cst.Attribute) or targets.is_variable(rw.ctx, value):
        return None
    if rw.ctx.frame is None or rw.ctx.in_init:
        return None
    every = _always_registered(rw.ctx, value)
    if every:
        return syntax.changed(node, value=targets.dereferenced(rw.rebuild(value)))
    unknown = isinstance(rw.ctx.kind(value), k.Unknown)
    if every is False and not (unknown and _may_hold(rw.ctx, value.value, value.attr.value)):
        return None
    helper = rw.ctx.helpers.need(module_file("rules.compat.named"), "held")
    return syntax.changed(
        node, value=syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(value))])
    )


def _put(
    rw: Rewriter, target: cst.Attribute, value: cst.BaseExpression, *options: cst.Arg
) -> cst.Expr:
    helper = rw.ctx.helpers.need(module_file("rules.compat.named"), "put")
    name = cst.SimpleString(f'"{target.attr.value}"')
    args = [cst.Arg(rw.visit(target.value)), cst.Arg(name), cst.Arg(syntax.unparenthesized(value))]
    return cst.Expr(syntax.with_args(cst.Call(cst.Name(helper)), [*args, *options]))


def _several(nodes: Sequence[cst.BaseExpression]) -> list[cst.Attribute]:
    found = []
    for node in nodes:
        if isinstance(node, (cst.Tuple, cst.List)):
            found += _several([one.value for one in node.elements])
        elif isinstance(node, cst.Attribute):
            found.append(node)
    return found


def _is_tensor(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether a value may be a tensor that nobody has registered: torch refuses all else for a buffer, but for None."""
    if targets.makes_parameter(ctx, value):
        return False
    kind = ctx.facts.kind(value)
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(inner, (k.Tensor, k.Unknown))


def in_place(
    rw: Rewriter, target: cst.BaseExpression, value: cst.BaseExpression
) -> cst.Expr | None:
    """What puts a new value where torch wrote in place, if a target may be a buffer that is registered elsewhere."""
    if not isinstance(target, cst.Attribute) or not _may_be_registered(rw.ctx, target):
        return None
    if _of_layer(rw.ctx, target):
        return None
    return _put(rw, target, value, syntax.arg(cst.Name("True"), "in_place"))


def _may_be_registered(
    ctx: Context, target: cst.Attribute, value: cst.BaseExpression | None = None
) -> bool:
    """Whether a target may be a Variable of which this place does not know, for all that is given to it."""
    if targets.is_variable(ctx, target):
        return False
    every = _always_registered(ctx, target)
    if every is not False:
        return every is None
    tensor = value is not None and isinstance(ctx.facts.kind(value), k.Tensor)
    return _may_hold(ctx, target.value, target.attr.value, tensor)


def _is_any(ctx: Context, holder: cst.BaseExpression) -> bool:
    return bool(k.is_any_module(ctx.kind(holder)))


def _always_registered(ctx: Context, node: cst.Attribute) -> bool | None:
    """Whether all classes of the file that have such an attribute register it; None where some do."""
    try:
        return targets.registered_by_name(ctx, node)
    except Failure:
        return None


def _of_layer(ctx: Context, target: cst.Attribute) -> bool:
    """Whether a target is certainly what a layer of torch that normalizes registers."""
    kind = ctx.kind(target.value)
    names = kind.cls.split("|") if isinstance(kind, k.Module) and not kind.among else []
    plain = all(n.startswith("torch.nn.") and n != "torch.nn.Module" for n in names)
    return bool(names) and plain and target.attr.value in RUNNING


def _elsewhere(ctx: Context) -> frozenset[str]:
    linked = ctx.facts.linked
    return linked.registered_elsewhere(ctx.facts.module) if linked is not None else frozenset()


def _may_hold_one(
    ctx: Context, holder: cst.BaseExpression, pattern: str, tensor: bool = False
) -> bool:
    """Whether an object may have a Variable under a name that only a run tells, and that is like a regular expression.

    ``tensor``: what it is given is certainly one, so that it may be any module of which nothing is known.
    """
    kind = ctx.kind(holder)
    info = ctx.owner if ctx.is_self(holder) else ctx.class_of(kind)
    if info is None and not (isinstance(kind, k.Unknown) or k.is_any_module(kind)):
        return False
    if ctx.is_self(holder) and ctx.frame is not None and ctx.frame.info.short == "__init__":
        return False
    names = [one.rpartition(".") for one in _elsewhere(ctx)]
    short = info.short if info is not None else ""
    any_of = {"", short, ANY if tensor and info is None else ""}
    found = [name for cls, _, name in names if cls in any_of]
    classes = [*info.lineage(), *_kin(ctx, info)] if info else ctx.facts.classes.values()
    if not ctx.is_self(holder) and any(made_up(one, ctx) for one in classes):
        return True
    for one in classes:
        if one.torch_base is not None:
            found += [name for name, held in one.attributes.items() if k.is_registered(held)]
    return any(ANY in name or re.fullmatch(pattern, name) for name in found)


def _may_hold(ctx: Context, holder: cst.BaseExpression, name: str, tensor: bool = False) -> bool:
    """Whether an object may have a Variable under a name that its class, as far as it is known here, does not register.

    ``tensor``: what it is given is certainly one, so that it may be any module of which nothing is known.
    """
    kind = ctx.kind(holder)
    info = ctx.owner if ctx.is_self(holder) else ctx.class_of(kind)
    elsewhere = _elsewhere(ctx)
    if info is None:
        if not (isinstance(kind, k.Unknown) or k.is_any_module(kind) or isinstance(kind, k.Module)):
            return False
        of_torch = name in RUNNING
        if isinstance(kind, k.Module) and not k.is_any_module(kind):
            return of_torch
        return of_torch or name in elsewhere or (tensor and f"{ANY}.{name}" in elsewhere)
    if info.gradient:
        return False  # the context of an autograd function
    if ctx.is_self(holder) and ctx.frame is not None and ctx.frame.info.short == "__init__":
        return False  # torch registers no name that an attribute has
    if k.is_registered(info.attribute(name)):
        return False
    of_torch = name in RUNNING and (info.torch_base or "").startswith("torch.nn.")
    if of_torch and info.torch_base != "torch.nn.Module":
        return True
    if not ctx.is_self(holder) and any(re.fullmatch(one, name) for one in made_up(info, ctx)):
        return True
    return f"{info.short}.{name}" in elsewhere or any(
        k.is_registered(one.attributes.get(name)) for one in _kin(ctx, info)
    )


def _kin(ctx: Context, info: ClassInfo) -> list[ClassInfo]:
    """The classes whose attributes the methods of a class may meet in ``self``: its heirs, and what these derive from."""
    if not ctx.kin:
        found: dict[ClassInfo, set[ClassInfo]] = {}
        for one in ctx.facts.classes.values():
            lineage = one.lineage()
            for base in lineage:
                found.setdefault(base, set()).update(lineage)
        ctx.kin.update((one, list(others - {one})) for one, others in found.items())
    return ctx.kin.get(info, [])
