"""Plain classes that a module derives from, of this file or another: what Flax asks of the module that they do not do."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.containing import inner, is_parameter, levels
from migrator.convert.context import Context, Failure
from migrator.convert.nested_layers import becomes_function, is_layer
from migrator.convert.passes.first_kept import declaration
from migrator.convert.rewriter import Rewriter
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.reached import COMPUTED, asked_of_self


def check_plain_bases(ctx: Context, info: ClassInfo) -> None:
    """Look at the plain classes among the bases of a module.

    Raises:
      Failure: one of them keeps layers or arrays in a container, which Flax must be shown where it is assigned; has
        a method that takes ``rngs``, and another base calls it without knowing; or a constructor that hands none on.
    """
    if info.torch_base is None or info.settled is not None:
        return
    from migrator.convert.supers import builds_first

    if "__init__" not in info.methods:
        builds_first(ctx, info.lineage()[1:], info.node.name)
    for one in _plain(info):
        for name, kind in sorted(one.attributes.items()):
            if _hides(kind):
                what = f"`{name}` of {one.short}, which is no module, holds layers, or arrays beside others, in a container"
                advice = f"derive {one.short} from nn.Module, or assign it in {info.short}"
                raise Failure(info.node.name, "API008", what, advice)
        for method in one.methods.values():
            if info.method(method.short) is method and _is_called_without(ctx, info, method):
                what = f"{method.short}() of {one.short} takes a generator here, and is called by who does not know it"
                raise Failure(info.node.name, "API003", what, f"derive {one.short} from nn.Module")


def with_data_of_bases(rw: Rewriter, info: ClassInfo, body: cst.BaseSuite) -> cst.BaseSuite:
    """``norm: nnx.Data`` in a module of which a plain base makes an attribute None and a layer later."""
    names = {
        name: one
        for one in _plain(info)
        for name, kind in one.attributes.items()
        if _may_be_data(one, name, kind)
    }
    for one in info.lineage()[1:]:
        for name in one.statics if one.torch_base is not None else ():
            names.pop(name, None)
    if not names or not isinstance(body, cst.IndentedBlock):
        return body
    rw.ctx.helpers.use("nnx")
    lines = [
        declaration(rw.ctx, name)
        if names[name].settled is None
        else syntax.statement(f"{name}: nnx.Data\n")  # that file may ask whether it is there
        for name in sorted(names)
    ]
    after = 1 if body.body and syntax.is_docstring(body.body[0]) else 0
    return syntax.changed(body, body=[*body.body[:after], *lines, *body.body[after:]])


def _plain(info: ClassInfo) -> list[ClassInfo]:
    """The plain classes that a module derives from, but for those of modules that it derives from."""
    if info.torch_base is None:
        return []
    seen = {c for one in info.parents if one.torch_base is not None for c in one.lineage()}
    return [
        c for c in info.lineage()[1:] if c.torch_base is None and not c.gradient and c not in seen
    ]


def _may_be_data(owner: ClassInfo, name: str, kind: k.Kind) -> bool:
    """Whether an attribute is an array or a layer now and None then, or a container of arrays."""
    if owner.method(name) is not None or any(name in one.statics for one in owner.lineage()):
        return False
    if isinstance(kind, k.Optional):
        whole = kind.inner
        if isinstance(whole, k.Module) and whole.cls == "torch.nn.Module":
            return bool(whole.among) and not any(becomes_function(c.cls) for c in whole.among)
        return isinstance(whole, k.Tensor) or is_layer(whole) or _of_arrays(whole)
    return _of_arrays(kind)


def _of_arrays(kind: k.Kind) -> bool:
    parts = _parts(kind)
    return bool(parts) and all(
        (isinstance(one, k.Tensor) and not is_parameter(one)) or _of_arrays(one) for one in parts
    )


def _parts(kind: k.Kind) -> tuple[k.Kind, ...]:
    """What a container holds, one by one where that is known."""
    if isinstance(kind, k.Mapping) and kind.items:
        return tuple(value for _, value in kind.items)
    return inner(kind)


def _hides(kind: k.Kind) -> bool:
    """Whether a container holds layers that are not those of one list or tuple, which becomes one that Flax knows."""
    whole = kind.inner if isinstance(kind, k.Optional) else kind
    parts = inner(whole)
    if not parts or (all(map(is_layer, parts)) and not isinstance(whole, k.Mapping)):
        return False
    if any(is_layer(one) or is_parameter(one) for one in levels(whole)):
        return True
    return not _of_arrays(whole) and any(isinstance(one, k.Tensor) for one in levels(whole))


def _is_called_without(ctx: Context, info: ClassInfo, method: FunctionInfo) -> bool:
    """Whether a class beside that of a method calls it of its own object, where nothing hands a generator over."""
    if ctx.plan.how(method) != "param" or method.short == "__init__":
        return False
    if {"staticmethod", "classmethod"} & set(method.decorators):
        return False
    if method.short == "forward":
        return True  # by whoever calls the module
    callers = list(_callers(ctx, info, method))
    named = [one for one in callers if method.short in asked_of_self(ctx.facts, one)]
    if named:
        return any(not ctx.plan.builds_time(one) and not _knows(one, method) for one in named)
    return any(not ctx.plan.builds_time(one) for one in callers)


def _callers(ctx: Context, info: ClassInfo, method: FunctionInfo) -> Iterator[FunctionInfo]:
    """The methods of a module, those it inherits too, that call one by its name, or by a name that is computed."""
    for one in info.lineage():
        for other in one.methods.values():
            if info.method(other.short) is other and other is not method:
                if asked_of_self(ctx.facts, other) & {method.short, COMPUTED}:
                    yield other


def _knows(caller: FunctionInfo, method: FunctionInfo) -> bool:
    """Whether the file of a class sees which method it calls: its own or one of the same file."""
    if caller.owner is None or caller.settled is None:
        return True
    here, there = (one.name.rsplit(".", 2)[0] for one in (caller, method))
    return here == there or caller.owner.method(method.short) is method
