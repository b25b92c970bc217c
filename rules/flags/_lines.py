"""What flag rules say about a line: masks widened to a tensor's rank, the statement around a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from rules.below import children
from rules.registry import FlagContext

REDUCTIONS = frozenset(
    ["sum", "mean", "max", "min", "amax", "amin", "any", "all", "prod", "std", "var"]
)
"""Reductions whose JAX form takes ``where=``."""
_JAX_NAME = {"amax": "max", "amin": "min"}
_INITIAL = {"max": ", initial=-jnp.inf", "min": ", initial=jnp.inf"}


def arguments(call: cst.Call, *names: str) -> dict[str, cst.BaseExpression]:
    """The arguments of a call by parameter name; starred ones are left out."""
    found: dict[str, cst.BaseExpression] = {}
    for position, item in enumerate(call.args):
        if item.star:
            continue
        if item.keyword is not None:
            found[item.keyword.value] = item.value
        elif position < len(names):
            found[names[position]] = item.value
    return found


def method(call: cst.Call) -> tuple[cst.BaseExpression, str] | None:
    """Receiver and name of ``x.name(…)``."""
    if type(call.func) is cst.Attribute:
        return call.func.value, call.func.attr.value
    return None


def receiver(call: cst.Call) -> cst.CSTNode:
    """``x`` of ``x.name(…)``, else what is called."""
    return call.func.value if isinstance(call.func, cst.Attribute) else call.func


def statement(ctx: FlagContext) -> cst.CSTNode | None:
    """The innermost statement around the node."""
    for node in reversed(ctx.parents):
        if isinstance(node, (cst.BaseSmallStatement, cst.BaseCompoundStatement)):
            return node
    return None


def below(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """A node and all below it."""
    waiting = [node]
    while waiting:
        found = waiting.pop()
        yield found
        waiting.extend(children(found))


def targets(node: cst.CSTNode | None) -> list[str]:
    """The plain names an assignment binds, in order."""
    if not isinstance(node, cst.Assign):
        return []
    return [name for item in node.targets for name in _names(item.target)]


def _names(node: cst.CSTNode) -> Iterator[str]:
    if isinstance(node, cst.Name):
        yield node.value
    elif isinstance(node, (cst.Tuple, cst.List)):
        for element in node.elements:
            yield from _names(element.value)


def names(node: cst.CSTNode) -> set[str]:
    """Every name that stands in an expression."""
    found = {node.value} if isinstance(node, cst.Name) else set()
    for child in children(node):
        found |= names(child)
    return found


def grouped(text: str, node: cst.CSTNode) -> str:
    """The text of an expression so that ``.name`` or ``[…]`` may follow."""
    simple = (cst.Name, cst.Attribute, cst.Call, cst.Subscript)
    return text if isinstance(node, simple) or getattr(node, "lpar", None) else f"({text})"


def widened(ctx: FlagContext, x: cst.CSTNode, mask: cst.CSTNode) -> str:
    """The mask with as many axes as the tensor it selects from."""
    text = ctx.text(mask)
    have, want = ctx.rank(mask), ctx.rank(x)
    if isinstance(mask, cst.Comparison) and ctx.text(mask.left) == ctx.text(x):
        return text
    if have is None or want is None:
        return text
    if want > have:
        return f"{grouped(text, mask)}[{', '.join([':'] * have + ['None'] * (want - have))}]"
    return text


def widening(ctx: FlagContext, x: cst.CSTNode, mask: cst.CSTNode) -> str:
    """What to say beside ``widened`` where the ranks are not known: the mask may need axes."""
    own = isinstance(mask, cst.Comparison) and ctx.text(mask.left) == ctx.text(x)
    if own or (ctx.rank(x) is not None and ctx.rank(mask) is not None):
        return ""
    return f" (`{ctx.text(mask)}` widened to the rank of `{ctx.text(x)}`)"


def masked_reduction(
    ctx: FlagContext, x: cst.CSTNode, mask: cst.CSTNode, name: str, axis: str | None
) -> str:
    """``jnp.mean(x, axis=0, where=mask[:, None])`` for ``x[mask].mean(0)``."""
    name = _JAX_NAME.get(name, name)
    have = ctx.rank(mask)
    if axis in ("0", "dim=0", "axis=0"):
        axes = ", axis=0" if have in (None, 1) else f", axis={tuple(range(have))}"
    else:
        axes = f", {axis}" if axis else ""
    where = widened(ctx, x, mask)
    return f"jnp.{name}({ctx.text(x)}{axes}{_INITIAL.get(name, '')}, where={where})"


def sentence(parts: Sequence[Any]) -> str:
    """Alternatives in one sentence: ``a, b or c``."""
    words = [str(p) for p in parts]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
