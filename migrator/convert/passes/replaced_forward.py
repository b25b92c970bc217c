"""``self.forward = self.forward_fast``: another function in the place of forward()."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k

_COMPILERS = ("torch.compile", "torch.compiler.disable")


@converts(cst.Assign, named=("forward",), targets=(cst.Attribute,))
def forwardreplaced(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.forward = self.forward_fast``, which torch calls from then on; what is only compiled stays."""
    value, only = node.value, node.targets[0].target
    if isinstance(value, cst.Call) and rw.ctx.facts.callee(value) in _COMPILERS:
        given = value.args[0] if value.args and value.args[0].keyword is None else None
        same = given is not None and not given.star and given.value.deep_equals(only)
        if same and len(node.targets) == 1:
            return []
    for item in node.targets:
        target = item.target
        if isinstance(target, cst.Attribute) and target.attr.value == "forward":
            if may_be_called(rw, target.value):
                raise replaced(target)


@converts(cst.Assign, targets=(cst.Tuple, cst.List))
def among_others(rw: Rewriter, node: cst.Assign) -> None:
    """``self.forward, self.back = self.back, self.forward``: what is set with others is not told by itself.

    Where one after the other gives the same, the file is read so.
    """
    places = [one.target for one in node.targets if isinstance(one.target, cst.Tuple | cst.List)]
    for target in (one for place in places for one in _leaves(place)):
        if not isinstance(target, cst.Attribute):
            continue
        if target.attr.value == "forward" and may_be_called(rw, target.value):
            raise replaced(target)
        if target.attr.value in _SWITCHES or _is_of_layer(rw, target):
            what = f"`{syntax.code(target)}` is set together with others"
            raise Failure(node, "API005", what, "give it an assignment of its own")


@converts(cst.Assign, targets=(cst.Subscript,))
def in_its_dict(rw: Rewriter, node: cst.Assign) -> None:
    """``self.__dict__["forward"] = fast``."""
    for item in node.targets:
        target = item.target
        if isinstance(target, cst.Subscript) and isinstance(target.value, cst.Attribute):
            held, key = target.value, target.slice[0].slice
            if held.attr.value == "__dict__" and isinstance(key, cst.Index):
                if _is_forward(key.value) and may_be_called(rw, held.value):
                    raise replaced(target)


@converts(cst.Call, named=("__setattr__",))
def by_its_name(rw: Rewriter, node: cst.Call) -> None:
    """``object.__setattr__(self, "forward", fast)``, ``super().__setattr__("forward", fast)``."""
    if len(node.args) >= 2 and any(_is_forward(arg.value) for arg in node.args[:-1]):
        raise replaced(node)


def _is_forward(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.SimpleString) and node.evaluated_value == "forward"


_SWITCHES = frozenset({"requires_grad", "training"})


def _leaves(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    if isinstance(target, cst.Tuple | cst.List):
        for one in target.elements:
            yield from _leaves(one.value)
    else:
        yield target


def _is_of_layer(rw: Rewriter, target: cst.Attribute) -> bool:
    """``self.fc.bias``: a weight of one of torch's layers."""
    kind = rw.ctx.kind(target.value)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    of_torch = isinstance(kind, k.Module) and kind.cls.startswith("torch.nn.")
    return of_torch and target.attr.value in ("weight", "bias")


def may_be_called(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether something may be a module, or is of a plain class whose ``forward`` modules inherit."""
    kind = rw.ctx.kind(node)
    kind = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(kind, k.Other):
        info = rw.ctx.facts.classes.get(kind.type)
        return info is not None and info.torch_base is None and not info.gradient
    return isinstance(kind, (k.Module, k.Unknown))


def replaced(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API005",
        "forward() is replaced on an instance, which Flax does not call",
        "keep the function under another name, and let forward() call it",
    )
