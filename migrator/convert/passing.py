"""Which calls of libraries and layers give memory of what they are handed."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator
from typing import TypeGuard

import libcst as cst

from migrator import syntax
from migrator.assignments import BINDING, bound_by
from migrator.convert.context import Context
from migrator.convert.sharing import VIEWS, inplace_argument, operands, run_layer
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.source import dotted
from migrator.texts import pattern

_PASSING_LAYERS = frozenset(
    "Identity Flatten Unflatten Dropout Dropout1d Dropout2d Dropout3d AlphaDropout FeatureAlphaDropout "
    "Sequential".split()
)

LEGACY = frozenset(
    f"torch.{name}Tensor"
    for name in ("", *"Float Double Half BFloat16 Long Int Short Char Byte Bool".split())
)
"""torch's old classes of tensors, which make one of sizes or of values, or take one as it is."""


def makes_new(ctx: Context, node: cst.Call, name: str) -> bool:
    """Whether what a function or layer of LIBRARIES makes shares no memory with what it is handed."""
    short = name.rpartition(".")[2]
    if name.endswith("()"):
        may_pass = _may_pass(ctx, node, short.removesuffix("()"))
        return not may_pass and k.in_place(ctx.kind(node.func)) is False
    if (
        name in LEGACY
    ):  # a tensor alone is taken as it is; several arguments, and what has a star, are sizes
        sizes = sum(not a.star and a.keyword is None for a in node.args) > 1
        return sizes or any(a.star == "*" for a in node.args)
    if short == "einsum" and operands(node) > 1:
        return True  # a product; of one operand it may be a view
    in_place = short.endswith("_") and not short.endswith("__")
    return not (in_place or short in VIEWS or inplace_argument(name, node) is not None)


def _may_pass(ctx: Context, node: cst.Call, cls: str) -> bool:
    """Whether a layer may return memory of its input: a Sequential does only if all of its children may."""
    if cls != "Sequential":
        kept = isinstance(node.func, cst.Attribute) and node.func.attr.value
        return cls in _PASSING_LAYERS or (bool(kept) and is_replaced(ctx, {str(kept)}))
    kind = ctx.kind(node.func)
    return _all_pass(ctx, kind) if isinstance(kind, k.Module) else True


def _all_pass(ctx: Context, sequential: k.Module) -> bool:
    names = {name for name, child in sequential.args if isinstance(child, k.Kind)}
    children = [child for name, child in sequential.args if name.isdigit()]
    own = ctx.facts.classes.get(sequential.cls)
    if own is not None or not children:
        names |= {""}
    if is_replaced(ctx, names):
        return True
    if _takes_layers(ctx):  # what is left may be one of them alone
        return any(passes(ctx, child) for child in children or [sequential.item])
    added = [] if own is None else list(_added(ctx, own))
    if children or not _is_of_several(sequential.item):
        children = children or [sequential.item]
    else:  # a list that was filled: what is known of it is which classes it holds
        children = list(sequential.item.among)
        if not children:
            return False
    return all(passes(ctx, child) for child in [*children, *added])


def _is_of_several(kind: object) -> TypeGuard[k.Module]:
    return isinstance(kind, k.Module) and kind.cls == "torch.nn.Module"


def is_replaced(ctx: Context, names: set[str]) -> bool:
    """Whether the file may put a layer that returns its input in the place of a child of one of these names.

    ``seq[0] = nn.Identity()``, ``setattr(net, name, nn.Identity())``; "" is the child of a Sequential whose name is not
    known.
    """
    if ctx.replaced is None:
        ctx.replaced = (
            frozenset()
        )  # what takes a place may be a Sequential, which is asked the same
        ctx.replaced = frozenset(_replaced(ctx))
    if "" in names and any(sequential for _, sequential in ctx.replaced):
        return True
    return any(re.fullmatch(made_up, name) for made_up, _ in ctx.replaced for name in names if name)


