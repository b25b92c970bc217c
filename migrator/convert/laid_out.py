"""Tensors that lie as torch lays them out, which a kernel of Flax does not: ``torch.arange(4.0).view(2, 2)``.

Followed are local names, entries of lists and dicts, what loops take out of these, and arguments to the calls.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k

_LAYING_OUT = frozenset(
    f"torch.{name}"
    for name in "arange linspace logspace eye tensor as_tensor from_numpy Tensor FloatTensor outer diag tril triu".split()
)
"""Functions whose result lies as torch lays it out, unlike a kernel of Flax."""
_STORED = frozenset(
    "torch.load torch.hub.load_state_dict_from_url numpy.load safetensors.torch.load_file".split()
)
_WALKS = frozenset("parameters named_parameters buffers named_buffers state_dict".split())


def is_laid_out(
    ctx: Context, node: cst.BaseExpression, info: FunctionInfo | None = None, whole: bool = False
) -> bool:
    """Whether a tensor comes of numbers that are written out, or that were stored by torch.

    Args:
      info: the function in which it stands.
      whole: whether it takes the place of all of a parameter, so that an entry of an argument is a tensor, too."""
    return _Origin(ctx, whole).of(node, info)


class _Origin:
    def __init__(self, ctx: Context, whole: bool) -> None:
        self.ctx, self.tree, self.whole = ctx, ctx.facts.tree, whole
        self.seen: set[tuple[FunctionInfo | None, str]] = set()

    def of(self, node: cst.BaseExpression, info: FunctionInfo | None, entry: bool = False) -> bool:
        """Whether an expression in a function, or an entry of it, is such a tensor."""
        if not self.tree.has(node) or _is_of_walk(node):
            return False
        if any(self._makes(call) for call in self.tree.within(node, cst.Call)):
            return True
        return any(self._named(name, info, entry or taken) for name, taken in _roots(node))

    def _makes(self, call: cst.Call) -> bool:
        name = self.ctx.facts.callee(call)
        kind = self.ctx.kind(call)
        axes = isinstance(kind, k.Tensor) and kind.rank != 0
        return name in _STORED or (axes and name in _LAYING_OUT)

    def _named(self, name: cst.Name, info: FunctionInfo | None, entry: bool) -> bool:
        kind, key = self.ctx.kind(name), (info, name.value)
        plain = isinstance(kind, (k.Module, k.Class, k.Function, k.Namespace, k.Other, k.DType))
        if key in self.seen or plain or k.scalar_type(kind) is not None or k.is_parameter(kind):
            return False
        self.seen.add(key)
        given = list(self._given(name.value, info))
        if given:
            return any(self.of(one, info, entry) for one in given)
        if info is None or name.value not in info.params:
            return False
        return self._handed(name.value, info, entry)

    def _given(self, name: str, info: FunctionInfo | None) -> Iterator[cst.BaseExpression]:
        """What a name is given, what is put into it, and what a loop takes its values out of."""
        if info is None:
            return
        for node in self.tree.within(
            info.node.body, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.For, cst.CompFor
        ):
            if isinstance(node, (cst.For, cst.CompFor)):
                if name in syntax.names(node.target) and not _walks(node.iter, node.target, name):
                    yield _paired(node.iter, node.target, name)
                continue
            targets = (
                [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
            )
            for target in targets:
                while isinstance(target, cst.Subscript):
                    target = target.value
                if isinstance(target, cst.Name) and target.value == name and node.value is not None:
                    yield node.value

    def _handed(self, name: str, info: FunctionInfo, entry: bool) -> bool:
        """Whether a call hands such a tensor to a parameter; what nobody calls here is handed anything."""
        from migrator.convert.alias import bound_arguments

        if not info.call_sites:
            return self.whole and entry
        for call, caller in info.call_sites.items():
            for parameter, item in (
                bound_arguments(call, info) if isinstance(call, cst.Call) else ()
            ):
                if parameter == name and self.of(item.value, caller, entry):
                    return True
        return False


def _roots(node: cst.CSTNode) -> Iterator[tuple[cst.Name, bool]]:
    """The names that a tensor is computed from, each with whether an entry of it is."""
    if isinstance(node, cst.Name):
        yield node, False
    elif isinstance(node, cst.Attribute):
        yield from _roots(node.value)
    elif isinstance(node, cst.Subscript):
        for name, _ in _roots(node.value):
            yield name, True
    elif isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute):
            taken = node.func.attr.value in ("get", "pop", "items", "values")
            for name, entry in _roots(node.func.value):
                yield name, entry or taken
        for item in node.args[:1]:
            yield from _roots(item.value)
    elif isinstance(node, cst.BinaryOperation):
        yield from (*_roots(node.left), *_roots(node.right))
    elif isinstance(node, cst.UnaryOperation):
        yield from _roots(node.expression)
    elif isinstance(node, cst.IfExp):
        yield from (*_roots(node.body), *_roots(node.orelse))


def _paired(walk: cst.BaseExpression, target: cst.BaseExpression, name: str) -> cst.BaseExpression:
    """``vals`` of ``for p, v in zip(m.parameters(), vals)``: what a loop's variable comes from."""
    zipped = (
        isinstance(walk, cst.Call) and isinstance(walk.func, cst.Name) and walk.func.value == "zip"
    )
    if zipped and isinstance(target, cst.Tuple) and len(walk.args) == len(target.elements):  # type: ignore[attr-defined]
        for item, one in zip(walk.args, target.elements, strict=True):  # type: ignore[attr-defined]
            if name in syntax.names(one):
                return _paired(item.value, one.value, name)
    if isinstance(walk, cst.Call) and isinstance(walk.func, cst.Name) and walk.args:
        if walk.func.value in ("enumerate", "list", "reversed", "sorted", "iter"):
            inner = target
            if walk.func.value == "enumerate" and isinstance(target, cst.Tuple):
                inner = target.elements[-1].value
            return _paired(walk.args[0].value, inner, name)
    return walk


def _walks(walk: cst.BaseExpression, target: cst.BaseExpression, name: str) -> bool:
    """Whether a loop's variable is a parameter of a module, or its name."""
    return _is_of_walk(_paired(walk, target, name))


def _is_of_walk(node: cst.CSTNode) -> bool:
    """``dict(m.named_parameters())``: laid out as the parameters of the module are."""
    named = (one.attr.value for one in syntax.walk(node) if isinstance(one, cst.Attribute))
    return not _WALKS.isdisjoint(named)
