"""Libraries of which it is not known what they are built on, where they are given tensors.

A layer of another library that is built on torch takes torch's tensors and has its own parameters: nothing of it is
converted. Where such a library is known by name its import is a finding; of any other one it is a finding that
something of it is called with a tensor.
"""

from __future__ import annotations

import sys
from typing import Any

import libcst as cst

from migrator.convert.context import Failure
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.symbols import BASED_ON_TORCH, of_torch
from migrator.source import dotted

_NEUTRAL = sys.stdlib_module_names | frozenset(
    "numpy scipy jax jaxlib flax optax orbax chex haiku equinox einops einx opt_einsum optree tree ml_dtypes numba "
    "pandas sklearn skimage cv2 PIL imageio matplotlib seaborn plotly sympy networkx h5py zarr soundfile librosa "
    "tqdm rich loguru wandb tensorboard tensorboardX mlflow beartype typeguard jaxtyping typing_extensions pytest "
    "packaging six".split()
)
"""Libraries that take arrays of any kind, or no arrays at all."""


@converts(cst.Call)
def foreign_call(rw: Rewriter, node: cst.Call) -> Any:
    """``self.attn(q, k, v)`` of a class of another library: its port, if there is one, is not known here."""
    library, instance = _library(rw, node.func)
    if library is None or library not in _outside(rw):
        return None
    what = "is given a tensor"
    if not any(_tensor(rw.ctx.kind(a.value), instance) for a in node.args):
        what = "makes what this module calls"
        if not _makes_functions(rw, node):
            return None
    raise Failure(
        node,
        "API004",
        f"{library} {what}, and it is not known here whether it is built on torch",
        f"convert it as well (`--follow {library}`), or port what is used of it",
    )


def _makes_functions(rw: Rewriter, node: cst.Call) -> bool:
    """``self.attend, expand = library.build(4)`` in a module that calls one of the results."""
    owner, line = rw.ctx.owner, rw.ctx.statements[-1].node if rw.ctx.statements else None
    if owner is None or not owner.torch_base or isinstance(rw.ctx.kind(node.func), k.Class):
        return False
    if not isinstance(line, cst.SimpleStatementLine) or not isinstance(line.body[0], cst.Assign):
        return False
    made = line.body[0]
    if made.value is not node:
        return False
    names = {dotted(part) for target in made.targets for part in _parts(target.target)}
    calls = rw.ctx.source.index.within(owner.node, cst.Call)
    return any(dotted(call.func) in names for call in calls)


def _parts(target: cst.BaseExpression) -> list[cst.BaseExpression]:
    """The single targets of an assignment."""
    if isinstance(target, (cst.Tuple, cst.List)):
        return [part for element in target.elements for part in _parts(element.value)]
    return [target] if isinstance(target, (cst.Name, cst.Attribute)) else []


def _library(rw: Rewriter, func: cst.BaseExpression) -> tuple[str | None, bool]:
    """The library that a function or the class of an object comes from; whether the object itself is called."""
    kind = rw.ctx.facts.kind(func)
    instance = isinstance(kind, k.Other)
    if isinstance(kind, k.Unknown) and isinstance(func, cst.Attribute):
        kind = rw.ctx.facts.kind(func.value)
        if not isinstance(kind, (k.Other, k.Class)):
            return None, False
    name = kind.type if isinstance(kind, k.Other) else getattr(kind, "name", None)
    if not isinstance(kind, (k.Other, k.Function, k.Class)) or not name or "." not in name:
        return None, False
    head = name.partition(".")[0]
    return (None if head in _NEUTRAL or head in BASED_ON_TORCH else head), instance


def _tensor(kind: k.Kind, unknown: bool) -> bool:
    """Whether a value is a tensor or holds some; ``unknown``: what is not known counts as one."""
    if isinstance(kind, k.Optional):
        return _tensor(kind.inner, unknown)
    if isinstance(kind, k.Tuple):
        return any(_tensor(item, False) for item in kind.items)
    if isinstance(kind, k.Sequence):
        return _tensor(kind.item, False)
    return isinstance(kind, k.Tensor) or (unknown and isinstance(kind, k.Unknown))


def _outside(rw: Rewriter) -> frozenset[str]:
    """The libraries that the file imports, which are neither torch nor of the project."""
    if rw.ctx.libraries is None:
        rw.ctx.libraries = frozenset(_imported(rw))
    return rw.ctx.libraries


def _imported(rw: Rewriter) -> set[str]:
    linked, here = rw.ctx.facts.linked, rw.ctx.source.module
    found = set()
    for node in rw.ctx.source.index.of_type(cst.Import, cst.ImportFrom):
        if isinstance(node, cst.Import):
            modules = [dotted(alias.name) or "" for alias in node.names]
        else:
            modules = [] if node.relative or node.module is None else [dotted(node.module) or ""]
        for module in modules:
            own = linked is not None and linked.place(here, module, 0, None) != "outside"
            if not own and not of_torch(module):
                found.add(module.partition(".")[0])
    return found
