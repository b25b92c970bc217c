"""Attributes that hold arrays in Python containers, and those that hold a layer now and a function then."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from typing import Any

import libcst as cst

from migrator import syntax, texts
from migrator.convert.containing import (
    holds_parameter,
    holds_tensor,
    inner,
    is_parameter,
    levels,
    plainly_kept,
)
from migrator.convert.context import Context, Failure
from migrator.convert.filled import filled, makes_numpy
from migrator.convert.kept import either_or
from migrator.convert.nested_layers import becomes_function, nests_layers
from migrator.convert.passes import targets
from migrator.convert.passes.first_kept import kept
from migrator.convert.passes.host_arrays import is_host_array
from migrator.convert.passes.records import nested_records, of_named_tuple
from migrator.convert.passes.unregistered import is_registered
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def containers(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.tables = {"a": torch.ones(3)}`` → ``nnx.data({…})``: Flax asks that arrays in containers are declared."""
    ctx = rw.ctx
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or not ctx.in_init:
        return None
    owner = ctx.owner
    if not ctx.is_self(target.value) or owner is None or owner.torch_base is None:
        return None
    if _is_empty(ctx, node.value):
        known = owner.attribute(target.attr.value)
        if isinstance(known, k.Sequence) and known.type == "list" and is_parameter(known.item):
            return _unregistered(rw, node, owner, target)
        inside = filled(ctx, owner, target.attr.value)
        if inside is None and nests_layers(ctx, owner, target.attr.value):
            raise plainly_kept(node)
        return _declared(rw, node, inside) if inside is not None else None
    if _holds_containers(ctx, node.value) and nests_layers(ctx, owner, target.attr.value):
        raise plainly_kept(node)
    if _holds_computed(ctx, owner, node.value):
        raise plainly_kept(node)
    if isinstance(node.value, cst.Call) and ctx.facts.callee(node.value) in _NUMPY_TUPLES:
        ctx.helpers.use("nnx")
        return syntax.changed(
            node, value=cst.Call(syntax.parse("nnx.data"), [cst.Arg(rw.visit(node.value))])
        )
    kind = ctx.kind(node.value)
    if isinstance(kind, k.Sequence) and is_parameter(kind.item):
        return _unregistered(rw, node, owner, target)
    if isinstance(kind, k.Sequence) and kind.type == "list" and isinstance(kind.item, k.Tensor):
        return None  # an nnx.List
    if not isinstance(kind, (k.Sequence, k.Tuple, k.Mapping)) or not holds_tensor(kind):
        if isinstance(kind, (k.Sequence, k.Tuple, k.Mapping)) and nested_records(ctx, node):
            raise nested(node)
        called = ctx.facts.callee(node.value) if isinstance(node.value, cst.Call) else ""
        if isinstance(kind, (k.Sequence, k.Tuple, k.Mapping)) and makes_numpy(ctx, node.value):
            return _of_numpy(rw, node)
        looked_into = not called or called.startswith(("builtins.", "collections.defaultdict"))
        if looked_into and filled(ctx, owner, target.attr.value) is not None:
            raise nested(node)  # beside what is no tensor
        return of_named_tuple(rw, node)
    if holds_parameter(kind):
        raise _not_registered(node)
    ctx.helpers.use("nnx")
    func = _container(rw, node, kind)
    return syntax.changed(node, value=cst.Call(func, [cst.Arg(_in_parens(rw.visit(node.value)))]))


def _holds_computed(ctx: Context, owner: ClassInfo, value: cst.BaseExpression) -> bool:
    """``[self.layer0, self.layer1]`` of what ``setattr`` made, which may be layers that Flax must be told of."""
    inside = value.elements if isinstance(value, (cst.Dict, cst.List, cst.Tuple)) else ()
    unnamed = any(
        isinstance(one.value, cst.Attribute)
        and ctx.is_self(one.value.value)
        and isinstance(ctx.kind(one.value), k.Unknown)
        and owner.attribute(one.value.attr.value) is None
        for one in inside
    )
    return unnamed and ctx.facts.tree.spells(
        owner.node, ("setattr", "add_module", "register_module")
    )


def _holds_containers(ctx: Context, value: cst.BaseExpression) -> bool:
    """``defaultdict(dict)``, ``{"a": {}}``, ``[[], []]``, ``{"a": table}``."""
    if isinstance(value, cst.Call):
        return ctx.facts.callee(value) == "collections.defaultdict"
    inside = value.elements if isinstance(value, (cst.Dict, cst.List, cst.Tuple)) else ()
    return any(isinstance(one.value, (cst.Dict, cst.List, cst.Call, cst.Name)) for one in inside)


