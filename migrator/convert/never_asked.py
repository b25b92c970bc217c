"""Writes behind an option that a call does not switch on: ``def hard_sigmoid(x, inplace=False)``, handed on as ``gate_fn``.

Who gets such a function as a value calls it with what it works on alone. Then the branch that writes to the argument is
not run; where some call might switch the option on that is not known.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.options import leaves_default, options_handed, options_on


def is_never_asked(ctx: Context, info: FunctionInfo, node: cst.CSTNode) -> bool:
    """Whether a node stands where an option of its function is on, which no call of an unknown function can give it."""
    if info.owner is not None or info.outer is not None or info.settled is not None:
        return False
    linked = ctx.facts.linked
    if linked is not None and linked.shared(f"{ctx.facts.module}.{info.short}"):
        return False
    options = [*options_on(ctx.facts.tree, info, node), *options_handed(ctx.facts.tree, info, node)]
    calls = ctx.facts.tree.of_type(cst.Call) if options else []
    return any(all(_leaves_off(ctx, info, one, call) for call in calls) for one in options)


def _leaves_off(ctx: Context, info: FunctionInfo, option: str, call: cst.Call) -> bool:
    """Whether a call does not give a function an option, should it be called there as a value."""
    kind, callee = ctx.facts.kind(call.func), ctx.facts.callee(call)
    if callee == "functools.partial":
        given = syntax.with_args(call, list(call.args[1:]))
        positional = any(one.keyword is None for one in given.args)
        return not positional and leaves_default(info, option, given)
    if callee in _CALLING:
        return len(call.args) <= _CALLING[callee]
    if isinstance(kind, (k.Class, k.Module)):
        return True  # it is another one
    if isinstance(kind, k.Function) and kind.name and not kind.given:
        if ctx.facts.names.get(kind.name) is not info:
            return True
    params = syntax.parameters(info.node)
    positional = any(one.keyword is None for one in call.args)
    named = {one.keyword.value for one in call.args if one.keyword is not None}
    if not positional and not any(one.star for one in call.args):
        if params and next(iter(params)) not in named:
            return True  # ``act(inplace=True)`` makes a layer: a function has something to work on
    return leaves_default(info, option, call)


_CALLING = {"builtins.map": 2, "itertools.starmap": 0}
"""What calls the functions that it is given, and up to how many arguments it hands them one alone."""
