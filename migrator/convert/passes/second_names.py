"""Parameters that get another name in a roundabout way: ``setattr(self, name, w)``, ``self.keep(w)``, a loop's ``self.w = w``.

torch registers whatever parameter an attribute is given: it trains it, and saves it under that name too.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.becoming import OF_SETATTR, becomes_attribute, is_module
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases
from migrator.convert.own_state import called_function, kept_by_call
from migrator.convert.passes.shared_state import state_in
from migrator.convert.passes.targets import holds_parameter, makes_parameter
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from migrator.source import dotted


@converts(cst.Name, kinds=(k.Tensor,))
def given_whole(rw: Rewriter, node: cst.Name) -> cst.Name | None:
    """``for name, w in weights.items(): setattr(self, name, w)``: the attribute holds the Variable, not its value."""
    return node if becomes_attribute(rw.ctx, node) else None


@converts(cst.Expr, values=(cst.Call,))
def kept_by_another_name(rw: Rewriter, node: cst.Expr) -> None:
    """Raise a Failure where what is kept is a parameter or buffer that has a name: the port would keep its value."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.in_init or not ctx.statements:
        return
    if not isinstance(node.value, cst.Call):
        return
    given = list(_kept(ctx, node.value))
    line = ctx.statements[-1].node
    facts = aliases(ctx, ctx.frame.info) if given else None
    if facts is None or line not in facts.before:
        return
    for value in given:
        if makes_parameter(ctx, value) or holds_parameter(ctx, value):
            continue
        memory = facts.memory(value, facts.before[line])
        path = next((one for one, _, _ in state_in(ctx, ctx.frame.info, memory)), None)
        if path is not None:
            what = f"the parameter or buffer `{path}` gets another name here, and torch both"
            raise Failure(
                node, "MUT001", what, "assign it to the attribute, by a name that is written out"
            )


def _kept(ctx: Context, node: cst.Call) -> Iterator[cst.BaseExpression]:
    """The arguments of a call that a module keeps as its attributes."""
    func = node.func
    if ctx.facts.callee(node) == "builtins.setattr" and len(node.args) == OF_SETATTR:
        name = node.args[1].value
        if is_module(ctx, node.args[0].value) and not isinstance(name, cst.SimpleString):
            yield node.args[2].value
    elif isinstance(func, cst.Attribute) and func.attr.value == "register_parameter":
        given = [
            one.value for one in node.args if one.keyword is None or one.keyword.value == "param"
        ]
        if given and isinstance(given[-1], cst.Name):
            yield given[-1]
    else:
        called = called_function(ctx, node)
        if called is None:
            return
        if called.has_receiver and isinstance(func, cst.Attribute) and is_module(ctx, func.value):
            for value, to in kept_by_call(ctx, called, node):
                if not _is_container(ctx, func.value, to.rpartition(".")[2]):
                    yield value
        if called.settled is None:
            yield from _set_by_name(ctx, called, node)


def _is_container(ctx: Context, holder: cst.BaseExpression, name: str) -> bool:
    """Whether an attribute is a list or dict: what is put into a plain one, torch does not register."""
    owner = ctx.owner if ctx.is_self(holder) else ctx.class_of(ctx.kind(holder))
    kind = owner.attribute(name) if owner is not None else None
    return isinstance(kind, (k.Sequence, k.Mapping, k.Tuple))


def _set_by_name(
    ctx: Context, called: FunctionInfo, node: cst.Call
) -> Iterator[cst.BaseExpression]:
    """What a call hands to ``def keep(self, name, value): setattr(self, name, value)``, or to one with ``**values``."""
    calls = ctx.facts.tree.within(called.node.body, cst.Call)
    setting = [call for call in calls if (dotted(call.func) or "").rpartition(".")[2] in _SETTING]
    names = {name for call in setting for arg in call.args[-1:] for name in syntax.names(arg)}
    yield from (item.value for name, item in bound_arguments(node, called) if name in names)
    if setting and isinstance(called.node.params.star_kwarg, cst.Param):
        known = {one.name.value for one in syntax.named_parameters(called.node.params)}
        yield from (a.value for a in node.args if a.keyword and a.keyword.value not in known)


_SETTING = ("setattr", "register_parameter")
