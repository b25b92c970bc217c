"""TRC: gradients written by hand, where they rest on what JAX has not."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.infer.recomputing import recomputes
from rules.below import children
from rules.definitions import ops
from rules.registry import Advice, FlagContext, flag

_BASES = frozenset(["torch.autograd.Function", "torch.autograd.function.Function"])
_TRACED = ("forward", "backward", "setup_context")
_DECORATORS = {
    "staticmethod",
    "classmethod",
    "torch.autograd.function.once_differentiable",
    "torch.cuda.amp.custom_fwd",
    "torch.cuda.amp.custom_bwd",
    "torch.amp.custom_fwd",
    "torch.amp.custom_bwd",
    "torch.no_grad",
    "torch.inference_mode",
}
"""Decorators that change nothing: torch keeps no graph inside of an autograd function as it is."""
_CALLED = frozenset(["save_for_backward", "mark_non_differentiable", "set_materialize_grads"])
_COMPLEX = frozenset(
    "complex complex64 complex128 cfloat cdouble conj conj_physical resolve_conj real imag angle polar "
    "view_as_complex view_as_real fft ifft fft2 ifft2 fftn ifftn rfft rfft2 rfftn irfft irfft2 irfftn stft istft "
    "is_complex mH H".split()
)


@flag(
    "TRC009",
    "autograd-function",
    cst.ClassDef,
    effort=2.0,
    what="a torch.autograd.Function that jax.custom_vjp does not cover",
    why="JAX asks for a function of arrays and one of what it kept and the incoming gradients; anything else that "
    "torch lets the two do with each other, or with their arguments, has to be thought through.",
    example=(
        "class Round(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        ctx.mark_dirty(x)\n        return x.round_()\n\n    @staticmethod\n"
        "    def backward(ctx, grad):\n        return grad"
    ),
    instead=(
        "class Round(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x.round()\n\n    @staticmethod\n    def backward(ctx, grad):\n        return grad"
    ),
)
def autograd_function(node: cst.ClassDef, ctx: FlagContext) -> Advice | None:
    """Classes that derive from ``torch.autograd.Function`` and do more than compute and keep values."""
    base = next((b.value for b in node.bases if _is_base(b.value, node, ctx)), None)
    why = next(_obstacles(node, ctx), None) if base is not None else None
    if why is None or recomputes(node):
        return None
    name = node.name.value
    return Advice(
        f"write `{name.lower()} = jax.custom_vjp(forward)` with "
        f"`{name.lower()}.defvjp(forward_with_residuals, backward)`",
        node=base,
        what=f"`{name}` is a torch.autograd.Function {why}",
    )


def _methods(node: cst.ClassDef) -> dict[str, cst.FunctionDef]:
    return {item.name.value: item for item in node.body.body if isinstance(item, cst.FunctionDef)}


def _is_base(base: cst.BaseExpression, node: cst.ClassDef, ctx: FlagContext) -> bool:
    """Whether a base makes a class an autograd function: torch's own, or one that gives its methods a ``ctx``."""
    name = ctx.qualified_name(base)
    if name is None or not name.startswith("torch."):
        traced = [m for n, m in _methods(node).items() if n in _TRACED]
        first = [m.params.params[_bound(m, ctx) :][:1] for m in traced]
        return any(param.name.value == "ctx" for params in first for param in params)
    return name in _BASES


def _obstacles(node: cst.ClassDef, ctx: FlagContext) -> Iterator[str]:
    """What of a class is not understood."""
    methods = _methods(node)
    for name in ("jvp", "vmap"):
        if name in methods:
            yield f"with a {name}()"
    for name in _TRACED:
        if name in methods:
            yield from _of_method(methods[name], "setup_context" in methods, ctx)


def _of_method(method: cst.FunctionDef, split: bool, ctx: FlagContext) -> Iterator[str]:
    name = method.name.value
    decorators = [_name(d.decorator, ctx) for d in method.decorators]
    if not {"staticmethod", "classmethod"} & set(decorators):
        yield f"whose {name}() is no staticmethod"
    if not set(decorators) <= _DECORATORS:
        yield f"whose {name}() is decorated"
    params = method.params.params[_bound(method, ctx) :]
    if not params or method.params.kwonly_params:
        yield f"with an unusual signature of {name}()"
    elif name != "forward" or not split:
        yield from _of_context(method, params[0].name.value)
    for item in _walk(method.body):
        if isinstance(item, cst.Call) and any(rule.draws for rule in ops(ctx.callee(item) or "")):
            yield f"whose {name}() draws random numbers"
        word = item.attr.value if isinstance(item, cst.Attribute) else ""
        if word in _COMPLEX:
            yield "of complex numbers, whose gradients are conjugated in torch"


def _bound(method: cst.FunctionDef, ctx: FlagContext) -> int:
    """How many parameters stand before the context: the class of a classmethod."""
    return sum(_name(d.decorator, ctx) == "classmethod" for d in method.decorators)


def _of_context(method: cst.FunctionDef, ctx: str) -> Iterator[str]:
    """Uses of the context other than keeping values, reading them and taking leave of it."""
    read: set[cst.CSTNode] = set()
    for item in _walk(method.body):
        if isinstance(item, cst.Attribute) and isinstance(item.value, cst.Name):
            read.add(item.value)
        if isinstance(item, cst.Del):
            read.update(_walk(item.target))
        if isinstance(item, cst.Call) and isinstance(item.func, cst.Attribute):
            owner, called = item.func.value, item.func.attr.value
            if isinstance(owner, cst.Name) and owner.value == ctx and called not in _CALLED:
                yield f"that calls {ctx}.{called}()"
    for item in _walk(method.body):
        if isinstance(item, cst.Name) and item.value == ctx and item not in read:
            yield f"that hands {ctx} on"


def _name(node: cst.BaseExpression, ctx: FlagContext) -> str:
    if isinstance(node, cst.Name) and node.value in ("staticmethod", "classmethod"):
        return node.value
    target = node.func if isinstance(node, cst.Call) else node
    return ctx.qualified_name(target) or ""


def _walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    yield node
    for child in children(node):
        yield from _walk(child)
