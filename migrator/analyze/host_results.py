"""Functions that give back Python numbers made of tensors: ``return action.item()``. They run on the host, whoever calls them.

Nothing that runs under ``jit`` can give such a number, so there is no version of these functions that is traced.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property

import libcst as cst

from migrator import syntax
from migrator.infer import Facts, FunctionInfo
from migrator.infer import kinds as k

_READING = frozenset(["Tensor.item", "Tensor.tolist", "Tensor.numpy"])
_NUMBERS = frozenset(["int", "float", "bool"])
_RECKONING = frozenset(
    [*(f"builtins.{name}" for name in "sum max min abs round".split()), "numpy.mean", "numpy.sum"]
)
"""What makes a number of numbers and lists of them."""
_MAKING = frozenset(
    f"torch.{name}"
    for name in (
        "arange as_tensor empty eye from_numpy full linspace logspace ones rand randint randn randperm range tensor zeros"
    ).split()
)
"""What makes a tensor of what is none."""
_APPENDING = frozenset(["append", "extend", "insert"])


def gives_numbers(info: FunctionInfo, facts: Facts) -> bool:
    """Whether a function returns numbers that only a run can tell, lists of them, or tuples of nothing but numbers.

    One that gives back a tensor beside them, ``return action.item(), policy.log_prob(action)``, goes on in what is traced;
    and of what is read from a tensor that it makes of its own sizes, ``torch.linspace(0, 1, n).tolist()``, a version
    that is traced can be written.
    """
    if info not in facts.gives_numbers:
        facts.gives_numbers[info] = False  # the answer for a function that calls itself
        facts.gives_numbers[info] = _gives_numbers(info, facts)
    return facts.gives_numbers[info]


def _gives_numbers(info: FunctionInfo, facts: Facts) -> bool:
    if info.short in ("forward", "__call__") or info.generator:
        return False
    body = _Body(info.node.body, facts)
    values = [n.value for n in body.nodes if isinstance(n, cst.Return) and n.value is not None]
    parts = [part for value in values for part in _parts(value)]
    read = [part for part in parts if body.is_read(part)]
    others = [part for part in parts if part not in read]
    plain = all(_is_plain(part, facts) or facts.kind(part) == k.NONE for part in others)
    return bool(read) and plain and any(_is_handed(part, info, body) for part in read)


def _is_handed(part: cst.BaseExpression, info: FunctionInfo, body: _Body) -> bool:
    """Whether what is read comes from an argument that may be a tensor, or from the module."""
    handed = {name for name, kind in info.params.items() if k.scalar_type(kind) is None}
    handed |= {p.name.value for p in info.node.params.params[: info.receivers]}
    seen: set[str] = set()
    waiting = _sources(part, body.facts)
    while waiting:
        name = waiting.pop()
        if name in handed:
            return True
        if name not in seen:
            seen.add(name)
            for node in body.bound_to(name):
                waiting |= _sources(node, body.facts)
    return False


def _sources(node: cst.CSTNode, facts: Facts) -> set[str]:
    """The names that an expression takes its tensors from; not those that say how large a new one is."""
    if isinstance(node, cst.Name):
        return {node.value}
    if isinstance(node, cst.Attribute):
        return _sources(node.value, facts)
    if isinstance(node, cst.Arg):
        return _sources(node.value, facts)
    if isinstance(node, cst.Call) and facts.callee(node) in _MAKING:
        return set()
    return {name for child in syntax.children(node) for name in _sources(child, facts)}


class _Body:
    """What the names of a function hold, told by its statements; each name is looked into once."""

    def __init__(self, body: cst.CSTNode, facts: Facts) -> None:
        self.facts = facts
        self.nodes = list(_own(body))
        self._read: dict[str, bool] = {}

    @cached_property
    def _given(self) -> dict[str, list[cst.BaseExpression]]:
        """What is assigned to each name, and what is added to it."""
        given: dict[str, list[cst.BaseExpression]] = defaultdict(list)
        for node in self.nodes:
            if isinstance(node, cst.Assign):
                pairs = [p for one in node.targets for p in _pairs(one.target, node.value)]
                for target, value in pairs:
                    if isinstance(target, cst.Name):
                        given[target.value].append(value)
                        continue
                    for name in syntax.names(target):
                        given[name].append(target)  # a part of it, or of what is taken apart
            elif isinstance(node, cst.AugAssign) and isinstance(node.target, cst.Name):
                given[node.target.value].append(node.value)  # number and number give a number
            elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For)):
                for name in syntax.names(node.target):
                    given[name].append(node.target)
            elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
                func = node.func
                if isinstance(func.value, cst.Name) and func.attr.value in _APPENDING and node.args:
                    given[func.value.value].append(node.args[-1].value)
        return given

    @cached_property
    def _sources(self) -> dict[str, list[cst.CSTNode]]:
        """What else each name gets its values from."""
        found: dict[str, list[cst.CSTNode]] = defaultdict(list)
        for node in self.nodes:
            targets: list[cst.CSTNode] = []
            value: cst.CSTNode | None = None
            if isinstance(node, cst.For):
                targets, value = [node.target], node.iter
            elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.NamedExpr)):
                targets, value = [node.target], node.value
            elif isinstance(node, cst.Assign):
                targets, value = [one.target for one in node.targets], node.value
            for target in targets if value is not None else ():
                for name in syntax.names(target):
                    found[name].append(value)  # type: ignore[arg-type]
        return found

    def bound_to(self, name: str) -> list[cst.CSTNode]:
        """What a name gets its values from, by whatever statement."""
        return [*self._given.get(name, ()), *self._sources.get(name, ())]

    def is_read(self, node: cst.BaseExpression) -> bool:
        """Whether an expression is a number read from a tensor, what is reckoned of some, or a list of nothing else."""
        if isinstance(node, cst.Call):
            return self._is_number(node)
        if isinstance(node, cst.BinaryOperation):
            return self._are_read([node.left, node.right])
        if isinstance(node, cst.UnaryOperation) and not isinstance(node.operator, cst.Not):
            return self.is_read(node.expression)
        if isinstance(node, cst.List):
            values = [element.value for element in node.elements]
            return bool(values) and all(map(self.is_read, values))
        if isinstance(node, cst.ListComp):
            return self.is_read(node.elt)
        if not isinstance(node, cst.Name):
            return False
        if node.value not in self._read:
            self._read[node.value] = False  # the answer for a name that is made of itself only
            given = self._given.get(node.value, [])
            read = [one for one in given if self.is_read(one)]
            others = [one for one in given if one not in read]
            self._read[node.value] = bool(read) and all(_is_plain(o, self.facts) for o in others)
        return self._read[node.value]

    def _are_read(self, nodes: list[cst.BaseExpression]) -> bool:
        """Whether one of some is a number read from a tensor, and the others are numbers of Python."""
        read = [one for one in nodes if self.is_read(one)]
        return bool(read) and all(one in read or _is_plain(one, self.facts) for one in nodes)

    def _is_number(self, node: cst.Call) -> bool:
        """``x.item()``, ``float(x)``, and the call of a function that gives such a number."""
        facts = self.facts
        if facts.callee(node) in _READING:
            return True
        called = facts.names.get(facts.callee(node) or "")
        if isinstance(called, FunctionInfo):
            return gives_numbers(called, facts)
        if facts.callee(node) in _RECKONING and not any(one.star for one in node.args):
            return self._are_read([one.value for one in node.args])
        of_number = isinstance(node.func, cst.Name) and node.func.value in _NUMBERS
        if not of_number or len(node.args) != 1:
            return False
        only = node.args[0].value
        return isinstance(facts.kind(only), k.Tensor) or self.is_read(only)


def _pairs(
    target: cst.BaseExpression, value: cst.BaseExpression
) -> list[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """``a, b = 0, x``: each target with its value."""
    if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
        return [(target, value)]
    both = [*target.elements, *value.elements]
    if len(target.elements) != len(value.elements) or not all(type(e) is cst.Element for e in both):
        return [(target, value)]
    return [
        (one.value, two.value) for one, two in zip(target.elements, value.elements, strict=True)
    ]


def _own(body: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The nodes of a body but for those of the functions in it."""
    waiting = syntax.children(body)[::-1]
    while waiting:
        child = waiting.pop()
        yield child
        if not isinstance(child, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            waiting += reversed(syntax.children(child))


def _parts(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a returned tuple holds; the value itself where it is none."""
    return [e.value for e in value.elements] if isinstance(value, cst.Tuple) else [value]


def _is_plain(node: cst.BaseExpression, facts: Facts) -> bool:
    """A number of Python, also one that Python draws, or the empty list that a loop fills."""
    if isinstance(node, cst.List):
        return not node.elements
    if isinstance(node, cst.Call):
        name = facts.qualified_name(node.func) or ""
        if name.startswith(("random.", "numpy.random.")):
            return True
    return k.scalar_type(facts.kind(node)) is not None
