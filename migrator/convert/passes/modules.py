"""The file's own functions and modules: who gets ``rngs``, and the nn.Module API."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.children import is_named
from migrator.convert.context import Context, Failure
from migrator.convert.handed import check_handed_over
from migrator.convert.handed_devices import without_devices
from migrator.convert.passes.applying import (
    applied_first,
    applied_function,
    is_apply,
    item_name,
    once,
)
from migrator.convert.passes.casting import cast
from migrator.convert.passes.classes import (
    ends_at_module,
    is_mixed_in,
    needs_constructor,
    takes_rngs,
)
from migrator.convert.passes.containers import NAMES, numbered
from migrator.convert.passes.forward_forms import is_within_a_function
from migrator.convert.passes.layer_classes import CONVOLUTIONS, as_torch, is_kept, mixed_in
from migrator.convert.passes.module_walks import WALKS, walk_of
from migrator.convert.passes.redrawing import is_torchs, replaced_reset, reset_layer
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.signature import plain_class
from migrator.convert.supers import builds_first, handed_on, leaves_out, left_out, past
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.construction import passes_on
from migrator.infer.symbols import LAYERS
from migrator.infer.tables import INITIALISING
from rules import definitions
from rules.definitions import Rule, module_file

_TORCHS_ALONE = frozenset(
    "_apply _call_impl _wrapped_call_impl _slow_forward _named_members _save_to_state_dict _load_from_state_dict "
    "_replicate_for_data_parallel get_buffer get_extra_state set_extra_state set_submodule to_empty xpu ipu mtia".split()
)
"""Methods of torch's modules that nothing in Flax stands for."""
_SUPPORTED_API = frozenset(
    "train eval forward __call__ append extend insert items keys values update pop".split()
)


@converts(cst.Expr, named=("__init__",), values=(cst.Call,))
def super_init(rw: Rewriter, node: cst.Expr) -> Any:
    """``super().__init__()`` of a plain module goes; others pass ``rngs`` on, and draw what torch's constructors draw."""
    made = _super_init(rw, node)
    owner = rw.ctx.owner
    if not isinstance(made, cst.Expr) or owner is None:
        return made
    after = replaced_reset(rw.ctx, owner)
    return [made, *after] if after else made


def _super_init(rw: Rewriter, node: cst.Expr) -> Any:
    call = _by_super(rw, node.value)
    if not _is_super_call(call, "__init__"):
        return None
    assert isinstance(call, cst.Call)
    ctx = rw.ctx
    owner = ctx.owner
    if owner is None:
        return None
    if owner.torch_base is None:
        return handed_on(rw, node, call, owner)
    skipped = ctx.facts.skipped(call.func, owner)
    if skipped is not None:
        return past(rw, node, call, skipped)
    without = mixed_in(owner)  # no constructor, or the class would have been refused
    parents = [p for p in owner.parents if p.torch_base and p not in without]
    if leaves_out(ctx, parents):
        raise left_out(call, parents)
    func = syntax.parse("super().__init__")
    plain = builds_first(ctx, ctx.facts.after(call.func, owner), call)
    if plain is not None and not parents and owner.torch_base == "torch.nn.Module":
        made = syntax.changed(call, func=func, args=[rw.visit(a) for a in call.args])
        return syntax.changed(node, value=syntax.add_keyword(made, "rngs", ctx.rngs(node)))
    if not call.args and ends_at_module(owner):
        return []
    if not parents:
        if owner.torch_base == "torch.nn.Module":
            others = [
                b
                for b in owner.bases
                if not (isinstance(b, k.Class) and b.name == "torch.nn.Module")
            ]
            return [] if not others and not call.args else None
        if owner.torch_base in NAMES:
            args = [rw.visit(a) for a in call.args]
            if owner.torch_base == "torch.nn.Sequential" and is_named(ctx, owner):
                args = numbered(ctx, call, args)
            return syntax.changed(node, value=syntax.changed(call, func=func, args=args))
        return syntax.changed(node, value=layer_super(rw, owner.torch_base, call))
    first = parents[0]
    ends = first.method("__init__") is None and needs_constructor(ctx, first)
    if ends and any(one.method("__init__") is not None for one in parents[1:]):
        name = first.name.rpartition(".")[2]
        what = f"{name} gets a constructor in the output, behind which that of the next base is not called"
        raise Failure(call, "API005", what, f"give {name} one that hands on what it is given")
    args = [rw.visit(a) for a in call.args]
    if is_named(ctx, owner) and parents[0].method("__init__") is None:
        args = numbered(ctx, call, args)
    made = syntax.changed(call, func=func, args=args)
    if any(takes_rngs(ctx, one) for one in parents):  # the first may leave it to the next
        made = syntax.add_keyword(made, "rngs", ctx.rngs(node))
    return syntax.changed(node, value=made)


