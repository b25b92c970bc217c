"""numpy arrays that a module keeps and that numpy works with in the forward pass: no data of the module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import cases
from migrator.convert.context import Context
from migrator.convert.known_masks import known_masks
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def kept(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.scales = np.array(…)`` → ``HostArray(np.array(…))``: Flax would make it data, and jit a tracer."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return None
    if not is_host_array(rw.ctx, target):
        return None
    tensor = isinstance(rw.ctx.kind(target), k.Tensor)
    name = "host_array" if tensor else "HostArray"
    helper = rw.ctx.helpers.need(module_file("rules.compat.host"), name)
    held = rw.visit(node.value)
    if tensor:  # which a constructor that is traced would only trace
        held = syntax.substitute(syntax.parse("lambda: __held__"), {"__held__": held})
    value = cst.Call(cst.Name(helper), [cst.Arg(held)])
    return syntax.changed(node, value=value)


def _has_numpy(ctx: Context) -> bool:
    settled = (info.settled for info in ctx.facts.classes.values())
    masks = known_masks(ctx).attributes
    return (
        bool(masks)
        or "numpy" in ctx.words
        or any(one is not None and one.host_arrays for one in settled)
    )


@converts(
    cst.Attribute,
    when=_has_numpy,
    kinds=(k.Tensor, k.Other, k.Unknown, k.Optional, k.Sequence, k.Tuple, k.Mapping),
)
def read(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.scales`` → ``self.scales.value``."""
    if not is_host_array(rw.ctx, node):
        return None
    attribute = syntax.changed(node, value=rw.visit(node.value))
    held = cst.Attribute(attribute, cst.Name("value"))
    if not isinstance(rw.ctx.kind(node), k.Tensor):
        return held
    rw.ctx.helpers.use("jnp")
    return syntax.substitute(syntax.parse("jnp.asarray(__held__)"), {"__held__": held})


@converts(cst.Attribute, named=("dtype",))
def type_in_numpy(rw: Rewriter, node: cst.Attribute) -> Any:
    """``torch.tensor(0, dtype=x.dtype).numpy().dtype`` → ``x.dtype``, a type of numpy's already."""
    call = node.value
    if node.attr.value != "dtype" or not isinstance(call, cst.Call):
        return None
    if rw.ctx.facts.callee(call) != "Tensor.numpy" or not isinstance(call.func, cst.Attribute):
        return None
    made = call.func.value
    if isinstance(made, cst.Call) and rw.ctx.facts.callee(made) == "torch.tensor":
        asked = _type_of_number(made)
        if asked is not None:
            return rw.visit(asked)
    return rw.visit(cst.Attribute(made, cst.Name("dtype")))


def _type_of_number(call: cst.Call) -> cst.Attribute | None:
    """``x.dtype`` of ``torch.tensor(0, dtype=x.dtype)``."""
    if len(call.args) != 2 or not isinstance(call.args[0].value, (cst.Integer, cst.Float)):
        return None
    keyword, value = call.args[1].keyword, call.args[1].value
    if keyword is None or keyword.value != "dtype" or not isinstance(value, cst.Attribute):
        return None
    return value if value.attr.value == "dtype" else None


@converts(cst.Call, called=("torch.IntTensor", "torch.LongTensor"))
def numbers(rw: Rewriter, node: cst.Call) -> Any:
    """``torch.IntTensor([n])`` that only carries sizes → ``np.array([n])``, whose values jit knows."""
    callee = rw.ctx.facts.callee(node)
    if callee not in ("torch.IntTensor", "torch.LongTensor") or rw.ctx.kind(node) != k.NUMPY:
        return None
    rw.ctx.helpers.use("np")
    return syntax.with_args(cst.Call(syntax.parse("np.array")), [rw.visit(a) for a in node.args])


def is_host_array(ctx: Context, node: cst.Attribute) -> bool:
    """Whether an attribute of a module of the file is a numpy array that numpy works with after the constructor."""
    info = ctx.class_of(ctx.kind(node.value))
    if info is None and ctx.is_self(node.value):
        info = ctx.owner
    return info is not None and keeps_for_numpy(ctx, info, node.attr.value)


def keeps_for_numpy(ctx: Context, info: ClassInfo, name: str) -> bool:
    """Whether an attribute of a class is such an array; one that another file assigns is what is said there."""
    kind = info.attribute(name) if info.torch_base else None
    if isinstance(kind, k.Tensor):
        every = info.lineage()
        settled = (one.settled.host_arrays for one in every if one.settled is not None)
        return (info.name, name) in known_masks(ctx).attributes or any(name in s for s in settled)
    if kind is None or not (_is_array(kind) or isinstance(kind, k.Unknown)):
        return False
    owner = next((c for c in info.lineage() if name in c.attributes), None)
    if owner is None:
        return False  # an attribute of the class, which numpy computed once
    for one in info.lineage():
        if one.settled is not None and name in one.attributes:
            return name in one.settled.host_arrays
    if isinstance(kind, k.Unknown) and not _may_be_array(ctx, owner, name):
        return False
    related = [c for c in ctx.facts.classes.values() if owner in c.lineage()]
    if not all(_is_set_once(ctx, c, name) for c in related):
        return False
    return any(_needs_numpy(ctx, c, name) for c in related)


