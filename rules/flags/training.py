"""API012: lines of a training loop that ask torch's optimiser, schedule, scaler or profiler to do something."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from rules.below import children
from rules.elsewhere import advice_for
from rules.registry import Advice, FlagContext, flag

_OBJECTS = (
    "torch.optim.",
    "torch.cuda.amp.GradScaler",
    "torch.amp.GradScaler",
    "torch.cuda.Event",
    "torch.cuda.Stream",
    "torch.profiler.profile",
    "torch.utils.tensorboard.",
)
"""How the types begin whose objects have no counterpart that is asked the same things."""
_OF_TRAINING = frozenset(["zero_grad", "step"])
_STEPPING = ("optim", "opt", "sched", "scaler")
"""Parts of the names of what takes a step with arguments; without any an environment of a game is none."""
_INSTEAD = {
    "zero_grad": "leave it out: jax.grad gives new gradients at each call",
    "step": "update the model by nnx.Optimizer, which takes an optimiser of optax",
}
_SCHEDULE = "leave it out: a schedule of optax counts its own steps"


@flag(
    "API012",
    "training-step",
    cst.Call,
    cst.Subscript,
    cst.For,
    effort=0.0,
    what="a line of a training loop asks torch's optimiser, schedule, scaler or profiler to do something",
    why="Gradients and the optimiser's state are values in JAX: a step is a function of them, and nothing is changed "
    "behind the program's back.",
    example=(
        "def f(net: nn.Module, x: torch.Tensor):\n    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "    net(x).sum().backward()\n    optimizer.step()"
    ),
    instead="def f(net: nn.Module, x: torch.Tensor):\n    return net(x).sum()",
)
def training_step(node: cst.Call | cst.Subscript | cst.For, ctx: FlagContext) -> Advice | None:
    """What an object of torch is asked; and what is unknown, where a function trains."""
    asked = _asked(node)
    if asked is None:
        return None
    name, receiver = asked.attr.value, asked.value
    owner = _torch_object(ctx.kind(receiver))
    if owner is not None:
        what = f"`{ctx.text(asked)}`: {owner} has no conversion"
        part = node if isinstance(node, cst.Call) else asked
        return Advice(_in_place_of(name, owner), node=part, what=what)
    if not isinstance(node, cst.Call) or not _may_be_torch(name, node, receiver, ctx):
        return None
    if not _trains(node, ctx):
        return None
    advice = _in_place_of(name, _guessed(receiver, ctx))
    return Advice(advice, what=f"`{ctx.text(asked)}()` is a step of torch's training")


def _in_place_of(name: str, owner: str) -> str:
    """What to do in place of asking an object of torch."""
    if name == "step" and owner.startswith("torch.optim.lr_scheduler"):
        return _SCHEDULE
    general = advice_for(owner)
    return _INSTEAD.get(name, general) if owner.startswith("torch.optim.") else general


def _guessed(receiver: cst.CSTNode, ctx: FlagContext) -> str:
    """What something unknown is by its name, an optimiser where that does not tell."""
    return "torch.optim.lr_scheduler" if "sched" in ctx.text(receiver).lower() else "torch.optim."


def _asked(node: cst.Call | cst.Subscript | cst.For) -> cst.Attribute | None:
    """The attribute that is called, looked into or gone through."""
    part: cst.CSTNode
    match node:
        case cst.Call():
            part = node.func
        case cst.Subscript():
            part = node.value
        case _:
            part = node.iter
    return part if isinstance(part, cst.Attribute) else None


def _torch_object(kind: Any) -> str | None:
    """The torch type of an object without conversion."""
    name = getattr(kind, "type", None)
    return name if isinstance(name, str) and name.startswith(_OBJECTS) else None


def _may_be_torch(name: str, node: cst.Call, receiver: cst.CSTNode, ctx: FlagContext) -> bool:
    """Whether a method of something unknown may be one that takes part in torch's training."""
    if name not in _OF_TRAINING or type(ctx.kind(receiver)).__name__ not in ("Unknown", "Module"):
        return False
    if ctx.callee(node) not in (None, f"Module.{name}", f"Tensor.{name}"):
        return False  # a method of an own class
    if name == "zero_grad":
        return True
    words = ctx.text(receiver).lower()
    return not node.args or any(word in words for word in _STEPPING)


def _trains(node: cst.CSTNode, ctx: FlagContext) -> bool:
    """Whether the function around a node, or the program, calls ``backward()`` or asks an object of torch."""
    scopes = [p for p in ctx.parents if isinstance(p, (cst.Module, cst.FunctionDef))]
    key = f"trains {id(scopes[-1])}"
    if key not in ctx.memo:
        calls = list(_calls(scopes[-1]))
        ctx.memo[key] = any(call.attr.value == "backward" for call in calls) or any(
            _torch_object(ctx.kind(call.value)) for call in calls
        )
    return bool(ctx.memo[key])


def _calls(scope: cst.CSTNode) -> Iterator[cst.Attribute]:
    """The methods that are called in a function, or outside of all."""
    pending = children(scope)
    while pending:
        node = pending.pop()
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            continue
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            yield node.func
        pending.extend(children(node))