def layer_super(rw: Rewriter, base: str, call: cst.Call) -> cst.BaseExpression:
    """``super().__init__(…)`` of a subclass of a torch layer, in the terms of the Flax class."""
    from migrator.convert.expand import call_args, convert_call
    from rules import definitions

    rules = definitions.layers(base)
    if as_torch(rw.ctx, rw.ctx.owner) is not None:
        return _passed_on(rw, call, rules, set(), 9 if base in CONVOLUTIONS else 8)
    if any(a.star for a in call.args):
        if base in CONVOLUTIONS:
            return _passed_on(rw, call, rules, {"dtype", "padding_mode"})
        if len(rules) == 1 and plain_class(rules[0]) is not None:
            return _passed_on(rw, call, rules, set())
    made = convert_call(rw, call, base, rules, call_args(rw, call.args)).node
    names = rw.ctx.helpers.names
    copied = [names.get((r.file.path, r.name)) for r in rules if r.returns.strip("'\"") != r.name]
    if not isinstance(made, cst.Call) or syntax.code(made.func) in copied:
        raise Failure(call, "API001", f"a subclass of {base} has no conversion", "")
    return syntax.changed(made, func=syntax.parse("super().__init__"))


def _passed_on(
    rw: Rewriter, call: cst.Call, rules: Sequence[Rule], refused: set[str], positional: int = 8
) -> cst.Call:
    """``super().__init__(*args, **kwargs)`` of a class with torch's arguments: what it does not take raises there."""
    given = without_devices(rw.ctx, call.args, rules)
    plain = [a for a in given if not a.star and a.keyword is None]
    named = {a.keyword.value for a in given if a.keyword is not None}
    if len(plain) > positional or named & (refused | {"device"}):
        raise Failure(call, "API002", "an argument that Flax has not, in a form that is kept", "")
    func = syntax.parse("super().__init__")
    made = syntax.with_args(syntax.changed(call, func=func), [rw.visit(a) for a in given])
    return syntax.add_keyword(made, "rngs", rw.ctx.rngs(call))


def _by_super(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """``nn.Module.__init__(self, …)`` as ``super().__init__(…)``, where that is what Python finds first."""
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.args):
        return node
    kind, owner = rw.ctx.kind(node.func.value), rw.ctx.owner
    torchs = isinstance(kind, k.Class) and kind.name.startswith(LAYERS)
    if (
        owner is None
        or not torchs
        or not _found_first(rw.ctx, owner, kind, node.func.attr.value)
        or not rw.ctx.is_self(node.args[0].value)
    ):
        return node
    func = syntax.parse(f"super().{node.func.attr.value}")
    made = syntax.changed(node, func=func, args=node.args[1:])
    rw.ctx.facts.kinds[made] = rw.ctx.facts.kind(node)
    return made


def _found_first(ctx: Context, owner: ClassInfo, base: k.Kind, method: str) -> bool:
    """Whether ``super()`` finds a method in torch's class: none of the bases before it, which are plain, has it."""
    if base not in owner.bases:
        return False
    before = owner.bases[: owner.bases.index(base)]
    infos = [ctx.facts.classes.get(b.name) if isinstance(b, k.Class) else None for b in before]
    return all(one is not None and one.method(method) is None for one in infos) and not any(
        one.torch_base for one in infos if one is not None
    )


def _is_called(ctx: Context, owner: ClassInfo) -> bool:
    """Whether the ``forward`` of a class is run by calling what has it."""
    return bool(owner.torch_base) or is_mixed_in(ctx, owner)


def _is_super_call(node: cst.CSTNode, method: str) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and node.func.attr.value == method
        and syntax.is_super(node.func.value)
    )


