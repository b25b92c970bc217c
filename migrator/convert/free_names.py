"""Names of the code around a function: what stands for them is written for everybody there."""

from __future__ import annotations

from collections.abc import Container, Iterable

import libcst as cst

from migrator import syntax
from migrator.assignments import bound
from migrator.convert.containing import holds_tensor
from migrator.convert.context import Context, Failure
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def of_around(ctx: Context, info: FunctionInfo, node: cst.Name) -> frozenset[str]:
    """The memory of what a name stands for that the function does not bind: one of a function around it, of the file.

    Layers and functions have none.
    """
    kind = ctx.kind(node)
    if isinstance(kind, (k.Module, k.Class, k.Function, k.Namespace)):
        return frozenset()
    outer: FunctionInfo | None = info.outer
    while outer is not None:
        if _binds(ctx, outer, node.value):
            return frozenset({f"attr:{node.value}"})
        outer = outer.outer
    if node.value not in ctx.facts.module_env or k.scalar_type(kind) is not None:
        return frozenset()
    if isinstance(kind, (k.Sequence, k.Tuple, k.Mapping)) and not holds_tensor(kind):
        return frozenset()
    return frozenset({f"attr:{node.value}"})


def _binds(ctx: Context, outer: FunctionInfo, name: str) -> bool:
    """Whether a function has a variable or an argument of a name, but for the object whose method it is."""
    if name in outer.params:
        return True
    binding = ctx.facts.tree.within(outer.node.body, cst.AssignTarget, cst.AnnAssign, cst.For)
    return any(name in bound(one.target) for one in binding)


def check_own(
    ctx: Context,
    info: FunctionInfo,
    states: Iterable[Container[str]],
    node: cst.CSTNode,
    name: str,
) -> None:
    """What a function does not bind itself is written for everybody around it, which a rebinding does not do.

    Args:
      states: the names that the function has bound before each of its statements.

    Raises:
      Failure: ``name`` is of the code around ``info``.
    """
    tree, body = ctx.facts.tree, info.node.body
    foreign = not any(name in state for state in states)
    if foreign:  # what a lambda or a comprehension binds is its own
        inner: list[cst.CSTNode] = [n.params for n in tree.within(body, cst.Lambda)]
        inner += [n.target for n in tree.within(body, cst.CompFor)]
        foreign = not any(
            isinstance(n, cst.Name) and n.value == name for one in inner for n in syntax.walk(one)
        )
    else:
        declared = tree.within(body, cst.Nonlocal, cst.Global)
        foreign = any(item.name.value == name for n in declared for item in n.names)
    if foreign:
        raise Failure(
            node,
            "MUT002",
            f"`{name}` of the code around {info.short}() is changed in place",
            "hand it over as an argument and return its new value",
        )


def check_default(ctx: Context, info: FunctionInfo, node: cst.CSTNode, param: str) -> None:
    """``def go(t=x): t += 1``, ``def f(x, total=torch.zeros(4)): total += x``: the default is one tensor for all calls.

    Raises:
      Failure: a function writes to a parameter whose default may be a tensor.
    """
    params = info.node.params
    for one in (*params.posonly_params, *params.params, *params.kwonly_params):
        if one.name.value != param or one.default is None:
            continue
        if isinstance(ctx.kind(one.default), (k.Tensor, k.Unknown)):
            raise Failure(
                node,
                "MUT003",
                f"{info.short}() changes the default of `{param}` in place, which the next call gets",
                f"make `{param}` in the function where none is given, or work on a copy",
            )
