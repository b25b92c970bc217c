"""Classes of torch's layers as values that are compared: ``t = type(m)``, ``for kind in KINDS``, ``isinstance(m, KINDS)``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.expand import make_tuple
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.python import class_of_object
from migrator.source import dotted
from rules import definitions

_ALIKE = (cst.Equal, cst.Is, cst.NotEqual, cst.IsNot)


def spelled_out(ctx: Context, node: cst.Comparison) -> cst.Comparison:
    """``t is nn.Linear`` behind ``t = type(m)``, ``nn.Linear is type(m)``: as ``type(m) is nn.Linear``."""
    if len(node.comparisons) != 1 or ctx.frame is None:
        return node
    left, target = node.left, node.comparisons[0]
    right = target.comparator
    if isinstance(target.operator, _ALIKE) and _is_layer(ctx, left):
        left, right = right, left
    if isinstance(left, cst.Name):
        left = _noted_class(ctx, left) or left
    if left is node.left:
        return node
    made = syntax.changed(node, left=left, comparisons=[syntax.changed(target, comparator=right)])
    ctx.facts.kinds[made] = ctx.facts.kind(node)
    return made


def _noted_class(ctx: Context, name: cst.Name) -> cst.BaseExpression | None:
    """``type(m)`` that a local name stands for, where neither is bound anew."""
    if ctx.frame is None:
        return None
    body = ctx.frame.info.node
    values = list(_given(ctx, body, name.value))
    tested = class_of_object(values[0]) if len(values) == 1 and values[0] is not None else None
    if not isinstance(tested, cst.Name):
        return None
    is_param = tested.value in ctx.frame.info.params
    others = len(list(_given(ctx, body, tested.value)))
    return values[0] if is_param + others <= 1 else None


def _given(ctx: Context, body: cst.CSTNode, name: str) -> Iterator[cst.BaseExpression | None]:
    """What a name is given in a function, None where it is bound in another way than by ``name = …``."""
    tree = ctx.facts.tree
    for one in tree.within(body, cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr):
        targets = [t.target for t in one.targets] if isinstance(one, cst.Assign) else [one.target]
        for target in targets:
            if isinstance(target, cst.Name) and target.value == name:
                yield None if isinstance(one, cst.AugAssign) else one.value
            elif isinstance(target, (cst.Tuple, cst.List)) and name in syntax.names(target):
                yield None
    for loop in tree.within(body, cst.For, cst.CompFor):
        if name in syntax.names(loop.target):
            yield None


def check_classes(ctx: Context, node: cst.Comparison) -> None:
    """Refuse what compares the class of something with one of torch's layers in a way that is not understood.

    Raises:
      Failure: the comparison would have another answer, as the output has other classes.
    """
    sides = [node.left, *(one.comparator for one in node.comparisons)]
    both = all(class_of_object(side) is not None for side in sides)
    of_layer = both and any(_is_class_of_layer(ctx, side) for side in sides)
    if not of_layer and not any(_names_layers(ctx, side) for side in sides):
        return
    if any(_asks_for_class(ctx, side) for side in sides):
        raise Failure(
            node,
            "API011",
            "a class is compared with one of torch's, whose layers have other classes in the output",
            "write isinstance tests, one for each class",
        )


def _is_layer(ctx: Context, node: cst.BaseExpression) -> bool:
    if not isinstance(node, (cst.Name, cst.Attribute)):
        return False
    return bool(definitions.layers(ctx.facts.qualified_name(node) or ""))


def _names_layers(ctx: Context, node: cst.BaseExpression) -> bool:
    return _is_layer(ctx, node) or (
        isinstance(node, (cst.Tuple, cst.List, cst.Set, cst.Dict))
        and any(_is_layer(ctx, one) for one in _inside(node))
    )


def _is_class_of_layer(ctx: Context, node: cst.BaseExpression) -> bool:
    """``type(self.act)`` of a layer of torch's that is known."""
    held = class_of_object(node)
    kind = ctx.kind(held) if held is not None else k.UNKNOWN
    return isinstance(kind, k.Module) and kind.cls.startswith("torch.nn.")


def _asks_for_class(ctx: Context, node: cst.BaseExpression) -> bool:
    """``type(m)`` on one side: itself, its bases, or by a local name."""
    for one in syntax.walk(node):
        if isinstance(one, cst.BaseExpression) and class_of_object(one) is not None:
            return True
    if not isinstance(node, cst.Name) or ctx.frame is None:
        return False
    values = _given(ctx, ctx.frame.info.node, node.value)
    return any(one is not None and class_of_object(one) is not None for one in values)


def as_tuple(ctx: Context, node: cst.BaseExpression) -> cst.BaseExpression:
    """``nn.Linear | nn.Conv2d`` as ``(nn.Linear, nn.Conv2d)``, where it names layers of torch; else as it is."""
    parts: list[cst.BaseExpression] = []
    rest = node
    while isinstance(rest, cst.BinaryOperation) and isinstance(rest.operator, cst.BitOr):
        parts.insert(0, rest.right)
        rest = rest.left
    parts.insert(0, rest)
    return make_tuple(parts) if len(parts) > 1 and any(_is_layer(ctx, p) for p in parts) else node


