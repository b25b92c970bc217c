"""Statements that read or write a torch checkpoint: the converted program has other files, and raises there."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from migrator import syntax
from migrator.convert.branches import runs_by_default
from migrator.infer import Facts
from migrator.infer import kinds as k
from migrator.infer.facts import FunctionInfo

_DOWNLOADS = frozenset(["torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url"])
_SAVING = "torch.save"
HANDLERS = _DOWNLOADS | {"torch.load", "Module.load_state_dict", _SAVING}
"""What is called to read a checkpoint, and to write one."""


@dataclass(frozen=True)
class Reading:
    """What is said of a statement that reads or writes a checkpoint.

    Attributes:
      place: the node that is meant.
      built: it runs while a model is built, which cannot go on without it.
      writes: it writes one.
    """

    place: cst.CSTNode
    built: bool
    writes: bool = False

    @property
    def what(self) -> str:
        """The message."""
        if self.writes:
            return "a torch checkpoint is not written by the converted code, which raises here"
        if self.built:
            return "the model reads a torch checkpoint as it is built"
        return "a torch checkpoint is not loaded by the converted code, which raises here"


def checkpoint_read(
    facts: Facts, info: FunctionInfo, node: cst.Expr | cst.Return | cst.Assign
) -> Reading | None:
    """Whether a statement of a function reads a torch checkpoint, or writes one.

    ``model.load_state_dict(…)`` reads one, and what downloads a state_dict; so does ``torch.load`` in a function that
    hands one to a module. ``torch.save(model.state_dict(), path)`` writes one.
    """
    call = node.value
    name = callee(facts, call)
    if not isinstance(call, cst.Call):
        return None
    if name == _SAVING and isinstance(node, cst.Expr):
        return Reading(call, False, True) if _is_of_module(facts, info, call) else None
    if isinstance(node, cst.Expr):
        if name != "Module.load_state_dict":
            return None
        if call.args and callee(facts, call.args[0].value) == "Module.state_dict":
            return None  # the state of another module of the program
    elif name == "torch.load":
        below = facts.tree.below(info.node.body)
        if not any(callee(facts, one) == "Module.load_state_dict" for one in below):
            return None
    elif name not in _DOWNLOADS:
        return None
    place = call if isinstance(node, cst.Expr) else node
    built = info.short == "__init__" or info.builds or always_built(info)
    if built and not info.call_sites and _reads_what_it_is_handed(facts, info):
        built = False  # whoever calls `Net.load(path)` has a checkpoint
    return Reading(place, built and runs_by_default(facts.tree, place, info))


def _reads_what_it_is_handed(facts: Facts, info: FunctionInfo) -> bool:
    """Whether a method reads a file anyway that its caller must name: ``def load(cls, path): b = torch.load(path)``.

    The class is there to build the model without it; a function may be all that builds one."""
    params = syntax.parameters(info.node)
    needed = {name for name, param in params.items() if param.default is None}
    return (
        info.owner is not None
        and info.short != "__init__"
        and any(
            callee(facts, one) == "torch.load"
            and one.args
            and isinstance(one.args[0].value, cst.Name)
            and one.args[0].value.value in needed
            and not _in_branch(one, info)
            for one in facts.tree.within(info.node.body, cst.Call)
        )
    )


def _is_of_module(facts: Facts, info: FunctionInfo, call: cst.Call) -> bool:
    """Whether what is saved is a module or its state, by a function that does not build or run the model."""
    if not call.args or info.builds or always_built(info):
        return False
    if info.short in ("__init__", "__new__", "forward", "__call__"):
        return False
    saved = call.args[0].value
    if isinstance(facts.kind(saved), k.Module):
        return True
    return any(callee(facts, one) == "Module.state_dict" for one in facts.tree.below(saved))


def callee(facts: Facts, node: cst.CSTNode | None) -> str | None:
    """The name of the function or method that is called."""
    if type(node) is not cst.Call:
        return None
    kind = facts.kind(node.func)
    return kind.name if isinstance(kind, (k.Function, k.Namespace)) else None


def always_built(info: FunctionInfo) -> bool:
    """Whether a constructor calls a function whatever its arguments are."""
    return any(
        where is not None and where.short == "__init__" and not _in_branch(call, where)
        for call, where in info.call_sites.items()
    )


def _in_branch(node: cst.CSTNode, function: FunctionInfo) -> bool:
    """Whether a part of a function runs on some condition only."""
    branches = (one for one in syntax.walk(function.node) if isinstance(one, cst.If))
    return any(one is node for branch in branches for one in syntax.walk(branch))
