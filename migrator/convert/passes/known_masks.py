"""What masks of known values select, and selections that are given a shape of known sizes."""

from __future__ import annotations

from functools import reduce
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Failure
from migrator.convert.known_masks import Sized, known_masks
from migrator.convert.rewriter import Rewriter, converts
from rules.definitions import module_file

_FUNCTIONS = frozenset(
    "eye ones zeros full arange array concatenate stack triu tril logical_not logical_and logical_or logical_xor "
    "expand_dims squeeze reshape broadcast_to tile repeat diag transpose swapaxes equal not_equal greater less "
    "greater_equal less_equal bool_ int8 uint8 int16 int32 float32 ravel".split()
)
"""What numpy has as jax.numpy has it, for the values of a mask."""
_METHODS = frozenset("astype reshape transpose swapaxes ravel T shape ndim size dtype".split())


@converts(cst.Assign, when=lambda ctx: bool(known_masks(ctx).lines))
def line(rw: Rewriter, node: cst.Assign) -> Any:
    """``mask = torch.eye(n).bool()`` → ``mask = np.eye(n).astype(bool)``."""
    several = known_masks(rw.ctx).lines.get(node)
    if several is None:
        return None
    before = rw.ctx.statements[-1].before
    steps = len(before)
    value = rw.visit(node.value)
    made = _in_numpy(rw, value) if len(before) == steps else None
    if made is None:
        for one in several:
            one.failed = True
        made = value
    return syntax.changed(node, value=made)


def known_index(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The index that a mask of known values becomes; None for any other.

    Raises:
      Failure: numpy cannot compute it.
    """
    known = known_masks(rw.ctx).masks.get(node)
    if known is None:
        return None
    before = rw.ctx.statements[-1].before
    steps = len(before)
    made = None if known.failed else _in_numpy(rw, rw.visit(node))
    if made is None or len(before) != steps:
        raise Failure(node, *known.failure)
    return made


@converts(cst.Subscript, cst.Call, when=lambda ctx: bool(known_masks(ctx).sized))
def sized(rw: Rewriter, node: cst.Subscript | cst.Call) -> Any:
    """``x[mask].view(n, n - 1)`` → ``x[jnp.nonzero(mask, size=n * (n - 1))].reshape(n, n - 1)``."""
    found = known_masks(rw.ctx).sized.get(node)
    if found is None:
        return None
    if not found.sizes:
        return _selected(rw, found)
    count = reduce(_times, [rw.visit(one) for one in found.sizes])
    places = {"__x__": rw.visit(found.x), "__mask__": rw.visit(found.mask), "__count__": count}
    if found.broadcast:
        helper = rw.ctx.helpers.need(module_file("rules.compat.masks"), "masked_select")
        places["__select__"] = cst.Name(helper)
        return syntax.substitute(syntax.parse("__select__(__x__, __mask__, __count__)"), places)
    rw.ctx.helpers.use("jnp")
    template = "__x__[jnp.nonzero(__mask__, size=__count__)]"
    return syntax.substitute(syntax.parse(template), places)


def _selected(rw: Rewriter, found: Sized) -> cst.BaseExpression:
    """``x.masked_select(mask)`` of a mask of known values, which says itself how much it selects."""
    mask = known_index(rw, found.mask)
    assert mask is not None, "settled before"
    helper = rw.ctx.helpers.need(module_file("rules.compat.masks"), "masked_select")
    places = {"__x__": rw.visit(found.x), "__mask__": mask, "__select__": cst.Name(helper)}
    return syntax.substitute(syntax.parse("__select__(__x__, __mask__)"), places)


@converts(cst.Call, when=lambda ctx: bool(known_masks(ctx).places))
def places(rw: Rewriter, node: cst.Call) -> Any:
    """``(torch.ones(n, n) - torch.eye(n)).nonzero()`` → ``jnp.asarray(np.argwhere(np.ones((n, n)) - np.eye(n)))``."""
    found = known_masks(rw.ctx).places.get(node)
    if found is None:
        return None
    mask = known_index(rw, found.mask)
    assert mask is not None, "settled before"
    rw.ctx.helpers.use("jnp")
    template = "jnp.asarray(np.argwhere(__mask__))"
    if found.apart:
        template = "tuple(jnp.asarray(axis) for axis in np.nonzero(__mask__))"
    return syntax.substitute(syntax.parse(template), {"__mask__": mask})


@converts(cst.Call, when=lambda ctx: bool(known_masks(ctx).taken))
def taken(rw: Rewriter, node: cst.Call) -> Any:
    """``(2 ** torch.arange(n)).tolist()`` → ``(2 ** np.arange(n)).tolist()``."""
    numbers = known_masks(rw.ctx).taken.get(node)
    if numbers is None:
        return None
    made = known_index(rw, numbers)
    assert made is not None, "settled before"
    assert isinstance(node.func, cst.Attribute)
    return syntax.changed(
        node, func=syntax.changed(node.func, value=syntax.fitted(node.func, "value", made))
    )


def _times(a: cst.BaseExpression, b: cst.BaseExpression) -> cst.BaseExpression:
    return syntax.substitute(syntax.parse("__a__ * __b__"), {"__a__": a, "__b__": b})


def _in_numpy(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """An expression with ``np`` for ``jnp``; None where it uses more than numpy has."""
    node = _held(node)
    for one in syntax.walk(node):
        match one:
            case cst.Attribute(cst.Name("jnp"), cst.Name(name)):
                if name not in _FUNCTIONS:
                    return None
            case cst.Call(func=cst.Attribute(value, cst.Name(name))):
                ours = isinstance(value, cst.Name) and value.value == "jnp"
                if not ours and name not in _METHODS:
                    return None
            case cst.Call(func=cst.Name(name)):
                if name not in ("range", "len", "tuple", "list", "int"):
                    return None
            case cst.Name("jax" | "lax" | "nnx"):
                return None
    rw.ctx.helpers.use("np")
    made: cst.BaseExpression = syntax.substitute(_with_bool(node), {"jnp": cst.Name("np")})
    return made


def _held(node: Any) -> Any:
    """``self.mask.value`` for ``jnp.asarray(self.mask.value)``, which is numpy's."""
    match node:
        case cst.Call(
            func=cst.Attribute(cst.Name("jnp"), cst.Name("asarray")),
            args=[cst.Arg(cst.Attribute(attr=cst.Name("value")) as held)],
        ):
            return held
    return syntax.rebuild(node, _held)


def _with_bool(node: Any) -> Any:
    """``bool`` for ``jnp.bool_``."""
    match node:
        case cst.Attribute(cst.Name("jnp"), cst.Name("bool_")):
            return cst.Name("bool")
    return syntax.rebuild(node, _with_bool)
