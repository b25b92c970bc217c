"""``self.blocks = [getattr(self, f"block{i}") for i in range(n)]``: lists of what the module has under other names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.containing import constructing, inner, plainly_kept
from migrator.convert.context import Context
from migrator.convert.nested_layers import is_layer
from migrator.convert.passes import targets
from migrator.convert.passes.assigned_modules import plain_list
from migrator.convert.passes.given_again import goes_on
from migrator.convert.passes.held import is_function
from migrator.convert.passes.own_members import members
from migrator.convert.passes.unregistered import is_collected, is_registered
from migrator.convert.passes.without_state import is_only_read
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from rules.definitions import module_file


@converts(cst.Assign, targets=(cst.Attribute,))
def listed(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.blocks = Unregistered([…])``, which Flax follows and the state_dict does not name.

    Raises:
      Failure: the module may go on with other layers under the names of those in the list.
    """
    target = node.targets[0].target
    made = _listed(rw, node)
    if made is not None and isinstance(target, cst.Attribute):
        if not goes_on(rw.ctx, node, target.attr.value):
            raise plainly_kept(node)
    return made


def _listed(rw: Rewriter, node: cst.Assign) -> Any:
    ctx, target = rw.ctx, node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return None
    if ctx.owner is None or not ctx.is_self(target.value):
        return None
    if ctx.owner.torch_base is None:
        return _of_plain(rw, node)
    if not ctx.in_init:
        return None
    value = node.value
    if isinstance(value, (cst.List, cst.Tuple)) and value.elements:
        parts = [element.value for element in value.elements]
        if not all(_is_own(ctx, part) for part in parts):
            return _nested(rw, node, target)
        made: Any = cst.List([cst.Element(_reference(rw, part)) for part in parts])
    elif isinstance(value, cst.Dict) and value.elements:
        return _table(rw, node, value)
    elif isinstance(value, cst.IfExp) and _are_tables(ctx, value):
        ctx.helpers.use("nnx")
        call = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(rw.visit(value))])
        return syntax.changed(node, value=call)
    elif isinstance(value, cst.ListComp) and _is_computed(ctx, value.elt):
        made = rw.visit(value)
    elif isinstance(value, cst.List) and _gathers(ctx, target.attr.value):
        made = value
    else:
        return _nested(rw, node, target)
    name = ctx.helpers.need(module_file("rules.compat.containers"), "Unregistered")
    call = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(syntax.unparenthesized(made))])
    return syntax.changed(node, value=call)


def _of_plain(rw: Rewriter, node: cst.Assign) -> Any:
    """The same in a plain class that makes layers, which may be those of a module that derives from it."""
    ctx, value = rw.ctx, node.value
    if ctx.frame is None or ctx.plan.how(ctx.frame.info) is None:
        return None
    if isinstance(value, (cst.List, cst.Tuple)):
        parts = [element.value for element in value.elements]
    else:
        parts = [value.elt] if isinstance(value, cst.ListComp) else []
    if not parts or not all(
        _is_computed(ctx, one) or isinstance(ctx.facts.kind(one), k.Module) for one in parts
    ):
        return None
    if not all(_is_computed(ctx, one) or _is_own(ctx, one) for one in parts):
        return None
    return _as_unregistered(rw, node)


def _are_tables(ctx: Context, value: cst.IfExp) -> bool:
    """``{"a": self.a} if both else {}``: layers of the module's own on either side, none of them a Variable."""
    entries: list[cst.BaseDictElement] = []
    for side in (value.body, value.orelse):
        if not isinstance(side, cst.Dict):
            return False
        entries += side.elements
    return bool(entries) and all(
        isinstance(one, cst.DictElement)
        and _is_own(ctx, one.value)
        and isinstance(ctx.facts.kind(one.value), k.Module)
        for one in entries
    )


def _table(rw: Rewriter, node: cst.Assign, value: cst.Dict) -> Any:
    """``self.heads = nnx.data({"a": self.a, "b": self.b})``."""
    entries = [e for e in value.elements if isinstance(e, cst.DictElement)]
    if len(entries) != len(value.elements) or not all(_is_own(rw.ctx, e.value) for e in entries):
        return _nested(rw, node, node.targets[0].target)
    made = [syntax.changed(e, key=rw.visit(e.key), value=_reference(rw, e.value)) for e in entries]
    rw.ctx.helpers.use("nnx")
    table = syntax.changed(value, elements=made)
    call = syntax.with_args(cst.Call(syntax.parse("nnx.data")), [cst.Arg(table)])
    return syntax.changed(node, value=call)