def _is_array(kind: k.Kind) -> bool:
    """Whether a value is an array of numpy, or holds nothing else."""
    if isinstance(kind, k.Optional):
        return _is_array(kind.inner)
    if isinstance(kind, k.Sequence):
        return kind.type in ("list", "tuple") and _is_array(kind.item)
    if isinstance(kind, k.Tuple):
        return bool(kind.items) and all(map(_is_array, kind.items))
    if isinstance(kind, k.Mapping):
        return _is_array(kind.value)
    return kind == k.NUMPY


def _may_be_array(ctx: Context, info: ClassInfo, name: str) -> bool:
    """``t = np.array([2, 3]) if t is None else t``, or a statement that does the same; ``t or np.ones(2)``."""
    init = info.methods.get("__init__")
    if init is None or init.settled is not None:
        return False
    lines = ctx.facts.tree.within(init.node.body, cst.Assign)
    for line in lines:
        target = line.targets[0].target
        if isinstance(target, cst.Attribute) and target.attr.value == name:
            if ctx.is_self(target.value) or syntax.code(target.value) == "self":
                found = cases(line.value)
                given = {one.value for one in found if isinstance(one, cst.Name)}
                found += [one.value for one in lines if syntax.code(one.targets[0].target) in given]
                if any(_is_array(ctx.kind(one)) for one in found):
                    return True
    return False


def _uses(ctx: Context, info: ClassInfo, name: str) -> Iterator[tuple[str, cst.CSTNode, Any]]:
    """Where the methods of a class name the attribute of ``self``: the method, the node, what stands around it."""
    for method, function in info.methods.items():
        for node in ctx.facts.tree.within(function.node.body, cst.Attribute):
            if node.attr.value == name:
                if isinstance(node.value, cst.Name) and node.value.value == "self":
                    yield method, node, ctx.facts.tree.around(node)


def _is_set_once(ctx: Context, info: ClassInfo, name: str) -> bool:
    """Whether only the constructor gives it a value, and writes to items of it that nothing has been handed before."""
    written = read = False
    for method, node, around in _uses(ctx, info, name):
        for above in around:
            if isinstance(above, cst.AssignTarget) and _within(above.target, node):
                if method != "__init__" or not _is_given(above.target, node):
                    return False
                written |= above.target is not node
                line = around[around.index(above) - 1]
                read |= above.target is node and not isinstance(line.value, cst.Call)
                break
            elif isinstance(above, cst.AugAssign) and _within(above.target, node):
                return False
            elif isinstance(above, (cst.Del, cst.AnnAssign)):
                return False
            elif isinstance(above, cst.Attribute) and method != "__init__":
                if above.value is node and above.attr.value in _CHANGING:
                    return False
        else:
            read |= method == "__init__"
    return not (written and read)


def _is_given(target: cst.BaseExpression, node: cst.CSTNode) -> bool:
    """``self.keep = …``, ``self.keep[i] = …``: numpy's array, or an item of it, which a constructor may write to."""
    return target is node or (isinstance(target, cst.Subscript) and target.value is node)


_CHANGING = frozenset(
    "append extend insert pop remove clear update setdefault popitem sort reverse fill resize".split()
)


def _within(target: cst.CSTNode, node: cst.CSTNode) -> bool:
    while target is not node and isinstance(target, (cst.Attribute, cst.Subscript)):
        target = target.value
    return target is node


def _is_index(parent: cst.CSTNode, around: Any) -> bool:
    """Whether it stands in an index by itself, or negated: ``x[:, ~self.keep]``."""
    if isinstance(parent, cst.UnaryOperation):
        parent = around[-2] if around[-1] is parent and len(around) > 1 else parent
    return isinstance(parent, cst.Index)


def _needs_numpy(ctx: Context, info: ClassInfo, name: str) -> bool:
    """Whether a method hands it to numpy or to a function of the file, or works with it as with a sequence."""
    for method, node, around in _uses(ctx, info, name):
        parent = next(one for one in reversed(around) if one is not node)
        if method == "__init__" or isinstance(parent, cst.AssignTarget):
            continue
        if isinstance(parent, cst.Arg):
            call = next(one for one in reversed(around) if isinstance(one, cst.Call))
            if not (ctx.facts.callee(call) or "").startswith(("torch.", "Tensor.")):
                return True
        elif _is_index(parent, around):
            return True  # of truths, perhaps, which take as many as jit has to know
        elif isinstance(parent, cst.Subscript):
            if parent.value is node:
                return True
        elif isinstance(parent, cst.BinaryOperation):
            sides = (ctx.kind(parent.left), ctx.kind(parent.right))
            if not any(isinstance(side, k.Tensor) for side in sides):
                return True
        elif isinstance(parent, (cst.Attribute, cst.For, cst.CompFor)):
            return True
    return False
