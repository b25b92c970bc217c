"""``nn.ParameterList`` and ``nn.ParameterDict``: containers of ``nnx.Param``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes import targets
from migrator.convert.passes.containers import LIST_METHODS
from migrator.convert.passes.listed_parameters import WALKS, given, is_collected
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.construction import PARAMETERS
from rules.definitions import module_file

_GROWING = LIST_METHODS | {"update"}


@converts(cst.Call, called=PARAMETERS)
def constructor(rw: Rewriter, node: cst.Call) -> Any:
    """``nn.ParameterList([torch.ones(2)])`` → ``nnx.List([nnx.Param(jnp.ones(2))])``; a dict keeps its order."""
    ctx = rw.ctx
    name = ctx.facts.callee(node) or ""
    if name not in PARAMETERS or not rw.ctx.is_import(node.func):
        return None
    ctx.helpers.use("nnx")
    if name == "torch.nn.ParameterList":
        func, empty = syntax.parse("nnx.List"), [cst.Arg(syntax.parse("[]"))]
    else:
        file = module_file("rules.compat.containers")
        func, empty = cst.Name(ctx.helpers.need(file, "ModuleDict")), []
    if not node.args:
        return node.with_changes(func=func, args=empty)
    made = _contents(rw, node, node.args[0].value)
    return node.with_changes(func=func, args=[cst.Arg(made)])


def _contents(rw: Rewriter, node: cst.Call, values: cst.BaseExpression) -> cst.BaseExpression:
    kind = rw.ctx.kind(values)
    item = kind.value if isinstance(kind, k.Mapping) else k.element(kind)
    made: cst.BaseExpression = rw.visit(values)
    if isinstance(values, (cst.List, cst.Dict, cst.Tuple)) and not values.elements:
        return made
    _check_walked(rw.ctx, values)
    each = _each(rw, node, values, made)
    if isinstance(each, cst.GeneratorExp):
        each = syntax.parenthesized(each)  # type: ignore[assignment]
    if isinstance(kind, k.Mapping):
        if each is None and getattr(item, "role", None) != "param":
            raise _unclear(node)
        return _in_order(rw, node, values, each or made)
    if each is not None or getattr(item, "role", None) == "param":
        return each or made
    if not isinstance(item, k.Tensor) or not isinstance(kind, k.Sequence):
        raise _unclear(node)
    return syntax.substitute(syntax.parse("[nnx.Param(_v) for _v in __a__]"), {"__a__": made})


def _each(rw: Rewriter, node: cst.Call, values: Any, made: Any) -> cst.BaseExpression | None:
    """What is written out element by element, each a Variable; None for what is made elsewhere."""
    if type(values) is not type(made):
        return None
    if isinstance(values, (cst.ListComp, cst.GeneratorExp)):
        return syntax.changed(made, elt=_parameter(rw, node, values.elt, made.elt))
    if isinstance(values, cst.DictComp):
        return syntax.changed(made, value=_parameter(rw, node, values.value, made.value))
    named = isinstance(values, cst.Call) and rw.ctx.facts.callee(values) == "builtins.dict"
    if named and all(arg.keyword is not None for arg in values.args):
        pairs = zip(values.args, made.args, strict=True)
        args = [syntax.changed(b, value=_parameter(rw, node, a.value, b.value)) for a, b in pairs]
        return syntax.changed(made, args=args)
    if not isinstance(values, (cst.List, cst.Tuple, cst.Dict)):
        return None
    elements = []
    for old, new in zip(values.elements, made.elements, strict=True):
        if not isinstance(new, (cst.Element, cst.DictElement)):
            return None  # ``*others``
        elements.append(syntax.changed(new, value=_parameter(rw, node, old.value, new.value)))
    return syntax.changed(made, elements=elements)


def _parameter(
    rw: Rewriter, node: cst.Call, old: cst.BaseExpression, new: cst.BaseExpression
) -> cst.BaseExpression:
    """``nnx.Param(jnp.ones(4))`` of ``torch.ones(4)``; a parameter that exists is that one here, too."""
    ctx = rw.ctx
    kind = ctx.kind(old)
    if isinstance(old, cst.IfExp) and isinstance(new, cst.IfExp):
        body, orelse = ((old.body, new.body), (old.orelse, new.orelse))
        either = [b if _is_none(a) else _parameter(rw, node, a, b) for a, b in (body, orelse)]
        return syntax.changed(new, body=either[0], orelse=either[1])
    if not isinstance(kind, k.Tensor):
        raise _unclear(node)
    if targets.holds_parameter(ctx, old) or targets.makes_parameter(ctx, old):
        return new
    if isinstance(old, (cst.Attribute, cst.Subscript)) and targets.is_variable(ctx, old):
        reference, transposed = targets.variable_reference(rw, old)
        if transposed:
            raise _stored_otherwise(old)
        if kind.role == "param":
            return reference
    elif kind.role == "param":
        return new
    if isinstance(old, cst.Name) and _names_existing(ctx, old):
        raise _unclear(node)
    ctx.helpers.use("nnx")
    made: cst.Call = syntax.with_args(cst.Call(syntax.parse("nnx.Param")), [cst.Arg(new)])
    return made


def _is_none(node: cst.BaseExpression) -> bool:
    """``None``, of which torch's list makes no parameter."""
    return isinstance(node, cst.Name) and node.value == "None"


