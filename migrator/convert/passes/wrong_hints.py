"""Numbers by their hints that are written to in place, which Python's numbers cannot be.

``def divide(a: float, b: float)`` with ``div = a / b`` and ``div[div != div] = 0.0`` runs on tensors in torch, whatever
the hints say; read as numbers its writes would stay as they are, and JAX's arrays refuse them.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_NUMBERS = frozenset({"int", "float", "bool", "complex", "number"})


@converts(cst.Call)
def written_by_method(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for ``div.clamp_(0)`` of a number."""
    func = node.func
    if isinstance(func, cst.Attribute):
        name = func.attr.value
        if name.endswith("_") and not name.startswith("_"):
            _check(rw, func.value)


@converts(cst.Assign, targets=(cst.Subscript,))
def written_by_index(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure for ``div[mask] = 0.0`` of a number."""
    for target in node.targets:
        if isinstance(target.target, cst.Subscript):
            _check(rw, target.target.value)


@converts(cst.AugAssign)
def item_augmented(rw: Rewriter, node: cst.AugAssign) -> None:
    """Raise a Failure for ``div[mask] += 1`` of a number."""
    if isinstance(node.target, cst.Subscript):
        _check(rw, node.target.value)


def _check(rw: Rewriter, held: cst.BaseExpression) -> None:
    """Raise a Failure where what is written to is a number by all that is known of it."""
    kind = rw.ctx.kind(held)
    if isinstance(kind, k.Optional):
        kind = kind.inner
    scalar = k.scalar_type(kind)
    if scalar in _NUMBERS:
        raise Failure(
            held,
            "MUT002",
            f"`{syntax.code(held)}` is written in place, and by the hints it is a Python number",
            "correct the hints: what is written in place is a tensor",
        )
