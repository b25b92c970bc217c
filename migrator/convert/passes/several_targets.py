"""``self.h, self.c = cell(x)``, ``x[0], x[1] = a, b``: Variables and parts of tensors, each written in turn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import innermost
from migrator.convert.becoming import is_parameter
from migrator.convert.context import Context, Failure
from migrator.convert.memory import aliases
from migrator.convert.parts import shared
from migrator.convert.passes import targets
from migrator.convert.passes.tied_arguments import is_kept_whole
from migrator.convert.passes.view_writes import is_new
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.tied import in_turn

_SEQUENCES = (cst.Tuple, cst.List)


@converts(cst.Assign, targets=_SEQUENCES)
def kept_rest(rw: Rewriter, node: cst.Assign) -> None:
    """``self.first, *self.rest = layers``: a plain list, in which Flax refuses modules and arrays."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if owner is None or owner.torch_base is None:
        return
    kind = ctx.kind(node.value)
    items = kind.items if isinstance(kind, k.Tuple) else [k.element(kind)]
    if items and all(k.scalar_type(one) is not None for one in items):
        return
    places = list(syntax.walk(node.targets[0].target))
    if any(isinstance(one, cst.StarredElement) for one in places):
        for place in each(node.targets[0].target):
            if isinstance(place, cst.Attribute) and ctx.is_self(place.value):
                if _is_given_more(ctx, place.attr.value):
                    what = f"`{syntax.code(place)}` is given a part of a list that has others"
                    raise Failure(node, "MUT002", what, "assign it by itself, `self.x = xs[0]`")
    for one in places:
        starred = one.value if isinstance(one, cst.StarredElement) else None
        if isinstance(starred, cst.Attribute) and ctx.is_self(starred.value):
            what = f"the list `{syntax.code(starred)}` may hold modules or tensors"
            name = starred.attr.value
            advice = f"give it a name (`*{name}`), and assign that: `self.{name} = nn.ModuleList({name})`"
            raise Failure(node, "API008", what, advice)


@converts(cst.Assign, targets=_SEQUENCES)
def written_in_turn(rw: Rewriter, node: cst.Assign) -> Any:
    """``h, c = cell(x)``, then what ``self.h = h`` and ``self.c = c`` become, in the order of Python."""
    if len(node.targets) == 1 and not isinstance(node.targets[0].target, _SEQUENCES):
        return None
    places = [one.target for one in node.targets]
    if not any(is_written(rw, place) for place in places):
        return None
    _check_bound(rw, node)
    _check_numbers(rw, node)
    if in_turn(node) and _keeps_arguments(rw, node):
        return _visited(rw, node, _pairs(node) or ())
    if _swaps_parameters(rw, node):
        what = "parameters change their places, which are values by the time they are assigned"
        raise Failure(node, "MUT002", what, "assign what they hold, `p.data`")
    if len(places) > 1:
        if not _holds_item(rw, places):
            return _chained(rw, node)
        return _chained(rw, node) if _are_separate_items(rw, node) else None
    if _holds_item(rw, places):
        pairs = _pairs(node)
        if pairs is not None and not _are_new(rw, node, pairs):
            _check_order(rw, node, pairs)
            return _visited(rw, node, pairs)
        if pairs is None:
            _check_separate(node)
            _check_memory(rw, node)
    later: list[cst.Assign] = []
    target = _named(rw, places[0], later)
    made = rw.visit(syntax.changed(node, targets=[cst.AssignTarget(target)]))
    return [*(made if isinstance(made, list) else [made]), *_visited(rw, node, later)]


def _check_numbers(rw: Rewriter, node: cst.Assign) -> None:
    """An attribute that is a number elsewhere in the file is static to Flax, which takes no array for it."""
    ctx = rw.ctx
    pairs: list[tuple[cst.BaseExpression, cst.BaseExpression]] = [
        (one.targets[0].target, one.value) for one in _pairs(node) or ()
    ]
    if not pairs or len(node.targets) > 1:
        pairs = [(place, node.value) for one in node.targets for place in each(one.target)]
    for place, value in pairs:
        if isinstance(place, cst.Attribute) and begins_as_number(ctx, place):
            if k.scalar_type(ctx.kind(value)) is None:
                what = f"`{place.attr.value}` is a number elsewhere, and may be given an array here"
                raise Failure(node, "MUT002", what, "assign it by itself, and begin with a tensor")


def begins_as_number(ctx: Context, place: cst.Attribute) -> bool:
    """Whether something in the file gives an attribute of that name a number."""
    owner = ctx.kind(place.value)
    mine = ctx.owner is not None and ctx.owner.torch_base is not None and ctx.is_self(place.value)
    if not mine and not isinstance(owner, k.Module):
        return False
    return any(
        isinstance(one.target, cst.Attribute)
        and one.target.attr.value == place.attr.value
        and k.is_number(ctx.facts.kind(line.value))
        for line in ctx.source.index.of_type(cst.Assign)
        for one in line.targets
    )