def _replaced(ctx: Context) -> Iterator[tuple[str, bool]]:
    """What the names of children may be in whose place one is put, and whether it may be one of a Sequential."""
    tree = ctx.facts.tree
    for node in tree.of_type(cst.Assign):
        for one in node.targets:
            target = one.target
            if isinstance(target, cst.Subscript) and _may_be_module(ctx, target.value):
                if _surely_passes(ctx, node.value):
                    yield _key(ctx, target), True
            elif isinstance(target, cst.Attribute) and _is_any(ctx, target.value):
                if _surely_passes(ctx, node.value):
                    name = target.attr.value
                    yield re.escape(name), any(name in one for one in _of_sequentials(ctx))
    for call in tree.of_type(cst.Call) if ctx.words & _PUTTING else ():
        put = _put(ctx, call)
        if put is not None and _may_be_module(ctx, put[0]) and _surely_passes(ctx, put[2]):
            yield _of_owner(ctx, put[0], _named(ctx, call, put[1])), _may_be_sequential(ctx, put[0])


_MADE_UP = frozenset(
    "setattr add_module register_module __dict__ _modules vars OrderedDict".split()
)
"""By these children get names that no line says."""


def _of_owner(ctx: Context, owner: cst.CSTNode, name: str) -> str:
    """What a name may be of those that children of a module have of which the class is known."""
    kind = ctx.kind(owner)
    own = ctx.facts.classes.get(kind.cls) if isinstance(kind, k.Module) else None
    known: set[str] = set()
    if own is not None and own.torch_base == "torch.nn.Module":
        family = [
            one
            for one in ctx.facts.classes.values()
            if own in one.lineage() or one in own.lineage()
        ]
        if any(
            one.settled is not None or ctx.facts.tree.spells(one.node, _MADE_UP) for one in family
        ):
            return name
        known = {attribute for one in family for attribute in one.attributes}
    elif not isinstance(kind, k.Module) or kind.cls != "torch.nn.Sequential":
        return name
    elif not ctx.words.isdisjoint(_MADE_UP - {"setattr", "vars"}):
        return name
    else:
        texts = ctx.facts.tree.of_type(cst.SimpleString)
        known = {one.raw_value for one in texts if one.raw_value.isidentifier()}
    found = sorted(one for one in known if re.fullmatch(name, one))
    return "|".join([r"\d+", *map(re.escape, found)])


def _named(ctx: Context, call: cst.Call, name: cst.BaseExpression) -> str:
    """What a name may be under which a child is put: one of those that a loop goes over, or one that is made up."""
    if not isinstance(name, cst.Name):
        return _pattern(ctx, name)
    around = ctx.facts.tree.around(call)
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    loops = [one for one in around if isinstance(one, cst.For)]
    inner = loops[-1] if loops else None
    if inner is None or function is None or not ctx.facts.tree.holds(function, inner):
        return _pattern(ctx, name)
    if not isinstance(inner.target, cst.Name) or inner.target.value != name.value:
        return _pattern(ctx, name)
    texts = _texts(ctx, function, inner.iter, frozenset())
    return "|".join(map(re.escape, texts)) if texts else _pattern(ctx, name)


def _pattern(ctx: Context, name: cst.BaseExpression) -> str:
    """What a name may be that is made up, of digits where it is that of a whole number."""
    return pattern(name, lambda one: k.scalar_type(ctx.kind(one)) == "int")


def _texts(
    ctx: Context, function: cst.FunctionDef, node: cst.BaseExpression, seen: frozenset[str]
) -> list[str] | None:
    """The texts of ``("layer1", "layer2")``, of a part of them, and of a name that holds nothing else."""
    if isinstance(node, cst.Tuple):
        found = [
            one.value.evaluated_value if isinstance(one.value, cst.SimpleString) else None
            for one in node.elements
        ]
        return [one for one in found if isinstance(one, str)] if None not in found else None
    if isinstance(node, cst.Subscript):
        parts = all(isinstance(one.slice, cst.Slice) for one in node.slice)
        return _texts(ctx, function, node.value, seen) if parts else None
    if not isinstance(node, cst.Name):
        return None
    if node.value in seen:
        return []
    tree, values = ctx.facts.tree, []
    for one in tree.within(function, *BINDING):
        target = bound_by(one)
        if node.value in syntax.names(target):
            above = tree.around(one)[-1] if isinstance(one, cst.AssignTarget) else None
            if not isinstance(above, cst.Assign) or not isinstance(target, cst.Name):
                return None
            values.append(above.value)
    every = [_texts(ctx, function, one, seen | {node.value}) for one in values]
    if not every or any(one is None for one in every):
        return None
    return [text for one in every for text in one or ()]


