"""How large what an expression gives is, told by what it is as large as; nothing is known of numbers here."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k

ELEMENTWISE = frozenset(
    "abs neg exp exp2 log log2 log1p log10 sqrt rsqrt relu relu6 sigmoid tanh sin cos tan erf floor ceil round trunc sign "
    "clamp clip clamp_min clamp_max square pow reciprocal softmax log_softmax gelu silu elu leaky_relu softplus mish "
    "masked_fill where add sub subtract mul multiply div divide true_divide maximum minimum fmod remainder nan_to_num "
    "float double long int bool to type_as clone detach contiguous zeros_like ones_like full_like normalize flip roll "
    "cumsum cumprod logical_not isnan lerp".split()
)
"""Functions of torch, and methods, whose result is as large as their arguments together."""
_LIKE_FIRST = frozenset(
    "zeros_like ones_like full_like normalize softmax log_softmax flip roll cumsum cumprod to type_as".split()
)
"""Those whose result is as large as the first alone."""
LAYERS_AS_LARGE = frozenset(
    f"torch.nn.{name}"
    for name in "ReLU ReLU6 GELU SiLU Sigmoid Tanh LeakyReLU ELU Mish Hardswish Softplus Softmax LayerNorm RMSNorm "
    "GroupNorm Identity".split()
)
"""Layers whose output is as large as their input."""
Shape = tuple[str, ...]
NUMBER: Shape = ("number",)
_SCALAR: Shape = ("scalar",)


class Shapes:
    """How large what an expression gives is, told by what it is as large as."""

    def __init__(self, ctx: Context, before: dict[str, k.Kind] | None = None) -> None:
        self.ctx = ctx
        self.before = before or {}
        self.env: dict[str, tuple[Shape | None, k.Kind]] = {}

    def after(
        self, assignments: Sequence[tuple[str, cst.BaseExpression | cst.AugAssign]]
    ) -> Shapes:
        """The names after some assignments; ``x += y`` leaves a tensor as large as it was, and of its type."""
        for name, value in assignments:
            if isinstance(value, cst.AugAssign):
                kind = self.env[name][1] if name in self.env else self.before.get(name, k.UNKNOWN)
                self.env[name] = self.named(name), kind
                continue
            self.env[name] = self.of(value), self.ctx.facts.kind(value)
        return self

    def named(self, name: str) -> Shape | None:
        """The shape of what a name holds."""
        if name in self.env:
            return self.env[name][0]
        kind = self.before.get(name)
        return _SCALAR if isinstance(kind, k.Tensor) and kind.rank == 0 else ("name", name)

    def types_meet(self, name: str, other: Shapes, before: dict[str, k.Kind]) -> bool:
        """Whether a name holds a tensor of one type after both branches."""
        kinds = [
            one.env[name][1] if name in one.env else before.get(name, k.TENSOR)
            for one in (self, other)
        ]
        return meet(*kinds)

    def of(self, node: cst.BaseExpression) -> Shape | None:
        """The shape of an expression; None where it is not known."""
        kind = self.ctx.facts.kind(node)
        if isinstance(node, cst.Name) and node.value in self.env:
            return self.env[node.value][0]
        if k.scalar_type(kind) in ("int", "float", "number") or self._is_limit(node):
            return NUMBER
        if isinstance(kind, k.Tensor) and kind.rank == 0:
            return _SCALAR
        if isinstance(node, cst.Name):
            return ("name", node.value) if isinstance(kind, k.Tensor) else None
        found = self._computed(node)
        if found is not None or not isinstance(kind, k.Tensor):
            return found
        known = self.env.keys() & syntax.names(node).keys()
        return None if known else ("code", syntax.code(syntax.unparenthesized(node)))

    def _is_limit(self, node: cst.BaseExpression) -> bool:
        """``torch.finfo(x.dtype).max``"""
        made = node.value if isinstance(node, cst.Attribute) else None
        names = ("torch.finfo", "torch.iinfo")
        return isinstance(made, cst.Call) and self.ctx.facts.callee(made) in names

    def _computed(self, node: cst.BaseExpression) -> Shape | None:
        if isinstance(node, cst.BinaryOperation):
            if isinstance(node.operator, cst.MatrixMultiply):
                return None
            return _together([self.of(node.left), self.of(node.right)])
        if isinstance(node, cst.UnaryOperation):
            return self.of(node.expression)
        if isinstance(node, cst.Comparison) and len(node.comparisons) == 1:
            return _together([self.of(node.left), self.of(node.comparisons[0].comparator)])
        return self._called(node) if isinstance(node, cst.Call) else None

    def _called(self, node: cst.Call) -> Shape | None:
        kind, name = self.ctx.kind(node.func), self.ctx.facts.callee(node) or ""
        if isinstance(kind, k.Module):
            layer = kind.cls in LAYERS_AS_LARGE and len(node.args) == 1
            return self.of(node.args[0].value) if layer else None
        last = name.rpartition(".")[2]
        if last not in ELEMENTWISE or not name.startswith(("torch.", "Tensor.")):
            return None
        given = [a.value for a in node.args]
        if name.startswith("Tensor.") and isinstance(node.func, cst.Attribute):
            given = [node.func.value, *given]
        if not given:
            return None
        return self.of(given[0]) if last in _LIKE_FIRST else _together([self.of(a) for a in given])


def _together(shapes: Sequence[Shape | None]) -> Shape | None:
    """The shape of what is computed element by element; numbers are as large as anything."""
    if None in shapes:
        return None
    whole = {one for one in shapes if one not in (NUMBER, _SCALAR)}
    if not whole:
        return _SCALAR if _SCALAR in shapes else NUMBER
    return whole.pop() if len(whole) == 1 else None


def meet(one: k.Kind, other: k.Kind) -> bool:
    """Whether two kinds are of tensors of one type."""
    if not isinstance(one, k.Tensor) or not isinstance(other, k.Tensor):
        return False
    return one.dtype == other.dtype or {one.dtype, other.dtype} == {None, "float"}
