"""What the place of a call tells its definition, beside the arguments: into how many names its result goes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import libcst as cst

from migrator.assignments import is_target
from migrator.convert.context import Context, Failure
from migrator.convert.divided import divides
from migrator.convert.expand import CallArg
from migrator.infer import kinds as k
from migrator.source import dotted
from rules.definitions import Rule

_NARROW = frozenset("uint8 int8 int16 byte char short ByteTensor CharTensor ShortTensor".split())


def told(ctx: Context, node: cst.Call, args: list[CallArg], rules: Sequence[Rule]) -> list[CallArg]:
    """The arguments that no call writes, for the definitions that ask for them."""
    asked = {
        n for rule in rules for n in ("unpacked", "narrow", "fits", "distinct") if n in rule.by_name
    }
    found = []
    count = unpacked(ctx, node) if "unpacked" in asked else 0
    if count > 2 and not divides(ctx, node, count):
        count = 0  # torch's last piece is a smaller one then
    if count:
        value = cst.Integer(str(count))
        found.append(CallArg("unpacked", value, value, k.Const(count)))
    if "narrow" in asked and args and _may_be_narrow(ctx, args[0].kind):
        value_ = cst.Name("True")
        found.append(CallArg("narrow", value_, value_, k.Const(True)))
    if "fits" in asked and _fits(ctx, args):
        found.append(CallArg("fits", cst.Name("True"), cst.Name("True"), k.Const(True)))
    if "distinct" in asked and _distinct(ctx, node, args, rules):
        found.append(CallArg("distinct", cst.Name("True"), cst.Name("True"), k.Const(True)))
    return found


def _distinct(ctx: Context, node: cst.Call, args: list[CallArg], rules: Sequence[Rule]) -> bool:
    """Whether ``x.index_copy(dim, index, source)`` and its kin list each place once, or no gradient counts."""
    from migrator.convert.passes.repeated_places import are_distinct

    names = next(rule.positional for rule in rules if "distinct" in rule.by_name)
    plain = [one for one in args if not one.keyword]
    given = {**dict(zip(names, plain)), **{one.keyword: one for one in args if one.keyword}}  # noqa: B905
    index = next((given[name] for name in ("index", "indices") if name in given), None)
    value = next((given[name] for name in ("src", "source", "values") if name in given), None)
    if index is None or value is None or not isinstance(value.kind, k.Tensor):
        return False
    row = given.get("dim") if "src" in given else None
    parts = (index.original, value.updated, row.original if row is not None else None)
    if not all(one is None or isinstance(one, cst.BaseExpression) for one in parts):
        return False
    if "indices" in given:
        _check_masks(ctx, node, index.original)
    return are_distinct(ctx, args[0].kind, *parts)


def _check_masks(ctx: Context, node: cst.Call, indices: cst.CSTNode) -> None:
    """Raise a Failure for ``x.index_put((mask,), values)``: where each of the values goes, the data say."""
    parts = (
        [e.value for e in indices.elements] if isinstance(indices, (cst.Tuple, cst.List)) else []
    )
    kinds = [ctx.kind(one) for one in parts]
    if any(isinstance(one, k.Tensor) and one.dtype == "bool" for one in kinds):
        what = "values assigned through a boolean mask are placed by data"
        advice = "use jnp.where(mask, values, x) with values of x's shape"
        raise Failure(node, "DYN001", what, advice)


def _fits(ctx: Context, args: list[CallArg]) -> bool:
    """Whether ``src`` of ``x.scatter(dim, index, src)`` has the shape of ``index``.

    It has where a parameter is trained through it: torch has no gradient of a larger one.
    """
    by_name = {one.keyword: one.original for one in args if one.keyword}
    plain = [one.original for one in args if not one.keyword]
    index = by_name.get("index", plain[2] if len(plain) > 2 else None)
    src = by_name.get("src", plain[3] if len(plain) > 3 else None)
    if not isinstance(index, cst.BaseExpression) or not isinstance(src, cst.BaseExpression):
        return False
    shaped = _is_shaped_as(ctx, index, src) or _is_shaped_as(ctx, src, index)
    return shaped or _is_trained(ctx, src, set())


_OF_SIZES = re.compile(r"(?:torch|Tensor)\.(?:\w+_like|new_\w+|detach|size)")


def _takes_no_values(ctx: Context, call: cst.Call) -> bool:
    """Whether a call gives what has no gradient, whatever it is given: ``torch.ones_like(x)``."""
    return _OF_SIZES.fullmatch(ctx.facts.callee(call) or "") is not None


def _is_trained(ctx: Context, node: cst.CSTNode, seen: set[str]) -> bool:
    """Whether a function computes a value of it from a parameter, or by a layer."""
    tree = ctx.facts.tree
    apart = [one for one in tree.within(node, cst.Call) if _takes_no_values(ctx, one)]
    for one in tree.within(node, cst.Name, cst.Attribute):
        if any(tree.holds(call, one) for call in apart):
            continue
        kind = ctx.kind(one)
        if isinstance(kind, k.Tensor) and (kind.role == "param" or kind.dtype in ("int", "bool")):
            if kind.role == "param":
                return True
        elif isinstance(one, cst.Attribute):
            above = tree.parent(one)
            if isinstance(kind, k.Module) and isinstance(above, cst.Call) and above.func is one:
                return True
        elif one.value not in seen:
            seen.add(one.value)
            for place in _bindings(ctx, one.value):
                around = tree.around(place)
                made = next((n for n in reversed(around) if isinstance(n, cst.Assign)), None)
                if made is not None and _is_trained(ctx, made.value, seen):
                    return True
    return False


_SHAPED = frozenset("expand_as view_as reshape_as ones_like zeros_like full_like".split())


def _is_shaped_as(ctx: Context, one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether a tensor is made in the shape of another: ``i.expand_as(x)``, ``torch.ones_like(i)``."""
    if not isinstance(other, cst.Name) or one.deep_equals(other):
        return one.deep_equals(other)
    made: cst.CSTNode | None = one
    if isinstance(one, cst.Name):  # what it was given then has the shape that the other had then
        places = _bindings(ctx, one.value)
        made = ctx.facts.tree.parent(places[0]) if len(places) == 1 else None
        made = ctx.facts.tree.parent(made) if isinstance(made, cst.AssignTarget) else None
        made = made.value if isinstance(made, cst.Assign) else None
        argument = ctx.frame is not None and other.value in ctx.frame.info.params
        if len(_bindings(ctx, other.value)) + argument != 1:
            return False
    if not isinstance(made, cst.Call) or not made.args or not isinstance(made.func, cst.Attribute):
        return False
    return made.func.attr.value in _SHAPED and made.args[0].value.deep_equals(other)


