"""Numbers by their hints that are used as only tensors can be: written by index, asked for methods of tensors.

``def divide(a: float, b: float)`` with ``div = a / b`` and ``div[div != div] = 0.0`` runs on tensors in torch, whatever
the hints say; read as numbers such lines would stay as they are, and JAX's arrays refuse them or mean something else.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.symbols import tensor_method

_NUMBERS = frozenset({"int", "float", "bool", "complex", "number"})
_OF_NUMBERS = frozenset(
    name for kind in (int, float, bool, complex) for name in dir(kind)
) | frozenset({"item", "tolist"})
"""Methods that numbers have, Python's or numpy's, and what is the same of an array."""


@converts(cst.Call)
def method_of_tensors(rw: Rewriter, node: cst.Call) -> None:
    """Raise a Failure for ``div.clamp_(0)``, ``div.masked_fill(m, 0)``, ``div.std()`` of a number."""
    func = node.func
    if isinstance(func, cst.Attribute):
        name = func.attr.value
        if tensor_method(name) and name not in _OF_NUMBERS:
            _check(
                rw, func.value, f"asked for .{name}()", "MUT002" if name.endswith("_") else "API005"
            )


@converts(cst.Assign, targets=(cst.Subscript,))
def written_by_index(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure for ``div[mask] = 0.0`` of a number."""
    for target in node.targets:
        if isinstance(target.target, cst.Subscript):
            _check(rw, target.target.value, "written by index")


@converts(cst.AugAssign)
def item_augmented(rw: Rewriter, node: cst.AugAssign) -> None:
    """Raise a Failure for ``div[mask] += 1`` of a number."""
    if isinstance(node.target, cst.Subscript):
        _check(rw, node.target.value, "written by index")


def _check(rw: Rewriter, held: cst.BaseExpression, what: str, rule: str = "MUT002") -> None:
    """Raise a Failure where what only a tensor can be is a number by all that is known of it."""
    kind = rw.ctx.kind(held)
    if isinstance(kind, k.Optional):
        kind = kind.inner
    scalar = k.scalar_type(kind)
    if scalar in _NUMBERS:
        raise Failure(
            held,
            rule,
            f"`{syntax.code(held)}` is {what}, and by the hints it is a Python number",
            "correct the hints: only a tensor can be",
        )
