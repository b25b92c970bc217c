"""Calls of what is not known, in constructors: a class of a layer perhaps, which takes ``rngs`` in the output."""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.children import left_to_heirs
from migrator.convert.chosen_functions import meant
from migrator.convert.context import Context
from migrator.convert.passes.containers import NAMES
from migrator.convert.passes.foreign import makes_functions
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k
from migrator.infer.construction import passes_on
from migrator.infer.facts import FunctionInfo
from migrator.infer.named import activation_helper
from migrator.infer.tables import is_fetched, looked_up
from rules.definitions import module_file


def _is_field(ctx: Context, func: cst.BaseExpression) -> bool:
    """``layers.attn``: what an object of an own class, which is no module, holds and does not define."""
    kind = ctx.kind(func.value) if isinstance(func, cst.Attribute) else None
    info = ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    if info is None or info.torch_base or not isinstance(func, cst.Attribute):
        return False
    return info.method(func.attr.value) is None


def _takes_generator(ctx: Context, info: FunctionInfo, func: cst.BaseExpression) -> bool:
    """Whether an entry of a table is called, and one that is written there takes ``rngs``."""
    found = looked_up(ctx.facts, info, func)
    named = (e.name for e in found.entries if isinstance(e, k.Function)) if found else ()
    infos = (ctx.facts.names.get(name) for name in named)
    return any(one is not None and ctx.plan.how(one) == "param" for one in infos)


def unknown_builder(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``norm_layer(dim)`` and ``REGISTRY[name](dim)`` with nothing known of the class: it gets ``rngs`` if it takes them."""
    ctx = rw.ctx
    frame = ctx.frame
    if frame is None:
        return None
    func = node.func
    if isinstance(func, cst.Call) and activation_helper(ctx.facts, func) is not None:
        return None  # what it finds draws nothing while it is made
    if (made := meant(ctx, frame.info, func)) and all(ctx.plan.how(one) is None for one in made):
        return None  # functions that draw nothing
    if isinstance(func, cst.Call) and _is_raised(ctx, node):
        return None  # ``raise type(error)(message)``
    held = isinstance(func, (cst.Subscript, cst.Call)) or (  # REGISTRY[name](dim), get(name)(dim)
        isinstance(func, cst.Name)
        and (func.value in frame.info.params or any(func.value in f.locals for f in ctx.frames))
    )
    held = held or (isinstance(func, cst.IfExp) and _chooses_maker(ctx, func))
    own = isinstance(func, cst.Attribute) and ctx.is_self(func.value)  # self.norm_layer(dim)
    own = own and not left_to_heirs(ctx, func.attr.value)  # type: ignore[attr-defined]
    fetched = is_fetched(ctx.facts, frame.info, func)
    if not (held or own or fetched or _is_field(ctx, func) or _makes_layer(rw, node)):
        return None
    if not (ctx.in_init or frame.info.builds or _takes_generator(ctx, frame.info, func)):
        return None
    if passes_on(frame.info, node) or (frame.info.outer is not None and _of_tensors(ctx, node)):
        return None
    if not ctx.in_init and ctx.plan.how(frame.info) is None:
        return None
    build = ctx.helpers.need(module_file("rules.compat.factories"), "build")
    maker = syntax.unparenthesized(rw.visit(node.func))
    args = [cst.Arg(maker), *(rw.visit(a) for a in node.args)]
    return syntax.add_keyword(
        syntax.with_args(cst.Call(cst.Name(build)), args), "rngs", ctx.rngs(node)
    )


def _chooses_maker(ctx: Context, func: cst.IfExp) -> bool:
    """``(make if deep else nn.Tanh)()``: a function of the program that takes ``rngs``, or something else."""
    for side in (func.body, func.orelse):
        if isinstance(side, cst.IfExp) and _chooses_maker(ctx, side):
            return True
        kind = ctx.facts.kind(side)
        info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
        if info is not None and ctx.plan.how(info) == "param":
            return True
    return False


def _is_raised(ctx: Context, node: cst.Call) -> bool:
    return ctx.facts.tree.has(node) and isinstance(ctx.facts.tree.around(node)[-1], cst.Raise)


def _of_tensors(ctx: Context, node: cst.Call) -> bool:
    """Whether tensors are all that a call hands on: in a function that is handed around, they are what it is called with."""
    plain = all(not a.star and isinstance(ctx.kind(a.value), k.Tensor) for a in node.args)
    return plain and bool(node.args)


def _makes_layer(rw: Rewriter, node: cst.Call) -> bool:
    """``self.norm = cfg.norm(dim)``, which the module calls, and ``nn.Sequential(cfg.act())``."""
    ctx, func = rw.ctx, node.func
    if not ctx.in_init or not isinstance(func, (cst.Attribute, cst.Name)) or ctx.is_import(func):
        return False
    if isinstance(func, cst.Name):
        if func.value not in ctx.facts.module_env and func.value not in ctx.torch_names:
            return False  # a builtin
    elif func.attr.value in ("get", "pop", "setdefault"):  # of a dict, which makes nothing
        return False
    tree = ctx.source.index
    if not tree.has(node):
        return False
    for above in reversed(tree.around(node)):
        if isinstance(above, cst.Call) and (ctx.facts.callee(above) or "") in NAMES:
            return True
        if isinstance(above, cst.BaseSmallStatement):
            break
    return makes_functions(rw, node)
