"""Calls of what is looked up: ``MODELS[name](…)``, ``globals()[name](…)``, ``getattr(models, name)(…)``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module

import libcst as cst

from migrator import syntax
from migrator.infer import kinds as k
from migrator.infer.construction import passes_on
from migrator.infer.facts import ClassInfo, Facts, FunctionInfo
from migrator.infer.python import is_self
from migrator.infer.reached import asked_of_self
from migrator.infer.signatures import Args

CREATING = frozenset("create make build get new".split())
"""How the names of functions begin that create what they return."""

INITIALISING = frozenset("init_weights reset_parameters _init_weights initialize".split())
"""Names of methods that draw the values of parameters anew."""


@dataclass
class LookedUp:
    """What a call may be of: ``entries`` are those that are written down.

    Attributes:
      anything: it may be any definition of the program, too.
    """

    entries: list[k.Kind] = field(default_factory=list)
    anything: bool = False


def note_lookup(facts: Facts, function: FunctionInfo | None, node: cst.Call, args: Args) -> None:
    """Remember that a function calls an entry of a table, which may build modules."""
    if function is None or passes_on(function, node):
        return
    found = looked_up(facts, function, node.func)
    if found is None and is_fetched(facts, function, node.func):
        found = LookedUp(anything=True) if _may_be_handed(function) else None
    if found is None:
        return
    for entry in found.entries:
        info = facts.names.get(entry.name) if isinstance(entry, k.Function) else None
        if info is not None and info not in function.calls:
            function.calls.append(info)
        cls = facts.classes.get(entry.name) if isinstance(entry, k.Class) else None
        function.builds |= cls is not None and cls.torch_base is not None
    if found.anything and (function.owner is None or not function.owner.torch_base):
        function.builds |= not any(isinstance(kind, k.Tensor) for _, kind in args)


def _may_be_handed(function: FunctionInfo) -> bool:
    """Whether who calls a function can hand it a generator: not Python itself, as it does ``__getitem__``."""
    return not function.short.startswith("__") or function.short in ("__init__", "__new__")


def is_fetched(facts: Facts, function: FunctionInfo, node: cst.BaseExpression) -> bool:
    """Whether what is called was fetched from somewhere that keeps classes and functions, which are not known here.

    ``MODELS[name].Model`` of modules, where something is created; and in a program that keeps classes under their names
    ``REGISTRY.get(name)``, ``registry[name]``, ``get_obj_from_str(target)``; what a local name was given of these; a
    function that makes something, of such (``ARCHITECTURES[name].build_model``); what an object of the file's own keeps
    in an attribute (``self.build_func``).
    """
    if isinstance(node, cst.Attribute) and _CLASS.match(node.attr.value):
        creates = function.short.lstrip("_").partition("_")[0] in (*CREATING, "init")
        unknown = isinstance(facts.kind(node.value), k.Unknown)
        return creates and unknown and _is_given(facts, function, node.value)
    if not facts.keeps_makers or _of_forward(facts, function):
        return False
    if isinstance(node, cst.Name):
        return _is_given(facts, function, node)
    if isinstance(node, cst.Attribute):
        creates = node.attr.value.partition("_")[0] in CREATING
        creates = creates and node.attr.value != "get"  # a dict's: what it gives is there already
        if creates and isinstance(facts.kind(node.value), k.Unknown):
            return is_fetched(facts, function, node.value)
        owner, asked = function.owner, node.attr.value
        if owner is None or owner.torch_base or not is_self(node.value):
            return False
        if all(asked not in one.attributes for one in owner.lineage()):
            return False  # what modules that derive from the class have: their layers
        return asked not in owner.methods and not _is_of_library(owner, asked)
    if isinstance(node, cst.Call):
        name = facts.callee(node)
        return name is None or name in (*facts.names, "builtins.getattr")
    return isinstance(node, cst.Subscript)


def _of_forward(facts: Facts, function: FunctionInfo) -> bool:
    """Whether a method is part of the forward pass that a plain class has for modules: those compute with layers."""
    owner = function.owner
    plain = owner is not None and not owner.torch_base and "forward" in owner.methods
    pending = ["forward"] if plain else []
    found: set[str] = set()
    while pending and owner is not None:
        name = pending.pop()
        if name in owner.methods and name not in found:
            found.add(name)
            pending.extend(asked_of_self(facts, owner.methods[name]))
    return function.short in found


def _is_of_library(owner: ClassInfo, name: str) -> bool:
    """Whether a method is that of a class of Python's which a class derives from: ``self.items()``, ``self.format(r)``.

    Python calls what overrides such a method, and hands no generator to it."""
    bases = {getattr(base, "name", None) for one in owner.lineage() for base in one.bases}
    return any(name in _methods(base) for base in bases if base)


@cache
def _methods(base: str) -> frozenset[str]:
    """What a class of Python's library has by itself; nothing of any other class."""
    module, _, name = base.rpartition(".")
    found = getattr(import_module(module), name, None) if module in _LIBRARY else None
    return frozenset(dir(found)) if isinstance(found, type) else frozenset()


