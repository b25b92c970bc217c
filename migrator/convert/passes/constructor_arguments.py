"""What a program keeps of the arguments of a constructor, which gets ``rngs`` beside them.

A module of Flax keeps no random generator in a dict, and nothing of the program asks for one there.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes.classes import takes_rngs
from migrator.convert.rewriter import Rewriter, converts

_WITHOUT = "{k: v for k, v in __all__.items() if k != 'rngs'}"


@converts(cst.Call, named=("locals",), when=lambda ctx: "locals" in ctx.words)
def named(rw: Rewriter, node: cst.Call) -> Any:
    """``locals()`` in the constructor of a module."""
    ctx = rw.ctx
    if not isinstance(node.func, cst.Name) or node.func.value != "locals" or not ctx.in_init:
        return None
    owner, frame = ctx.owner, ctx.frame
    if owner is None or owner.torch_base is None or frame is None or not takes_rngs(ctx, owner):
        return None
    made = syntax.substitute(syntax.parse(_WITHOUT), {"__all__": node})
    if any(map(syntax.is_super, ctx.facts.tree.within(frame.info.node.body, cst.Call))):
        text = "{'__class__': __class__, **__made__}"  # super() puts it there
        made = syntax.substitute(syntax.parse(text), {"__made__": made})
    return made


def _wraps(ctx: Context) -> bool:
    return "__init__" in ctx.words or any(
        one.name.value == "__init__" for one in ctx.facts.functions if _keywords(one) is not None
    )


@converts(cst.Assign, targets=(cst.Attribute,), when=_wraps)
def kept(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.options = kwargs`` in what stands before a constructor: ``def new_init(self, **kwargs)``."""
    ctx = rw.ctx
    if not ctx.facts.tree.has(node):
        return None
    around = ctx.facts.tree.around(node)
    functions = [one for one in around if isinstance(one, cst.FunctionDef)]
    if not functions or not _is_wrapper(ctx, functions[-1]):
        return None
    first, keywords = functions[-1].params.params[0].name.value, _keywords(functions[-1])
    target = node.targets[0].target
    if not isinstance(target, cst.Attribute) or not isinstance(target.value, cst.Name):
        return None
    if target.value.value != first or keywords not in syntax.names(node.value):
        return None
    assert keywords is not None, "asked before"
    without = syntax.substitute(syntax.parse(_WITHOUT), {"__all__": cst.Name(keywords)})
    value = syntax.substitute(rw.visit(node.value), {keywords: without})
    return syntax.changed(node, value=value)


def _keywords(function: cst.FunctionDef) -> str | None:
    star = function.params.star_kwarg
    return star.name.value if star is not None else None


def _is_wrapper(ctx: Context, function: cst.FunctionDef) -> bool:
    """Whether a function takes a constructor's place and hands it all keywords: ``old(self, **kwargs)``."""
    tree, keywords = ctx.facts.tree, _keywords(function)
    if keywords is None or not function.params.params:
        return False
    around = tree.around(function)
    if len(around) < 2 or not isinstance(around[-2], cst.FunctionDef):
        return False  # a method, or at the top
    named = function.name.value == "__init__" or any(
        isinstance(one.value, cst.Name)
        and one.value.value == function.name.value
        and any(
            isinstance(t.target, cst.Attribute) and t.target.attr.value == "__init__"
            for t in one.targets
        )
        for one in tree.of_type(cst.Assign)
    )
    first = function.params.params[0].name.value
    return named and any(
        _hands_on(call, first, keywords) for call in tree.within(function, cst.Call)
    )


def _hands_on(call: cst.Call, first: str, keywords: str) -> bool:
    """``old(self, *args, **kwargs)``."""
    starts = bool(call.args) and not call.args[0].star and call.args[0].keyword is None
    own = starts and isinstance(call.args[0].value, cst.Name) and call.args[0].value.value == first
    return own and any(
        arg.star == "**" and isinstance(arg.value, cst.Name) and arg.value.value == keywords
        for arg in call.args
    )
