"""``m.__class__.__name__``, ``type(m).__name__``, ``str(type(m))``: layers of torch have other classes in the output."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.exact import is_exact
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.python import class_of_object
from rules import definitions
from rules.definitions import module_file
from rules.torch_names import has, table

_TEXT = re.compile(r"""["']([A-Za-z]\w{2,})["']""")
_VARIANTS = (
    "Conv1d Conv2d Conv3d LayerNorm RMSNorm ModuleList ModuleDict Sequential ParameterList ParameterDict"
).split()
"""Layers that have one of several classes in the output."""


@cache
def _called_otherwise() -> tuple[str, ...]:
    """The names of torch's layers, in lower case, whose classes are called otherwise, or are functions."""
    found = set(_VARIANTS)
    for name in table()["class"]:
        head, _, short = name.rpartition(".")
        if head == "torch.nn" and (rules := definitions.layers(name)):
            if any(rule.returns.strip("'\"").removeprefix("nnx.") != short for rule in rules):
                found.add(short)
    return tuple(sorted(one.lower() for one in found))


def _names_such(ctx: Context) -> bool:
    """Whether a text of the file may be such a name, or a part of one."""
    return _mentions_such(ctx.source.text)


@lru_cache(maxsize=8)
def _mentions_such(source: str) -> bool:
    texts = {one.lower() for one in _TEXT.findall(source)}
    return any(text in name or name in text for text in texts for name in _called_otherwise())


@converts(cst.Attribute, named=("__name__", "__qualname__"))
def name_of_class(rw: Rewriter, node: cst.Attribute) -> Any:
    """``m.__class__.__name__ == "Embedding"``, ``type(m).__name__``: Flax calls that class Embed."""
    ctx = rw.ctx
    layer = class_of_object(node.value) if node.attr.value in _NAMES else None
    if layer is None:
        return None
    kind = ctx.kind(layer)
    torchs = isinstance(kind, k.Module) and bool(has(kind.cls.partition("|")[0], "forward"))
    if torchs and is_exact(ctx, layer):
        return cst.SimpleString(f'"{kind.cls.rpartition(".")[2]}"')  # type: ignore[attr-defined]
    may_be = isinstance(kind, k.Unknown) and _decides(ctx, node)
    if not (torchs or k.is_any_module(kind) or may_be):
        return None
    layer_of_torch = torchs or k.is_unknown_module(kind)
    if not _names_such(ctx) and not (layer_of_torch and _decides(ctx, node)):
        return None
    helper = ctx.helpers.need(module_file("rules.compat.initialize"), "class_name")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(layer))])


_NAMES = ("__name__", "__qualname__")


@converts(cst.Call, named=("_get_name",))
def own_name(rw: Rewriter, node: cst.Call) -> Any:
    """``m._get_name()``, torch's name for ``m.__class__.__name__``."""
    if not isinstance(node.func, cst.Attribute) or node.func.attr.value != "_get_name" or node.args:
        return None
    kind = rw.ctx.kind(node.func.value)
    if not isinstance(kind, k.Unknown) and not k.is_any_module(kind):
        return None
    helper = rw.ctx.helpers.need(module_file("rules.compat.initialize"), "class_name")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(rw.visit(node.func.value))])


