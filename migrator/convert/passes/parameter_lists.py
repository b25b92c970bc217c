"""``nn.ParameterList`` and ``nn.ParameterDict``: containers of ``nnx.Param``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.passes import targets
from migrator.convert.passes.containers import LIST_METHODS
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
    if isinstance(kind, k.Mapping) and getattr(item, "role", None) == "param":
        return _in_order(rw, node, values, made)
    if getattr(item, "role", None) == "param":
        return made
    if isinstance(item, k.Tensor) and isinstance(values, cst.Dict) and isinstance(made, cst.Dict):
        return _in_order(rw, node, values, _of_parameters(rw, node, values, made))
    if not isinstance(item, k.Tensor) or not isinstance(kind, k.Sequence):
        raise _unclear(node)
    if isinstance(made, cst.GeneratorExp):
        made = syntax.parenthesized(made)  # type: ignore[assignment]
    return syntax.substitute(syntax.parse("[nnx.Param(_v) for _v in __a__]"), {"__a__": made})


def _of_parameters(rw: Rewriter, node: cst.Call, values: cst.Dict, made: cst.Dict) -> cst.Dict:
    """``{"a": nnx.Param(jnp.ones(4))}`` of ``{"a": torch.ones(4)}``."""
    elements: list[cst.BaseDictElement] = []
    for old, new in zip(values.elements, made.elements, strict=True):
        kind = rw.ctx.kind(old.value)
        plain = isinstance(kind, k.Tensor) and not kind.role
        if not isinstance(new, cst.DictElement) or not plain:
            raise _unclear(node)
        value = syntax.with_args(cst.Call(syntax.parse("nnx.Param")), [cst.Arg(new.value)])
        elements.append(syntax.changed(new, value=value))
    return syntax.changed(made, elements=elements)


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
    kind = rw.ctx.kind(value)
    made = _contents(rw, node, value) if node.func.attr.value == "extend" else rw.visit(value)
    if node.func.attr.value == "append" and getattr(kind, "role", None) != "param":
        if not isinstance(kind, k.Tensor):
            raise _unclear(node)
        made = cst.Call(syntax.parse("nnx.Param"), [cst.Arg(made)])
    func = node.func.with_changes(value=rw.visit(node.func.value))
    return node.with_changes(func=func, args=[cst.Arg(made)])


@converts(cst.Subscript)
def entry(rw: Rewriter, node: cst.Subscript) -> Any:
    """``self.scales[i]`` → ``self.scales[i][...]``."""
    if not is_entry(rw, node):
        return None
    return targets.dereferenced(rw.rebuild(node))


def is_entry(rw: Rewriter, node: cst.Subscript) -> bool:
    """Whether a subscript takes one parameter out of a container of parameters."""
    kind = rw.ctx.kind(node.value)
    sliced = isinstance(node.slice[0].slice, cst.Slice)
    return isinstance(kind, k.Module) and kind.cls in PARAMETERS and not sliced
