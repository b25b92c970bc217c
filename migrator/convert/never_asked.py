"""Writes behind an option that a call does not switch on: ``def hard_sigmoid(x, inplace=False)``, handed on as ``gate_fn``.

Who gets such a function as a value calls it with what it works on alone. Then the branch that writes to the argument is
not run; where some call might switch the option on that is not known.
"""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_OFF = ("False", "None", "0")


def is_never_asked(ctx: Context, info: FunctionInfo, node: cst.CSTNode) -> bool:
    """Whether a node stands where an option of its function is on, which no call of an unknown function can give it."""
    if info.owner is not None or info.outer is not None or info.settled is not None:
        return False
    linked = ctx.facts.linked
    if linked is not None and linked.shared(f"{ctx.facts.module}.{info.short}"):
        return False
    options = options_on(ctx, info, node)
    calls = ctx.facts.tree.of_type(cst.Call) if options else []
    return any(all(leaves_off(ctx, info, one, call) for call in calls) for one in options)


def options_on(ctx: Context, info: FunctionInfo, node: cst.CSTNode) -> list[str]:
    """The parameters, off by default, that are on wherever a node is run."""
    tree = ctx.facts.tree
    if not tree.holds(info.node.body, node):
        return []
    params = info.node.params
    default = {one.name.value: one.default for one in (*params.params, *params.kwonly_params)}
    given = {
        target.target.value
        for line in tree.within(info.node.body, cst.Assign)
        for target in line.targets
        if isinstance(target.target, cst.Name)
    }
    found = []
    for one in tree.around(node):
        if not isinstance(one, (cst.If, cst.IfExp)) or not tree.holds(one.body, node):
            continue
        name = one.test.value if isinstance(one.test, cst.Name) else ""
        value = default.get(name)
        if isinstance(value, (cst.Name, cst.Integer)) and value.value in _OFF:
            if name not in given:
                found.append(name)
    return found


def leaves_off(ctx: Context, info: FunctionInfo, option: str, call: cst.Call) -> bool:
    """Whether a call does not give a function an option, should it be called there as a value."""
    kind = ctx.facts.kind(call.func)
    if ctx.facts.callee(call) == "functools.partial":
        return all(one.keyword is None or one.keyword.value != option for one in call.args)
    if isinstance(kind, (k.Class, k.Module)):
        return True  # it is another one
    if isinstance(kind, k.Function) and kind.name and not kind.given:
        if ctx.facts.names.get(kind.name) is not info:
            return True
    params = [one.name.value for one in info.node.params.params]
    positional = [one for one in call.args if one.keyword is None and not one.star]
    named = {one.keyword.value for one in call.args if one.keyword is not None}
    if not positional and params[0] not in named and not any(one.star for one in call.args):
        return True  # ``act(inplace=True)`` makes a layer: a function has something to work on
    if any(one.star for one in call.args) or option in named:
        return False
    return option not in params or len(positional) <= params.index(option)
