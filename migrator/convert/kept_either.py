"""Attributes that keep a layer, or else a function of the module: ``nn.Linear(8, 9) if own else lambda t: t @ self.w.T``.

What is no layer is kept as a function that is handed the module first, as the functions of a class are.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.closures import names_of_parts, reads_module
from migrator.convert.context import Context
from migrator.convert.stateless import is_stateless
from migrator.infer import ClassInfo
from migrator.infer import kinds as k

_LAYERS = frozenset(
    f"torch.nn.{name}"
    for name in (
        "Linear Bilinear Embedding LayerNorm GroupNorm Sequential Conv1d Conv2d Conv3d ConvTranspose1d "
        "ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d BatchNorm3d"
    ).split()
)
"""Layers that are modules of Flax, too; others become functions."""


def kept_either(ctx: Context) -> dict[tuple[str, str], bool]:
    """The classes and attributes that are only called, and whether a layer may stand there besides functions."""
    if ctx.kept_either is None:
        ctx.kept_either = {}
        given: dict[tuple[str, str], list[cst.Assign]] = {}
        for info, name, node in assigned_attributes(ctx):
            given.setdefault((info.name, name), []).append(node)
        for (cls, name), nodes in given.items():
            leaves = [leaf for node in nodes for leaf in leaves_of(node.value)]
            ways = {_way(ctx, leaf) for leaf in leaves}
            own = any(_reads(ctx, leaf) for leaf in leaves)
            if own and len(leaves) > 1 and "" not in ways:
                if _is_only_called(ctx, ctx.facts.classes[cls], name):
                    ctx.kept_either[cls, name] = not ways.isdisjoint(("layer", "none"))
    return ctx.kept_either


def assigned_attributes(ctx: Context) -> Iterator[tuple[ClassInfo, str, cst.Assign]]:
    """The lines in modules of the file that give an attribute a value, each with its class and the attribute."""
    for info in ctx.facts.classes.values():
        if info.torch_base is None or not ctx.facts.tree.has(info.node):
            continue  # of another file
        for node in ctx.facts.tree.within(info.node, cst.Assign):
            target = node.targets[0].target
            if isinstance(target, cst.Attribute):
                yield info, target.attr.value, node


def leaves_of(node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """``a``, ``b`` and ``c`` of ``a if first else b if second else c``."""
    if isinstance(node, cst.IfExp):
        yield from leaves_of(node.body)
        yield from leaves_of(node.orelse)
    else:
        yield node


def is_method(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a method of the module that reads it: ``self._plain``."""
    kind = ctx.facts.kind(node)
    if not isinstance(node, cst.Attribute) or not isinstance(kind, k.Function):
        return False
    info = ctx.facts.names.get(kind.name)
    if info is None or info.owner is None or info.owner.torch_base is None or info.decorators:
        return False
    plain = isinstance(node.value, cst.Name) and node.value.value == "self"
    usual = info.short not in ("forward", "__call__")
    return plain and usual and ctx.plan.how(info) != "param" and not is_stateless(ctx, info)


def _way(ctx: Context, node: cst.BaseExpression) -> str:
    """How a value is kept: as a function of the module, as the layer that it is, or "" where it cannot be."""
    if isinstance(node, cst.Lambda):
        usable = names_of_parts(ctx, node) is not None and "rngs" not in syntax.names(node)
        return "function" if usable else ""
    if is_method(ctx, node):
        return "method"
    if isinstance(node, cst.Name) and node.value == "None":
        return "none"
    kind = ctx.facts.kind(node)
    if not isinstance(node, cst.Call) or not isinstance(kind, k.Module):
        return ""
    own = ctx.facts.classes.get(kind.cls)
    stays = own is not None and own.torch_base == "torch.nn.Module"
    called = ctx.facts.callee(node) or ""
    return "layer" if (stays or kind.cls in _LAYERS) and called in (kind.cls, "") else ""


def _reads(ctx: Context, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Lambda):
        return reads_module(ctx, node)
    return is_method(ctx, node)


def _is_only_called(ctx: Context, info: ClassInfo, name: str) -> bool:
    """Whether an attribute is bound in the constructor of its class, and else called, or asked whether it is None."""
    if f'"{name}"' in ctx.source.text or f"'{name}'" in ctx.source.text:
        return False
    others = ctx.facts.classes.values()
    family = [
        *info.lineage(),
        *(one for one in others if one is not info and info in one.lineage()),
    ]
    if any(one.settled is not None or name in one.methods for one in family):
        return False
    for node in ctx.source.index.of_type(cst.Attribute):
        if node.attr.value != name:
            continue
        around = ctx.facts.tree.around(node)
        cls = next((one for one in around if isinstance(one, cst.ClassDef)), None)
        if not isinstance(node.value, cst.Name) or node.value.value != "self":
            return False
        if not any(one.node is cls for one in family):
            continue
        outer = around[-1]
        if isinstance(outer, cst.AssignTarget):
            within = [one for one in around if isinstance(one, cst.FunctionDef)]
            built = [one.name.value for one in within] == ["__init__"]
            whole = around[-2]
            if cls is not info.node or not built or len(whole.targets) != 1:
                return False
        elif isinstance(outer, cst.Attribute) and outer.attr.value in ("weight", "bias"):
            continue  # of the layer, where it is one
        elif _is_made_above(ctx, node, around):
            continue
        elif not (isinstance(outer, cst.Call) and outer.func is node) and not _asks_for_none(outer):
            return False
    return True


def _is_made_above(ctx: Context, node: cst.Attribute, around: list[cst.CSTNode]) -> bool:
    """Whether the same block has just given the attribute a layer: ``self.out = nn.Linear(4, 7)``, ``start(self.out)``."""
    depth = max(
        i for i, one in enumerate(around) if isinstance(one, (cst.IndentedBlock, cst.Module))
    )
    block, line = around[depth], (*around, node)[depth + 1]
    made = False
    for one in block.body if isinstance(block, cst.IndentedBlock) else ():
        if one is line:
            return made
        for small in one.body if isinstance(one, cst.SimpleStatementLine) else ():
            if isinstance(small, cst.Assign) and node.deep_equals(small.targets[0].target):
                made = _way(ctx, small.value) == "layer"
    return False


def _asks_for_none(node: cst.CSTNode) -> bool:
    """``self.f is None``, ``self.f is not None``."""
    if not isinstance(node, cst.Comparison) or len(node.comparisons) != 1:
        return False
    only = node.comparisons[0]
    none = isinstance(only.comparator, cst.Name) and only.comparator.value == "None"
    return none and isinstance(only.operator, (cst.Is, cst.IsNot))