_DISPLAYS = (cst.List, cst.Tuple, cst.ListComp)
_MAKERS = frozenset(f"builtins.{name}" for name in ("dict", "list", "tuple", "set"))


def _nested(rw: Rewriter, node: cst.Assign, target: cst.CSTNode) -> Any:
    """``self.paths = [("a", self.a), ("b", self.b)]``: layers within a list, a tuple or a dict that torch does not look into.

    Raises:
      Failure: they may be layers that the module has under no other name, or stand in a dict.
    """
    ctx = rw.ctx
    if isinstance(target, cst.Attribute) and _is_empty(node.value):
        if _is_filled_with_layers(rw, target.attr.value):
            raise plainly_kept(node)
        return None
    if _gathers_children(ctx, node.value):
        raise plainly_kept(node)
    over = members(ctx, node.value)
    if over is not None:
        if not over:
            if isinstance(target, cst.Attribute) and ctx.owner is not None:
                if is_collected(ctx, ctx.owner, target.attr.value, node.value):
                    return plain_list(rw, node, target)
            raise plainly_kept(node)
        if isinstance(target, cst.Attribute) and not is_only_read(ctx, target.attr.value):
            raise plainly_kept(node)
        return _as_unregistered(rw, node)
    parts = list(_parts(ctx, node.value))
    if parts == [node.value]:
        if isinstance(node.value, cst.Name) and _are_layers(ctx.facts.kind(node.value)):
            raise plainly_kept(node)
        return None
    layers = [
        p for p in parts if isinstance(ctx.facts.kind(p), k.Module) and not is_function(rw, p)
    ]
    if not layers and isinstance(target, cst.Attribute):
        if any(_is_argument(ctx, p) for p in parts) and _is_called(ctx, target.attr.value):
            raise plainly_kept(node)
    if not layers or _is_list_of_layers(ctx.facts.kind(node.value)):
        return None
    if isinstance(node.value, (cst.List, cst.ListComp)) and isinstance(target, cst.Attribute):
        if ctx.owner is not None and is_registered(ctx, ctx.owner, target.attr.value):
            return plain_list(rw, node, target)
    dicts = [n for n in syntax.walk(node.value) if isinstance(n, (cst.Dict, cst.DictComp, cst.Set))]
    if dicts or not all(_is_own(ctx, part) for part in layers) or isinstance(node.value, cst.Call):
        raise plainly_kept(node)
    return _as_unregistered(rw, node)