@converts(cst.Expr, named=("flatten_parameters",), values=(cst.Call,))
def flattened(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.rnn.flatten_parameters()``, which is about torch's memory, goes."""
    call = node.value
    if not isinstance(call, cst.Call) or call.args or not isinstance(call.func, cst.Attribute):
        return None
    kind = rw.ctx.kind(call.func.value)
    recurrent = isinstance(kind, k.Module) and kind.cls in _RECURRENT
    return [] if recurrent and call.func.attr.value == "flatten_parameters" else None


_RECURRENT = ("torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN")

_KEPT = ("__init__", "__init_subclass__", "train", "eval")
"""Methods of the base class that may be called: torch has no ``__init_subclass__`` of its own."""


@converts(cst.Call)
def super_method(rw: Rewriter, node: cst.Call) -> Any:
    """``super().forward(x)`` → ``super().__call__(x)``."""
    by_super = _by_super(rw, node)
    if by_super is not node:
        try:
            return rw.visit(by_super)
        except Failure as failure:  # what was made here stands nowhere in the source
            raise Failure(node, failure.rule, failure.message, failure.advice) from failure
    if _is_super_call(node, "forward"):
        func = syntax.parse("super().__call__")
        owner = rw.ctx.owner
        skipped = owner is not None and rw.ctx.facts.skipped(node.func, owner) is not None
        if skipped or is_within_a_function(rw.ctx, node):
            func = syntax.changed(node.func, attr=cst.Name("__call__"))
        return syntax.changed(node, func=func, args=[rw.visit(a) for a in node.args])
    if isinstance(node.func, cst.Attribute) and _is_super_call(node, node.func.attr.value):
        method = node.func.attr.value
        owner = rw.ctx.owner
        if owner is not None and not any(method in p.methods for p in owner.lineage()[1:]):
            if method == "_conv_forward" and owner.torch_base in CONVOLUTIONS:
                return None
            if method == "__getattr__" and owner.torch_base and len(node.args) == 1:
                # Flax keeps layers and parameters as the attributes that they are
                plain = syntax.parse("object.__getattribute__(self, __name__)")
                return syntax.substitute(plain, {"__name__": rw.visit(node.args[0].value)})
            if method == "extra_repr" and owner.torch_base and not node.args:
                return cst.SimpleString(
                    '""'
                )  # torch's text about a module, which Flax does not ask for
            texts = ("__str__", "__repr__")
            if method in texts and rw.ctx.frame is not None and rw.ctx.frame.info.short in texts:
                what = "the text about a module is Flax's here"  # for who reads it
                rw.ctx.report(
                    node, "API001", what, "write it out", severity="warning", blocks=False
                )
                return None
            if method == "reset_parameters" and not node.args:
                return reset_layer(rw, node, cst.Name("self"), [owner.torch_base or ""])
            moved = cast(rw, node, method) if owner.torch_base else None
            if moved is not None:
                return moved
            layers = definitions.layers(owner.torch_base or "")
            kept = bool(layers) and is_kept(owner.torch_base or "", method)
            if owner.torch_base and method not in _KEPT and not kept:
                raise Failure(node, "API001", f"super().{method} is torch's own", "write it out")
        if method == "__init__":
            return None
        info = next(
            (
                p.methods[method]
                for p in (rw.ctx.facts.after(node.func, owner) if owner else [])
                if method in p.methods
            ),
            None,
        )
        made = rw.rebuild(node)
        if info is not None and rw.ctx.plan.how(info) == "param":
            made = syntax.add_keyword(made, "rngs", rw.ctx.rngs(node))
        return made
    return None


@converts(cst.Call)
def own(rw: Rewriter, node: cst.Call) -> Any:
    """Calls of the file's own classes, functions and methods."""
    ctx = rw.ctx
    kind = ctx.kind(node.func)
    if isinstance(kind, k.Class):
        return _construct(rw, node, kind)
    if isinstance(kind, k.Other) and kind.type in ctx.facts.classes:
        return _called_object(rw, node, ctx.facts.classes[kind.type])
    if isinstance(kind, k.Function) and kind.name in ctx.facts.names:
        info = ctx.facts.names[kind.name]
        named = info.short == "forward" and isinstance(node.func, cst.Attribute)
        if info.owner is not None and named and _is_called(ctx, info.owner):
            ctx.effect(node)
            check_handed_over(ctx, node, info)
            assert isinstance(node.func, cst.Attribute)
            if isinstance(ctx.kind(node.func.value), k.Class):  # A.forward(self, x)
                func = cst.Attribute(rw.visit(node.func.value), cst.Name("__call__"))
                return syntax.changed(node, func=func, args=[rw.visit(a) for a in node.args])
            return syntax.changed(
                node, func=rw.visit(node.func.value), args=[rw.visit(a) for a in node.args]
            )
        check_handed_over(ctx, node, info)
        kept = _without_devices(rw, node, info)
        made = syntax.changed(node, func=_function(rw, node.func), args=[rw.visit(a) for a in kept])
        ctx.effect(node)
        if ctx.plan.how(info) == "param":
            made = syntax.add_keyword(made, "rngs", ctx.rngs(node))
        return made
    if isinstance(node.func, cst.Attribute) and isinstance(kind, k.Unknown):
        special = node.func.attr.value.startswith("__")
        if node.func.attr.value in _TORCHS_ALONE and is_torchs(ctx, node.func):
            _check_heirs(ctx, node, node.func)
        if ctx.frame is not None and not special and not is_torchs(ctx, node.func):
            return _initialised(rw, node)
    if isinstance(node.func, cst.Attribute) and isinstance(kind, k.Function):
        if kind.name.startswith("Module."):
            return _module_api(rw, node, kind.name.removeprefix("Module."))
    return None


def _initialised(rw: Rewriter, node: cst.Call) -> cst.Call | None:
    """``it.init_weights()`` of what is not known: a module's may draw, and any method of a plain or another file's class."""
    ctx = rw.ctx
    assert isinstance(node.func, cst.Attribute)
    name = node.func.attr.value
    methods = [
        info.methods.get(name)
        for info in ctx.facts.classes.values()
        if not info.torch_base or name in INITIALISING or info.settled is not None
    ]
    if not any(m is not None and ctx.plan.how(m) == "param" for m in methods):
        return None
    build = ctx.helpers.need(module_file("rules.compat.factories"), "build")
    args = [cst.Arg(_function(rw, node.func)), *(rw.visit(a) for a in node.args)]
    made = syntax.with_args(cst.Call(cst.Name(build)), args)
    return syntax.add_keyword(made, "rngs", ctx.rngs(node))


@converts(cst.Subscript)
def item_of_object(rw: Rewriter, node: cst.Subscript) -> Any:
    """``ACTIVATIONS[name]`` where the class of the table builds a layer: brackets cannot hand on ``rngs``."""
    kind = rw.ctx.kind(node.value)
    info = rw.ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    method = info.method("__getitem__") if info is not None else None
    if method is None or rw.ctx.plan.how(method) != "param" or len(node.slice) != 1:
        return None
    index, parent = node.slice[0].slice, rw.ctx.facts.tree.around(node)[-1]
    if not isinstance(index, cst.Index) or isinstance(parent, (cst.AssignTarget, cst.Del)):
        return None
    func = cst.Attribute(rw.visit(node.value), cst.Name("__getitem__"))
    made = syntax.with_args(cst.Call(func), [cst.Arg(rw.visit(index.value))])
    rw.ctx.effect(node)
    return syntax.add_keyword(made, "rngs", rw.ctx.rngs(node))


def _called_object(rw: Rewriter, node: cst.Call, info: ClassInfo) -> Any:
    """``builder(…)`` of an object whose class has ``__call__``."""
    method = info.method("__call__")
    if method is None:
        return None
    check_handed_over(rw.ctx, node, method)
    made = rw.rebuild(node)
    rw.ctx.effect(node)
    if rw.ctx.plan.how(method) == "param":
        made = syntax.add_keyword(made, "rngs", rw.ctx.rngs(node))
    return made


def _without_devices(rw: Rewriter, node: cst.Call, info: FunctionInfo) -> list[cst.Arg]:
    """The arguments without devices that the function has a default for."""
    optional = {p.name.value for p in info.node.params.params if p.default is not None}
    names = list(info.params)
    kept = list(node.args)
    while kept:
        last = kept[-1]
        name = last.keyword.value if last.keyword is not None else None
        if name is None and not last.star and len(kept) <= len(names):
            name = names[len(kept) - 1]
        if not isinstance(rw.ctx.kind(last.value), k.Device) or name not in optional:
            break
        kept.pop()
        if kept:
            kept[-1] = syntax.changed(kept[-1], comma=cst.MaybeSentinel.DEFAULT)
    return kept


def _function(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """What calls an own function: its name, an attribute, or an expression that makes it (``make(3)(x)``)."""
    if isinstance(node, cst.Attribute):
        return syntax.changed(node, value=syntax.fitted(node, "value", rw.visit(node.value)))
    return node if isinstance(node, cst.Name) else rw.visit(node)


def _construct(rw: Rewriter, node: cst.Call, kind: k.Class) -> Any:
    ctx = rw.ctx
    info = ctx.facts.classes.get(kind.name)
    torch_class = kind.name.startswith(LAYERS) or not kind.name
    if info is None and (not torch_class or rw.ctx.is_import(node.func)):
        return None
    args = [rw.visit(a) for a in node.args]
    if info is not None:
        if info.torch_base == "torch.nn.Sequential" and info.method("__init__") is None:
            args = numbered(ctx, node, args) if is_named(ctx, info) else args
        made = syntax.changed(node, func=_callee(rw, node.func), args=args)
        init = info.method("__init__") if info.torch_base is None else None
        if info.torch_base and takes_rngs(ctx, info):
            made = syntax.add_keyword(made, "rngs", ctx.rngs(node))
        elif init is not None and ctx.plan.how(init) == "param":
            made = syntax.add_keyword(made, "rngs", ctx.rngs(node))
        return made
    if not kind.name and _is_forward(ctx, node):
        return None
    # a class held in a variable: every converted module and every factory takes rngs
    made = syntax.changed(node, func=rw.visit(node.func), args=args)
    if kind.name in NAMES or (ctx.frame is not None and passes_on(ctx.frame.info, node)):
        return made
    return syntax.add_keyword(made, "rngs", ctx.rngs(node))


def _is_forward(ctx: Context, node: cst.Call) -> bool:
    """``self.act(x)`` of a tensor where ``act`` may be a class: it is what the class made, or what was given made."""
    own = isinstance(node.func, cst.Attribute) and ctx.is_self(node.func.value)
    return (
        own and not ctx.in_init and any(isinstance(ctx.kind(a.value), k.Tensor) for a in node.args)
    )


def _callee(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    made: cst.BaseExpression = (
        rw.rebuild(node) if isinstance(node, cst.Attribute) else rw.visit(node)
    )
    return made


@converts(cst.Expr, named=("load_state_dict",), values=(cst.Call,))
def copied_state(rw: Rewriter, node: cst.Expr) -> Any:
    """``a.load_state_dict(b.state_dict())`` → ``nnx.update(a, nnx.state(b, …))``: all that torch would store."""
    taking = _method_call(rw, node.value, "load_state_dict", unknown=True)
    if taking is None or len(taking.args) != 1:
        return None
    giving = _method_call(rw, taking.args[0].value, "state_dict", unknown=True)
    if giving is None or giving.args:
        return None
    assert isinstance(taking.func, cst.Attribute)
    assert isinstance(giving.func, cst.Attribute)
    rw.ctx.helpers.use("nnx")
    template = syntax.parse("nnx.update(__a__, nnx.state(__b__, __stored__))")
    found = {"__a__": rw.visit(taking.func.value), "__b__": rw.visit(giving.func.value)}
    name = rw.ctx.helpers.need(module_file("rules.compat.state"), "is_stored")
    found["__stored__"] = cst.Name(name)
    return cst.Expr(syntax.substitute(template, found))


_NO_MODULES = re.compile(r"(?i)opt|sched|scaler|grad|loader|sampler|state")
"""In the name of what has a state_dict and is no module."""


def _method_call(
    rw: Rewriter, node: cst.BaseExpression, name: str, unknown: bool = False
) -> cst.Call | None:
    """The node, if it calls torch's method of that name on a module.

    ``unknown``: or on what is not known, and not called like something else that has the method."""
    if not (isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)):
        return None
    kind = rw.ctx.kind(node.func.value)
    own = rw.ctx.class_of(kind)
    if node.func.attr.value != name:
        return None
    if not isinstance(kind, k.Module):
        other = _NO_MODULES.search(syntax.code(node.func.value))
        return node if unknown and isinstance(kind, k.Unknown) and not other else None
    return node if own is None or own.method(name) is None else None


@converts(cst.Attribute, named=("_modules", "_parameters", "_buffers"))
def registry(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self._modules``: torch's own tables, which Flax has not."""
    if node.attr.value not in ("_modules", "_parameters", "_buffers"):
        return None
    kind = rw.ctx.kind(node.value)
    own = rw.ctx.class_of(kind)
    unknown = isinstance(kind, k.Unknown) and node.attr.value == "_modules"
    if not (unknown or isinstance(kind, k.Module)):
        return None
    if own is not None and own.attribute(node.attr.value):
        return None
    raise Failure(
        node,
        "API007",
        f"`{node.attr.value}` is a table of torch's that Flax does not keep",
        "name the attributes, or list the layers in an nn.ModuleList",
    )


def _says_none(rw: Rewriter, node: cst.Call) -> bool:
    """``self.weight = self.register_parameter("weight", None)``, which gives None."""
    assign = rw.ctx.source.index.around(node)[-1]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1 or len(node.args) != 2:
        return False
    name, value = (a.value for a in node.args)
    target = assign.targets[0].target
    return (
        isinstance(name, cst.SimpleString)
        and isinstance(value, cst.Name)
        and value.value == "None"
        and isinstance(target, cst.Attribute)
        and rw.ctx.is_self(target.value)
        and target.attr.value == name.evaluated_value
    )


def _module_api(rw: Rewriter, node: cst.Call, method: str) -> Any:
    assert isinstance(node.func, cst.Attribute)
    receiver = node.func.value
    ctx = rw.ctx
    if method in ("forward", "__call__"):
        ctx.effect(node)
        return syntax.changed(node, func=rw.visit(receiver), args=[rw.visit(a) for a in node.args])
    if method in WALKS:
        return walk_of(rw, node, method)
    if method == "register_parameter" and _says_none(rw, node):
        return cst.Name("None")
    cast_or_moved = cast(rw, node, method)
    if cast_or_moved is not None:
        return cast_or_moved
    if method in _SUPPORTED_API:
        return None
    made = applied_first(rw, node, _applied) if method == "apply" else None
    if made is not None:
        return made
    raise _without_counterpart(node, method)


def _without_counterpart(node: cst.Call, method: str) -> Failure:
    return Failure(
        node,
        "API001",
        f"nn.Module.{method} has no counterpart here",
        "nnx.state, nnx.update and nnx.split do what state_dict, load_state_dict and hooks were for",
    )


def _check_heirs(ctx: Context, node: cst.Call, func: cst.Attribute) -> None:
    """Raise a Failure for a method of torch's modules that no class which derives from this one has either."""
    name, own = func.attr.value, ctx.class_of(ctx.kind(func.value))
    heirs = [c for c in ctx.facts.classes.values() if own is not None and own in c.lineage()]
    if not any(one.method(name) is not None for one in heirs):
        raise _without_counterpart(node, name)


@converts(cst.Expr, called=("Module.apply",), values=(cst.Call,))
def apply(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.apply(fn)`` → a loop over the modules."""
    call = node.value
    if not isinstance(call, cst.Call) or not is_apply(rw.ctx, call):
        return None
    assert isinstance(call.func, cst.Attribute)
    return [_applied(rw, call, syntax.code(rw.visit(call.func.value)))]


def _applied(rw: Rewriter, call: cst.Call, receiver: str) -> cst.BaseStatement:
    """The loop that calls the argument of ``apply`` with each module of a receiver."""
    ctx = rw.ctx
    ctx.helpers.use("nnx")
    function = call.args[0].value
    fn_kind = ctx.kind(function)
    info = applied_function(ctx, fn_kind)
    named = isinstance(fn_kind, k.Function) and info is not None
    callee = _function(rw, function) if named else once(rw, function)
    item = item_name(ctx)
    inner = cst.Call(syntax.fitted(_CALL, "func", callee), [cst.Arg(cst.Name(item))])
    if info is not None and ctx.plan.how(info) == "param":
        inner = syntax.add_keyword(inner, "rngs", ctx.rngs(call))
    elif info is None and not isinstance(function, cst.Lambda):
        raise Failure(call, "API005", "what apply() calls is not known", "call it in a loop")
    loop = syntax.statement(f"for _, {item} in nnx.iter_modules({receiver}):\n    pass\n")
    body = cst.IndentedBlock([cst.SimpleStatementLine([cst.Expr(inner)])])
    return syntax.changed(loop, body=body)


_CALL = cst.Call(cst.Name("f"))
