"""Layers that a constructor puts into containers within a container, where neither torch nor Flax finds them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.containing import PUTTING, constructing, levels, put_into
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules import definitions


def becomes_function(name: str) -> bool:
    """Whether a layer of torch is a plain function in the output."""
    rules = definitions.layers(name) if name.startswith("torch.nn.") else ()
    return bool(rules) and all(r.returns.strip("'\"") in ("", "Callable") for r in rules)


def is_layer(kind: k.Kind) -> bool:
    """Whether a value is a module in the output, or may be one: a layer of torch's that is no plain function there."""
    if not isinstance(kind, k.Module):
        return False
    several = kind.among if kind.cls == "torch.nn.Module" and kind.among else (kind,)
    return not all(becomes_function(one.cls) for one in several)


def nests_layers(ctx: Context, owner: ClassInfo, name: str) -> bool:
    """Whether layers stand within a container of ``self.name``: ``self.nets["a"]["b"] = nn.Linear(2, 2)``.

    ``self.blocks.append([nn.Linear(2, 2)])`` puts them there as well, and ``self.nets = {"a": table}`` does if a table
    of the constructor's own has some.
    """
    for method in constructing(ctx, owner):
        found = list(_put(ctx, method))
        tables = _tables(ctx, method, name, found)
        for held, value in found:
            root, depth = _root(held)
            kinds = levels(ctx.facts.kind(value))
            if syntax.is_own(root, name):
                if not depth:
                    next(kinds)  # what stands in the container itself
                elif isinstance(ctx.facts.kind(held), k.Module):
                    continue  # a ModuleList in it
            elif not (isinstance(root, cst.Name) and root.value in tables):
                continue
            if any(isinstance(one, k.Module) and not becomes_function(one.cls) for one in kinds):
                return True
    return False


def _put(
    ctx: Context, method: FunctionInfo
) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """Each container of a method that something is put into, and what."""
    for node in ctx.facts.tree.within(method.node.body, *PUTTING):
        found = put_into(node)
        if found is not None:
            yield found
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args:
            given = node.args[0].value
            if node.func.attr.value == "update" and isinstance(given, cst.Dict):
                yield from ((node.func.value, one.value) for one in given.elements)


def _tables(
    ctx: Context,
    method: FunctionInfo,
    name: str,
    found: list[tuple[cst.BaseExpression, cst.BaseExpression]],
) -> frozenset[str]:
    """The local names of what is put into ``self.name``, be it as it is written out."""
    values = [value for held, value in found if syntax.is_own(_root(held)[0], name)]
    for line in ctx.facts.tree.within(method.node.body, cst.Assign):
        if any(syntax.is_own(one.target, name) for one in line.targets):
            if isinstance(line.value, (cst.Dict, cst.List, cst.Tuple)):
                values += [one.value for one in line.value.elements]
    return frozenset(one.value for one in values if isinstance(one, cst.Name))


def _root(held: cst.BaseExpression) -> tuple[cst.BaseExpression, int]:
    """``self.nets`` and 1 of ``self.nets["a"]`` and of ``self.nets.setdefault("a", {})``."""
    depth = 0
    while True:
        if isinstance(held, cst.Subscript):
            held, depth = held.value, depth + 1
        elif (
            isinstance(held, cst.Call)
            and isinstance(held.func, cst.Attribute)
            and held.func.attr.value in ("setdefault", "get")
        ):
            held, depth = held.func.value, depth + 1
        else:
            return held, depth
