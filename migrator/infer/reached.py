"""What the forward passes of a file's modules call."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator.infer import kinds as k
from migrator.infer.facts import ClassInfo, Facts, FunctionInfo

_Derived = dict[ClassInfo, list[ClassInfo]]


def of_forward(facts: Facts) -> set[FunctionInfo]:
    """The functions that the forward pass of a module of the file calls, itself or through others.

    Of ``self.loss(x)`` in a class these are ``loss`` of that class and of each one that derives from it, also where
    another file defines that class."""
    derived: _Derived = {}
    for info in facts.classes.values():
        for base in info.lineage():
            derived.setdefault(base, []).append(info)
    seen: set[FunctionInfo] = set()
    queue = [
        info.methods["forward"]
        for info in facts.classes.values()
        if "forward" in info.methods and (info.torch_base or _is_mixed_in(info))
    ]
    while queue:
        one = queue.pop()
        if one not in seen:
            seen.add(one)
            queue.extend(c for c in one.calls if isinstance(c, FunctionInfo))
            queue.extend(_by_name(facts, one, derived))
    return seen


def _is_mixed_in(info: ClassInfo) -> bool:
    """Whether a plain class has a ``forward`` that modules of other files may inherit."""
    own = info.methods
    return (
        not info.gradient
        and "__call__" not in own
        and "staticmethod" not in own["forward"].decorators
    )


def _by_name(facts: Facts, function: FunctionInfo, derived: _Derived) -> Iterator[FunctionInfo]:
    """The methods of modules that a function may call for all that is known of what it calls them of."""
    if function.owner is not None:
        for name in sorted(asked_of_self(facts, function)):
            found = (info.method(name) for info in derived.get(function.owner, ()))
            yield from (method for method in found if method is not None)
    if function.settled is not None:
        return
    for call in facts.tree.within(function.node, cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and isinstance(facts.kind(func.value), k.Unknown):
            for info in facts.classes.values():
                if info.torch_base and func.attr.value in info.methods:
                    yield info.methods[func.attr.value]


def asked_of_self(facts: Facts, function: FunctionInfo) -> frozenset[str]:
    """The names of the methods that a method calls of its own object; with COMPUTED where it gets one by such a name."""
    if function.settled is not None:
        return function.settled.asks
    first = next(iter(function.node.params.params), None)
    if first is None or function.owner is None:
        return frozenset()
    found = set()
    for call in facts.tree.within(function.node, cst.Call):
        if isinstance(call.func, cst.Attribute) and call.func.value.deep_equals(first.name):
            found.add(call.func.attr.value)
        elif (
            isinstance(call.func, cst.Name) and call.func.value == "getattr" and len(call.args) > 1
        ):
            name = call.args[1].value
            if call.args[0].value.deep_equals(first.name):
                text = name.evaluated_value if isinstance(name, cst.SimpleString) else None
                found.add(text if isinstance(text, str) else COMPUTED)
    return frozenset(found)


COMPUTED = "*"
"""What stands for a name that is computed: ``getattr(self, name)``."""
