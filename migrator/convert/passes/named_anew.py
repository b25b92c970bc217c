"""``self.gain = self.weight`` outside of a constructor: torch registers the parameter under its second name as well."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.kept import registered, registers
from migrator.convert.passes.held import assigned
from migrator.convert.passes.targets import is_variable, makes_parameter
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k


@converts(cst.Assign, targets=(cst.Attribute,))
def parameter_named_anew(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure: from then on the state_dict has both names, and an optimizer of one trains the other.

    What stands there in the output is the value of the parameter, which is read once.
    """
    ctx = rw.ctx
    frame = ctx.frame
    if ctx.in_init or frame is None or frame.info.owner is None or not frame.info.owner.torch_base:
        return
    if not any(_is_parameter(ctx, one) for one in _choices(node.value)):
        return
    for one in node.targets:
        target = one.target
        if not isinstance(target, cst.Attribute) or not ctx.is_self(target.value):
            continue
        name = target.attr.value
        values = assigned(ctx, frame.info.owner, name)
        if any(makes_parameter(ctx, one) for one in values) or _is_registered(
            frame.info.owner, name
        ):
            continue  # it is registered already, and what replaces it is looked after elsewhere
        raise Failure(
            node,
            "MUT001",
            f"`self.{name}` becomes a second name of a parameter, which torch registers and saves under both",
            "give it a local name, or keep a new tensor: `self.gain = self.weight * 1`",
        )


def _is_registered(owner: ClassInfo, name: str) -> bool:
    """Whether a class, or one that it derives from, registers a buffer or a parameter of that name."""
    calls = (c for one in owner.lineage() for c in syntax.walk(one.node))
    named = (registered(c, 0, "name") for c in calls if isinstance(c, cst.Call) and registers(c))
    return any(isinstance(one, cst.SimpleString) and one.evaluated_value == name for one in named)


def _choices(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    if isinstance(value, cst.IfExp):
        return [*_choices(value.body), *_choices(value.orelse)]
    return [value]


def _is_parameter(ctx: Context, value: cst.BaseExpression) -> bool:
    kind = ctx.kind(value)
    named = isinstance(value, (cst.Name, cst.Attribute, cst.Subscript))
    return named and is_variable(ctx, value) and isinstance(kind, k.Tensor) and kind.role == "param"