def _bindings(ctx: Context, name: str) -> list[cst.Name]:
    """Where a function binds a name."""
    if ctx.frame is None:
        return []
    tree = ctx.facts.tree
    return [n for n in _names(ctx, name) if is_target(tree.around(n), n)]


def _may_be_narrow(ctx: Context, kind: k.Kind) -> bool:
    """Whether a tensor of integers may have fewer than 32 bits: in a file that names such a type."""
    if not isinstance(kind, k.Tensor) or kind.dtype != "int":
        return False
    return names_one(ctx, _NARROW)


def unpacked(ctx: Context, node: cst.Call) -> int:
    """Into how many names a list goes: ``a, b = f(x)``, ``a, b = map(g, f(x))``, ``p = f(x); a, b = p``; else 0."""
    direct = _count(ctx, node)
    if direct or ctx.frame is None or not ctx.facts.tree.has(node):
        return direct
    assign = ctx.facts.tree.around(node)[-1]
    if not isinstance(assign, cst.Assign) or len(assign.targets) != 1:
        return 0
    target = assign.targets[0].target
    if not isinstance(target, cst.Name):
        return 0
    uses = [n for n in _names(ctx, target.value) if n is not target]
    counts = {_count(ctx, use) for use in uses}
    return counts.pop() if len(counts) == 1 else 0


def _names(ctx: Context, name: str) -> Iterator[cst.Name]:
    assert ctx.frame is not None
    named = ctx.facts.tree.within(ctx.frame.info.node.body, cst.Name)
    return (n for n in named if n.value == name)


def _count(ctx: Context, node: cst.CSTNode) -> int:
    """How many names the elements of a value go to, which it alone makes up."""
    if not ctx.facts.tree.has(node):
        return 0
    around = ctx.facts.tree.around(node)
    parent = around.pop()
    if isinstance(parent, cst.CompFor) and parent.iter is node:  # a, b = (g(t) for t in f(x))
        node, parent = around.pop(), around.pop()
        if not isinstance(node, (cst.GeneratorExp, cst.ListComp)) or node.for_in.ifs:
            return 0
        if node.for_in.inner_for_in is not None:
            return 0
    elif isinstance(parent, cst.Arg):  # a, b = map(g, f(x))
        call, parent = around.pop(), around.pop()
        if not isinstance(call, cst.Call) or ctx.facts.callee(call) != "builtins.map":
            return 0
        if len(call.args) != 2 or call.args[1].value is not node:
            return 0
        node = call
    if not isinstance(parent, cst.Assign) or parent.value is not node:
        return 0
    counts = {_places(one.target) for one in parent.targets}
    return counts.pop() if len(counts) == 1 else 0


def _places(target: cst.BaseExpression) -> int:
    """How many places an assignment target has; 0 for a name, and where a star takes any number."""
    if not isinstance(target, (cst.Tuple, cst.List)):
        return 0
    starred = any(isinstance(e, cst.StarredElement) for e in target.elements)
    return 0 if starred else len(target.elements)


def names_one(ctx: Context, words: frozenset[str]) -> bool:
    """Whether a file has one of these as an attribute or an import; ``half = dim // 2`` is a variable of its own."""
    index = ctx.source.index
    if any(node.attr.value in words for node in index.of_type(cst.Attribute)):
        return True
    if index.of_type(cst.ImportStar):
        return any(node.value in words for node in index.of_type(cst.Name))
    imported = (dotted(alias.name) or "" for alias in index.of_type(cst.ImportAlias))
    return any(name.rpartition(".")[2] in words for name in imported)
