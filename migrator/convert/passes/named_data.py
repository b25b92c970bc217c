"""``w = getattr(layer, name); w.data = w.data.half()`` for names that are written down: CLIP's ``convert_weights``.

What a module holds under such a name has the same name in Flax, and a cast asks for no order of axes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound, bound_by
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_ATTENTION = frozenset(
    "in_proj_weight q_proj_weight k_proj_weight v_proj_weight in_proj_bias bias_k bias_v".split()
)
"""What torch's attention holds itself, and its counterpart under the same names; some of them only where it needs them."""
_OF_LAYERS = frozenset("weight bias running_mean running_var num_batches_tracked".split())
_CASTS = {
    "half": "float16",
    "float": "float32",
    "bfloat16": "bfloat16",
}


@converts(cst.Assign, targets=(cst.Attribute,), values=(cst.Call,))
def cast(rw: Rewriter, node: cst.Assign) -> Any:
    """``w.data = w.data.half()`` → ``set_dtype(layer, name, jnp.float16)``"""
    found = _looked_up(rw.ctx, node)
    if found is None:
        return None
    owner, name, dtype = found
    helper = rw.ctx.helpers.need(module_file("rules.compat.state"), "set_dtype")
    rw.ctx.helpers.use("jnp")
    given = [rw.visit(owner), rw.visit(name), syntax.parse(f"jnp.{dtype}")]
    call = syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(one) for one in given])
    return cst.Expr(call)


@converts(cst.Call, called=("builtins.getattr",))
def looked_up(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(layer, name)`` → ``getattr(layer, name, None)``: in Flax the layer has no more than it needs."""
    tree = rw.ctx.source.index
    assign = tree.around(node)[-1] if tree.has(node) else None
    if len(node.args) != 2 or not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return None
    target = assign.targets[0].target
    function = _function(rw.ctx, node)
    if not isinstance(target, cst.Name) or function is None:
        return None
    lines = [one for one in tree.within(function, cst.Assign) if _casts(one) == target.value]
    if not lines or any(_looked_up(rw.ctx, one) is None for one in lines):
        return None
    args = [cst.Arg(rw.visit(one.value)) for one in node.args]
    return syntax.with_args(node, [*args, cst.Arg(cst.Name("None"))])


def _function(ctx: Context, node: cst.CSTNode) -> cst.FunctionDef | None:
    around = ctx.source.index.around(node)
    inner = [one for one in around if isinstance(one, (cst.FunctionDef, cst.Lambda))]
    return inner[-1] if inner and isinstance(inner[-1], cst.FunctionDef) else None


def _casts(node: cst.Assign) -> str:
    """``w`` of ``w.data = w.data.half()``."""
    target = node.targets[0].target
    call = node.value
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return ""
    if not isinstance(target.value, cst.Name) or target.attr.value != "data":
        return ""
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return ""
    same = call.func.value.deep_equals(target)
    return target.value.value if same and call.func.attr.value in _CASTS else ""


def _looked_up(
    ctx: Context, node: cst.Assign
) -> tuple[cst.BaseExpression, cst.BaseExpression, str] | None:
    """The module and the name of what gets another dtype, and which."""
    name, tree = _casts(node), ctx.source.index
    function = _function(ctx, node) if name and tree.has(node) else None
    if function is None:
        return None
    loops = [one for one in tree.around(node) if isinstance(one, cst.For)]
    loop = loops[-1] if loops and tree.holds(function, loops[-1]) else None
    if loop is None:
        return None
    made = _bindings(ctx, loop, name)
    assign = tree.around(made[0])[-1] if len(made) == 1 else None
    if not isinstance(assign, cst.Assign) or not isinstance(assign.value, cst.Call):
        return None
    call = assign.value
    if ctx.facts.callee(call) != "builtins.getattr" or len(call.args) != 2:
        return None
    if any(one.star or one.keyword for one in call.args):
        return None
    owner, told = (one.value for one in call.args)
    if not isinstance(owner, cst.Name) or not isinstance(ctx.kind(owner), (k.Module, k.Unknown)):
        return None
    if _bindings(ctx, loop, owner.value) or len(_bindings(ctx, function, owner.value)) != 1:
        return None
    if not isinstance(told, cst.Name) or _bindings(ctx, loop, told.value) != [loop]:
        return None
    if not isinstance(loop.target, cst.Name) or loop.target.value != told.value:
        return None
    texts = _texts(loop.iter, {})
    if not texts or not all(_is_kept(ctx, one) for one in texts):
        return None
    assert isinstance(node.value, cst.Call)
    assert isinstance(node.value.func, cst.Attribute)
    return owner, told, _CASTS[node.value.func.attr.value]


def _bindings(ctx: Context, where: cst.CSTNode, name: str) -> list[cst.CSTNode]:
    """What binds a name in a part of the file."""
    every = ctx.source.index.within(where, *BINDING)
    return [one for one in every if name in bound(bound_by(one))]


def _is_kept(ctx: Context, name: str) -> bool:
    """Whether what a module holds under a name has it in Flax, too."""
    if name in _ATTENTION:
        return True
    if name in _OF_LAYERS or name.startswith(("weight_", "bias_", "parametrizations")):
        return False
    kinds = [c.attributes[name] for c in ctx.facts.classes.values() if name in c.attributes]
    inner = [one.inner if isinstance(one, k.Optional) else one for one in kinds]
    return any(isinstance(one, k.Tensor) and bool(one.role) for one in inner)


def _texts(node: cst.BaseExpression, known: Mapping[str, str]) -> list[str] | None:
    """The texts of ``["a", *[f"{s}_b" for s in ["c", "d"]]]``; None where they are not written down."""
    match node:
        case cst.SimpleString():
            text = node.evaluated_value
            return [text] if isinstance(text, str) else None
        case cst.FormattedString(parts):
            found = ""
            for part in parts:
                if isinstance(part, cst.FormattedStringText):
                    found += part.value
                elif (
                    isinstance(part, cst.FormattedStringExpression)
                    and isinstance(part.expression, cst.Name)
                    and part.expression.value in known
                    and part.conversion is None
                    and part.format_spec is None
                ):
                    found += known[part.expression.value]
                else:
                    return None
            return [found]
        case cst.Name(value) if value in known:
            return [known[value]]
        case cst.List(elements) | cst.Tuple(elements):
            return _all(_texts(one.value, known) for one in elements)
        case cst.ListComp(elt, cst.CompFor(cst.Name(name), of, [], None)):
            inner = _texts(of, known)
            if inner is None:
                return None
            return _all(_texts(elt, {**known, name: one}) for one in inner)
    return None


def _all(parts: Iterator[list[str] | None]) -> list[str] | None:
    every = list(parts)
    return None if None in every else [text for one in every for text in one or ()]
