"""Lists, tuples and dicts of layers or arrays that are handed to a module, which keeps them as they are."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments
from migrator.convert.containing import inner, levels
from migrator.convert.context import Context, Failure
from migrator.convert.nested_layers import is_layer
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k


@converts(cst.Call)
def kept_by_a_module(rw: Rewriter, node: cst.Call) -> None:
    """``Runner([self.a, self.b])`` of another file's ``self.layers = layers``, where nothing is known of ``layers``.

    Raises:
      Failure: Flax must be shown there that a container holds layers or arrays, and that file is converted already.
    """
    _check(rw.ctx, node)


@converts(cst.Expr, named=("__init__",), values=(cst.Call,))
def kept_by_a_base(rw: Rewriter, node: cst.Expr) -> None:
    """``super().__init__([nn.Linear(4, 4)])``, which is converted as a whole line."""
    if isinstance(node.value, cst.Call):
        _check(rw.ctx, node.value)


def _check(ctx: Context, node: cst.Call) -> None:
    info = _called(ctx, node) if node.args else None
    if info is None or info.owner is None:
        return
    stored = info.settled.stored if info.settled is not None else _stored(ctx, info)
    if not stored:
        return
    _check_keywords(node, info, ctx, {parameter for parameter, _ in stored})
    for name, item in bound_arguments(node, info):
        for parameter, attribute in stored:
            if parameter != name or not _holds(ctx, item.value, info.owner.attribute(attribute)):
                continue
            where = " of another file" if info.settled is not None else ""
            what = f"{info.owner.short}{where} keeps `{syntax.code(item.value)}` as it is, and it holds layers or arrays"
            advice = "let it make an nn.ModuleList of the layers, or say with a type hint what it is handed"
            raise Failure(item, "API008", what, advice)


def _stored(ctx: Context, info: FunctionInfo) -> set[tuple[str, str]]:
    """``self.layers = layers`` in a constructor of this file, where nothing more is known of what it is handed."""
    params = info.node.params
    names = {one.name.value for one in (*params.params, *params.kwonly_params)}
    names |= {params.star_kwarg.name.value} if params.star_kwarg is not None else set()
    found = set()
    for line in ctx.facts.tree.within(info.node.body, cst.Assign):
        target = line.targets[0].target
        if isinstance(line.value, cst.Name) and line.value.value in names:
            if isinstance(target, cst.Attribute) and ctx.is_self(target.value):
                found.add((line.value.value, target.attr.value))
    return found


def _check_keywords(node: cst.Call, info: FunctionInfo, ctx: Context, stored: set[str]) -> None:
    """``Net(norm=nn.LayerNorm(4))`` of ``def __init__(self, **options)``, which keeps the options."""
    taken = info.node.params.star_kwarg
    if taken is None or taken.name.value not in stored:
        return
    params = info.node.params
    named = {one.name.value for one in (*params.params, *params.kwonly_params)}
    for item in node.args:
        if item.keyword is not None and item.keyword.value not in named:
            kind = ctx.facts.kind(item.value)
            if isinstance(kind, k.Tensor) or is_layer(kind):
                what = f"`{item.keyword.value}` is a layer or an array, and the constructor keeps it in a dict"
                raise Failure(item, "API008", what, "give it a parameter of its own there")


def _called(ctx: Context, call: cst.Call) -> FunctionInfo | None:
    """The constructor of a module, or the method of one, that a call runs."""
    kind = ctx.facts.kind(call.func)
    if isinstance(kind, k.Class):
        cls = ctx.facts.classes.get(kind.name)
        info = cls.method("__init__") if cls is not None else None
    elif isinstance(kind, k.Function):
        info = ctx.facts.names.get(kind.name)
    else:
        info = _of_base(ctx, call)
    owner = info.owner if info is not None else None
    return info if owner is not None and owner.torch_base is not None else None


def _of_base(ctx: Context, call: cst.Call) -> FunctionInfo | None:
    func, owner = call.func, ctx.owner
    if owner is None or not isinstance(func, cst.Attribute) or not syntax.is_super(func.value):
        return None
    line: list[ClassInfo] = ctx.facts.after(func, owner)
    return next((c.methods[func.attr.value] for c in line if func.attr.value in c.methods), None)


def _holds(ctx: Context, value: cst.BaseExpression, there: k.Kind | None) -> bool:
    """Whether a value is a container of layers or arrays, and the attribute that gets it is not known to be one."""
    there = there.inner if isinstance(there, k.Optional) else there
    if there is not None and any(isinstance(one, (k.Tensor, k.Module)) for one in levels(there)):
        return False
    kind = ctx.facts.kind(value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if inner(kind) and not (isinstance(kind, k.Sequence) and kind.type == "iter"):
        return any(isinstance(one, k.Tensor) or is_layer(one) for one in levels(kind)) or any(
            map(_is_fetched, _parts(value))
        )
    return any(map(_is_fetched, _parts(value)))


def _parts(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What is written in a container."""
    if isinstance(value, (cst.List, cst.Tuple)):
        return [one.value for one in value.elements]
    if isinstance(value, cst.Dict):
        return [one.value for one in value.elements]
    if isinstance(value, cst.ListComp):
        return [value.elt]
    return [value.value] if isinstance(value, cst.DictComp) else []


def _is_fetched(value: cst.BaseExpression) -> bool:
    """``getattr(self, f"layer{i}")``: a layer, where it is one of several."""
    match value:
        case cst.Call(cst.Name("getattr"), [cst.Arg(cst.Name("self")), cst.Arg(name)]):
            return not isinstance(name, cst.SimpleString)
    return False
