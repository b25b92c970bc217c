"""Walks over parts of modules, ``net.children()``, ``net.parameters()``: in torch's order."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.nested_layers import becomes_function
from migrator.convert.own_modes import sets_mode
from migrator.convert.passes import transposed
from migrator.convert.passes.child_walks import keeps_order, lists_them_once
from migrator.convert.passes.containers import layers_of
from migrator.convert.passes.kept_methods import kept_by_name
from migrator.convert.passes.sets_each import sets_each
from migrator.convert.passes.unordered import asks_for_type, asks_of_any, in_any_order
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file

WALKS = frozenset(
    "modules children named_modules named_children parameters named_parameters".split()
)


def walk_of(rw: Rewriter, node: cst.Call, method: str) -> cst.BaseExpression:
    """``net.children()`` → ``children(net)``: in torch's order, with the layers that are functions now.

    Flax sorts attributes by name once a module went through jit, so that a forward pass cannot go by their order.
    """
    ctx = rw.ctx
    assert isinstance(node.func, cst.Attribute)
    receiver = node.func.value
    ordered = "parameters" not in method
    _check_arguments(node, method)
    if method == "children" and lists_them_once(rw, node):
        return layers_of(rw, receiver)
    if method == "parameters" and asks_for_type(ctx, node) and not node.args:
        name = ctx.helpers.need(module_file("rules.compat.named"), "any_parameters")
        return cst.Call(cst.Name(name), [cst.Arg(rw.visit(receiver))])
    if ordered and ctx.frame is not None and sets_mode(ctx, ctx.frame.info):
        ordered = not in_any_order(ctx, node)  # ``for m in self.modules(): … m.eval()``
    if ordered and not ctx.in_init and in_forward(ctx.frame.info if ctx.frame else None):
        if method in _NOTED and ctx.is_self(receiver) and notes_order(ctx, ctx.owner):
            name = ctx.helpers.need(module_file("rules.compat.children"), _NOTED[method])
            return cst.Call(cst.Name(name), [cst.Arg(receiver)])
        if sets_each(ctx, node) or asks_of_any(ctx, node):
            pass
        elif method not in _NOTED or not keeps_order(ctx, receiver):
            raise Failure(
                node,
                "API007",
                f"the forward pass goes by the order of .{method}(), which Flax does not keep",
                "list the layers in an nn.ModuleList or nn.Sequential",
            )
    if not ordered and not ctx.in_init and in_forward(ctx.frame.info if ctx.frame else None):
        if not in_any_order(ctx, node) and not _hands_out(ctx):
            raise Failure(
                node,
                "API007",
                f"what the forward pass computes may go by the order of .{method}(), which Flax does not keep",
                "name the parameters that are meant",
            )
    if not ordered:
        transposed.check(ctx, node)
    exact = _EXACT.get(method, "") if ctx.traverses else ""
    if ordered and not exact:
        _check_functions(rw, node, receiver)
    file = module_file("rules.compat.children" if exact else "rules.compat.named")
    name = ctx.helpers.need(file, exact or method)
    return cst.Call(
        cst.Name(name), [cst.Arg(rw.visit(receiver)), *(rw.visit(a) for a in node.args)]
    )


def _check_arguments(node: cst.Call, method: str) -> None:
    """Raise a Failure for what torch's walks may be told and those here not: ``remove_duplicate=False``."""
    places = iter(_PLACES.get(method, ()))
    for item in node.args:
        name = item.keyword.value if item.keyword is not None else next(places, "")
        if item.star or name != "prefix":
            what = f".{method}() is told `{syntax.code(item.value)}`, and the walk here goes over all, each once"
            raise Failure(node, "API002", what, "go over the parts that are meant")


_PLACES = {"named_parameters": ("prefix", "recurse"), "named_modules": ("memo", "prefix")}


def _hands_out(ctx: Context) -> bool:
    """Whether a generator that no forward pass calls yields parameters one by one, as to an optimiser."""
    info = ctx.frame.info if ctx.frame is not None else None
    if info is None or not ctx.source.index.within(info.node, cst.Yield):
        return False
    return not _serves_forward(info)


_NOTED = {"children": "ordered_children", "named_children": "ordered_named_children"}