_PUTTING = frozenset(["setattr", "add_module", "register_module"])


def _put(
    ctx: Context, call: cst.Call
) -> tuple[cst.CSTNode, cst.BaseExpression, cst.BaseExpression] | None:
    """What gets a child by a name, the name and the child; not the ``add_module`` by which a constructor makes its own."""
    given = [one.value for one in call.args]
    if dotted(call.func) == "setattr" and len(given) == 3:
        return given[0], given[1], given[2]
    func = call.func
    if not isinstance(func, cst.Attribute) or func.attr.value not in _PUTTING or len(given) != 2:
        return None
    around = [one for one in ctx.facts.tree.around(call) if isinstance(one, cst.FunctionDef)]
    builds = bool(around) and around[-1].name.value == "__init__"
    return None if builds and dotted(func.value) == "self" else (func.value, given[0], given[1])


def _key(ctx: Context, target: cst.Subscript) -> str:
    """What the key of an entry may be: a number, or a name that is made up."""
    index = target.slice[0].slice
    if not isinstance(index, cst.Index) or k.scalar_type(ctx.kind(index.value)) == "int":
        return r"\d+"
    return _pattern(ctx, index.value)


def _is_any(ctx: Context, owner: cst.CSTNode) -> bool:
    """Whether it is not known whose attribute is set: ``for m in self.modules(): m.act = nn.Identity()``."""
    kind = ctx.kind(owner)
    return isinstance(kind, k.Unknown) or k.is_any_module(kind)


def _of_sequentials(ctx: Context) -> Iterator[Container[str]]:
    """Names that children of Sequentials may have, beside numbers: of own classes, and those written as texts."""
    for info in ctx.facts.classes.values():
        if info.torch_base != "torch.nn.Module":
            yield info.attributes
    texts = ctx.facts.tree.of_type(cst.SimpleString)
    yield {one.raw_value for one in texts if one.raw_value.isidentifier()}


def _may_be_sequential(ctx: Context, owner: cst.CSTNode) -> bool:
    kind = ctx.kind(owner)
    own = ctx.facts.classes.get(kind.cls) if isinstance(kind, k.Module) else None
    return own is None or own.torch_base != "torch.nn.Module"