_NUMPY_TUPLES = frozenset(
    f"numpy.{name}"
    for name in (
        "tril_indices triu_indices tril_indices_from triu_indices_from diag_indices "
        "diag_indices_from nonzero meshgrid indices split array_split broadcast_arrays "
        "unravel_index ix_ mask_indices"
    ).split()
)
"""Functions of numpy that give several arrays, which Flax must be shown; a single one it sees."""


def _of_numpy(rw: Rewriter, node: cst.Assign) -> cst.Assign | None:
    """``self.tables = {k: np.ones(n) for k in keys}``."""
    ctx, target = rw.ctx, node.targets[0].target
    assert isinstance(target, cst.Attribute)
    if node in ctx.redeclared or is_host_array(ctx, target):
        return None
    value = node.value
    parts = value.args if isinstance(value, cst.Call) else getattr(value, "elements", [])
    if not all(makes_numpy(ctx, one.value) for one in parts):
        raise nested(node)  # beside what is none
    ctx.helpers.use("nnx")
    return syntax.changed(node, value=_data(rw.visit(node.value)))


def _declared(rw: Rewriter, node: cst.Assign, inside: k.Kind) -> cst.Assign:
    """``self.tables = {}`` that the constructor fills with arrays; what they stand in must show them to Flax."""
    if holds_parameter(inside):
        raise _not_registered(node)
    numpy = inside == k.NUMPY
    if not isinstance(inside, k.Tensor) and not numpy:
        raise nested(node)
    rw.ctx.helpers.use("nnx")
    value = node.value
    if isinstance(value, cst.Call):
        value = syntax.parse("[]" if rw.ctx.facts.callee(value) == "builtins.list" else "{}")
    dictionary = isinstance(value, cst.Dict)
    if numpy:
        return syntax.changed(node, value=_data(value))
    func = _container(rw, node, k.Mapping(inside) if dictionary else k.Sequence(inside))
    return syntax.changed(node, value=cst.Call(func, [cst.Arg(value)]))


def _container(rw: Rewriter, node: cst.Assign, kind: k.Kind) -> cst.BaseExpression:
    """What makes Flax find the arrays in a container: it changes no tuple, and keeps only some dicts in order."""
    if isinstance(kind, k.Mapping):
        if all(isinstance(one, k.Tensor) for one in (kind.value, *dict(kind.items).values())):
            if not _is_iterated(rw.ctx, node.targets[0].target):
                return syntax.parse("nnx.data")
            file = module_file("rules.compat.containers")
            return cst.Name(rw.ctx.helpers.need(file, "ModuleDict"))
    elif not any(isinstance(part, k.Mapping) for part in levels(kind)):
        if holds_arrays(kind) and not (isinstance(kind, k.Sequence) and kind.type == "list"):
            return syntax.parse("nnx.data")  # a layer that is handed it asks for a tuple
        if all(not isinstance(one, (k.Tuple, k.Sequence)) for one in inner(kind)):
            return syntax.parse("nnx.List")
        file = module_file("rules.compat.containers")
        return cst.Name(rw.ctx.helpers.need(file, "nested_list"))
    raise nested(node)


def holds_arrays(kind: k.Kind | None) -> bool:
    """Whether a value is a tuple or list of plain tensors and nothing else: ``self.state = (h, c)``."""
    if isinstance(kind, k.Tuple):
        return bool(kind.items) and all(_is_plain_tensor(item) for item in kind.items)
    return isinstance(kind, k.Sequence) and _is_plain_tensor(kind.item)


def _is_plain_tensor(kind: k.Kind) -> bool:
    return isinstance(kind, k.Tensor) and not kind.role


def nested(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API008",
        "tensors in nested containers, where Flax does not find them",
        "register them as buffers",
    )


def _is_iterated(ctx: Context, target: cst.CSTNode) -> bool:
    """Whether the file goes through a dict of that name: jit sorts the keys of a plain one."""
    name = target.attr.value if isinstance(target, cst.Attribute) else ""

    def is_it(node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Attribute) and node.attr.value == name

    index = ctx.source.index
    loops = index.of_type(cst.For, cst.CompFor)
    methods = [
        n for n in index.of_type(cst.Attribute) if n.attr.value in ("items", "values", "keys")
    ]
    return (
        any(is_it(loop.iter) for loop in loops)
        or any(is_it(one.value) for one in methods)
        or any(is_it(arg.value) for arg in index.of_type(cst.Arg))
    )


