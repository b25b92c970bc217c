"""``self.state_dict()`` where a module is built: a look at its own parameters and buffers, which are written in place.

``for key in self.state_dict(): if "conv" in key: nn.init.kaiming_normal_(self.state_dict()[key])``.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.passes import targets, transposed
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file

_READING = frozenset("items keys values".split())
_ASKED = frozenset("shape size dim ndim numel dtype is_floating_point".split())
"""What an entry is asked for that is no number of it."""


def _asked(ctx: Context) -> bool:
    return "state_dict" in ctx.words


@converts(cst.Call, when=_asked, named=("state_dict",))
def table(rw: Rewriter, node: cst.Call) -> Any:
    """``self.state_dict()`` → ``state_variables(self)``, whose values are Variables."""
    ctx = rw.ctx
    if not is_table(ctx, node) or not _is_walked(ctx, node) or _has_two_names(ctx):
        return None
    transposed.check(ctx, node)
    name = ctx.helpers.need(module_file("rules.compat.named"), "state_variables")
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(node.func.value)])  # type: ignore[attr-defined]


def is_table(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether an expression is a constructor's ``self.state_dict()`` of torch's own making."""
    if not transposed.reads_state(node) or not ctx.in_init or ctx.owner is None:
        return False
    own = ctx.owner.method("state_dict") is not None
    return not own and isinstance(ctx.kind(node), k.Mapping)


def _is_walked(ctx: Context, node: cst.Call) -> bool:
    """Whether a loop goes through the table, or one entry is taken out that is written in place or asked for its shape."""
    if not ctx.facts.tree.has(node):
        return False
    above, outer = ctx.facts.tree.around(node)[:-3:-1]
    if isinstance(above, cst.For):
        return above.iter is node  # over the keys
    if isinstance(above, cst.Attribute):
        walk = ctx.facts.tree.parent(outer)
        called = above.attr.value in _READING and isinstance(outer, cst.Call)
        walked = called and isinstance(walk, cst.For) and walk.iter is outer
        return walked and (above.attr.value == "keys" or _are_only_written(ctx, walk))
    return isinstance(above, cst.Subscript) and above.value is node and _is_used(ctx, above)


def _are_only_written(ctx: Context, loop: cst.For) -> bool:
    """Whether a loop does nothing with the values but fill them in place and ask for their sizes."""
    target = loop.target
    value = target.elements[-1].value if isinstance(target, cst.Tuple) else target
    if not isinstance(value, cst.Name) or ctx.frame is None:
        return False
    body = ctx.frame.info.node.body
    named = [n for n in ctx.facts.tree.within(body, cst.Name) if n.value == value.value]
    return all(one is value or _is_used(ctx, one) for one in named)


def _has_two_names(ctx: Context) -> bool:
    """Whether a module or a parameter may have a second name, under which torch's table lists it once more."""
    for line in ctx.source.index.of_type(cst.Assign):
        if not any(isinstance(one.target, cst.Attribute) for one in line.targets):
            continue
        for part in ctx.facts.tree.within(line.value, cst.Attribute):
            kind = ctx.kind(part)
            held = isinstance(kind, k.Module) or getattr(kind, "role", None) == "param"
            above = ctx.facts.tree.parent(part)
            if held and ctx.is_self(part.value) and not isinstance(above, cst.Attribute):
                called = isinstance(above, cst.Call) and above.func is part
                if not called:
                    return True
    return False


def _is_used(ctx: Context, entry: cst.CSTNode) -> bool:
    """Whether nothing keeps an entry, which would be another name of a Variable."""
    above, outer = ctx.facts.tree.around(entry)[:-3:-1]
    if isinstance(above, cst.Arg):
        name = ctx.facts.callee(outer) if isinstance(outer, cst.Call) else None
        return (name or "").startswith("torch.nn.init.") and outer.args[0] is above
    if isinstance(above, cst.Attribute):
        name = above.attr.value
        if name == "data" and above.value is entry:
            return _is_used(ctx, above)
        fills = name.endswith("_") and name != "requires_grad_"
        if fills and isinstance(outer, cst.Call):
            return isinstance(ctx.facts.tree.parent(outer), cst.Expr)
        return above.value is entry and name in _ASKED
    return isinstance(above, cst.Subscript) and above.value is entry


@converts(cst.Subscript, when=_asked)
def entry(rw: Rewriter, node: cst.Subscript) -> Any:
    """``self.state_dict()[key]`` → ``state_variables(self)[key][...]``."""
    if not is_table(rw.ctx, node.value) or not targets.is_variable(rw.ctx, node):
        return None
    return targets.dereferenced(rw.rebuild(node))