def _surely_passes(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a layer of torch that may return its input, be it one of several.

    One of the file's own is not asked: what its forward pass returns may be what is being found out.
    """
    kind = ctx.kind(node)
    if not isinstance(kind, k.Module):
        return False
    every = kind.among if _is_of_several(kind) else (kind,)
    return any(passes(ctx, one) for one in every if one.cls not in ctx.facts.classes)


def _takes_layers(ctx: Context) -> bool:
    """Whether the file takes layers out of a container, so that those behind them have other numbers."""
    if ctx.takes_layers is None:
        taken = [one for one, _ in taken_out(ctx) if isinstance(ctx.kind(one), k.Module)]
        ctx.takes_layers = any(_may_be_sequential(ctx, one) for one in taken)
    return ctx.takes_layers


def _is_deleted(ctx: Context, name: str) -> bool:
    """Whether the file may take a child of a name out of some Sequential; "" is a name that is not known."""
    return any(
        not name or re.fullmatch(made_up, name)
        for owner, made_up in taken_out(ctx)
        if _may_be_module(ctx, owner)
    )


_TAKING = frozenset("pop popitem clear remove __delitem__ __delattr__".split())


def taken_out(ctx: Context) -> Iterator[tuple[cst.CSTNode, str]]:
    """What the file takes children out of, and what their names may be: ``del seq.bn``, ``seq.pop(0)``, ``delattr(m, n)``."""
    tree = ctx.facts.tree
    for node in tree.of_type(cst.Del):
        several = node.target.elements if isinstance(node.target, cst.Tuple) else ()
        for one in [node.target, *(element.value for element in several)]:
            if isinstance(one, cst.Attribute):
                yield one.value, re.escape(one.attr.value)
            elif isinstance(one, cst.Subscript):
                yield _holder(one.value), _key(ctx, one)
    for call in tree.of_type(cst.Call) if ctx.words & {*_TAKING, "delattr"} else ():
        func, given = call.func, [one.value for one in call.args]
        if isinstance(func, cst.Name) and func.value == "delattr" and len(given) == 2:
            yield given[0], _pattern(ctx, given[1])
        elif isinstance(func, cst.Attribute) and func.attr.value in _TAKING:
            if isinstance(func.value, cst.Name) and func.value.value == "object" and given:
                yield given[0], ".*"
                continue
            if _takes_from(ctx, func, given[:1]):
                text = given and isinstance(given[0], _TEXTS)
                yield _holder(func.value), _pattern(ctx, given[0]) if text else ".*"


def _takes_from(ctx: Context, func: cst.Attribute, key: list[cst.BaseExpression]) -> bool:
    """Whether a method takes something out of a module, and out of no list or table of anything else."""
    if isinstance(ctx.kind(func.value), k.Module) or _is_table(func.value):
        return True
    texts = any(isinstance(one, _TEXTS) for one in key)  # the keys of a table
    return func.attr.value in ("pop", "__delitem__") and not texts


_TEXTS = (cst.SimpleString, cst.FormattedString, cst.ConcatenatedString)


def _is_table(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "_modules"


def _holder(node: cst.BaseExpression) -> cst.BaseExpression:
    """The module whose children a table holds."""
    return node.value if isinstance(node, cst.Attribute) and _is_table(node) else node


def _added(ctx: Context, own: ClassInfo) -> Iterator[k.Kind]:
    """What the constructor of a class derived from Sequential adds in any case, and nothing takes out again."""
    init = own.method("__init__")
    if init is None or init.settled is not None:
        return
    for line in init.node.body.body:
        if not isinstance(line, cst.SimpleStatementLine):
            if ctx.facts.tree.within(line, cst.Return):
                return
            continue
        for small in line.body:
            child = _child(small)
            kind = ctx.kind(child[1]) if child is not None else None
            if child is None or not isinstance(kind, k.Module):
                continue
            name, later = child[0], own.attribute(child[0])
            if not _is_deleted(ctx, name) and (later is None or isinstance(later, k.Module)):
                yield later or kind


def _child(small: cst.CSTNode) -> tuple[str, cst.BaseExpression] | None:
    """The name of a child and the child: ``self.add_module("c", conv)``, ``self.append(conv)``, ``self.c = conv``."""
    if isinstance(small, cst.Assign) and len(small.targets) == 1:
        target = small.targets[0].target
        if isinstance(target, cst.Attribute) and dotted(target.value) == "self":
            return target.attr.value, small.value
        return None
    call = small.value if isinstance(small, cst.Expr) else None
    if not isinstance(call, cst.Call) or any(a.keyword or a.star for a in call.args):
        return None
    given = [argument.value for argument in call.args]
    if dotted(call.func) == "self.append" and len(given) == 1:
        return "", given[0]
    named = dotted(call.func) in ("self.add_module", "self.register_module") and len(given) == 2
    if not named or not isinstance(given[0], cst.SimpleString):
        return None
    return str(given[0].evaluated_value), given[1]


def _may_be_module(ctx: Context, node: cst.CSTNode) -> bool:
    return isinstance(ctx.kind(node), (k.Module, k.Unknown, k.Optional))


def passes(ctx: Context, kind: object) -> bool:
    """Whether a layer of a Sequential may return memory of its input."""
    if not isinstance(kind, k.Module):
        return True
    if _is_of_several(kind):  # of one of them, or of any
        return any(passes(ctx, one) for one in kind.among or (None,))
    own = ctx.facts.classes.get(kind.cls)
    if own is not None and (forward := own.method("forward")) is not None:
        from migrator.convert.returned import returns_argument

        return returns_argument(ctx, forward)
    cls = run_layer(ctx, kind).rpartition(".")[2]
    if cls == "Sequential" and k.in_place(kind) is False:
        return _all_pass(ctx, kind)
    return cls in _PASSING_LAYERS or k.in_place(kind) is not False
