"""One walk over a file that asks each flag rule about the nodes it wants to see."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

import libcst as cst

from migrator import syntax
from migrator.analyze.handed_tensors import handed_tensor, never_given
from migrator.analyze.host_results import gives_numbers
from migrator.analyze.not_taken import is_not_taken
from migrator.analyze.outliving import (
    MEMOS,
    holds_tensor,
    is_object_of_tensors,
    is_recomputed,
    outlives,
)
from migrator.convention import GROUPS, INIT, INPUTS
from migrator.infer import ClassInfo, Facts, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.reached import of_forward
from migrator.source import Source
from rules.registry import FLAGS, Advice, Flag

if TYPE_CHECKING:
    from migrator.convert.randomness import RngPlan

BUILD_TIME = frozenset(
    [
        "__init__",
        "reset_parameters",
        "_reset_parameters",
        "init_weights",
        "_init_weights",
        "initialize_weights",
        "_initialize_weights",
        "__repr__",
        "__str__",
        "extra_repr",
        "__len__",
        "from_pretrained",
        "state_dict",
        "load_state_dict",
        "_load_from_state_dict",
        "configure_optimizers",
        "main",
    ]
)
"""Methods and functions that are not traced: they build, print or load."""
_TRAINING_CALLS = frozenset(
    ["backward", "zero_grad", "step", "load_state_dict", "load_from_checkpoint", "train", "eval"]
)
_TRAINING_NAMES = frozenset(
    [
        "torch.save",
        "torch.load",
        "torch.utils.data.DataLoader",
        "torch.manual_seed",
        "torch.cuda.is_available",
    ]
)
GENERATING = ("generate", "sample", "beam_search", "greedy", "infer")
"""How the names of methods begin that draw from a model."""
DRAWING = ("sample", "generate")
"""Words of such a name that stand further on: ``ddim_sample``, ``p_sample_loop``."""
_WITHOUT_GRADIENT = frozenset(["no_grad", "inference_mode"])
_OF_VALUES = ("DYN", "TRC007")
_PROPERTIES = frozenset(["property", "cached_property"])
_LONGEST = 72
_UNASKED = "?"


@dataclass(frozen=True)
class Found:
    """One thing a rule found."""

    node: cst.CSTNode
    code: str
    what: str
    advice: str
    severity: str
    effort: float
    blocks: bool


@cache
def load_flags() -> None:
    """Import every flag rule, which registers it."""
    package = import_module("rules.flags")
    for module in iter_modules(package.__path__):
        import_module(f"rules.flags.{module.name}")


def one_line(node: cst.CSTNode) -> str:
    """The source of an expression on one line, shortened when it is long."""
    text = " ".join(syntax.code(node).split())
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


class FlagWalk:
    """The walk, and what a rule may ask while it goes (``rules.registry.FlagContext``)."""

    def __init__(self, source: Source, facts: Facts, plan: RngPlan | None = None) -> None:
        load_flags()
        if plan is not None:
            self._plan = plan
        self.source = source
        self.facts = facts
        self._at = 0
        self._node: cst.CSTNode = source.tree
        self._callee: str | None = _UNASKED
        self._parents: list[cst.CSTNode] | None = None
        self.memo: dict[str, Any] = {}
        self._functions: list[FunctionInfo | None] = []
        self._traced: dict[FunctionInfo, bool] = {}
        self._by_type: dict[type, list[Flag]] = {}
        for flag in FLAGS.values():
            for node_type in flag.nodes:
                self._by_type.setdefault(node_type, []).append(flag)

    # --- questions ------------------------------------------------------------------------------

    def kind(self, node: cst.CSTNode) -> k.Kind:
        """The kind of an expression, None taken out of an Optional."""
        kind = self.facts.kind(node)
        return kind.inner if isinstance(kind, k.Optional) else kind

    def is_tensor(self, node: cst.CSTNode) -> bool:
        """Whether an expression is known to be a tensor."""
        return isinstance(self.kind(node), k.Tensor)

    def is_given_tensor(self, node: cst.CSTNode) -> bool:
        """Whether an expression is or may be a tensor, or a number by its hint that a traced call hands a tensor for."""
        info = self._functions[-1] if self._functions else None
        if info is not None and never_given(self.facts, info, node):
            return False
        return k.perhaps_tensor(self.kind(node)) is not None or (
            info is not None and handed_tensor(self.facts, info, node, self.is_traced)
        )

    def holds_tensor(self, node: cst.CSTNode) -> bool:
        """Whether an expression is a tensor or has one in it."""
        return holds_tensor(self.facts, self.kind(node))

    def is_object_of_tensors(self, node: cst.CSTNode) -> bool:
        """Whether an expression is an object of a plain class of the project that has tensors."""
        return is_object_of_tensors(self.facts, self.kind(node))

    def outlives(self, node: cst.BaseExpression) -> bool:
        """Whether what an expression names is there before the call and after it."""
        info = self._functions[-1] if self._functions else None
        return outlives(self.facts, info, node, self.is_traced)

    def keeps_results(self, decorator: cst.Decorator) -> bool:
        """Whether a decorator keeps tensors that the function under it has made, and cannot be done without."""
        info = self._functions[-1] if self._functions else None
        inner = decorator.decorator
        name = self.facts.qualified_name(inner.func if isinstance(inner, cst.Call) else inner)
        if info is None or name not in (*MEMOS, "functools.cached_property"):
            return False
        if info.returns is None or not holds_tensor(self.facts, info.returns):
            return False
        return name not in MEMOS or not is_recomputed(self.facts, info)

    def dtype(self, node: cst.CSTNode) -> str | None:
        """The dtype class of a tensor."""
        kind = self.kind(node)
        return kind.dtype if isinstance(kind, k.Tensor) else None

    def rank(self, node: cst.CSTNode) -> int | None:
        """The number of axes of a tensor."""
        kind = self.kind(node)
        return kind.rank if isinstance(kind, k.Tensor) else None

    def scalar(self, node: cst.CSTNode) -> str | None:
        """The type of a Python scalar."""
        return k.scalar_type(self.kind(node))

    def qualified_name(self, node: cst.CSTNode) -> str | None:
        """The name that a Name or Attribute resolves to."""
        return self.facts.qualified_name(node)

    def callee(self, call: cst.Call) -> str | None:
        """The name that a call reaches."""
        if call is not self._node:
            return self.facts.callee(call)
        if self._callee is _UNASKED:  # a score of rules ask about each call
            self._callee = self.facts.callee(call)
        return self._callee

    def text(self, node: cst.CSTNode) -> str:
        """The source of an expression on one line."""
        return one_line(node)

    @property
    def parents(self) -> list[cst.CSTNode]:
        """The nodes around the one a rule is asked about, the file first."""
        if self._parents is None:
            self._parents = self.source.index.ancestors(self._at)
        return self._parents

    @property
    def _outermost(self) -> FunctionInfo | None:
        info = self._functions[-1] if self._functions else None
        while info is not None and info.outer is not None:
            info = info.outer
        return info

    @property
    def in_module(self) -> bool:
        """Whether the node lies in a method of a module."""
        info = self._outermost
        return info is not None and info.owner is not None and info.owner.torch_base is not None

    @property
    def in_forward(self) -> bool:
        """Whether the node lies in code that runs under ``jit`` once converted."""
        info = self._outermost
        if info is None:
            return False
        return self.is_traced(info)

    @property
    def in_model(self) -> bool:
        """Whether the forward pass of a module of the file comes to the node."""
        return self._outermost in self._forward_pass

    @cached_property
    def _forward_pass(self) -> set[FunctionInfo]:
        return of_forward(self.facts)

    def is_traced(self, info: FunctionInfo) -> bool:
        """Whether a function runs under ``jit`` once converted, as far as the file shows."""
        while info.outer is not None:
            info = info.outer
        if info not in self._traced:
            self._traced[info] = (
                False  # the answer for a function that is reached through itself only
            )
            self._traced[info] = self._decide(info)
        return self._traced[info]

    def _decide(self, info: FunctionInfo) -> bool:
        if info.short in BUILD_TIME or self._plan.builds_time(info):
            return False
        if info.owner is None and info.short in (INIT, INPUTS, *GROUPS):
            return False  # they make what a model is called with
        callers = [c for c in info.call_sites.values() if c is not None]
        traced = any(self.is_traced(caller) for caller in callers)
        reached = traced or self._is_read(info)
        if not reached and (gives_numbers(info, self.facts) or self._changes_layers(info)):
            return False
        if info.owner is not None and info.owner.torch_base is not None:
            return traced or not _generates(info, self.source)
        if info.owner is not None and _is_dataset(info.owner):
            return False
        if _trains(info, self.source, self.facts):
            return False
        return not info.call_sites or traced

    def _is_read(self, info: FunctionInfo) -> bool:
        """Whether it is a property that the forward pass reads: ``x * self.scale``."""
        if not _PROPERTIES & set(info.decorators):
            return False
        inside = [one for one in self._forward_pass if one is not info and one.settled is None]
        return any(
            read.attr.value == info.short
            for one in inside
            for read in self.facts.tree.within(one.node, cst.Attribute)
        )

    def _changes_layers(self, info: FunctionInfo) -> bool:
        """Whether a function makes layers beside the forward pass and gives no tensor back: ``prune_heads()``."""
        returns = info.returns.inner if isinstance(info.returns, k.Optional) else info.returns
        alone = returns == k.NONE or isinstance(returns, k.Module)
        return alone and info not in self._forward_pass and self._makes_layers(info)

    def _makes_layers(self, info: FunctionInfo) -> bool:
        """Whether a function builds a layer, or puts one that another builds in the place of its own."""
        if info.builds:
            return True
        for node in self.facts.tree.within(info.node.body, cst.Assign):
            called = self.facts.callee(node.value) if isinstance(node.value, cst.Call) else None
            maker = self.facts.names.get(called or "")
            target = node.targets[0].target
            if (
                isinstance(maker, FunctionInfo)
                and maker.builds
                and isinstance(target, cst.Attribute)
            ):
                return True
        return False

    @cached_property
    def _plan(self) -> RngPlan:
        from migrator.convert.randomness import RngPlan

        return RngPlan(self.facts)

    # --- the walk -------------------------------------------------------------------------------

    def run(self) -> list[Found]:
        """Everything the rules find, in the order of the source."""
        found: list[Found] = []
        tree = self.source.index
        ends, by_type, kinds = tree.ends, self._by_type, self.facts.kinds
        open_functions: list[tuple[int, dict[str, Any]]] = []  # where each ends; the memo around it
        wanted = {*by_type, cst.FunctionDef} - {cst.Name, cst.Attribute}
        nodes = tree.nodes
        named = tree.places_of(
            (cst.Name, cst.Attribute)
        )  # most are no dtypes, and nobody's business
        places = [place for place in named if type(kinds.get(nodes[place])) is k.DType]
        places += tree.places_of(wanted)
        shown = [(index, nodes[index]) for index in sorted(places)]
        if self.facts.dead:
            never = {id(node) for branch in self.facts.dead for node in tree.below(branch)}
            shown = [(index, node) for index, node in shown if id(node) not in never]
        for index, node in shown:
            while open_functions and index >= open_functions[-1][0]:
                self._functions.pop()
                self.memo = open_functions.pop()[1]
            kind = type(node)
            flags = by_type.get(kind)
            if flags is not None:
                self._at, self._node, self._parents, self._callee = index, node, None, _UNASKED
                for flag in flags:
                    result = flag.check(node, self) if flag.check is not None else None
                    if result is not None:
                        found.append(self._as_taken(node, _found(node, flag, result)))
            if kind is cst.FunctionDef:
                open_functions.append((ends[index], self.memo))
                self._functions.append(self.facts.functions.get(node))
                self.memo = dict(self.memo) if len(self._functions) > 1 else {}
        return found

    def _as_taken(self, node: cst.CSTNode, found: Found) -> Found:
        """What is found in a branch that no call takes is worth knowing, and in nobody's way."""
        info = self._functions[-1] if self._functions else None
        if info is None or not found.blocks or not found.code.startswith(_OF_VALUES):
            return found
        if not is_not_taken(self.facts, self.source.index, info, node):
            return found
        what = f"{found.what}; no call here takes this branch"
        return replace(found, what=what, severity="info", blocks=False)