def _unregistered(
    rw: Rewriter, node: cst.Assign, owner: ClassInfo, target: cst.Attribute
) -> cst.Assign:
    """A list of parameters that have names of their own in the state_dict."""
    if not is_registered(rw.ctx, owner, target.attr.value):
        raise _not_registered(node)
    name = rw.ctx.helpers.need(module_file("rules.compat.containers"), "Unregistered")
    value = cst.Call(cst.Name(name), [cst.Arg(rw.visit(node.value))])
    return syntax.changed(node, value=value)


def _not_registered(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API008",
        "a plain container registers no parameters: torch trains and saves them only by other names",
        "use nn.ParameterList if they are meant to be part of the model",
    )


@converts(cst.Subscript)
def entry(rw: Rewriter, node: cst.Subscript) -> Any:
    """``self.kernels[i]`` of a list of parameters → ``self.kernels[i][...]``."""
    ctx = rw.ctx
    kind = ctx.kind(node.value)
    if not isinstance(node.value, cst.Attribute) or not isinstance(kind, k.Sequence):
        return None
    sliced = isinstance(node.slice[0].slice, cst.Slice)
    if sliced or ctx.in_init or not is_parameter(kind.item):
        return None
    return targets.dereferenced(rw.rebuild(node))


def _is_empty(ctx: Context, node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        ordered = not {"move_to_end", "popitem"}.isdisjoint(ctx.words)
        return not node.args and not ordered and ctx.facts.callee(node) in _EMPTY
    return isinstance(node, (cst.List, cst.Dict)) and not node.elements


_EMPTY = frozenset({"builtins.list", "builtins.dict", "collections.OrderedDict"})


def _in_parens(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.Tuple) and not value.lpar:
        return syntax.parenthesized(value)  # type: ignore[return-value]
    return value


# --- a layer without state in the place of one with state --------------------------------------------------------


@converts(cst.Assign, targets=(cst.Attribute,))
def changing_layer(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.act = nn.ReLU()`` where another line assigns an ``nn.PReLU()``: a module in both cases.

    Flax decides once whether an attribute is a part of the module."""
    ctx = rw.ctx
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or ctx.traverses:
        return None
    if not is_function(rw, node.value) or not ctx.is_self(target.value) or ctx.owner is None:
        return None
    values = assigned(ctx, ctx.owner, target.attr.value)
    if not _set_by_name(rw, ctx.owner, target.attr.value):
        if all(is_function(rw, v) or _is_plain(v) for v in values):
            return None
        if all(either_or(ctx, a, b) for a, b in combinations(values, 2)):
            return None
    wrapper = ctx.helpers.need(module_file("rules.compat.children"), "Stateless")
    value = cst.Call(cst.Name(wrapper), [cst.Arg(rw.visit(node.value))])
    return syntax.changed(node, value=value)


def _set_by_name(rw: Rewriter, owner: ClassInfo, name: str) -> bool:
    """Whether the class may give an attribute a layer under a name that it makes up: ``setattr(self, f"act{i}", …)``."""
    for call in rw.ctx.facts.tree.within(owner.node, cst.Call):
        if not isinstance(call.func, cst.Name) or call.func.value != "setattr":
            continue
        if len(call.args) != 3 or not rw.ctx.is_self(call.args[0].value):
            continue
        made = call.args[2].value
        if not isinstance(rw.ctx.facts.kind(made), k.Module) or is_function(rw, made):
            continue
        if re.fullmatch(texts.pattern(call.args[1].value), name):
            return True
    return False


@converts(cst.Assign, targets=(cst.Attribute,), values=(cst.Name,))
def switched_off(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.drop = False`` where another line assigns a layer: None, which Flax lets a module replace."""
    ctx = rw.ctx
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or ctx.owner is None:
        return None
    if not isinstance(node.value, cst.Name) or node.value.value != "False" or not ctx.in_init:
        return None
    if not ctx.is_self(target.value):
        return None
    name = target.attr.value
    others = [v for v in assigned(ctx, ctx.owner, name) if v is not node.value]
    layers = [v for v in others if isinstance(ctx.kind(v), k.Module) and not is_function(rw, v)]
    if not layers or len(layers) != len(others) or _compared(ctx, name):
        return None
    ctx.helpers.use("nnx")
    return syntax.changed(node, value=syntax.parse("nnx.data(None)"))


@converts(cst.Assign, targets=(cst.Attribute,))
def layer_after_none(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.norm = norm_layer(dim)`` with nothing known of the class, where another line assigns None.

    Neither a layer nor a function may be declared there ahead: what comes says which it is.
    """
    ctx = rw.ctx
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute) or ctx.owner is None:
        return None
    if not ctx.in_init or not ctx.is_self(target.value) or not _may_be_layer(ctx, node.value):
        return None
    name = target.attr.value
    values = [v for c in ctx.owner.lineage() for v in assigned(ctx, c, name)]
    before = [v for v in values if isinstance(v, cst.Name) and _is_plain(v)]
    if all(either_or(ctx, node.value, v) for v in before) or not is_called(ctx, name):
        return None
    wrapper = ctx.helpers.need(module_file("rules.compat.factories"), "declared")
    value = cst.Call(cst.Name(wrapper), [cst.Arg(rw.visit(node.value))])
    return syntax.changed(node, value=value)


@converts(cst.Assign, kinds=(k.Module,))
def layer_after_function(rw: Rewriter, node: cst.Assign) -> Any:
    """``model.drop = nn.LayerNorm(n)``, ``net[1] = nn.PReLU()`` where a plain function stood: Flax asks which it is."""
    target, kind = node.targets[0].target, rw.ctx.facts.kind(node.value)
    if len(node.targets) != 1 or not isinstance(kind, k.Module):
        return None
    wrappers: list[cst.BaseExpression] = []
    if isinstance(node.value, cst.IfExp) and _may_hold_function(rw, target):
        if any(is_function(rw, arm) for arm in (node.value.body, node.value.orelse)):
            what = (
                "a layer or a plain function in the place of something else, which Flax tells apart"
            )
            raise Failure(node, "API001", what, "give it a name of its own")
    entry = _is_replaced_entry(rw.ctx, target)
    if is_function(rw, node.value):
        owner = rw.ctx.kind(target.value) if isinstance(target, cst.Subscript) else k.UNKNOWN
        listed = isinstance(owner, k.Module) and owner.cls in _LISTS
        if not (listed or entry):
            return None
        if not rw.ctx.traverses:
            file = module_file("rules.compat.children")
            wrappers.append(cst.Name(rw.ctx.helpers.need(file, "Stateless")))
    if entry or _may_hold_function(rw, target):
        rw.ctx.helpers.use("nnx")
        wrappers.append(syntax.parse("nnx.data"))
    if not wrappers:
        return None
    made = rw.rebuild(node)
    value = made.value
    for wrapper in wrappers:
        value = cst.Call(wrapper, [cst.Arg(value)])
    return syntax.changed(made, value=value)


_LISTS = ("torch.nn.Sequential", "torch.nn.ModuleList")


def _is_replaced_entry(ctx: Context, target: cst.CSTNode) -> bool:
    """``self.m["a"] = …`` where the file writes ``"a": …`` for an entry of some dict: that may be this one."""
    if not isinstance(target, cst.Subscript) or not isinstance(target.slice[0].slice, cst.Index):
        return False
    kind, key = ctx.kind(target.value), target.slice[0].slice.value
    if not isinstance(kind, k.Module) or kind.cls != "torch.nn.ModuleDict":
        return False
    entries = ctx.source.index.of_type(cst.DictElement)
    return isinstance(key, cst.SimpleString) and any(
        isinstance(one.key, cst.SimpleString) and one.key.evaluated_value == key.evaluated_value
        for one in entries
    )


def _may_hold_function(rw: Rewriter, target: cst.CSTNode) -> bool:
    """Whether an attribute of another object, or a place in a list of layers, may hold what is a function now."""
    ctx = rw.ctx
    if isinstance(target, cst.Attribute):
        info = ctx.class_of(ctx.kind(target.value))
        if ctx.is_self(target.value):
            return _held_a_number(ctx, target)
        if info is None:
            return False
        values = [v for c in info.lineage() for v in assigned(ctx, c, target.attr.value)]
        return any(is_function(rw, value) for value in values)
    owner = ctx.kind(target.value) if isinstance(target, cst.Subscript) else k.UNKNOWN
    if not isinstance(owner, k.Module) or owner.cls not in _LISTS:
        return False
    index = target.slice[0].slice if isinstance(target, cst.Subscript) else None
    place = syntax.code(index) if isinstance(index, cst.Index) else ""
    child = dict(owner.args).get(place, owner.item)
    if isinstance(child, k.Module) and child.cls != "torch.nn.Module":
        return becomes_function(child.cls)
    return any(is_function(rw, call) for call in ctx.source.index.of_type(cst.Call))


def _held_a_number(ctx: Context, target: cst.Attribute) -> bool:
    """``self.layers = layers`` before ``self.layers = nn.ModuleList(…)``: Flax keeps to what it saw first."""
    values = assigned(ctx, ctx.owner, target.attr.value) if ctx.owner is not None else []
    for number, value in enumerate(values):
        if k.scalar_type(ctx.kind(value)) in ("int", "float", "str", "bool"):
            if isinstance(value, cst.Name) and value.value == "False":
                continue  # which becomes what a layer may replace
            layers = [v for v in values[number + 1 :] if isinstance(ctx.kind(v), k.Module)]
            if any(not either_or(ctx, value, layer) for layer in layers):
                return True
    return False


def _may_be_layer(ctx: Context, value: cst.BaseExpression) -> bool:
    return isinstance(ctx.facts.kind(value), k.Unknown)


def is_called(ctx: Context, name: str) -> bool:
    """Whether the file calls an attribute of that name."""
    return any(
        isinstance(call.func, cst.Attribute) and call.func.attr.value == name
        for call in ctx.source.index.of_type(cst.Call)
    )


def _compared(ctx: Context, name: str) -> bool:
    """Whether the file compares an attribute of that name, so that None and False are told apart."""
    return any(
        isinstance(one.left, cst.Attribute) and one.left.attr.value == name
        for one in ctx.source.index.of_type(cst.Comparison)
    )


def is_function(rw: Rewriter, value: cst.BaseExpression) -> bool:
    """Whether a value is a function, or a layer of torch that is a plain function in the output.

    Where a project walks through its modules, each layer is one."""
    if not isinstance(value, cst.Call):
        return isinstance(rw.ctx.kind(value), k.Function)
    kind = rw.ctx.facts.kind(value.func)
    if rw.ctx.traverses or not isinstance(kind, k.Class):
        return False
    return becomes_function(kind.name)


def only_functions(rw: Rewriter, name: str) -> bool:
    """Whether everything that a class assigns to an attribute is a constant or a function in the output."""
    owner = rw.ctx.owner
    values = assigned(rw.ctx, owner, name) if owner is not None else []
    return all(_is_plain(v) or is_function(rw, v) for v in values)


def given_by_others(rw: Rewriter, name: str) -> bool:
    """Whether the file gives an object that is not ``self`` an array or a layer under that name."""
    for node in rw.ctx.source.index.of_type(cst.Assign):
        for one in node.targets:
            target = one.target
            if not isinstance(target, cst.Attribute) or target.attr.value != name:
                continue
            if isinstance(target.value, cst.Name) and target.value.value == "self":
                continue
            if isinstance(rw.ctx.kind(node.value), (k.Module, k.Tensor)):
                return not is_function(rw, node.value)
    return False


def _is_plain(value: cst.BaseExpression) -> bool:
    """A constant: no module."""
    return isinstance(value, (cst.Name, cst.BaseNumber, cst.SimpleString)) and (
        not isinstance(value, cst.Name) or value.value in ("None", "True", "False")
    )


def assigned(ctx: Context, owner: ClassInfo, name: str) -> list[cst.BaseExpression]:
    """What the methods of a class and of classes derived from it assign to ``self.name``."""
    if owner not in ctx.assigned:
        found: dict[str, list[cst.BaseExpression]] = {}
        ctx.assigned[owner] = found
        for info in (c for c in ctx.facts.classes.values() if owner in c.lineage()):
            for method in info.methods.values():
                for attribute, value in _assignments(ctx, method):
                    found.setdefault(attribute, []).append(value)
    return ctx.assigned[owner].get(name, [])


def _assignments(ctx: Context, method: FunctionInfo) -> Iterator[tuple[str, cst.BaseExpression]]:
    """Attribute of self and value of each assignment of a method."""
    for item in ctx.facts.tree.within(method.node.body, cst.Assign, cst.AnnAssign):
        if isinstance(item, cst.Assign) and isinstance(item.targets[0].target, cst.Tuple):
            for to, one in _in_turn(item):
                if isinstance(to, cst.Attribute) and ctx.is_self(to.value):
                    yield to.attr.value, one
            continue
        for to in syntax.assigned_to(item):
            if isinstance(to, cst.Attribute) and isinstance(to.value, cst.Name):
                if to.value.value == "self":
                    yield to.attr.value, item.value


def _in_turn(node: cst.Assign) -> Iterator[tuple[cst.BaseExpression, cst.BaseExpression]]:
    """``self.a, self.b = 2, None``, each with its own."""
    target, value = node.targets[0].target, node.value
    if isinstance(target, cst.Tuple) and isinstance(value, cst.Tuple):
        for to, one in zip(target.elements, value.elements, strict=False):
            yield to.value, one.value


def set_again(rw: Rewriter, node: cst.Assign, name: str) -> bool:
    """Whether ``self.name`` may be given something after this statement: not in the other branch of its ``if``."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if owner is None:
        return False
    others = [v for v in assigned(ctx, owner, name) if v is not node.value and not _is_none(v)]
    return any(not either_or(ctx, node.value, v) for v in others)


def after_another(rw: Rewriter, node: cst.Assign, target: cst.Attribute) -> Any:
    """A tensor where the attribute was something else before: Flax asks that one of the two is declared."""
    ctx, owner = rw.ctx, rw.ctx.owner
    if owner is None or owner.torch_base is None or not ctx.is_self(target.value):
        return kept(rw, node, target)
    name = target.attr.value
    others = [v for v in assigned(ctx, owner, name) if v is not node.value]
    kind = ctx.facts.kind(node.value)
    if ctx.in_init and syntax.is_number(node.value):
        later = [v for v in others if not either_or(ctx, node.value, v)]
        later += _added(ctx, owner, name)
        if any(_is_array(ctx, one) for one in later):
            ctx.helpers.use("nnx")
            return syntax.changed(node, value=_data(rw.visit(node.value)))
        return None
    if not ctx.in_init and isinstance(kind, k.Mapping) and holds_tensor(kind):
        if _is_iterated(ctx, target) or not _is_plain_tensor(kind.value):
            raise nested(node)
        ctx.helpers.use("nnx")
        return syntax.changed(node, value=_data(rw.visit(node.value)))
    made = kept(rw, node, target)
    if made is not None:
        return made
    if not ctx.in_init and holds_arrays(kind):
        if all(_is_none(v) or holds_arrays(ctx.facts.kind(v)) for v in others):
            return None  # declared there
        ctx.helpers.use("nnx")
        return syntax.changed(node, value=_data(rw.visit(node.value)))
    before = [
        v for v in others if (not _is_array(ctx, v) and not _is_none(v)) or _may_be_none(ctx, v)
    ]
    before = [v for v in before if not either_or(ctx, node.value, v)]
    if not before or any(isinstance(ctx.kind(v), k.Module) for v in before):
        return None
    if _is_array(ctx, node.value):
        if all(syntax.is_number(v) for v in before):
            return None  # declared there
        ctx.helpers.use("nnx")
        return syntax.changed(node, value=_data(rw.visit(node.value)))
    if isinstance(kind, k.Unknown) and not ctx.in_init and any(syntax.is_number(v) for v in before):
        wrapper = ctx.helpers.need(module_file("rules.compat.factories"), "declared")
        value = syntax.with_args(cst.Call(cst.Name(wrapper)), [cst.Arg(rw.visit(node.value))])
        return syntax.changed(node, value=value)
    return None


def _data(value: cst.BaseExpression) -> cst.Call:
    return cst.Call(syntax.parse("nnx.data"), [cst.Arg(_in_parens(value))])


def _is_array(ctx: Context, node: cst.BaseExpression) -> bool:
    kind = ctx.kind(node)
    return isinstance(kind, k.Tensor) and kind.role != "param"


def _may_be_none(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether an attribute is not declared as data by this value, for it may be None."""
    return isinstance(ctx.facts.kind(node), k.Optional)


def _is_none(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "None"


def _added(ctx: Context, owner: ClassInfo, name: str) -> list[cst.BaseExpression]:
    """What the methods of a class add to ``self.name``."""
    found = []
    for item in ctx.facts.tree.within(owner.node.body, cst.AugAssign):
        if isinstance(item.target, cst.Attribute):
            if item.target.attr.value == name and ctx.is_self(item.target.value):
                found.append(item.value)
    return found