_LIBRARY = frozenset(
    "argparse ast builtins cmd collections configparser html.parser io json logging logging.handlers queue string "
    "threading unittest".split()
)
"""Modules whose classes are derived from for their methods, and whose import does nothing else."""


def is_model(facts: Facts, function: FunctionInfo | None, node: cst.BaseExpression) -> bool:
    """``MODELS[name].Model`` and the like, where something is created: a class of modules, by its name."""
    named = isinstance(node, cst.Attribute) and _MODEL.search(node.attr.value)
    return bool(named) and function is not None and is_fetched(facts, function, node)


_MODEL = re.compile(r"^(?:[A-Z]\w*)?(?:Model|Module|Net|Encoder|Decoder|[Tt]ransformer)$")
_CLASS = re.compile(r"[A-Z][A-Z0-9]*[a-z]")


def _is_given(facts: Facts, function: FunctionInfo, node: cst.BaseExpression) -> bool:
    """Whether an expression gets something out of somewhere, or names what a function got so."""
    if isinstance(node, cst.Name):
        given = [] if node.value in function.params else _every(facts, function, node.value)
        if not given and node.value not in function.params:
            given = list(_at_top(facts, node.value))
        return any(isinstance(one, (cst.Call, cst.Subscript)) for one in given)
    return isinstance(node, (cst.Call, cst.Subscript))


def _at_top(facts: Facts, name: str) -> Iterator[cst.BaseExpression]:
    """What the statements at the top of a file give a name."""
    for line in syntax.children(facts.tree.root):
        small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
        if isinstance(small, cst.Assign) and any(_is_name(t.target, name) for t in small.targets):
            yield small.value


def _every(facts: Facts, function: FunctionInfo, name: str) -> list[cst.BaseExpression]:
    """What a function gives a name of its own."""
    found = []
    for node in facts.tree.within(function.node.body, cst.Assign, cst.AnnAssign):
        if isinstance(node, cst.Assign):
            given = any(_is_name(one.target, name) for one in node.targets)
        else:
            given = _is_name(node.target, name)
        if given and node.value is not None:
            found.append(node.value)
    return found


def initialises(facts: Facts, name: str) -> bool:
    """Whether ``module.init_weights()`` of a module that is not known draws: some class has such a method."""
    named = [(info, info.methods[name]) for info in facts.classes.values() if name in info.methods]
    if any(m.settled is not None and m.settled.how == "param" for _, m in named):
        return name not in ("__init__", "forward")  # of a class of another file
    own = any(info.torch_base for info, _ in named)
    return name == "reset_parameters" or (name in INITIALISING and own)


def note_kept(facts: Facts, function: FunctionInfo | None, value: cst.BaseExpression) -> None:
    """``layer = layer(*args)``, ``self.add_module(name, layer)``: what a function calls makes a module, which is kept."""
    if function is None:
        return
    values: list[cst.BaseExpression] = [value]
    if isinstance(value, cst.Name):
        values = _every(facts, function, value.value)
    for made in values:
        if not isinstance(made, cst.Call) or type(made.func) not in (cst.Name, cst.Subscript):
            continue
        kind = facts.kind(made.func)
        if isinstance(kind, k.Unknown) or kind == k.NAMELESS:
            function.builds |= not passes_on(function, made)


