"""Functions that give back Python numbers made of tensors: ``return action.item()``. They run on the host, whoever calls them.

Nothing that runs under ``jit`` can give such a number, so there is no version of these functions that is traced.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.infer import Facts, FunctionInfo
from migrator.infer import kinds as k

_READING = frozenset(["Tensor.item", "Tensor.tolist", "Tensor.numpy"])
_NUMBERS = frozenset(["int", "float", "bool"])
_MAKING = frozenset(
    f"torch.{name}"
    for name in (
        "arange as_tensor empty eye from_numpy full linspace logspace ones rand randint randn randperm range tensor zeros"
    ).split()
)
"""What makes a tensor of what is none."""
_APPENDING = frozenset(["append", "extend", "insert"])
_MOST = 8
"""Names within one another that are looked through."""


def gives_numbers(info: FunctionInfo, facts: Facts, most: int = _MOST) -> bool:
    """Whether a function returns numbers that only a run can tell, lists of them, or tuples of nothing but numbers.

    One that gives back a tensor beside them, ``return action.item(), policy.log_prob(action)``, goes on in what is traced;
    and of what is read from a tensor that it makes of its own sizes, ``torch.linspace(0, 1, n).tolist()``, a version
    that is traced can be written.
    """
    if info.short in ("forward", "__call__") or info.generator:
        return False
    body = info.node.body
    values = [n.value for n in _own(body) if isinstance(n, cst.Return) and n.value is not None]
    parts = [part for value in values for part in _parts(value)]
    read = [part for part in parts if _is_read(part, body, facts, most)]
    others = [part for part in parts if part not in read]
    plain = all(_is_plain(part, facts) or facts.kind(part) == k.NONE for part in others)
    return bool(read) and plain and any(_is_handed(part, info, facts) for part in read)


def _is_handed(part: cst.BaseExpression, info: FunctionInfo, facts: Facts) -> bool:
    """Whether what is read comes from an argument that may be a tensor, or from the module."""
    handed = {name for name, kind in info.params.items() if k.scalar_type(kind) is None}
    handed |= {p.name.value for p in info.node.params.params[: info.receivers]}
    seen: set[str] = set()
    waiting = _sources(part, facts)
    while waiting:
        name = waiting.pop()
        if name in handed:
            return True
        if name not in seen:
            seen.add(name)
            for node in _bound_to(name, info.node.body):
                waiting |= _sources(node, facts)
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


def _bound_to(name: str, body: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a name of a function gets its values from, by whatever statement."""
    yield from _given(name, body)
    for node in _own(body):
        if isinstance(node, cst.For) and name in syntax.names(node.target):
            yield node.iter
        elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.NamedExpr)):
            if name in syntax.names(node.target) and node.value is not None:
                yield node.value
        elif isinstance(node, cst.Assign):
            if any(name in syntax.names(one.target) for one in node.targets):
                yield node.value


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


def _is_read(node: cst.BaseExpression, body: cst.CSTNode, facts: Facts, most: int) -> bool:
    """Whether an expression is a number read from a tensor, or a list of nothing else."""
    if isinstance(node, cst.Call):
        if facts.callee(node) in _READING:
            return True
        called = facts.names.get(facts.callee(node) or "")
        if isinstance(called, FunctionInfo) and most > 0:
            return gives_numbers(called, facts, most - 1)
        of_number = isinstance(node.func, cst.Name) and node.func.value in _NUMBERS
        if not of_number or len(node.args) != 1:
            return False
        only = node.args[0].value
        return isinstance(facts.kind(only), k.Tensor) or _is_read(only, body, facts, most)
    if isinstance(node, cst.List):
        values = [element.value for element in node.elements]
        return bool(values) and all(_is_read(one, body, facts, most) for one in values)
    if isinstance(node, cst.ListComp):
        return _is_read(node.elt, body, facts, most)
    if not isinstance(node, cst.Name) or most == 0:
        return False
    given = list(_given(node.value, body))
    read = [one for one in given if _is_read(one, body, facts, most - 1)]
    others = [one for one in given if one not in read]
    return bool(read) and all(_is_plain(one, facts) for one in others)


def _is_plain(node: cst.BaseExpression, facts: Facts) -> bool:
    """A number of Python, also one that Python draws, or the empty list that a loop fills."""
    if isinstance(node, cst.List):
        return not node.elements
    if isinstance(node, cst.Call):
        name = facts.qualified_name(node.func) or ""
        if name.startswith(("random.", "numpy.random.")):
            return True
    return k.scalar_type(facts.kind(node)) is not None


def _given(name: str, body: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """What is assigned to a name of a function, and what is added to it."""
    for node in _own(body):
        if isinstance(node, cst.Assign):
            for one in node.targets:
                if isinstance(one.target, cst.Name) and one.target.value == name:
                    yield node.value
                elif name in syntax.names(one.target):
                    yield one.target  # a part of it, or of what is taken apart
        elif isinstance(node, (cst.AugAssign, cst.AnnAssign, cst.For)):
            if name in syntax.names(node.target):
                yield node.target
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
            func = node.func
            if isinstance(func.value, cst.Name) and func.value.value == name:
                if func.attr.value in _APPENDING and node.args:
                    yield node.args[-1].value
