"""Containers of layers in what a constructor is given, of which nothing is known: ``for layer in other.net``.

torch goes over a Sequential, a ModuleList and a list alike, Flax over no Sequential. What becomes of each item says
whether they are layers.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import kinds as k

_OF_LAYERS = frozenset(
    "weight bias in_features out_features in_channels out_channels kernel_size num_features parameters "
    "named_parameters children modules state_dict load_state_dict".split()
)
_FILLING = frozenset("append add_module insert extend register_module".split())


def goes_over_layers(ctx: Context, node: cst.Attribute) -> bool:
    """Whether a constructor goes over ``other.net`` as over layers, with nothing known of ``other``."""
    if not ctx.in_init or ctx.frame is None or not ctx.facts.tree.has(node):
        return False
    if not isinstance(ctx.kind(node), k.Unknown) or not isinstance(ctx.kind(node.value), k.Unknown):
        return False
    around = ctx.facts.tree.around(node)
    for one in reversed(around):
        if isinstance(one, cst.CompFor):
            comp = around[around.index(one) - 1]
            return _are_layers(
                ctx, set(syntax.names(one.target)), [_element(comp), *one.ifs], around
            )
        if isinstance(one, cst.For):
            return _are_layers(ctx, set(syntax.names(one.target)), [one.body], [])
        if isinstance(one, cst.Call) and ctx.facts.callee(one) == "builtins.list":
            return _makes_modules(ctx, around)
        if isinstance(one, cst.BaseStatement | cst.BaseSmallStatement):
            return False
    return False


def _are_layers(
    ctx: Context, names: set[str], parts: list[cst.CSTNode], around: list[cst.CSTNode]
) -> bool:
    """Whether items of some names are used as layers; or are all that is kept, in a list that becomes modules."""
    tree = ctx.facts.tree
    if any(isinstance(one, cst.Name) and one.value in names for one in parts):
        return _makes_modules(ctx, around)
    uses = (n for part in parts for n in tree.within(part, cst.Name) if n.value in names)
    return any(_is_layer(ctx, use) for use in uses)


def _makes_modules(ctx: Context, around: list[cst.CSTNode]) -> bool:
    calls = (one for one in reversed(around) if isinstance(one, cst.Call))
    names = (ctx.facts.callee(one) or "" for one in calls)
    return any(n in ("torch.nn.Sequential", "torch.nn.ModuleList") for n in names)


def _is_layer(ctx: Context, use: cst.Name) -> bool:
    *_, above, parent = [None, None, *ctx.facts.tree.around(use)]
    if isinstance(parent, cst.Attribute):
        return parent.value is use and parent.attr.value in _OF_LAYERS
    if not isinstance(parent, cst.Arg) or not isinstance(above, cst.Call):
        return False
    if ctx.facts.callee(above) == "builtins.isinstance":
        return any(kind.name.startswith("torch.nn.") for kind in _classes(ctx, above))
    func = above.func
    fills = isinstance(func, cst.Attribute) and func.attr.value in _FILLING
    return fills and isinstance(func, cst.Attribute) and isinstance(ctx.kind(func.value), k.Module)


def _classes(ctx: Context, asked: cst.Call) -> Iterator[k.Class]:
    """The classes that ``isinstance`` asks for."""
    for one in [
        asked.args[-1].value,
        *ctx.facts.tree.within(asked.args[-1].value, cst.Attribute, cst.Name),
    ]:
        kind = ctx.kind(one)
        if isinstance(kind, k.Class):
            yield kind


def _element(comp: cst.CSTNode) -> cst.BaseExpression:
    """What each round of a comprehension gives; of a dict its value."""
    made: cst.BaseExpression = comp.value if isinstance(comp, cst.DictComp) else comp.elt  # type: ignore[attr-defined]
    return made