def notes_order(ctx: Context, info: ClassInfo | None) -> bool:
    """Whether a class notes the order of its children when it is built, since its forward pass goes by it."""
    init = info.methods.get("__init__") if info is not None else None
    if info is None or init is None or not ctx.traverses or info.torch_base != "torch.nn.Module":
        return False
    index = ctx.source.index
    if index.within(init.node, cst.Return):
        return False
    return reads_table(ctx, info) or any(
        isinstance(n.func, cst.Attribute)
        and n.func.attr.value in _NOTED
        and isinstance(n.func.value, cst.Name)
        and n.func.value.value == "self"
        for method in info.methods.values()
        if in_forward(method) and not sets_mode(ctx, method)
        for n in index.within(method.node, cst.Call)
    )


def reads_table(ctx: Context, info: ClassInfo) -> bool:
    """Whether a class, or one that it derives from, reads torch's table of its children."""
    if "_modules" not in ctx.words:
        return False
    return any(
        isinstance(n.value, cst.Name) and n.value.value == "self"
        for one in info.lineage()
        if one.settled is None
        for n in ctx.source.index.reading(one.node, "_modules")
    )


def in_forward(info: FunctionInfo | None) -> bool:
    """Whether a method takes arguments, or is called by a forward pass: not one that only looks at the module.

    A property may be read by anything.
    """
    if info is not None and info.owner is not None:
        if len(info.params) > 0 or "property" in info.decorators:
            return info.owner.torch_base is not None
    return info is not None and _serves_forward(info)


def _serves_forward(info: FunctionInfo) -> bool:
    """Whether a function is a forward pass, or is called by one, over however many others."""
    pending, seen = [info], set()
    while pending:
        one = pending.pop()
        if one in seen:
            continue
        seen.add(one)
        if one.short in ("forward", "__call__"):
            return True
        pending += [*one.callers, *([one.outer] if one.outer is not None else [])]
    return False


_EXACT = {
    "children": "child_modules",
    "named_children": "named_child_modules",
    "modules": "submodules",
    "named_modules": "named_submodules",
}
"""In a package that asks for children every layer is a module, and a function is none."""


def _check_functions(rw: Rewriter, node: cst.Call, receiver: cst.BaseExpression) -> None:
    """Functions in attributes would be taken for layers, most of which without state are functions too."""
    if _asks_for_layers(rw.ctx, node):
        return
    known = rw.ctx.class_of(rw.ctx.kind(receiver))
    for info in [known] if known is not None else rw.ctx.facts.classes.values():
        for name, kind in info.attributes.items() if info.torch_base else ():
            kind = kind.inner if isinstance(kind, k.Optional) else kind
            if isinstance(kind, k.Function) and (info.name, name) not in kept_by_name(rw.ctx):
                raise Failure(
                    node,
                    "API007",
                    f"`{name}` of {info.short} is a function, which cannot be told from a layer here",
                    "list the children that are meant",
                )


def _asks_for_layers(ctx: Context, walk: cst.Call) -> bool:
    """``for m in self.modules(): if isinstance(m, nn.Conv2d): …``: of what is a function in the output it does nothing.

    Each test is for classes that are modules there."""
    tree = ctx.source.index
    loop = tree.parent(walk) if tree.has(walk) else None
    if not isinstance(loop, cst.For) or loop.iter is not walk or loop.orelse is not None:
        return False
    if not isinstance(loop.target, cst.Name) or not isinstance(loop.body, cst.IndentedBlock):
        return False
    for line in loop.body.body:
        asked: cst.If | cst.Else | None = line if isinstance(line, cst.If) else None
        if asked is None:
            return False
        while asked is not None:
            if isinstance(asked, cst.Else) or not _is_of_layers(ctx, asked.test, loop.target.value):
                return False
            asked = asked.orelse
    return True


def _is_of_layers(ctx: Context, test: cst.BaseExpression, name: str) -> bool:
    """``isinstance(m, (nn.Conv2d, nn.Linear))``, and something besides perhaps."""
    if isinstance(test, cst.BooleanOperation):
        either = _is_of_layers(ctx, test.left, name), _is_of_layers(ctx, test.right, name)
        return all(either) if isinstance(test.operator, cst.Or) else either[0]
    if not isinstance(test, cst.Call) or ctx.facts.callee(test) != "builtins.isinstance":
        return False
    if len(test.args) != 2 or syntax.code(test.args[0].value) != name:
        return False
    told = test.args[1].value
    several = [e.value for e in told.elements] if isinstance(told, cst.Tuple) else [told]
    kinds = [ctx.facts.kind(one) for one in several]
    return all(
        isinstance(kind, k.Class)
        and definitions.layers(kind.name)
        and not becomes_function(kind.name)
        for kind in kinds
    )
