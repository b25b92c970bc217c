"""What stands at the front of a Sequential that is made of lists, and whether it works in place there.

``torch.cat([x, self.model(x)], 1)``, where the model begins with LeakyReLU(inplace=True) in some of its forms and with a
convolution in the others: torch joins what the activation has made of ``x``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k

_Front = list[cst.BaseExpression]
"""The first layers of a list, as they stand in the constructor."""
_FRESH = frozenset(
    "Linear Bilinear Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d BatchNorm1d BatchNorm2d"
    " BatchNorm3d InstanceNorm1d InstanceNorm2d InstanceNorm3d GroupNorm LayerNorm".split()
)
"""Layers of torch whose result is never what they are called with, or a part of it."""
_ACTIVATIONS = frozenset(
    "ReLU ReLU6 LeakyReLU ELU CELU SELU SiLU Mish Hardswish Hardsigmoid Hardtanh Threshold".split()
)
"""Those that may work in place and draw nothing."""
_DEEPEST = 8
_MOST = 64


def in_place_at_front(ctx: Context, owner: ClassInfo, name: str) -> list[cst.Call] | None:
    """The layers that work in place at the front of ``self.model``; None where it may begin with anything else.

    All that stands behind the last of them is behind a layer that makes its result anew.
    """
    key = (owner, name)
    if key not in ctx.fronts:
        ctx.fronts[key] = _of_attribute(ctx, owner, name)
    return ctx.fronts[key]


def _of_attribute(ctx: Context, owner: ClassInfo, name: str) -> list[cst.Call] | None:
    init = owner.method("__init__")
    made = _only_value(ctx, owner, name)
    if init is None or init.owner is not owner or not isinstance(made, cst.Call):
        return None
    kind = ctx.facts.kind(made)
    if not isinstance(kind, k.Module) or kind.cls != "torch.nn.Sequential":
        return None
    if not _is_sequential(ctx, made) or any(a.keyword for a in made.args):
        return None
    fronts = _Fronts(ctx, init).of_arguments(made)
    return _marked(ctx, init, fronts) if fronts else None


def _only_value(ctx: Context, owner: ClassInfo, name: str) -> cst.BaseExpression | None:
    """What an attribute is given in one place of the file, where it is nothing but called elsewhere, and by no other file."""
    linked = ctx.facts.linked
    if linked is not None and linked.shared(owner.name):
        return None
    if not ctx.words.isdisjoint(("setattr", "_modules", "__dict__")):
        return None  # by names that are made up
    values: list[cst.BaseExpression] = []
    related = {
        id(one.node)
        for one in ctx.facts.classes.values()
        if one.settled is None and (owner in one.lineage() or one in owner.lineage())
    }
    for node in ctx.source.index.of_type(cst.Attribute):
        if node.attr.value != name or _is_of_another(ctx, node, related):
            continue
        match ctx.source.index.around(node):
            case [*_, cst.Assign(targets=[_]) as assign, cst.AssignTarget()]:
                values.append(assign.value)
            case [*_, cst.Call() as call] if call.func is node:
                continue
            case _:
                return None
    inside = ctx.facts.tree.within(owner.node.body, cst.Assign)
    return values[0] if len(values) == 1 and any(a.value is values[0] for a in inside) else None


def _is_of_another(ctx: Context, node: cst.Attribute, related: set[int]) -> bool:
    """Whether ``self.model`` stands in a class that has nothing to do with these."""
    around = ctx.source.index.around(node)
    inside = next((n for n in reversed(around) if isinstance(n, cst.ClassDef)), None)
    of_self = isinstance(node.value, cst.Name) and node.value.value == "self"
    return of_self and inside is not None and id(inside) not in related


def _marked(ctx: Context, init: FunctionInfo, fronts: Sequence[_Front]) -> list[cst.Call] | None:
    """The layers of all fronts that work in place."""
    found: list[cst.Call] = []
    for front in fronts:
        for node in front:
            for call in _calls(ctx, init, node):
                short = _short(ctx, call)
                if short in _ACTIVATIONS and k.in_place(ctx.facts.kind(call)) is True:
                    found.append(call)
                elif short not in _FRESH or node is not front[-1]:
                    return None
    return found


def _short(ctx: Context, call: cst.Call) -> str:
    kind = ctx.facts.kind(call)
    cls = kind.cls if isinstance(kind, k.Module) else ""
    return cls.removeprefix("torch.nn.") if cls == ctx.facts.callee(call) else ""


def _calls(ctx: Context, init: FunctionInfo, node: cst.BaseExpression) -> Iterator[cst.Call]:
    """The calls that make an element of a list: itself, or what its name is given; one of nothing for anything else."""
    values: list[cst.BaseExpression] = [node]
    if isinstance(node, cst.Name):
        values = _values(ctx, init, node.value) or [node]
    for value in values:
        yield value if isinstance(value, cst.Call) else _NOTHING


def _values(ctx: Context, init: FunctionInfo, name: str) -> list[cst.BaseExpression] | None:
    """What statements of a constructor give a name; None where something else binds it, or edits the front of it."""
    found: list[cst.BaseExpression] = []
    if name in init.params:
        return None
    for node in ctx.facts.tree.within(init.node.body, cst.Name):
        if node.value != name:
            continue
        around = ctx.facts.tree.around(node)
        if isinstance(around[-1], cst.Element | cst.StarredElement):
            bound = (getattr(one, "target", None) for one in around)
            if any(one is not None and one in around for one in bound):
                return None  # ``layers, n = [], 1``
        match around:
            case [*_, cst.Assign(targets=[_]) as assign, cst.AssignTarget()]:
                found.append(assign.value)
            case [*_, cst.AugAssign(operator=cst.AddAssign()) as adding] if node is adding.target:
                continue  # what stands in front stays there
            case [*_, cst.Attribute() as attribute] if node is attribute.attr:
                continue  # of something else
            case [*_, cst.Attribute(attr=cst.Name("append" | "extend"))]:
                continue
            case [*_, cst.BinaryOperation()] | [*_, cst.Element()]:
                continue
            case [*_, cst.Call() as call, cst.Arg()] if _is_sequential(ctx, call):
                continue  # another function may put something in front
            case [*_, cst.StarredElement()]:
                continue
            case _:
                return None
    return found or None


_NOTHING = cst.Call(cst.Name("_"))


def _is_sequential(ctx: Context, call: cst.Call) -> bool:
    return ctx.facts.callee(call) == "torch.nn.Sequential"


class _Fronts:
    """The fronts of lists: the elements up to one that makes its result anew."""

    def __init__(self, ctx: Context, init: FunctionInfo) -> None:
        self.ctx, self.init = ctx, init

    def of_arguments(self, call: cst.Call) -> list[_Front] | None:
        """Those of ``nn.Sequential(a, *b)``."""
        parts = [(one.value, one.star) for one in call.args]
        return self._joined(parts, 0) if all(star in ("", "*") for _, star in parts) else None

    def _joined(
        self, parts: Sequence[tuple[cst.BaseExpression, str]], depth: int
    ) -> list[_Front] | None:
        """The fronts of elements, and of lists that are starred, in a row."""
        fronts: list[_Front] = [[]]
        for value, star in parts:
            if all(map(self._ends, fronts)):
                break
            new = self._of(value, depth + 1) if star else [[value]]
            if new is None or len(fronts) * len(new) > _MOST:
                return None
            fronts = [one if self._ends(one) else [*one, *other] for one in fronts for other in new]
        return fronts

    def _of(self, node: cst.BaseExpression, depth: int) -> list[_Front] | None:
        """Those of a list; None where it is not known how it begins."""
        if depth > _DEEPEST:
            return None
        if isinstance(node, (cst.List, cst.Tuple)):
            stars = [
                (one.value, "*" if isinstance(one, cst.StarredElement) else "")
                for one in node.elements
            ]
            return self._joined(stars, depth)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return self._joined([(node.left, "*"), (node.right, "*")], depth)
        if not isinstance(node, cst.Name):
            return None
        found: list[_Front] = []
        for value in _values(self.ctx, self.init, node.value) or ():
            if _adds_to(value, node.value):
                continue
            new = self._of(value, depth + 1)
            if new is None or not all(map(self._ends, new)):
                return None  # what is appended would be at the front as well
            found.extend(new)
        return found or None

    def _ends(self, front: _Front) -> bool:
        """Whether a list is known up to what makes its result anew."""
        calls = list(_calls(self.ctx, self.init, front[-1])) if front else []
        return bool(calls) and all(_short(self.ctx, one) in _FRESH for one in calls)


def _adds_to(value: cst.BaseExpression, name: str) -> bool:
    """``layers = layers + […]``."""
    while isinstance(value, cst.BinaryOperation) and isinstance(value.operator, cst.Add):
        value = value.left
        if isinstance(value, cst.Name) and value.value == name:
            return True
    return False


def beside(statement: cst.CSTNode, call: cst.Call, name: str) -> int:
    """How often a name is read by what is done once a call has returned: ``cat([x, self.model(x)])``, ``x + self.model(x)``."""
    found = 0
    for node in syntax.walk(statement):
        if isinstance(node, cst.BinaryOperation) and call in (node.left, node.right):
            found += sum(
                isinstance(n, cst.Name) and n.value == name for n in (node.left, node.right)
            )
        elif isinstance(node, (cst.List, cst.Tuple)):
            values = [one.value for one in node.elements if isinstance(one, cst.Element)]
            if call in values:
                found += sum(isinstance(n, cst.Name) and n.value == name for n in values)
    return found