def _names_existing(ctx: Context, name: cst.Name) -> bool:
    """Whether a local name may stand for a parameter of a layer: ``w = self.fc.weight``."""
    value = given(ctx, name)
    return value is not None and targets.is_variable(ctx, value)


def _check_walked(ctx: Context, values: cst.BaseExpression) -> None:
    """Raise a Failure for the parameters of a module as they come: a Linear's are transposed in Flax."""
    collected = isinstance(values, (cst.Name, cst.Call)) and is_collected(ctx, values)
    walks = ctx.facts.tree.within(values, cst.Call)
    if isinstance(values, cst.Name) and any(
        _is_of_layer(ctx, one) for one in _put_into(ctx, values)
    ):
        raise _stored_otherwise(values)
    if collected or any(
        isinstance(one.func, cst.Attribute) and one.func.attr.value in WALKS for one in walks
    ):
        raise _stored_otherwise(values)


def _put_into(ctx: Context, name: cst.Name) -> Iterator[cst.BaseExpression]:
    """What a function puts into a local list or dict: in a display, by ``append`` and its like, or under a key."""
    body = ctx.frame.info.node.body if ctx.frame is not None else ctx.source.tree
    for node in ctx.facts.tree.within(body, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.Call):
        if isinstance(node, cst.Call):
            func = node.func
            if isinstance(func, cst.Attribute) and func.attr.value in _GROWING:
                if isinstance(func.value, cst.Name) and func.value.value == name.value:
                    yield from (inner for arg in node.args for inner in elements(arg.value))
            continue
        places = [one.target for one in (node.targets if isinstance(node, cst.Assign) else [node])]
        places = [one.value if isinstance(one, cst.Subscript) else one for one in places]
        named = any(isinstance(one, cst.Name) and one.value == name.value for one in places)
        if named and node.value is not None:
            yield from elements(node.value)


_DISPLAYS = (cst.List, cst.ListComp, cst.Tuple)
_MAKING = frozenset("list tuple dict OrderedDict".split())


