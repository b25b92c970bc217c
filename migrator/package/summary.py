"""What other files need to know of a converted file, as plain JSON data: small, and safe to read back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cached_property
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.by_row import is_by_row
from migrator.convert.children import is_named
from migrator.convert.context import Context
from migrator.convert.gone_over import goes_over
from migrator.convert.hooks import written_by_base
from migrator.convert.kept import kept
from migrator.convert.made_of_globals import of_globals
from migrator.convert.memory import aliases
from migrator.convert.own_state import state_names, stored_arguments
from migrator.convert.passes.classes import needs_constructor
from migrator.convert.passes.handing import called_parameters
from migrator.convert.passes.host_arrays import keeps_for_numpy
from migrator.convert.passes.initializers import writes_first_parameter
from migrator.convert.passes.records import hints_of
from migrator.convert.passes.tying import loose_heads, tied_heads
from migrator.convert.returned import returned_arguments, returned_state
from migrator.convert.updates import updates
from migrator.convert.writers import (
    holders_for_others,
    lost_for_others,
    may_begin_in_place,
    told,
    writes_argument,
)
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.evidence import reads_training
from migrator.infer.facts import SettledClass, SettledFunction
from migrator.infer.reached import asked_of_self
from migrator.infer.recomputing import only_trained
from migrator.infer.repeated import repeated
from migrator.infer.wrapping import hands_keywords

Data = dict[str, Any]
_KINDS: dict[str, type[k.Kind]] = {
    c.__name__: c
    for c in (
        k.Unknown,
        k.Tensor,
        k.Const,
        k.Scalar,
        k.Tuple,
        k.Sequence,
        k.Mapping,
        k.Module,
        k.Class,
        k.Function,
        k.DType,
        k.Device,
        k.Generator,
        k.Namespace,
        k.Other,
        k.Optional,
    )
}
_PLAIN = (int, float, str, bool, type(None))
_DEEPEST = 8
"""Kinds nested deeper are forgotten: what holds them is data, not tensors."""


# --- kinds -----------------------------------------------------------------------------------------------------------


def encode(value: Any, depth: int = 0) -> Any:
    """A kind (or a plain value inside one) as JSON data."""
    if isinstance(value, k.Kind):
        if depth > _DEEPEST or isinstance(value, k.Unknown):
            return ["Unknown"]
        if isinstance(value, k.Function) and value.name.startswith("<"):
            return ["Function", "", None]  # a lambda has its name in its own file only
        if isinstance(value, k.Const) and not isinstance(value.value, _PLAIN):
            return ["Unknown"]
        parts = [getattr(value, field.name) for field in fields(value)]
        return [type(value).__name__, *(encode(part, depth + 1) for part in parts)]
    if isinstance(value, tuple):
        return {"": [encode(item, depth) for item in value]}
    return value if isinstance(value, _PLAIN) else None


def decode(data: Any) -> Any:
    """What ``encode`` was given."""
    if isinstance(data, list):
        return _KINDS[data[0]](*map(decode, data[1:]))
    if isinstance(data, dict):
        return tuple(map(decode, data[""]))
    return data


def constant(kind: k.Kind) -> k.Kind:
    """A global as another file may rely on it: its value may change, and None may become something."""
    if isinstance(kind, k.Const):
        return k.UNKNOWN if kind.value is None else k.Scalar(type(kind.value).__name__)
    return kind


def referenced(kind: Any) -> Iterator[str]:
    """Qualified names of the classes and functions a kind mentions."""
    if isinstance(kind, (k.Class, k.Function)):
        yield kind.name
    elif isinstance(kind, k.Module):
        yield from kind.cls.split("|")
    elif isinstance(kind, k.Other):
        yield kind.type
    if isinstance(kind, k.Class):
        yield from kind.among
    if isinstance(kind, k.Kind):
        for field in fields(kind):
            yield from referenced(getattr(kind, field.name))
    elif isinstance(kind, tuple):
        for item in kind:
            yield from referenced(item)


# --- definitions of another file -------------------------------------------------------------------------------------


class ForeignFunction(FunctionInfo):
    """A function of another file; its signature is parsed when somebody looks at it."""

    def __init__(self, name: str, data: Data, owner: ClassInfo | None) -> None:
        self._text = data["text"]
        self._decorators: list[str] = data["decorators"]
        super().__init__(name, None, owner)  # type: ignore[arg-type]
        self.params = {n: decode(kind) for n, kind in data["params"]}
        self.returns = decode(data["returns"]) if data["returns"] is not None else None
        self.draws, self.builds, self.generator = data["draws"], data["builds"], data["generator"]
        self.settled = SettledFunction(
            data["how"],
            data["builds_time"],
            data["writes_first"],
            frozenset(data["returned"]),
            frozenset(data["mutates"]),
            frozenset(data["returned_state"]),
            frozenset(data["state"]),
            data["reads_training"],
            frozenset(data["updates"]),
            tuple((a, b, c) for a, b, c in data["keeps"]),
            frozenset(data["only_trained"]),
            frozenset((a, b) for a, b in data["stored"]),
            data["hands_keywords"],
            data["early"],
            frozenset(data["asks"]),
            data["by_row"],
            frozenset(data["goes_over"]),
            data["told_to"],
            tuple(data["repeats"]),
            frozenset(data["calls"]),
            frozenset(data["only_calls"]),
            tuple((a, b) for a, b in data["of_globals"]),
        )
        self.dirty = False

    @cached_property
    def _parsed(self) -> cst.FunctionDef:
        made = cst.parse_statement(self._text)
        assert isinstance(made, cst.FunctionDef)
        return made

    @property
    def node(self) -> cst.FunctionDef:
        """The signature, with a body only where it is one line."""
        return self._parsed

    @node.setter
    def node(self, value: Any) -> None:
        """The text is parsed on demand."""

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]

    @property
    def decorators(self) -> list[str]:
        return self._decorators


class ForeignClass(ClassInfo):
    """A class of another file."""

    def __init__(self, name: str, data: Data) -> None:
        super().__init__(name, None)  # type: ignore[arg-type]
        self.bases = [decode(base) for base in data["bases"]]
        self.attributes = {n: decode(kind) for n, kind in data["attributes"].items()}
        self.statics = {n: decode(kind) for n, kind in data["statics"].items()}
        self.torch_base = data["torch_base"]
        self.asks_training = data["asks_training"]
        self.lightning = data["lightning"]
        self.state = None if data["state"] is None else frozenset(data["state"])
        self.asked = frozenset(data["asked"])
        self.settled = SettledClass(
            data["stores"],
            data["constructor"],
            tuple((head, weight) for head, weight in data["tied"]),
            frozenset(data["loose"]),
            data["named"],
            frozenset(data["host_arrays"]),
            data["begins_in_place"],
            tuple(data["record"]),
            frozenset(data["hooks"]),
            frozenset(data["shown"]),
            dict(self.attributes),
        )

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


# --- writing ---------------------------------------------------------------------------------------------------------


def summarize(ctx: Context, module: str) -> Data:
    """The summary of a file that has been converted."""
    facts = ctx.facts
    env = {
        name: encode(constant(kind))
        for name, kind in sorted(facts.module_env.items())
        if "." not in name and not isinstance(kind, k.Unknown)
    }
    own = [i for i in facts.functions.values() if i.owner is None and i.outer is None]
    own_classes = [c for c in facts.classes.values() if c.settled is None]
    classes = [c for c in own_classes if _home(c.name) == module]
    for one in classes:  # and those in the bodies of others: ``Outer.Inner``
        classes += [c for c in own_classes if _home(c.name) == one.name]
    return {
        "env": env,
        "holders": sorted(holders_for_others(ctx) - set(told(ctx))),
        "told": told(ctx),
        "lost": sorted(lost_for_others(ctx)),
        "classes": {c.name: _class(ctx, c) for c in classes},
        "functions": {i.name: _function(ctx, i) for i in own},
    }


def _home(name: str) -> str:
    return name.rpartition(".")[0]


def _class(ctx: Context, info: ClassInfo) -> Data:
    tied = tied_heads(ctx, info) if info.torch_base else {}
    written, again = written_by_base(ctx, info)
    return {
        "bases": [encode(base) for base in info.bases],
        "parents": [parent.name for parent in info.parents],
        "attributes": {n: encode(kind) for n, kind in sorted(info.attributes.items())},
        "statics": {n: encode(constant(kind)) for n, kind in sorted(info.statics.items())},
        "methods": {n: _function(ctx, method) for n, method in info.methods.items()},
        "torch_base": info.torch_base,
        "state": None if info.state is None else sorted(info.state),
        "asked": sorted(info.asked),
        "asks_training": info.asks_training,
        "lightning": info.lightning,
        "host_arrays": sorted(n for n in info.attributes if keeps_for_numpy(ctx, info, n)),
        "stores": ctx.plan.stores(info),
        "constructor": info.torch_base is not None and needs_constructor(ctx, info),
        "named": is_named(ctx, info),
        "begins_in_place": may_begin_in_place(ctx, info),
        "record": hints_of(info),
        "hooks": sorted(written),
        "shown": sorted(again),
        "loose": sorted(loose_heads(ctx, info)) if info.torch_base else [],
        "tied": [[head, syntax.code(weight)] for head, weight in sorted(tied.items())],
    }


def _function(ctx: Context, info: FunctionInfo) -> Data:
    open_ = info.owner is not None and syntax.is_left_open(info.node)
    returns = None if info.returns is None or open_ else info.returns
    return {
        "text": _signature(info),
        "decorators": info.decorators,
        "params": [[n, encode(kind)] for n, kind in info.params.items()],  # their order counts
        "returns": None if returns is None else encode(returns),
        "draws": info.draws,
        "builds": info.builds,
        "generator": info.generator,
        "how": ctx.plan.how(info),
        "builds_time": ctx.plan.builds_time(info),
        "early": ctx.plan.early(info),
        "writes_first": writes_first_parameter(ctx, info),
        "returned": sorted(returned_arguments(ctx, info)),
        "returned_state": sorted(returned_state(ctx, info)),
        "state": sorted(state_names(ctx, info)),
        "reads_training": reads_training(ctx.facts.tree, info.node),
        "keeps": [list(one) for one in kept(ctx, info)] if info.short == "__init__" else [],
        "stored": sorted(map(list, stored_arguments(aliases(ctx, info)))),
        "hands_keywords": hands_keywords(info.node),
        "updates": sorted(updates(ctx, info)),
        "only_trained": sorted(only_trained(ctx.facts, info)),
        "mutates": sorted(ctx.mutated.get(info, ())),
        "asks": sorted(asked_of_self(ctx.facts, info)),
        "by_row": is_by_row(ctx, info),
        "goes_over": sorted(goes_over(ctx, info)),
        "repeats": repeated(ctx.facts, info),
        "calls": sorted(called_parameters(info)),
        "only_calls": sorted(called_parameters(info, only=True)),
        "of_globals": [list(one) for one in of_globals(ctx, info)],
        "told_to": info in ctx.mutated and _is_told_to(ctx, info),
    }


def _is_told_to(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function writes to its arguments only where one called ``inplace`` says so, which is off by default."""
    asked = info.owner.method("__init__") if info.short == "forward" and info.owner else info
    params = asked.node.params if asked is not None else None
    several = (*params.params, *params.kwonly_params) if params is not None else ()
    defaults = [one.default for one in several if one.name.value in ("inplace", "in_place")]
    off = [isinstance(one, cst.Name) and one.value in ("False", "None") for one in defaults]
    return bool(off) and all(off) and not writes_argument(ctx, info, told=False)


def _signature(info: FunctionInfo) -> str:
    """The function without decorators and hints, and without a body that is longer than a line or two."""
    node = info.node
    short = info.owner is None and len(node.body.body) <= 2
    text = syntax.code(node.body) if short else ""
    if len(text) > 200 or not text:
        text = " ...\n"
    head = f"def {node.name.value}({', '.join(_parameters(node.params))}):"
    return (head + text).strip("\n") + "\n"


def _parameters(params: cst.Parameters) -> Iterator[str]:
    def plain(several: Iterable[cst.Param]) -> list[str]:
        return [
            f"{one.name.value} = ..." if one.default is not None else one.name.value
            for one in several
        ]

    yield from plain(params.posonly_params)
    if params.posonly_params:
        yield "/"
    yield from plain(params.params)
    if isinstance(params.star_arg, cst.Param):
        yield f"*{params.star_arg.name.value}"
    elif isinstance(params.star_arg, cst.ParamStar):
        yield "*"
    yield from plain(params.kwonly_params)
    if params.star_kwarg is not None:
        yield f"**{params.star_kwarg.name.value}"