def _found(node: cst.CSTNode, flag: Flag, result: str | Advice) -> Found:
    if isinstance(result, str):
        result = Advice(result)
    return Found(
        result.node if result.node is not None else node,
        flag.code,
        flag.what if result.what is None else result.what,
        result.text,
        flag.severity if result.severity is None else result.severity,
        flag.effort if result.effort is None else result.effort,
        flag.blocks if result.blocks is None else result.blocks,
    )


def _is_dataset(owner: ClassInfo) -> bool:
    """Whether a class gives a loader its items, on the host."""
    return any(
        isinstance(base, k.Class) and base.name.startswith("torch.utils.data.")
        for one in owner.lineage()
        for base in one.bases
    )


def _generates(info: FunctionInfo, source: Source) -> bool:
    """Whether a method is a program around its model that calls it again and again: ``generate()``, ``sample()``.

    It is no part of the forward pass, and it ends or goes on by what the model has said.
    """
    name = info.short.lstrip("_")
    if not name.startswith(GENERATING) and not set(DRAWING) & set(name.split("_")):
        return False
    if _WITHOUT_GRADIENT & set(info.decorators):
        return True
    return bool(source.index.within(info.node.body, cst.For, cst.While))


def _trains(info: FunctionInfo, source: Source, facts: Facts) -> bool:
    """Whether a plain function is the program around a model: it trains, loads or saves one."""
    for call in source.index.within(info.node.body, cst.Call):
        if type(call.func) is cst.Attribute and call.func.attr.value in _TRAINING_CALLS:
            return True
        if facts.callee(call) in _TRAINING_NAMES:
            return True
    return False
