"""The device among the arguments that a class hands on to the layer of torch's that it derives from."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k
from rules.definitions import Rule


def without_devices(ctx: Context, args: Sequence[cst.Arg], rules: Sequence[Rule]) -> list[cst.Arg]:
    """The arguments of ``super().__init__(*args, device=device, **kwargs)`` without what says where to: JAX has no use for it."""
    given = [one for one in _named_from_device(args, rules) if not _is_device(one)]
    return [_filtered(one) for one in given] if _may_come(ctx) else given


def _named_from_device(args: Sequence[cst.Arg], rules: Sequence[Rule]) -> list[cst.Arg]:
    """The arguments, of which ``device`` and those behind it have their names: the output takes no device."""
    names = rules[0].positional if rules else []
    if "device" not in names or any(a.star == "*" for a in args):
        return list(args)
    first = names.index("device")
    made = []
    for i, one in enumerate(args):
        behind = one.keyword is None and not one.star and first <= i < len(names)
        made.append(syntax.arg(one.value, names[i]) if behind else one)
    return made


def _is_device(arg: cst.Arg) -> bool:
    """``device=device``, which JAX has no use for."""
    named = arg.keyword is not None and arg.keyword.value == "device"
    return named and isinstance(arg.value, cst.Name | cst.Attribute | cst.SimpleString)


def _may_come(ctx: Context) -> bool:
    """Whether a call may hand a class a device by that name: one in its file, or in another that has the class."""
    owner, linked = ctx.owner, ctx.facts.linked
    if owner is None or (linked is not None and linked.shared(owner.name)):
        return owner is not None
    heirs = {one.short for one in ctx.facts.classes.values() if owner in one.lineage()}
    for call in ctx.source.index.of_type(cst.Call):
        if not syntax.names(call.func).keys() & heirs and not _may_be_any(ctx, call.func):
            continue
        for item in call.args:
            if item.star == "**" or (item.keyword is not None and item.keyword.value == "device"):
                return True
    return False


def _may_be_any(ctx: Context, func: cst.BaseExpression) -> bool:
    """``norm_layer(…)``, which may be any class."""
    return isinstance(func, cst.Name) and isinstance(ctx.kind(func), (k.Class, k.Unknown))


def _filtered(arg: cst.Arg) -> cst.Arg:
    """``**{key: value for key, value in kwargs.items() if key != "device"}``."""
    if arg.star != "**" or not isinstance(arg.value, cst.Name):
        return arg
    form = "{key: value for key, value in __a__.items() if key != 'device'}"
    return syntax.changed(arg, value=syntax.substitute(syntax.parse(form), {"__a__": arg.value}))
