"""Libraries of which it is not known what they are built on, where they are given tensors.

A layer of another library that is built on torch takes torch's tensors and has its own parameters: nothing of it is
converted. Where such a library is known by name its import is a finding; of any other one it is a finding that
something of it is called with a tensor.
"""

from __future__ import annotations

import sys
from typing import Any

import libcst as cst

from migrator.assignments import cases
from migrator.convert.context import Context, Failure
from migrator.convert.neighbours import as_well, left_beside
from migrator.convert.passes.held import assigned
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.symbols import of_timm, of_torch
from migrator.infer.without_torch import TENSORS_ASKED, asks_for_tensors, brought_by, needs_torch
from migrator.source import dotted

NEUTRAL = sys.stdlib_module_names | frozenset(
    "numpy scipy jax jaxlib flax optax orbax chex haiku equinox einops einx opt_einsum optree tree ml_dtypes numba "
    "pandas sklearn skimage cv2 PIL imageio matplotlib seaborn plotly sympy networkx h5py zarr soundfile librosa "
    "tqdm rich loguru wandb tensorboard tensorboardX mlflow beartype typeguard jaxtyping typing_extensions pytest "
    "packaging six gym gymnasium pettingzoo pydantic cog flask fastapi starlette django celery ray rclpy rospy absl attr "
    "attrs hydra omegaconf click typer PyQt5 PyQt6 PySide2 PySide6 overrides zope".split()
)
"""Libraries that take arrays of any kind, or no arrays at all."""


_REGISTERING = frozenset("register_buffer register_parameter register_module add_module".split())


def lives_on_torch(ctx: Context, info: ClassInfo, base: str) -> bool:
    """Whether a class with a base of another library is nothing without torch: a module, or one that hands the base tensors.

    Args:
      base: the dotted name of the base.
    """
    if base.partition(".")[0] in NEUTRAL or "." not in base or info.torch_base is not None:
        return False
    linked = ctx.facts.linked
    if base in ctx.facts.classes or (
        linked is not None and linked.place(ctx.source.module, base, 0, None) != "outside"
    ):
        return False
    if "forward" in info.methods:
        return True
    for call in ctx.facts.tree.within(info.node.body, cst.Call):
        func = call.func
        if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name):
            continue
        if func.value.value != "self" or info.method(func.attr.value) is not None:
            continue
        if func.attr.value in _REGISTERING:
            return True
        if any(isinstance(ctx.facts.kind(item.value), k.Tensor) for item in call.args):
            return info.attribute(func.attr.value) is None
    return False


@converts(cst.Call)
def foreign_call(rw: Rewriter, node: cst.Call) -> Any:
    """``self.attn(q, k, v)``, ``map(self.attn, (q, k))`` of a class of another library: no port of it is known here."""
    if not outside(rw):
        return None
    maps = isinstance(node.func, cst.Name) and node.func.value == "map" and bool(node.args)
    library, instance = _library(rw, node.args[0].value if maps else node.func)
    if library is None or library not in outside(rw):
        return None
    given = [rw.ctx.kind(a.value) for a in node.args]
    if maps:
        given = [one for kind in given[1:] for one in _items(kind)]
    what = "is given a tensor"
    if not any(_tensor(kind, instance) for kind in given):
        what = "makes what this module calls"
        if not makes_functions(rw, node) or _is_seen_where_called(rw, node):
            return None
    raise Failure(
        node,
        "API004",
        f"{library} {what}, and it is not known here whether it is built on torch",
        as_well(rw.ctx.source.path, library),
    )


def _asks_for_tensors(ctx: Context) -> bool:
    return "return_tensors" in ctx.words


@converts(cst.Arg, when=_asks_for_tensors)
def tensors_of_torch(rw: Rewriter, node: cst.Arg) -> Any:
    """``tokenizer(text, return_tensors="pt")``: a library that runs without torch, and makes tensors of it if told to."""
    if not asks_for_tensors(node):
        return None
    raise Failure(node, "API004", *TENSORS_ASKED)


def makes_functions(rw: Rewriter, node: cst.Call) -> bool:
    """``self.attend, expand = library.build(4)`` in a module that calls one of the results."""
    owner, line = rw.ctx.owner, rw.ctx.statements[-1].node if rw.ctx.statements else None
    if owner is None or not owner.torch_base or isinstance(rw.ctx.kind(node.func), k.Class):
        return False
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(line.body[0], cst.Assign):
        return False
    made = line.body[0]
    if not _is_moved(made.value, node):
        return False
    names = {dotted(part) for target in made.targets for part in _parts(target.target)}
    calls = rw.ctx.source.index.within(owner.node, cst.Call)
    return any(dotted(call.func) in names for call in calls)


def _is_moved(value: cst.BaseExpression, node: cst.Call) -> bool:
    """Whether a value is what a call gives: ``library.Part(3)``, ``library.Part(3).to(device).eval()``."""
    while value is not node:
        if not isinstance(value, cst.Call) or not isinstance(value.func, cst.Attribute):
            return False
        value = value.func.value
    return True


def _is_seen_where_called(rw: Rewriter, node: cst.Call) -> bool:
    """``self.part = layers.Attention(4)``: what an attribute alone holds is a finding where it is called."""
    line: Any = rw.ctx.statements[-1].node
    line = line.body[0]
    whole = isinstance(line.targets[0].target, cst.Attribute) and len(line.targets) == 1
    whole = whole and line.value is node
    func = node.func
    named = isinstance(func, cst.Attribute) and dotted(func) and _of_module(rw, func)
    return whole and bool(named) and isinstance(rw.ctx.facts.kind(func), k.Unknown)


