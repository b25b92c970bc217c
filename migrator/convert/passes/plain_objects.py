"""Objects that are no modules, in an attribute of a module: Flax takes them for settings, and does not look into them."""

from __future__ import annotations

import libcst as cst

from migrator.convert.context import Context, Failure
from migrator.convert.nested_layers import becomes_function
from migrator.convert.passes.freezing import forward_reaches
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k


@converts(cst.Assign, targets=(cst.Attribute,))
def holder_of_modules(rw: Rewriter, node: cst.Assign) -> None:
    """``self.mac = Controller(n)``, where the controller holds layers: the gradient would not reach them.

    Raises:
      Failure: such an object is kept by a module.
    """
    ctx, target = rw.ctx, node.targets[0].target
    if not isinstance(target, cst.Attribute) or not ctx.is_self(target.value):
        return
    if ctx.owner is None or ctx.owner.torch_base is None:
        return
    info = _plain(ctx, ctx.kind(node.value))
    if info is None:
        return
    held = [
        name for one in info.lineage() for name, kind in one.attributes.items() if _is_module(kind)
    ]
    if held:
        what = f"`{held[0]}` is a module in an object that is none: Flax does not look into it"
        raise Failure(node, "API008", what, f"let {info.short} derive from nn.Module")


@converts(cst.Assign, targets=(cst.Attribute,))
@converts(cst.AugAssign)
def state_of_an_object(rw: Rewriter, node: cst.Assign | cst.AugAssign) -> None:
    """``self.mean = new`` in a method of such an object that the forward pass calls: a jitted call leaves a tracer there.

    Raises:
      Failure: the object is kept by a module.
    """
    ctx, frame = rw.ctx, rw.ctx.frame
    target = node.target if isinstance(node, cst.AugAssign) else node.targets[0].target
    if frame is None or frame.owner is None or not isinstance(target, cst.Attribute):
        return
    owner, method = frame.owner, frame.info
    if owner.torch_base is not None or owner.gradient or method.short == "__init__":
        return
    if not ctx.is_self(target.value) or not isinstance(ctx.kind(target), k.Tensor):
        return
    if not forward_reaches(ctx, method) or not _is_kept(ctx, owner):
        return
    what = f"the forward pass changes `{target.attr.value}` of an object that is no module"
    raise Failure(
        node, "MUT004", what, f"let {owner.short} derive from nn.Module, and make it a buffer"
    )


def _plain(ctx: Context, kind: k.Kind) -> ClassInfo | None:
    """The class of the project that an object is of, if it is no module."""
    info = ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    return info if info is not None and info.torch_base is None and not info.gradient else None


def _is_module(kind: k.Kind) -> bool:
    whole = kind.inner if isinstance(kind, k.Optional) else kind
    return isinstance(whole, k.Module) and not becomes_function(whole.cls)


def _is_kept(ctx: Context, owner: ClassInfo) -> bool:
    """Whether an attribute of a module holds objects of a class, or of one derived from it."""
    for info in ctx.facts.classes.values():
        kinds = info.attributes.values() if info.torch_base is not None else ()
        held = (kind.inner if isinstance(kind, k.Optional) else kind for kind in kinds)
        for kind in held:
            one = _plain(ctx, kind)
            if one is not None and owner in one.lineage():
                return True
    return False