def _decides(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a name is compared, looked up or kept, and not only shown: in a text, behind ``raise``, by ``print``."""
    if not ctx.facts.tree.has(node):
        return False
    for above in reversed(ctx.facts.tree.around(node)):
        if isinstance(above, (cst.FormattedString, cst.Raise)):
            return False
        if isinstance(above, cst.Call) and syntax.code(above.func) in ("print", "repr"):
            return False
        if isinstance(above, cst.BaseStatement):
            break
    return True


@converts(cst.Call, named=("str", "repr"))
def shown_class(rw: Rewriter, node: cst.Call) -> None:
    """``"Conv" in str(type(m))``, ``"ReLU" in repr(m)``.

    Raises:
      Failure: the text that torch's class gives is not that of the class in the output.
    """
    ctx = rw.ctx
    if not isinstance(node.func, cst.Name) or node.func.value not in ("str", "repr"):
        return
    shown = node.args[0].value if len(node.args) == 1 else None
    held = class_of_object(shown) if shown is not None else None
    if shown is None or not _may_be_module(ctx, ctx.kind(held if held is not None else shown)):
        return
    if held is None and not _is_compared(ctx, node):  # any object may be shown
        return
    if _decides(ctx, node) and _names_such(ctx):
        raise _compared(node)


@converts(cst.FormattedString)
def written_class(rw: Rewriter, node: cst.FormattedString) -> None:
    """``name = f"{type(m)}"``: nothing but the class.

    Raises:
      Failure: the text that torch's class gives is not that of the class in the output.
    """
    only = node.parts[0] if len(node.parts) == 1 else None
    if not isinstance(only, cst.FormattedStringExpression):
        return
    held = class_of_object(only.expression)
    if (
        held is None
        or not _may_be_module(rw.ctx, rw.ctx.kind(held))
        or not rw.ctx.facts.tree.has(node)
    ):
        return
    parent = rw.ctx.facts.tree.around(node)[-1]
    if isinstance(parent, (cst.Assign, cst.ComparisonTarget, cst.Comparison)):
        if _names_such(rw.ctx):
            raise _compared(node)


def _compared(node: cst.CSTNode) -> Failure:
    what = "the text of a class is compared, and torch's layers have other classes in the output"
    return Failure(node, "API011", what, "write isinstance tests, one for each class")


def _is_compared(ctx: Context, node: cst.Call) -> bool:
    """Whether the text that an object gives is compared with the name of a class, itself or a part of it."""
    above: cst.CSTNode = node
    for one in reversed(ctx.facts.tree.around(node) if ctx.facts.tree.has(node) else ()):
        if isinstance(one, cst.Comparison):
            above = one
            break
        if not isinstance(one, (cst.Attribute, cst.Call, cst.Subscript, cst.ComparisonTarget)):
            break
        above = one
    texts = [one.lower() for one in _TEXT.findall(syntax.code(above))]
    return any(text in _called_otherwise() for text in texts)


def _may_be_module(ctx: Context, kind: k.Kind) -> bool:
    """Whether something may be a layer that is of another class in the output."""
    layer = isinstance(kind, k.Module) and kind.cls not in ctx.facts.classes
    return layer or isinstance(kind, k.Unknown)


@converts(cst.Call, named=("register",))
@converts(cst.Decorator)
def dispatched(rw: Rewriter, node: cst.Call | cst.Decorator) -> None:
    """``@show.register(nn.Linear)`` of ``functools.singledispatch``.

    Raises:
      Failure: it dispatches on a layer of torch's, which has another class in the output.
    """
    call = node.decorator if isinstance(node, cst.Decorator) else node
    if "singledispatch" not in rw.ctx.source.text or not isinstance(call, cst.Call):
        return
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "register":
        return
    for arg in call.args:
        if definitions.layers(rw.ctx.facts.qualified_name(arg.value) or ""):
            what = "functions are registered for a layer of torch's, which has another class in the output"
            raise Failure(node, "API011", what, "write isinstance tests, one for each class")


@converts(cst.Attribute, named=("__module__",))
def file_of_class(rw: Rewriter, node: cst.Attribute) -> None:
    """``m.__module__.startswith("torch")``.

    Raises:
      Failure: it is asked of what may be a layer of torch's, whose class stands elsewhere in the output.
    """
    if node.attr.value != "__module__" or "torch" not in "".join(_TEXT.findall(rw.ctx.source.text)):
        return
    held = class_of_object(node.value)
    kind = rw.ctx.kind(held if held is not None else node.value)
    if _may_be_module(rw.ctx, kind) and _decides(rw.ctx, node):
        what = "it is asked where a class is defined, and layers of torch have other classes in the output"
        raise Failure(node, "API011", what, "write isinstance tests, one for each class")