def _parts(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The single targets of an assignment."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return [part for element in target.elements for part in _parts(element.value)]
    return [target] if isinstance(target, (cst.Name, cst.Attribute)) else []


def library_of(rw: Rewriter, func: cst.BaseExpression) -> str | None:
    """The library that something called comes from; None for one that takes arrays of any kind."""
    return _library(rw, func)[0]


def _library(rw: Rewriter, func: cst.BaseExpression) -> tuple[str | None, bool]:
    """The library that a function or the class of an object comes from; whether the object itself is called."""
    held = _held(rw, func)
    if held is not None:
        return held, True
    kind = rw.ctx.facts.kind(func)
    instance = isinstance(kind, k.Other)
    if isinstance(kind, k.Unknown) and isinstance(func, cst.Attribute):
        kind = rw.ctx.facts.kind(func.value)
        if not isinstance(kind, (k.Other, k.Class)):
            return _of_module(rw, func), False
    name = kind.type if isinstance(kind, k.Other) else getattr(kind, "name", None)
    if not isinstance(kind, (k.Other, k.Function, k.Class)) or not name or "." not in name:
        return None, False
    head = name.partition(".")[0]
    return (None if head in NEUTRAL or needs_torch(name) else head), instance


def _of_module(rw: Rewriter, func: cst.Attribute) -> str | None:
    """The library of ``filters.ops.blur`` and ``filters.Blur(3).eval``, where an import of the file brings ``filters``."""
    root: cst.BaseExpression = func
    while isinstance(root, (cst.Attribute, cst.Call)):
        root = root.value if isinstance(root, cst.Attribute) else root.func
    library = rw.ctx.brought.get(root.value) if isinstance(root, cst.Name) else None
    name = getattr(rw.ctx.facts.kind(root), "name", None)
    same = library is not None and isinstance(name, str) and name.partition(".")[0] == library
    return library if same and library not in NEUTRAL else None


def _held(rw: Rewriter, func: cst.BaseExpression) -> str | None:
    """The library of an object that ``self.attn`` is in one of several cases: what it may be else tells nothing."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Attribute):
        func = func.value
    if owner is None or not isinstance(func, cst.Attribute) or not ctx.is_self(func.value):
        return None
    if not outside(rw) or isinstance(ctx.facts.kind(func), k.Other):
        return None
    kin = [c for c in ctx.facts.classes.values() if owner in c.lineage() or c in owner.lineage()]
    for value in {id(v): v for c in kin for v in assigned(ctx, c, func.attr.value)}.values():
        for one in cases(value):
            head = (dotted(one.func) or "").partition(".")[0] if isinstance(one, cst.Call) else ""
            library = ctx.brought.get(head)
            if library is not None and library not in NEUTRAL:
                return library
    return None


def _items(kind: k.Kind) -> tuple[k.Kind, ...]:
    """What ``map`` hands on of one of its arguments."""
    if isinstance(kind, k.Tuple):
        return kind.items
    return (kind.item,) if isinstance(kind, k.Sequence) else (kind,)


def _tensor(kind: k.Kind, unknown: bool) -> bool:
    """Whether a value is a tensor or holds some; ``unknown``: what is not known counts as one."""
    if isinstance(kind, k.Optional):
        return _tensor(kind.inner, unknown)
    if isinstance(kind, k.Tuple):
        return any(_tensor(item, False) for item in kind.items)
    if isinstance(kind, k.Sequence):
        return _tensor(kind.item, False)
    return isinstance(kind, k.Tensor) or (unknown and isinstance(kind, k.Unknown))


def outside(rw: Rewriter) -> frozenset[str]:
    """The libraries that the file imports, which are neither torch nor of the project."""
    if rw.ctx.libraries is None:
        rw.ctx.brought = _imported(rw)
        rw.ctx.libraries = frozenset(rw.ctx.brought.values())
    return rw.ctx.libraries


def _imported(rw: Rewriter) -> dict[str, str]:
    """The names that imports bring from outside, and the library of each; an import of what needs torch is a finding."""
    linked, here = rw.ctx.facts.linked, rw.ctx.source.module
    found = {}
    index, path = rw.ctx.source.index, rw.ctx.source.path
    for node in index.of_type(cst.Import, cst.ImportFrom):
        if left_beside(rw.ctx.facts, path, node, index.of_type(cst.Attribute)) is not None:
            continue
        if isinstance(node, cst.Import):
            brought = [(_bound(one), brought_by(one), one.evaluated_name) for one in node.names]
        elif node.relative or node.module is None:
            continue
        else:
            aliases = [] if isinstance(node.names, cst.ImportStar) else node.names
            module = dotted(node.module) or ""
            brought = [(_bound(one), f"{module}.{one.evaluated_name}", module) for one in aliases]
            brought = brought or [("*", module, module)]
        for name, what, module in brought:
            own = linked is not None and linked.place(here, module, 0, None) != "outside"
            known = of_torch(what) or needs_torch(what) or of_timm(what) is not None
            if not own and not known:
                found[name] = what.partition(".")[0]
    return found


def _bound(alias: cst.ImportAlias) -> str:
    """The name that an import binds."""
    name = alias.asname.name if alias.asname is not None else alias.name
    return (dotted(name) or "").partition(".")[0]
