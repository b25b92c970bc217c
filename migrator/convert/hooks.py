"""What a class asks of ``self`` and then writes to: a class of another file that derives from it may give something else.

``k = self.post(h); k += 1`` is right where ``post`` makes a tensor of its own, in every class that has its own ``post``.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.sharing import inplace_argument
from migrator.infer import ClassInfo
from migrator.infer import kinds as k

_UNTRACKED = frozenset({"no_grad", "inference_mode"})


def written_by_base(ctx: Context, info: ClassInfo) -> tuple[frozenset[str], frozenset[str]]:
    """The methods, properties and layers whose results a class's own methods write to, or take no gradient of.

    And those that they hand a tensor to which they read again."""
    found = list(_found(ctx, info)) if info.torch_base else []
    written = frozenset(name for name, _ in found if name)
    return written, frozenset(name for _, name in found if name)


def _found(ctx: Context, info: ClassInfo) -> Iterator[tuple[str, str]]:
    tree = ctx.facts.tree
    for method in info.methods.values():
        if method.settled is not None or not method.has_receiver:
            continue
        body = method.node.body
        written = {one for node in tree.within(body, *_WRITING) for one in _written(ctx, node)}
        untracked = tree.spells(body, _UNTRACKED)
        for line in tree.within(body, cst.Assign):
            name = _asked(line.value)
            targets = {n for to in line.targets for n in syntax.names(to.target)}
            if name and (untracked or targets & written):
                yield name, ""
        for call in tree.within(body, cst.Call):
            name, first = _asked(call), call.args[0].value if call.args else None
            if (target := _overwritten(ctx, call)) is not None:
                yield _asked(target), ""  # self.post(h).mul_(2)
            if name and isinstance(first, cst.Name):
                read = [n for n in tree.within(body, cst.Name) if n.value == first.value]
                if sum(tree.place(n) > tree.place(first) for n in read):
                    yield "", name


_WRITING = (cst.AugAssign, cst.AssignTarget, cst.Call)


def _written(ctx: Context, node: cst.CSTNode) -> Iterator[str]:
    """The names that a node may write to in place."""
    target: cst.CSTNode | None = None
    if isinstance(node, cst.AugAssign):
        target = node.target
    elif isinstance(node, cst.AssignTarget):
        target = node.target if isinstance(node.target, cst.Subscript) else None
    elif isinstance(node, cst.Call):
        target = _overwritten(ctx, node)
    while isinstance(target, (cst.Subscript, cst.Attribute, cst.Call)):
        target = target.func if isinstance(target, cst.Call) else target.value
    if isinstance(target, cst.Name):
        yield target.value


def _overwritten(ctx: Context, call: cst.Call) -> cst.BaseExpression | None:
    """What a call may overwrite: what an in-place method is asked of, the argument of a layer that works in place."""
    func, first = call.func, call.args[0].value if call.args else None
    name = ctx.facts.callee(call) or ""
    if isinstance(func, cst.Attribute) and func.attr.value.endswith("_"):
        if not func.attr.value.endswith("__") and not name.startswith("torch."):
            return func.value
    if name.startswith("torch.") and (inplace_argument(name, call) or name.endswith("_")):
        return first
    kind = ctx.kind(func)
    return first if isinstance(kind, k.Module) and k.in_place(kind) is not False else None


def _asked(node: cst.CSTNode) -> str:
    """``post`` of ``self.post(h)``, ``scale`` of ``self.scale``."""
    asked = node.func if isinstance(node, cst.Call) else node
    own = isinstance(asked, cst.Attribute) and isinstance(asked.value, cst.Name)
    return asked.attr.value if own and asked.value.value == "self" else ""  # type: ignore[attr-defined]
