"""What a program keeps of the arguments of a constructor, which gets ``rngs`` beside them.

A module of Flax keeps no random generator in a dict, and nothing of the program asks for one there.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.passes.classes import takes_rngs
from migrator.convert.rewriter import Rewriter, converts

_NAMES = ("locals", "vars")
_WITHOUT = '{k: v for k, v in __all__.items() if k != "rngs"}'


@converts(cst.Call, named=_NAMES, when=lambda ctx: not ctx.words.isdisjoint(_NAMES))
def named(rw: Rewriter, node: cst.Call) -> Any:
    """``locals()`` in the constructor of a module, and ``vars()``."""
    ctx = rw.ctx
    if not isinstance(node.func, cst.Name) or node.func.value not in _NAMES or not ctx.in_init:
        return None
    if node.args:
        return None
    owner, frame = ctx.owner, ctx.frame
    if owner is None or owner.torch_base is None or frame is None or not takes_rngs(ctx, owner):
        return None
    made = syntax.substitute(syntax.parse(_WITHOUT), {"__all__": node})
    if any(map(syntax.is_super, ctx.facts.tree.within(frame.info.node.body, cst.Call))):
        text = '{"__class__": __class__, **__made__}'  # super() puts it there
        made = syntax.substitute(syntax.parse(text), {"__made__": made})
    return made


def _wraps(ctx: Context) -> bool:
    functions = ctx.facts.tree.of_type(cst.FunctionDef)
    return any(_is_wrapper(ctx, one) for one in functions if _keywords(one) is not None)


@converts(cst.Name, when=_wraps)
def read(rw: Rewriter, node: cst.Name) -> Any:
    """``self.options = kwargs`` in what stands before a constructor: ``def new_init(self, **kwargs)``.

    Raises:
      Failure: they are changed later, which what is kept of them shows in the original.
    """
    ctx = rw.ctx
    tree = ctx.facts.tree
    if not tree.has(node):
        return None
    around = tree.around(node)
    functions = [one for one in around if isinstance(one, cst.FunctionDef)]
    if not functions or node.value != _keywords(functions[-1]):
        return None
    if not _is_wrapper(ctx, functions[-1]) or _hands_over(functions[-1], node, around):
        return None
    if _works_on(node, around):
        return None
    named = [n for n in tree.within(functions[-1].body, cst.Name) if n.value == node.value]
    after = named[named.index(node) + 1 :]
    if any(_changes(one, tree.around(one)) for one in after):
        what = f"`{node.value}` of a constructor is kept, and changed later"
        raise Failure(node, "TRC003", what, "change it first, and keep it then")
    return syntax.substitute(syntax.parse(_WITHOUT), {"__all__": node})


def _hands_over(function: cst.FunctionDef, node: cst.Name, around: list[Any]) -> bool:
    """``old(self, *args, **kwargs)``: the constructor takes the generator."""
    arg, call = around[-1], around[-2]
    if not isinstance(arg, cst.Arg) or arg.value is not node or not isinstance(call, cst.Call):
        return False
    return _hands_on(call, function.params.params[0].name.value, node.value)


_IN_PLACE = frozenset("pop popitem update setdefault clear".split())


def _works_on(node: cst.Name, around: list[Any]) -> bool:
    """Whether a statement asks for one of the arguments, or changes them."""
    outer = around[-1]
    if isinstance(outer, cst.Attribute):
        return outer.attr.value in _IN_PLACE | {"get"}
    return isinstance(outer, (cst.AssignTarget, cst.ComparisonTarget)) or (
        isinstance(outer, cst.Subscript) and outer.value is node
    )


def _changes(node: cst.Name, around: list[Any]) -> bool:
    outer = around[-1]
    if isinstance(outer, cst.Attribute):
        return outer.attr.value in _IN_PLACE
    item = isinstance(outer, cst.Subscript) and outer.value is node
    return item and isinstance(around[-2], (cst.AssignTarget, cst.AugAssign, cst.Del))


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