def check_of_object(ctx: Context, node: cst.CSTNode, classes: cst.BaseExpression) -> None:
    """Refuse ``isinstance(m, type(nn.ReLU()))``: the class of a layer that may be a function.

    Raises:
      Failure: it asks so.
    """
    held = class_of_object(classes)
    kind = ctx.kind(held) if held is not None else k.UNKNOWN
    if isinstance(kind, k.Module) and kind.cls.startswith("torch.nn."):
        what = "the class of one layer is asked of another, and torch's layers have other classes in the output"
        raise Failure(node, "API011", what, "name the class that is meant")


def check_stateless(ctx: Context, node: cst.CSTNode, classes: cst.BaseExpression) -> None:
    """Refuse a loop over classes of which some are functions in the output.

    Raises:
      Failure: it goes over such classes.
    """
    values: list[cst.BaseExpression] = []
    for part in _inside(classes):
        values.append(part)
        if wanted := (dotted(part) or "").rpartition(".")[2]:
            values += [*_values(ctx, wanted, 3), *_handed(ctx, wanted)]
    for value in values:
        for one in _inside(value):
            name = ctx.facts.qualified_name(one) or ""
            if _is_layer(ctx, one) and all(
                r.returns.strip("'\"") == "Callable" for r in definitions.layers(name)
            ):
                what = f"{name} is a plain function in the output, which isinstance cannot tell"
                raise Failure(node, "API011", what, "write isinstance tests, one for each class")


def _handed(ctx: Context, name: str) -> Iterator[cst.BaseExpression]:
    """What calls of the file hand to the function that takes an argument of this name."""
    info = ctx.frame.info if ctx.frame is not None else None
    if info is None or name not in info.params:
        return
    for call in ctx.source.index.of_type(cst.Call):
        if (dotted(call.func) or "").rpartition(".")[2] == info.short:
            yield from (arg.value for arg in call.args)


def is_derived_elsewhere(ctx: Context, names: Iterable[str], here: Collection[ClassInfo]) -> bool:
    """Whether another file of the project derives a class from one of these layers, which this file may be handed."""
    if ctx.facts.linked is None:
        return False
    known = {one.short for one in here}
    bases = {one.rpartition(".")[2] for one in names}
    return any(base in bases and name not in known for base, name in ctx.facts.linked.derived)


def holds_layers(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a name, an attribute or ``tuple(KINDS)`` holds classes of torch's layers that the file has put there."""
    if isinstance(node, cst.Call):
        parts = [*_inside(node)]
        return not any(part is node for part in parts) and any(
            _is_layer(ctx, part) or holds_layers(ctx, part) for part in parts
        )
    if not isinstance(node, (cst.Name, cst.Attribute)) or _is_layer(ctx, node):
        return False
    kind = ctx.kind(node)
    if isinstance(kind, k.Tuple):
        return any(
            isinstance(one, k.Class) and bool(definitions.layers(one.name)) for one in kind.items
        )
    wanted = (dotted(node) or "").rpartition(".")[2]
    return bool(wanted) and any(
        _is_layer(ctx, one) for value in _values(ctx, wanted, 3) for one in _inside(value)
    )


def _values(ctx: Context, name: str, deep: int) -> Iterator[cst.BaseExpression]:
    """What a name or attribute may hold, or items of which, by the last part of its name, over other names too."""
    index = ctx.source.index
    found: list[cst.BaseExpression] = []
    for one in index.of_type(cst.Assign):
        if any(_binds(target.target, name) for target in one.targets):
            found.append(one.value)
    for two in index.of_type(cst.AnnAssign):
        if two.value is not None and _binds(two.target, name):
            found.append(two.value)
    for three in index.of_type(cst.Param):
        if three.default is not None and three.name.value == name:
            found.append(three.default)
    for four in (*index.of_type(cst.For), *index.of_type(cst.CompFor)):
        if _binds(four.target, name):
            found.append(four.iter)
    for value in found:
        yield value
        if deep:
            for part in _inside(value):
                if isinstance(part, (cst.Name, cst.Attribute)):
                    other = (dotted(part) or "").rpartition(".")[2]
                    if other and other != name:
                        yield from _values(ctx, other, deep - 1)


def _binds(target: cst.BaseExpression, name: str) -> bool:
    if isinstance(target, (cst.Tuple, cst.List)):
        return any(_binds(one.value, name) for one in target.elements)
    return (dotted(target) or "").rpartition(".")[2] == name


def _inside(node: cst.CSTNode) -> Iterator[cst.BaseExpression]:
    """The expressions of a container or of what goes over one; ``nn.ReLU()``, which makes a layer, is none."""
    if isinstance(node, cst.Call) and not isinstance(node.func, cst.Name):
        if isinstance(node.func, cst.Attribute):  # ``TABLE.items()``
            yield node.func.value
        yield from (part for arg in node.args for part in _inside(arg.value))
    elif isinstance(node, cst.Call):
        yield from (part for arg in node.args for part in _inside(arg.value))
    elif isinstance(node, (cst.Tuple, cst.List, cst.Set)):
        yield from (part for one in node.elements for part in _inside(one.value))
    elif isinstance(node, cst.Dict):
        for one in node.elements:
            if isinstance(one, cst.DictElement):
                yield from _inside(one.key)
            yield from _inside(one.value)
    elif isinstance(node, cst.BinaryOperation):
        yield from (*_inside(node.left), *_inside(node.right))
    elif isinstance(node, cst.BaseExpression):
        yield node
