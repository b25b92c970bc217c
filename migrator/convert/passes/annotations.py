"""Type hints: torch's classes become JAX's and Flax's; a hint without a counterpart is dropped."""

from __future__ import annotations

import builtins
import re
from functools import cache
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.bindings import imported_by
from migrator.convert.context import Context, Failure
from migrator.convert.overwritten import overwritten
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.stand_ins import unavailable
from migrator.infer import kinds as k
from migrator.infer.annotations import TENSOR_CLASSES
from migrator.infer.symbols import of_torch
from migrator.source import dotted
from rules import definitions
from rules.definitions import module_file

_CLASSES = {
    "torch.Tensor": "jax.Array",
    "torch.autograd.Variable": "jax.Array",
    "torch.nn.Parameter": "nnx.Param",
    "torch.nn.Module": "nnx.Module",
    "torch.nn.Sequential": "nnx.Sequential",
    "torch.nn.ModuleList": "nnx.List",
    "torch.nn.ModuleDict": "nnx.Dict",
    "torch.Size": "tuple[int, ...]",
    "torch.dtype": "jnp.dtype",
    **dict.fromkeys(TENSOR_CLASSES, "jax.Array"),
}

_TOLD_TYPE = re.compile(r"(?<![\w.])(?:torch|th)\.\w*Tensor\b(?!\(|\.\w)")
"""A class of tensors that a text names: neither a call of it nor something of it."""


class _Drop(Exception):
    """A hint that has no counterpart."""


@converts(cst.Expr, values=(cst.SimpleString,))
def docstring(rw: Rewriter, node: cst.Expr) -> Any:
    """``x (torch.Tensor): …`` in a docstring says what the hint says that becomes ``jax.Array``."""
    text = node.value
    if type(text) is not cst.SimpleString or "Tensor" not in text.value:
        return None
    told = _TOLD_TYPE.sub(_told_type, text.value)
    return syntax.changed(node, value=cst.SimpleString(told)) if told != text.value else None


@converts(cst.Call, of=(k.Other,))
def type_variable(rw: Rewriter, node: cst.Call) -> Any:
    """``TypeVar("T", bound=Optimizer)`` → ``TypeVar("T")`` where nothing in the output may stand for the bound.

    Python asks a bound whether it is true, which what is not converted refuses.
    """
    if rw.ctx.facts.kinds.get(node.func) != k.Other("typing.TypeVar") or not node.args:
        return None
    name, *rest = node.args
    bounds = [a for a in rest if a.keyword is None or a.keyword.value == "bound"]
    hints = [None if _may_be_missing(rw, a.value) else convert_hint(rw, a.value) for a in bounds]
    if None in hints:
        kept = [name, *(a for a in rest if a not in bounds)]
        kept[-1] = syntax.changed(kept[-1], comma=cst.MaybeSentinel.DEFAULT)
        return syntax.with_args(node, kept)
    made = dict(zip(map(id, bounds), hints, strict=True))
    args = [syntax.changed(a, value=made[id(a)]) if id(a) in made else a for a in rest]
    return syntax.with_args(node, [name, *args])