def _is_argument(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether something is an argument of the constructor of which nothing is known."""
    params = ctx.frame.info.params if ctx.frame is not None else {}
    named = isinstance(node, cst.Name) and node.value in params
    return named and isinstance(ctx.facts.kind(node), k.Unknown)


def _is_called(ctx: Context, name: str) -> bool:
    """Whether the class calls what a container holds with something: ``self.held[0](x)``, ``for f in self.held: f(x)``."""
    if ctx.owner is None:
        return False

    def is_it(node: cst.CSTNode) -> bool:
        return (
            isinstance(node, cst.Attribute) and node.attr.value == name and ctx.is_self(node.value)
        )

    loops = ctx.facts.tree.within(ctx.owner.node.body, cst.For, cst.CompFor)
    names = {n for loop in loops if is_it(loop.iter) for n in syntax.names(loop.target)}
    for call in ctx.facts.tree.within(ctx.owner.node.body, cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and func.attr.value in ("forward", "parameters"):
            func = func.value
        if isinstance(func, cst.Subscript) and is_it(func.value):
            return True
        if isinstance(func, cst.Name) and func.value in names:
            return True
    return False


def _as_unregistered(rw: Rewriter, node: cst.Assign) -> cst.Assign:
    """The value as a list, those in it too, that the state_dict does not name."""
    file = module_file("rules.compat.containers")
    name, inner = rw.ctx.helpers.need(file, "Unregistered"), rw.visit(node.value)
    if not isinstance(node.value, cst.ListComp) or isinstance(node.value.elt, _DISPLAYS):
        inner = cst.Call(cst.Name(rw.ctx.helpers.need(file, "nested_list")), [cst.Arg(inner)])
    call = syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(inner)])
    return syntax.changed(node, value=call)


def _gathers_children(ctx: Context, node: cst.BaseExpression) -> bool:
    """``dict(self.named_children())``."""
    if not isinstance(node, cst.Call) or ctx.facts.callee(node) != "builtins.dict":
        return False
    inner = node.args[0].value if len(node.args) == 1 else None
    asked = inner.func if isinstance(inner, cst.Call) else None
    names = ("named_children", "named_modules")
    return isinstance(asked, cst.Attribute) and asked.attr.value in names


def _parts(ctx: Context, node: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What lists, tuples and dicts are written of, those in them too."""
    if isinstance(node, (cst.List, cst.Tuple, cst.Set)):
        for element in node.elements:
            yield from _parts(ctx, element.value)
    elif isinstance(node, cst.Dict):
        for entry in node.elements:
            yield from _parts(ctx, entry.value)
    elif isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        yield from _parts(ctx, node.elt)
    elif isinstance(node, cst.DictComp):
        yield from _parts(ctx, node.value)
    elif isinstance(node, cst.Call) and ctx.facts.callee(node) in _MAKERS:
        for arg in node.args:
            yield from _parts(ctx, arg.value)
    else:
        yield node


def _are_layers(kind: k.Kind) -> bool:
    """Whether a tuple or dict holds layers that are none of its module's, for all that is seen."""
    if not isinstance(kind, (k.Tuple, k.Mapping, k.Sequence)) or _is_list_of_layers(kind):
        return False
    if isinstance(kind, k.Sequence) and kind.type != "tuple":
        return False
    return any(map(is_layer, inner(kind)))


def _is_list_of_layers(kind: k.Kind) -> bool:
    return isinstance(kind, k.Sequence) and kind.type == "list" and isinstance(kind.item, k.Module)


def _is_empty(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call):
        return not node.args and syntax.code(node.func) in ("dict", "OrderedDict")
    return isinstance(node, cst.Dict) and not node.elements


def _is_filled_with_layers(rw: Rewriter, name: str) -> bool:
    """``self.blocks[i] = nn.Linear(2, 2)`` in the constructor or what it calls; ``self.blocks.update({…})``."""
    ctx, owner = rw.ctx, rw.ctx.owner
    tree = ctx.facts.tree
    for method in constructing(ctx, owner) if owner is not None else ():
        for line in tree.within(method.node.body, cst.Assign):
            target = line.targets[0].target
            held = target.value if isinstance(target, cst.Subscript) else None
            layer = isinstance(ctx.facts.kind(line.value), k.Module)
            if held is not None and layer and syntax.is_own(held, name):
                return not is_function(rw, line.value)
        for call in tree.within(method.node.body, cst.Call):
            func = call.func
            if not isinstance(func, cst.Attribute) or func.attr.value not in _FILLING:
                continue
            if syntax.is_own(func.value, name):
                given = [one for item in call.args for one in _given_to(item.value)]
                layers = [one for one in given if isinstance(ctx.facts.kind(one), k.Module)]
                if any(not is_function(rw, one) for one in layers):
                    return True
    return False


_FILLING = frozenset({"update", "setdefault"})


def _given_to(value: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What ``update({"a": layer})`` and ``setdefault("a", layer)`` put into a dict."""
    if isinstance(value, cst.Dict):
        return [one.value for one in value.elements]
    if isinstance(value, cst.DictComp):
        return [value.value]
    return [value]


def _is_own(ctx: Context, node: cst.BaseExpression) -> bool:
    """``self.conv1``, a layer, parameter or buffer of the module, or one by a name that is computed."""
    if not isinstance(node, cst.Attribute) or not ctx.is_self(node.value):
        return _is_computed(ctx, node)
    kind = ctx.facts.kind(node)
    if isinstance(kind, k.Module):
        return ctx.owner is not None and not isinstance(
            ctx.owner.attribute(node.attr.value), k.Optional
        )
    return isinstance(kind, k.Tensor) and kind.role in ("param", "buffer")


def _is_computed(ctx: Context, node: cst.BaseExpression) -> bool:
    """``getattr(self, f"block{i}")``."""
    if not isinstance(node, cst.Call) or ctx.facts.callee(node) != "builtins.getattr":
        return False
    return len(node.args) == 2 and ctx.is_self(node.args[0].value)


def _reference(rw: Rewriter, node: cst.BaseExpression) -> Any:
    """The layer or Variable itself."""
    if targets.is_variable(rw.ctx, node):
        return targets.variable_reference(rw, node)[0]
    return rw.visit(node)


def _gathers(ctx: Context, name: str) -> bool:
    """Whether the constructor appends to a list what the module has by computed names, and nothing else."""
    frame = ctx.frame
    if frame is None or frame.info.node.name.value != "__init__":
        return False
    given = []
    for call in ctx.facts.tree.within(frame.info.node.body, cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute) and isinstance(func.value, cst.Attribute):
            if func.value.attr.value == name and ctx.is_self(func.value.value):
                if func.attr.value != "append" or len(call.args) != 1:
                    return False
                given.append(call.args[0].value)
    return bool(given) and all(_is_computed(ctx, one) for one in given)