def _swaps_parameters(rw: Rewriter, node: cst.Assign) -> bool:
    """Whether a parameter itself is given to an attribute, among others."""
    values = [e.value for e in node.value.elements] if isinstance(node.value, _SEQUENCES) else []
    held = [rw.ctx.kind(one) for one in values if isinstance(one, (cst.Name, cst.Attribute))]
    return any(isinstance(one, k.Tensor) and one.role == "param" for one in held) and any(
        isinstance(one, cst.Attribute) and one.attr.value not in _OF_TENSORS
        for target in node.targets
        for one in each(target.target)
    )


def _check_bound(rw: Rewriter, node: cst.Assign) -> None:
    """What is written stands for the same before and after: ``y.data, y = a, b`` writes to what y was.

    What a ``*rest`` leaves of a list is told by no kind: there a Variable would be taken for anything."""
    every = [place for one in node.targets for place in each(one.target)]
    bound = {one.value for one in every if isinstance(one, cst.Name)}
    written = [one for one in every if is_written(rw, one)]
    starred = any(
        isinstance(one, cst.StarredElement) for to in node.targets for one in syntax.walk(to.target)
    )
    if starred or any(not bound.isdisjoint(_roots(one)) for one in written):
        raise Failure(node, "MUT002", "an unpacking writes into a tensor", "split it")


def _is_given_more(ctx: Context, name: str) -> bool:
    """Whether an attribute of that name is registered, or given something elsewhere in the file as well."""
    index = ctx.source.index
    given = sum(one.target.attr.value == name for one in _attributes(ctx))
    words = (syntax.literal(one) for one in index.of_type(cst.SimpleString) if name in one.value)
    return given > 1 or name in words


def _attributes(ctx: Context) -> list[Any]:
    every = (
        place
        for line in ctx.source.index.of_type(cst.Assign)
        for one in line.targets
        for place in each(one.target)
    )
    return [cst.AssignTarget(one) for one in every if isinstance(one, cst.Attribute)]


def _keeps_arguments(rw: Rewriter, node: cst.Assign) -> bool:
    """``self.weight, self.bias = weight, bias`` of parameters that a constructor is handed: the Variables themselves."""
    values = [e.value for e in node.value.elements] if isinstance(node.value, cst.Tuple) else []
    info = rw.ctx.frame.info if rw.ctx.frame is not None else None
    return info is not None and any(
        isinstance(one, cst.Name) and is_kept_whole(rw.ctx, info, one) for one in values
    )