def _may_be_missing(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether a bound asks a name of which nothing is known, in a package: another file may not have converted it."""
    facts = rw.ctx.facts
    names = [n for n in syntax.names(node) if not hasattr(builtins, n)]
    return facts.linked is not None and any(
        isinstance(facts.module_env.get(name, k.UNKNOWN), k.Unknown) for name in names
    )


def _told_type(found: re.Match[str]) -> str:
    name = found.group()
    return _CLASSES.get(f"torch.{name.partition('.')[2]}", name)


def convert_hint(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The hint in JAX's terms, None when it must be dropped."""
    try:
        return _hint(rw, node)
    except _Drop:
        return None


def _hint(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(node, cst.SimpleString):
        text = str(node.evaluated_value)
        try:
            inner = cst.parse_expression(text)
        except cst.ParserSyntaxError:
            return node
        if "torch" not in text and "nn." not in text and "Tensor" not in text:
            return node
        made = _hint(rw, _resolved(rw, inner))
        if syntax.names(made).keys() <= _bound_above(rw.ctx) and not _asks_modules(rw, made):
            return made
        code = syntax.code(made)
        quote = "'" if '"' in code else '"'
        if quote in code or "\n" in code:
            raise _Drop  # a text within a text
        return cst.SimpleString(f"{quote}{code}{quote}")
    if isinstance(node, (cst.Name, cst.Attribute)):
        return _name(rw, node)
    if isinstance(node, cst.Subscript):
        index = node.slice[0].slice
        if _is_final(rw, node.value) and isinstance(index, cst.Index):
            return _hint(rw, index.value)
        value = _hint(rw, node.value)
        slices = []
        for element in node.slice:
            index = element.slice
            if isinstance(index, cst.Index):
                index = syntax.changed(index, value=_hint(rw, index.value))
            slices.append(syntax.changed(element, slice=index))
        return syntax.changed(node, value=value, slice=slices)
    if isinstance(node, cst.BinaryOperation):
        return syntax.changed(node, left=_hint(rw, node.left), right=_hint(rw, node.right))
    if isinstance(node, (cst.List, cst.Tuple)):
        elements = [syntax.changed(e, value=_hint(rw, e.value)) for e in node.elements]
        return syntax.changed(node, elements=elements)
    return node


def _bound_above(ctx: Context) -> set[str]:
    """The names that a hint may ask for when its function is defined: the imports at the top of a file, and Python's."""
    imports = [
        one
        for line in ctx.source.tree.body
        if isinstance(line, cst.SimpleStatementLine)
        for one in line.body
        if isinstance(one, cst.Import | cst.ImportFrom)
    ]
    return {*imported_by(imports), *vars(builtins), "jax", "jnp", "np", "nnx"}


def _asks_modules(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """``geoopt.ManifoldTensor``: what a module of another library or file may not have yet, as one imports the other."""
    roots = (syntax.code(one.value) for one in syntax.walk(node) if isinstance(one, cst.Attribute))
    known = {"jax", "jnp", "np", "nnx"}
    return any(
        root not in known and getattr(rw.ctx.facts.module_env.get(root), "name", "") not in _PYTHON
        for root in roots
    )


_PYTHON = frozenset({"typing", "typing_extensions", "collections", "collections.abc", "numpy"})


def _is_final(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether a hint is ``torch.jit.Final[…]``, a word of TorchScript."""
    kind = _lookup(rw, dotted(node) or "")
    return isinstance(kind, (k.Class, k.Function)) and kind.name == "torch.jit.Final"


def _resolved(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """Record kinds for a hint parsed out of a string."""
    for item in syntax.walk(node):
        name = dotted(item) if isinstance(item, (cst.Name, cst.Attribute)) else None
        if name:
            kind = _lookup(rw, name)
            if kind is not None:
                rw.ctx.facts.kinds[item] = kind
    return node


def _lookup(rw: Rewriter, name: str) -> k.Kind | None:
    from migrator.infer.symbols import symbol

    head, _, rest = name.partition(".")
    kind = rw.ctx.facts.module_env.get(head)
    for part in rest.split(".") if rest else ():
        if not isinstance(kind, k.Namespace):
            return None
        kind = symbol(f"{kind.name}.{part}")
    return kind


def _name(rw: Rewriter, node: cst.Name | cst.Attribute) -> cst.BaseExpression:
    ctx = rw.ctx
    name = ctx.facts.qualified_name(node)
    if name is None:
        text = dotted(node) or ""
        kind = _lookup(rw, text)
        name = kind.name if isinstance(kind, (k.Class, k.Namespace)) else None
    if name is None or not of_torch(name):
        if unavailable(ctx, node):
            raise _Drop
        return node
    if name in _CLASSES:
        text = _CLASSES[name]
        ctx.helpers.use(text.partition(".")[0] if not text.startswith("tuple") else "jax")
        return syntax.parse(text)
    target = layer_class(rw, name)
    if target is not None:
        return target
    raise _Drop


def layer_class(rw: Rewriter, name: str) -> cst.BaseExpression | None:
    """The class that instances of a torch layer have in the output, None when they are plain functions."""
    for rule in definitions.layers(name):
        returns = rule.returns.strip("'\"")
        if name == "torch.nn.Linear" and name in overwritten(rw.ctx):
            returns = "nnx.Linear"
        if returns.startswith("nnx."):
            rw.ctx.helpers.use("nnx")
            return syntax.parse(returns)
        if returns and (returns in rule.file.imports or returns in rule.file.definitions):
            return cst.Name(rw.ctx.helpers.need(rule.file, returns))
    return None


@cache
def _table(name: str) -> dict[str, str]:
    import ast

    file = module_file("rules.ops.dtypes")
    node = file.definitions.get(name)
    value = getattr(node, "value", None)
    return dict(ast.literal_eval(value)) if value is not None else {}


def dtype_of(rw: Rewriter, node: cst.CSTNode, name: str) -> cst.BaseExpression:
    """JAX's word for a dtype of torch's.

    Raises:
      Failure: JAX has none.
    """
    text = _table("DTYPES").get(name)
    if text is None:
        raise Failure(node, "DTY001", f"{name} has no counterpart in JAX", "choose another dtype")
    rw.ctx.helpers.use(text.partition(".")[0])
    return syntax.parse(text)