def elements(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What a value holds that is written out, or the value itself."""
    if isinstance(value, (cst.List, cst.Tuple, cst.Dict, cst.Set)):
        for one in value.elements:
            yield from elements(one.value)
    elif isinstance(value, (cst.ListComp, cst.GeneratorExp, cst.DictComp)):
        yield from elements(value.value if isinstance(value, cst.DictComp) else value.elt)
    elif isinstance(value, cst.IfExp):
        yield from (*elements(value.body), *elements(value.orelse))
    elif isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        sides = (value.left, value.right)
        parts = sides if any(isinstance(one, _DISPLAYS) for one in sides) else ()
        yield from (inner for one in parts for inner in elements(one))
    elif isinstance(value, cst.Call) and syntax.code(value.func) in _MAKING:
        yield from (inner for arg in value.args for inner in elements(arg.value))
    else:
        yield value


def _is_of_layer(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether a value is a parameter that is kept elsewhere: ``self.fc.weight``, which the list would only copy."""
    named = isinstance(value, (cst.Attribute, cst.Subscript))
    return named and not targets.makes_parameter(ctx, value) and targets.is_variable(ctx, value)


def _stored_otherwise(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API009",
        "a container of parameters shares those of layers, which may be stored in another layout",
        "give the container parameters of its own",
    )


def _in_order(
    rw: Rewriter, node: cst.Call, values: cst.BaseExpression, made: cst.BaseExpression
) -> cst.BaseExpression:
    """The entries of a ParameterDict: torch sorts those of a dict by key, and keeps an OrderedDict's order."""
    called = rw.ctx.facts.callee(values) if isinstance(values, cst.Call) else ""
    if called == "collections.OrderedDict":
        return made
    if not isinstance(values, (cst.Dict, cst.DictComp)) and called != "builtins.dict":
        raise _unclear(node)
    return syntax.substitute(syntax.parse("sorted(__a__.items())"), {"__a__": made})


def _unclear(node: cst.CSTNode) -> Failure:
    message = "it is not known whether these are parameters"
    return Failure(node, "API005", message, "give the container nn.Parameter(…)")


@converts(cst.Call, named=_GROWING)
def added(rw: Rewriter, node: cst.Call) -> Any:
    """``self.scales.append(x)``, which makes a parameter of a tensor."""
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value not in _GROWING:
        return None
    receiver = rw.ctx.kind(node.func.value)
    if not isinstance(receiver, k.Module) or receiver.cls not in PARAMETERS:
        return None
    if node.func.attr.value not in ("append", "extend") or len(node.args) != 1:
        raise _unclear(node)
    value = node.args[0].value
    if node.func.attr.value == "extend":
        made = _contents(rw, node, value)
    else:
        made = _parameter(rw, node, value, rw.visit(value))
    func = node.func.with_changes(value=rw.visit(node.func.value))
    return node.with_changes(func=func, args=[cst.Arg(made)])


@converts(cst.Subscript)
def entry(rw: Rewriter, node: cst.Subscript) -> Any:
    """``self.scales[i]`` → ``self.scales[i][...]``."""
    if not is_entry(rw, node):
        return None
    return targets.dereferenced(rw.rebuild(node))


def is_entry(rw: Rewriter, node: cst.Subscript) -> bool:
    """Whether a subscript takes one parameter out of a container of parameters, which may be in another such."""
    kind = rw.ctx.kind(node.value)
    sliced = isinstance(node.slice[0].slice, cst.Slice)
    if not isinstance(kind, k.Module) or kind.cls not in PARAMETERS or sliced:
        return False
    if isinstance(kind.item, k.Module):
        return False
    if not isinstance(kind.item, k.Tensor) and _keeps_modules(rw.ctx):
        raise _unclear(node)
    return True


def _keeps_modules(ctx: Context) -> bool:
    """Whether the file puts a module into a container of parameters: ``params["block"] = nn.ParameterDict()``."""
    for assign in ctx.source.index.of_type(cst.Assign):
        for one in assign.targets:
            held = ctx.kind(one.target.value) if isinstance(one.target, cst.Subscript) else None
            if isinstance(held, k.Module) and held.cls in PARAMETERS:
                if isinstance(ctx.kind(assign.value), k.Module):
                    return True
    return False