@converts(cst.Assign, targets=(cst.Tuple,))
def plain_in_turn(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.gamma, self.alpha = 2, alpha`` where ``alpha`` is a tensor or a module later: Flax is told of each."""
    ctx, owner, pairs = rw.ctx, rw.ctx.owner, _pairs(node) if len(node.targets) == 1 else None
    if pairs is None or not ctx.in_init or owner is None or owner.torch_base is None:
        return None
    places = [one.targets[0].target for one in pairs]
    if not all(isinstance(one, cst.Attribute) and ctx.is_self(one.value) for one in places):
        return None
    names = [one.attr.value for one in places if isinstance(one, cst.Attribute)]
    read = {n.attr.value for n in syntax.walk(node.value) if isinstance(n, cst.Attribute)}
    if not read.isdisjoint(names) or not any(_becomes_data(owner.attribute(n)) for n in names):
        return None
    return _visited(rw, node, pairs)


def _becomes_data(kind: k.Kind | None) -> bool:
    """Whether an attribute is a tensor or a module at some time, or a list or a dict of such."""
    inner = kind.inner if isinstance(kind, k.Optional) else kind
    if isinstance(inner, k.Sequence):
        return _becomes_data(inner.item)
    if isinstance(inner, k.Mapping):
        return _becomes_data(inner.value)
    return isinstance(inner, (k.Tensor, k.Module, k.Unknown))


def _visited(rw: Rewriter, node: cst.Assign, statements: Iterable[cst.Assign]) -> list[Any]:
    """What the parts of an assignment become; what keeps one of them from it is said of the whole."""
    found: list[Any] = []
    for one in statements:
        rw.ctx.facts.tree.put(one, node)
        try:
            made = rw.visit(one)
        except Failure as failure:
            raise Failure(node, failure.rule, failure.message, failure.advice) from failure
        found.extend(made if isinstance(made, list) else [made])
    return found


def _pairs(node: cst.Assign) -> list[cst.Assign] | None:
    """``pe[:, 0::2], pe[:, 1::2] = torch.sin(a), torch.cos(a)`` → one assignment after the other."""
    target, value = node.targets[0].target, node.value
    if not isinstance(target, cst.Tuple) or not isinstance(value, cst.Tuple):
        return None
    if len(target.elements) != len(value.elements):
        return None
    if any(isinstance(e, cst.StarredElement) for e in (*target.elements, *value.elements)):
        return None
    if any(isinstance(e.value, _SEQUENCES) for e in target.elements):
        return None
    pairs = zip(target.elements, value.elements, strict=True)
    return [cst.Assign([cst.AssignTarget(to.value)], one.value) for to, one in pairs]  # type: ignore[arg-type]


def _check_separate(node: cst.Assign) -> None:
    """Parts of tensors are written once all values are there: nothing that is read for these is written.

    Nor is a place told by a name that is bound after the part is written: ``x[i], i = f()``.
    """
    places = list(each(node.targets[0].target))
    read, bound = set(syntax.names(node.value)), set[str]()
    for place in reversed(places):
        if isinstance(place, cst.Name):
            bound.add(place.value)
        elif not read.isdisjoint(_roots(place)) or not bound.isdisjoint(syntax.names(place)):
            raise Failure(node, "MUT002", "an unpacking writes into a tensor", "split it")


def _check_memory(rw: Rewriter, node: cst.Assign) -> None:
    """What a call gives beside, ``y`` of ``y, x[0] = f(z)``, is no view of what is written."""
    ctx = rw.ctx
    if ctx.frame is None or not ctx.statements:
        return
    facts, statement = aliases(ctx, innermost(ctx)), ctx.statements[-1].node
    state = facts.before.get(statement)
    memory = facts.memory(node.value, state) if state is not None else frozenset()
    for place in each(node.targets[0].target):
        for root in _roots(place) if isinstance(place, cst.Subscript) else ():
            if state is not None and shared(memory, state.get(root, frozenset())):
                raise Failure(node, "MUT002", "an unpacking writes into a tensor", "split it")


def each(target: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """The targets of an unpacking, one by one."""
    if isinstance(target, _SEQUENCES):
        for element in target.elements:
            yield from each(element.value)
    else:
        yield target


def _check_order(rw: Rewriter, node: cst.Assign, pairs: list[cst.Assign]) -> None:
    """Each part is read after those before it are written, where Python reads all of them first."""
    written: set[str] = set()
    for one in pairs:
        if not written.isdisjoint(_read(rw, one.value)):
            raise Failure(node, "MUT002", "an unpacking writes into a tensor", "split it")
        written |= set(_roots(one.targets[0].target))


def _are_new(rw: Rewriter, node: cst.Assign, pairs: list[cst.Assign]) -> bool:
    """``x[0], x[1] = x[1].clone(), x[0].clone()``: what is written is read before, and copied."""
    written = set(_roots(node.targets[0].target))
    swapped = [one.value for one in pairs if not written.isdisjoint(_read(rw, one.value))]
    later = [one.value for one in pairs[1:]]
    return any(one in later for one in swapped) and all(is_new(rw, one) for one in swapped)


def _are_separate_items(rw: Rewriter, node: cst.Assign) -> bool:
    """``H[:, 0] = H[:, 1] = v``: nothing but parts of tensors, of which the value and the places read nothing."""
    items = [one.target for one in node.targets]
    if not all(isinstance(item, cst.Subscript) and _holds_item(rw, [item]) for item in items):
        return False
    read = _read(rw, node.value).union(
        *(syntax.names(part) for item in items for part in item.slice)  # type: ignore[attr-defined]
    )
    return read.isdisjoint(name for item in items for name in _roots(item))


def _read(rw: Rewriter, value: cst.BaseExpression) -> set[str]:
    """The names that an expression reads, and those that functions of the same scope read when it calls one."""
    found = set(syntax.names(value))
    info = rw.ctx.frame.info if rw.ctx.frame is not None else None
    if info is not None and any(isinstance(n, cst.Call) for n in syntax.walk(value)):
        for inner in syntax.walk(info.node.body):
            if isinstance(inner, (cst.FunctionDef, cst.Lambda)):
                found |= set(syntax.names(inner.body))
    return found


def _roots(target: cst.BaseExpression) -> Iterator[str]:
    """The names that a target binds or writes to; those of an index are only read."""
    if isinstance(target, _SEQUENCES):
        for element in target.elements:
            yield from _roots(element.value)
        return
    while isinstance(target, (cst.Subscript, cst.Attribute)):
        target = target.value
    yield from syntax.names(target)


def _holds_item(rw: Rewriter, places: Iterable[cst.BaseExpression]) -> bool:
    """Whether a part of a tensor is among the targets."""
    for place in places:
        if isinstance(place, _SEQUENCES):
            if _holds_item(rw, [element.value for element in place.elements]):
                return True
        elif isinstance(place, cst.Subscript) and isinstance(rw.ctx.kind(place.value), k.Tensor):
            return True
    return False


def _chained(rw: Rewriter, node: cst.Assign) -> list[Any]:
    """``self.a = self.b = v`` → ``a = v`` and one assignment each, from the left as Python does."""
    first: list[cst.Assign] = []
    value = node.value
    place = next(
        (one.target for one in node.targets if isinstance(one.target, cst.Attribute)), None
    )
    given = is_parameter(rw.ctx, value) and type(value) is not cst.Name
    if place is not None and (given or targets.makes_parameter(rw.ctx, value)):
        again = place.with_changes(
            value=place.value.with_changes()
        )  # the others are the same Variable
        kinds = rw.ctx.facts.kinds
        kinds[again], kinds[again.value] = kinds[value], rw.ctx.kind(place.value)
        first = [cst.Assign([cst.AssignTarget(place)], value)]
        rest = [one for one in node.targets if one.target is not place]
        return _visited(rw, node, (*first, *(cst.Assign([target], again) for target in rest)))
    if not isinstance(value, (cst.Name, cst.Integer, cst.Float)):
        value = cst.Name(rw.ctx.unused("value"))
        rw.ctx.facts.kinds[value] = rw.ctx.facts.kind(node.value)
        first = [cst.Assign([cst.AssignTarget(value)], node.value)]
    return _visited(rw, node, (*first, *(cst.Assign([target], value) for target in node.targets)))


def is_written(rw: Rewriter, target: cst.BaseExpression) -> bool:
    """Whether a target is a Variable in the output or a part of a tensor, or has one among its own."""
    if isinstance(target, _SEQUENCES):
        return any(is_written(rw, element.value) for element in target.elements)
    if isinstance(target, cst.Subscript):
        return isinstance(rw.ctx.kind(target.value), k.Tensor)
    if not isinstance(target, cst.Attribute):
        return False
    if target.attr.value in _OF_TENSORS and not _is_of_plain_object(rw, target):
        return True
    of_another = not rw.ctx.is_self(target.value)
    if of_another and isinstance(rw.ctx.kind(target.value), (k.Module, k.Tensor)):
        return True
    if of_another and target.attr.value in _WEIGHTS:
        return not _is_of_plain_object(rw, target)
    return targets.is_variable(rw.ctx, target) or _begins_elsewhere(rw, target)


_OF_TENSORS = frozenset("data grad requires_grad".split())
"""Attributes by which torch writes to a tensor, or says what it is."""
_WEIGHTS = frozenset("weight bias".split())


def _is_of_plain_object(rw: Rewriter, target: cst.Attribute) -> bool:
    """Whether an attribute is one of an object of a plain class, which takes what it is given."""
    kind = rw.ctx.kind(target.value)
    info = rw.ctx.facts.classes.get(kind.type) if isinstance(kind, k.Other) else None
    own = rw.ctx.owner if rw.ctx.is_self(target.value) else info
    return own is not None and own.torch_base is None and own.settled is None


def _begins_elsewhere(rw: Rewriter, target: cst.Attribute) -> bool:
    """Whether a class of another file begins an attribute as None, which the forward pass gives data here."""
    ctx, owner, name = rw.ctx, rw.ctx.owner, target.attr.value
    if (
        owner is None
        or not ctx.is_self(target.value)
        or k.scalar_type(ctx.kind(target)) is not None
    ):
        return False
    others = [one for one in owner.lineage() if one.settled is not None and name in one.attributes]
    nothing = all(one.attributes[name] in (k.NONE, k.UNKNOWN) for one in others)
    return bool(others) and nothing and not ctx.in_init


def _named(rw: Rewriter, target: Any, later: list[cst.Assign]) -> Any:
    """The target with names of its own in the place of Variables; what they are given to is added to ``later``."""
    if isinstance(target, _SEQUENCES):
        elements = []
        for element in target.elements:
            elements.append(syntax.changed(element, value=_named(rw, element.value, later)))
        return syntax.changed(target, elements=elements)
    if not is_written(rw, target):
        return target
    kind = rw.ctx.kind(target)
    hint = target.attr.value if isinstance(target, cst.Attribute) else "part"
    name = cst.Name(rw.ctx.unused(hint))
    rw.ctx.facts.kinds[name] = k.Tensor(dtype=kind.dtype) if isinstance(kind, k.Tensor) else kind
    later.append(cst.Assign([cst.AssignTarget(target)], name))
    return name