def _is_name(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def looked_up(
    facts: Facts, function: FunctionInfo, node: cst.BaseExpression, kept: bool = True
) -> LookedUp | None:
    """What the called expression may be; None where it is no entry of a table.

    Args:
      kept: follow a local name to the entry that it was given.
    """
    if isinstance(node, cst.Name):
        return _given(facts, function, node.value) if kept else None
    if isinstance(node, cst.Subscript):
        return _entries(facts, function, node.value)
    if not isinstance(node, cst.Call):
        return None
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get" and node.args:
        return _entries(facts, function, node.func.value)
    if _is_named(node, "eval"):
        return LookedUp(anything=True)
    if _is_named(node, "getattr") and len(node.args) > 1:
        return LookedUp(anything=True) if _is_program(facts, node.args[0].value) else None
    return None


def _given(facts: Facts, function: FunctionInfo, name: str) -> LookedUp | None:
    """What a function gives a name of its own: entries of tables, or functions beside them; None where it is else."""
    looped = _gone_over(facts, function, name)
    if looped is not None:
        return looped
    values = [] if name in function.params else _every(facts, function, name)
    found = LookedUp()
    tables, chosen = 0, False
    for value in [one for several in values for one in _either(several)]:
        entry = looked_up(facts, function, value, False)
        kind = facts.kind(value)
        if entry is not None:
            tables += 1
            found.entries += entry.entries
            found.anything |= entry.anything
        elif isinstance(kind, (k.Function, k.Class)) and kind.name:
            found.entries.append(kind)
            chosen |= isinstance(kind, k.Class)
        else:
            return None
    return found if tables or chosen else None


def _gone_over(facts: Facts, function: FunctionInfo, name: str) -> LookedUp | None:
    """``[make() for make in (Block, build_other)]``, ``for name, make in MAKERS.items()``: what is written there."""
    found = LookedUp()
    for loop in facts.tree.within(function.node, cst.For, cst.CompFor):
        if name in syntax.names(loop.target):
            for value in _written(facts, function, loop.iter):
                kind = facts.kind(value)
                if isinstance(kind, (k.Function, k.Class)) and kind.name:
                    found.entries.append(kind)
    return found if found.entries else None


def _written(
    facts: Facts, function: FunctionInfo, node: cst.BaseExpression, deep: int = 4
) -> Iterator[cst.BaseExpression]:
    """The expressions in a display, also one that a name of the file or a default stands for, or ``.items()`` goes over."""
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            yield from _written(facts, function, node.func.value, deep)
        for arg in node.args:
            yield from _written(facts, function, arg.value, deep)
    elif isinstance(node, (cst.Tuple, cst.List, cst.Set)):
        for one in node.elements:
            yield from _written(facts, function, one.value, deep)
    elif isinstance(node, cst.Dict):
        for item in node.elements:
            yield from _written(facts, function, item.value, deep)
    elif isinstance(node, cst.Name) and isinstance(facts.kind(node), (k.Function, k.Class)):
        yield node
    elif isinstance(node, cst.Name) and deep:
        params = function.node.params
        for param in (*params.params, *params.kwonly_params):
            if param.name.value == node.value and param.default is not None:
                yield from _written(facts, function, param.default, deep - 1)
        for value in (*_every(facts, function, node.value), *_at_top(facts, node.value)):
            yield from _written(facts, function, value, deep - 1)
    elif not isinstance(node, cst.Name):
        yield node


def _either(value: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    if isinstance(value, cst.IfExp):
        return (*_either(value.body), *_either(value.orelse))
    return (value,)


def _is_named(node: cst.CSTNode, *names: str) -> bool:
    func = node.func if isinstance(node, cst.Call) else None
    return isinstance(func, cst.Name) and func.value in names


def _entries(facts: Facts, function: FunctionInfo, table: cst.BaseExpression) -> LookedUp | None:
    kind = facts.kind(table)
    if isinstance(kind, k.Optional):
        kind = kind.inner
    if isinstance(kind, k.Mapping) and kind.items:
        return LookedUp([value for _, value in kind.items])
    if isinstance(table, cst.Name) and isinstance(kind, (k.Tuple, k.Sequence)):
        kinds = [facts.kind(one) for one in _written(facts, function, table)]
        makers: list[k.Kind] = [
            one for one in kinds if isinstance(one, (k.Function, k.Class)) and one.name
        ]
        return LookedUp(makers) if makers else None
    if isinstance(table, cst.Call) and _is_named(table, "globals", "vars"):
        named = table.args[0].value if table.args else None
        return LookedUp(anything=True) if named is None or _is_program(facts, named) else None
    if isinstance(table, cst.Attribute) and table.attr.value == "__dict__":
        return LookedUp(anything=True) if _is_program(facts, table.value) else None
    inner = table
    while isinstance(inner, cst.Subscript):  # ``ENCODERS[name]["encoder"]``
        inner = inner.value
    filled = isinstance(kind, (k.Mapping, k.Unknown)) and isinstance(
        inner, (cst.Name, cst.Attribute)
    )  # by a decorator perhaps, as in a registry
    creates = function.short.lstrip("_").partition("_")[0] in CREATING
    return LookedUp(anything=True) if filled and creates else None


def _is_program(facts: Facts, node: cst.BaseExpression) -> bool:
    """Whether an expression is a module of the program: ``sys.modules[__name__]``, an import of its own."""
    if isinstance(node, cst.Subscript):
        return facts.qualified_name(node.value) == "sys.modules"
    kind = facts.kind(node)
    if not isinstance(kind, k.Namespace) or facts.linked is None:
        return False
    return facts.linked.place(facts.module, kind.name, 0, None) == "own"
