"""``torch.cat([x, self.model(x)], 1)``, where the model may begin with an activation that writes to ``x``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import reads_in
from migrator.convert.context import Context
from migrator.convert.front import beside, in_place_at_front
from migrator.convert.rewriter import Rewriter, Starting, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.symbols import LAYERS
from rules.definitions import module_file

_FILE = module_file("rules.compat.in_place")


@converts(cst.Call, called=Starting(*LAYERS))
def at_front(rw: Rewriter, node: cst.Call) -> Any:
    """``nn.LeakyReLU(0.2, True)`` at the front of a Sequential whose input is read again."""
    ctx = rw.ctx
    if k.in_place(ctx.facts.kinds.get(node)) is not True or node in ctx.wrapped:
        return None
    if not ctx.in_init or not any(node is one for one in _marked(ctx)):
        return None
    ctx.wrapped.add(node)
    try:
        made = rw.visit(node)
    finally:
        ctx.wrapped.discard(node)
    return syntax.with_args(cst.Call(cst.Name(ctx.helpers.need(_FILE, "InPlace"))), [cst.Arg(made)])


def _marked(ctx: Context) -> list[cst.Call]:
    """The layers at the fronts of Sequentials that are run on what is read again."""
    if ctx.at_fronts is None:
        ctx.at_fronts = []
        for owner in ctx.facts.classes.values():
            if owner.settled is not None or not owner.torch_base:
                continue
            for call in ctx.facts.tree.within(owner.node.body, cst.Call):
                if _attribute(ctx, call) and _reads_again(ctx, call):
                    ctx.at_fronts.extend(in_place_at_front(ctx, owner, _attribute(ctx, call)) or ())
    return ctx.at_fronts


def _attribute(ctx: Context, call: cst.Call) -> str:
    """``model`` of ``self.model(x)``."""
    func, kind = call.func, ctx.facts.kind(call.func)
    if not isinstance(kind, k.Module) or kind.cls != "torch.nn.Sequential":
        return ""
    own = isinstance(func, cst.Attribute) and isinstance(func.value, cst.Name)
    given = [a for a in call.args if isinstance(a.value, cst.Name) and not (a.star or a.keyword)]
    if not own or len(given) != 1 or len(call.args) != 1:
        return ""
    assert isinstance(func, cst.Attribute)
    return (
        func.attr.value if isinstance(func.value, cst.Name) and func.value.value == "self" else ""
    )


def _reads_again(ctx: Context, call: cst.Call) -> bool:
    """Whether a statement reads a name beside the call that is given it."""
    around = ctx.facts.tree.around(call)
    line = next((n for n in reversed(around) if isinstance(n, cst.SimpleStatementLine)), None)
    name = call.args[0].value
    assert isinstance(name, cst.Name)
    return line is not None and beside(line, call, name.value) > 0


def run_before(rw: Rewriter, node: cst.Call, owner: ClassInfo | None) -> cst.Name | None:
    """``x, y = run_in_place(self.model, x)`` before the statement, and ``y`` for the call; None where that is not the same."""
    ctx = rw.ctx
    attribute = _attribute(ctx, node)
    if owner is None or not attribute or in_place_at_front(ctx, owner, attribute) is None:
        return None
    name, line = node.args[0].value, ctx.statements[-1] if ctx.statements else None
    if not isinstance(name, cst.Name) or line is None or not line.may_hoist or line.before:
        return None
    if any(effect is not node for effect in line.effects) or not isinstance(
        ctx.kind(name), k.Tensor
    ):
        return None
    if reads_in(line.node, name.value) != 1 + beside(line.node, node, name.value):
        return None
    if not beside(line.node, node, name.value):
        return None
    helper = ctx.helpers.need(_FILE, "run_in_place")
    result = ctx.unused("y")
    func = syntax.code(rw.visit(node.func))
    made = f"{name.value}, {result} = {helper}({func}, {name.value})"
    line.before.append(syntax.statement(made))
    return cst.Name(result)
