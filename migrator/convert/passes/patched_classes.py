"""``nn.ReLU.forward = mine``: torch's own classes that a program changes for all that are made of them."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_OF_NO_EFFECT = frozenset(
    "reset_parameters __constants__ __repr__ __str__ __doc__ extra_repr".split()
)
"""What no result depends on: first values are drawn anew, or loaded, and texts are for people."""

_RUN = frozenset({"forward", "__call__", "__init__"})


@converts(cst.Assign, targets=(cst.Attribute,))
def assigned(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure for ``nn.ReLU.forward = mine``, ``torch.Tensor.double = mine``."""
    for target in (one.target for one in node.targets):
        if isinstance(target, cst.Attribute):
            _check(rw.ctx, target, target.value, target.attr.value)


@converts(cst.Call, called=("builtins.setattr",))
def set_by_name(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for ``setattr(nn.ReLU, "forward", mine)``."""
    if rw.ctx.facts.callee(node) == "builtins.setattr" and len(node.args) == 3:
        name = rw.ctx.facts.kind(node.args[1].value)
        text = name.value if isinstance(name, k.Const) and isinstance(name.value, str) else ""
        _check(rw.ctx, node, node.args[0].value, text)


def _check(ctx: Context, node: cst.CSTNode, holder: cst.BaseExpression, name: str) -> None:
    kind = ctx.facts.kind(holder)
    if name in _OF_NO_EFFECT or not isinstance(kind, k.Class):
        return
    any_class = k.is_any_class(kind) and not kind.among and name in _RUN
    if any_class or any(one.startswith("torch.") for one in (kind.name, *kind.among)):
        what = f"`{name}` is set for all of `{syntax.code(holder)}`, a class of torch's"
        raise Failure(node, "API001", what, "derive a class of your own from it")
