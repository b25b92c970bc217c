"""``nn.Sequential``, ``nn.ModuleList`` and ``nn.ModuleDict`` become ``nnx.Sequential``, ``nnx.List``, ``nnx.Dict``."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert import gone_over as gone_over_layers
from migrator.convert.children import is_named
from migrator.convert.context import Context, Failure
from migrator.convert.dict_order import order_matters
from migrator.convert.edits import EDITING, edited
from migrator.convert.given_layers import goes_over_layers
from migrator.convert.given_tuples import hands_tuples, returns_tuple
from migrator.convert.gone_over import handed
from migrator.convert.kept_slices import is_kept, keeps_names
from migrator.convert.returned_layers import made_sequentials
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.construction import PARAMETERS
from migrator.infer.facts import ClassInfo
from rules.definitions import module_file

NAMES = {
    "torch.nn.Sequential": "nnx.Sequential",
    "torch.nn.ModuleList": "nnx.List",
    "torch.nn.ModuleDict": "nnx.Dict",
    "torch.nn.ParameterList": "nnx.List",
    "torch.nn.ParameterDict": "nnx.Dict",
}
_ITERATING = frozenset(
    "enumerate len zip reversed list iter tuple map filter any all sorted set".split()
)
_GOING_OVER = {"functools.reduce": 1, "itertools.takewhile": 1, "itertools.dropwhile": 1} | {
    f"itertools.{name}": 0 for name in "accumulate cycle groupby islice pairwise".split()
}
"""Functions that go over one of their arguments, and its place."""
_CHAINING = frozenset(f"itertools.{name}" for name in ("chain", "product", "zip_longest"))
LIST_METHODS = frozenset("append extend insert pop".split())


def is_sequential(rw: Rewriter, node: cst.CSTNode) -> bool:
    """Whether an expression is a Sequential, or an instance of an own subclass of it."""
    return gone_over_layers.is_sequential(rw.ctx, node)


@converts(cst.Call, called=NAMES)
def container(rw: Rewriter, node: cst.Call) -> Any:
    """The constructor of a container."""
    ctx = rw.ctx
    name = ctx.facts.callee(node) or ""
    if name not in NAMES or name in PARAMETERS or not rw.ctx.is_import(node.func):
        return None
    ctx.helpers.use("nnx")
    if name == "torch.nn.Sequential":
        return _sequential(rw, node)
    func = syntax.parse(NAMES[name])
    if name == "torch.nn.ModuleDict" and order_matters(ctx):
        func = _helper(rw, "ModuleDict")
    if name == "torch.nn.ModuleList" and edited(ctx):
        func = _helper(rw, "ModuleList")
    if not node.args:
        empty = [cst.Arg(syntax.parse("[]"))] if name == "torch.nn.ModuleList" else []
        return syntax.changed(node, func=func, args=empty)
    return syntax.changed(node, func=func, args=_given(rw, node))


def _given(rw: Rewriter, node: cst.Call) -> list[cst.Arg]:
    """The arguments of a container: it goes over another one that it is handed, or that is spread."""
    found = []
    for item in node.args:
        of_list = item.star == "*" or rw.ctx.facts.callee(node) == "torch.nn.ModuleList"
        if of_list and item.keyword is None and is_sequential(rw, item.value):
            found.append(syntax.changed(item, value=layers_of(rw, item.value)))
        elif of_list and isinstance(item.value, cst.Attribute) and _is_of_layers(rw, item.value):
            found.append(syntax.changed(item, value=_items(rw, rw.visit(item.value))))
        else:
            found.append(rw.visit(item))
    return found


def _sequential(rw: Rewriter, node: cst.Call) -> cst.BaseExpression:
    ctx = rw.ctx
    kinds = [ctx.kind(a.value) for a in node.args]
    args = _given(rw, node)
    if _has_names(rw, node, _target(rw, node)):
        numbers = _target(rw, node) in _extended(rw) and not _takes_names(
            rw, node, _target(rw, node)
        )
        args = numbered(ctx, node, args) if numbers else args
        return syntax.changed(node, func=_helper(rw, "NamedSequential"), args=args)
    if edited(ctx):
        return syntax.changed(node, func=_helper(rw, "EditedSequential"), args=args)
    over = handed(ctx)
    if node in over.made or _target(rw, node) in over.names:
        return syntax.changed(node, func=_helper(rw, "Sequential"), args=args)
    if any(returns_tuple(ctx, kind) for kind in kinds):
        return syntax.changed(node, func=_helper(rw, "Sequential"), args=args)
    return syntax.changed(node, func=syntax.parse("nnx.Sequential"), args=args)


def _has_names(rw: Rewriter, node: cst.Call, target: str) -> bool:
    """Whether the children of a Sequential that is made here, and assigned to this name, have names."""
    return _takes_names(rw, node, target) or (target != "" and target in _extended(rw))


def _takes_names(rw: Rewriter, node: cst.Call, target: str) -> bool:
    """``nn.Sequential(OrderedDict(…))``, or an empty one to which names come."""
    if not node.args:
        return not _appended_only(rw, target)
    if len(node.args) > 1 or node.args[0].star:
        return False
    value = node.args[0].value
    return isinstance(rw.ctx.kind(value), k.Mapping) or _is_ordered_dict(rw, value)


def _is_named(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether an expression is a Sequential whose children have names, by the name it was assigned to."""
    ctx = rw.ctx
    if ctx.named is None:
        ctx.named = {True: set(), False: set()}
        for assign in ctx.source.index.of_type(cst.Assign):
            name = last_name(assign.targets[0].target)
            for call in either(assign.value):
                for made in made_sequentials(ctx, call):
                    ctx.named[_has_names(rw, made, name)].add(name)
    name = last_name(node)
    if name not in ctx.named[True]:
        return False
    if name in ctx.named[False]:
        what = (
            f"`{name}` is a Sequential of named layers in one place and of numbered ones in another"
        )
        raise Failure(node, "API007", what, "give the two names of their own")
    return True


@converts(cst.Del)
@converts(cst.Assign, targets=(cst.Subscript,))
@converts(cst.Call, named=EDITING)
def edited_class(rw: Rewriter, node: cst.Assign | cst.Del | cst.Call) -> None:
    """Raise a Failure where layers of an own class derived from Sequential are replaced or taken out by place."""
    owner, replaced = None, isinstance(node, cst.Assign)
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in EDITING:
            owner = node.func.value
    else:
        target = node.targets[0].target if isinstance(node, cst.Assign) else node.target
        owner = target.value if isinstance(target, cst.Subscript) else None
    if owner is None:
        return
    info = _own_class(rw, owner)
    if info is None or info.torch_base != "torch.nn.Sequential":
        return
    named = is_named(rw.ctx, info)
    method = node.func.attr.value if isinstance(node, cst.Call) else ""  # type: ignore[attr-defined]
    if replaced == named or method not in ("", "pop"):
        what = (
            f"layers of {info.short}, a Sequential of its own, are replaced or taken out by place"
        )
        raise Failure(node, "API007", what, "hand the layers that are meant to its constructor")


@converts(cst.Del)
def taken_out(rw: Rewriter, node: cst.Del) -> cst.Expr | None:
    """``del net[-1]`` → ``take_out(net, -1)`` where layers have names: torch numbers the others anew."""
    targets = node.target.elements if isinstance(node.target, cst.Tuple) else [node]
    for one in targets:
        target = one.target if isinstance(one, cst.Del) else one.value
        if not isinstance(target, cst.Subscript) or not is_sequential(rw, target.value):
            continue
        if not (_names_children(rw, target.value) or _is_made_elsewhere(rw, target.value)):
            continue
        if len(targets) > 1:
            _check_numbered(rw, node, target.value)
        index = target.slice[0].slice
        if isinstance(index, cst.Index):
            return cst.Expr(_take_out(rw, target.value, index.value))
        assert isinstance(index, cst.Slice)
        bounds = [part or cst.Name("None") for part in (index.lower, index.upper, index.step)]
        part = syntax.with_args(cst.Call(cst.Name("slice")), [cst.Arg(b) for b in bounds])
        return cst.Expr(_take_out(rw, target.value, part))
    return None


@converts(cst.Assign, targets=(cst.Subscript,))
def put_in(rw: Rewriter, node: cst.Assign) -> cst.Expr | None:
    """``net[0] = layer`` → ``put_in(net, 0, layer)`` where only a run tells whether the layers have names."""
    target = node.targets[0].target
    if len(node.targets) > 1 or not isinstance(target, cst.Subscript):
        return None
    index = target.slice[0].slice
    elsewhere = is_sequential(rw, target.value) and _is_made_elsewhere(rw, target.value)
    if not elsewhere or not isinstance(index, cst.Index):
        return None
    args = [cst.Arg(rw.visit(one)) for one in (target.value, index.value, node.value)]
    return cst.Expr(syntax.with_args(cst.Call(_helper(rw, "put_in")), args))


def _is_made_elsewhere(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether the file makes no Sequential under this name: a function, or another file, does."""
    if _own_class(rw, node) is not None:
        return False
    _is_named(rw, cst.Name("_"))  # which looks through the file
    named = rw.ctx.named or {}
    return not any(last_name(node) in names for names in named.values())


def _take_out(rw: Rewriter, owner: cst.BaseExpression, index: cst.BaseExpression) -> cst.Call:
    args = [cst.Arg(rw.visit(owner)), cst.Arg(rw.visit(index))]
    return syntax.with_args(cst.Call(_helper(rw, "take_out")), args)


def is_made_sequential(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether all that the file assigns to a name are Sequentials whose children have names, of one class or another."""
    made = [
        one
        for assign in rw.ctx.source.index.of_type(cst.Assign)
        if last_name(assign.targets[0].target) == last_name(node)
        for one in either(assign.value)
        if last_name(one) != last_name(node)  # ``self.net = net``
    ]
    return bool(made) and all(
        isinstance(one, cst.Call) and is_sequential(rw, one) and _makes_named(rw, one, node)
        for one in made
    )


def _makes_named(rw: Rewriter, call: cst.Call, node: cst.BaseExpression) -> bool:
    if rw.ctx.facts.callee(call) == "torch.nn.Sequential":
        return _is_named(rw, node)
    return is_named(rw.ctx, rw.ctx.class_of(rw.ctx.kind(call)))


def check_receiver(rw: Rewriter, node: cst.CSTNode, receiver: cst.BaseExpression) -> None:
    """Raise a Failure where it is not known whether what gains a child by name is a Sequential, or which."""
    kind = rw.ctx.kind(receiver)
    if isinstance(kind, k.Unknown):
        unknown = not isinstance(rw.ctx.facts.kind(receiver), k.Optional)
    elif isinstance(kind, k.Module):
        own = _own_class(rw, receiver)
        sequential = is_sequential(rw, receiver) and not _names_children(rw, receiver)
        unknown = sequential or (own is None and kind.cls in ("", "torch.nn.Module"))
        unknown = unknown and not is_made_sequential(rw, receiver)
    else:
        return
    if unknown:
        what = f"`{syntax.code(receiver)}` gains a child by name, and it is not known here whether it runs its children"
        raise Failure(node, "API007", what, "add the child where the module is made")


def _own_class(rw: Rewriter, owner: cst.BaseExpression) -> ClassInfo | None:
    return rw.ctx.class_of(rw.ctx.kind(owner)) or (rw.ctx.owner if rw.ctx.is_self(owner) else None)


def _names_children(rw: Rewriter, owner: cst.BaseExpression) -> bool:
    """Whether a Sequential's children have names, by its class or by what it was assigned to."""
    info = _own_class(rw, owner)
    return is_named(rw.ctx, info) if info is not None else _is_named(rw, owner)


def _check_numbered(rw: Rewriter, node: cst.CSTNode, owner: cst.BaseExpression) -> None:
    if _names_children(rw, owner):
        what = "a Sequential whose children have names gets some by place"
        raise Failure(node, "API007", what, "use add_module for all of them")


def _helper(rw: Rewriter, name: str) -> cst.Name:
    return cst.Name(rw.ctx.helpers.need(module_file("rules.compat.containers"), name))


def _target(rw: Rewriter, node: cst.Call) -> str:
    """The last name of what a call is assigned to; empty when it is a part of something larger."""
    line = rw.ctx.statements[-1].node if rw.ctx.statements else None
    for small in line.body if isinstance(line, cst.SimpleStatementLine) else ():
        if isinstance(small, cst.Assign) and any(one is node for one in either(small.value)):
            return last_name(small.targets[0].target)
    return ""


def either(value: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """Both values of ``a if c else b``."""
    return (value.body, value.orelse) if isinstance(value, cst.IfExp) else (value,)


def _appended_only(rw: Rewriter, target: str) -> bool:
    """Whether an empty Sequential is filled by ``append`` and the like, never under names."""
    nodes = rw.ctx.source.index.of_type(cst.Attribute)
    filled = {last_name(n.value) for n in nodes if n.attr.value in _FILLING}
    return target in filled and target not in _extended(rw)


_FILLING = ("append", "extend", "insert")


def _extended(rw: Rewriter) -> set[str]:
    """The last names of the Sequentials of the file that gain children by ``add_module``."""
    ctx = rw.ctx
    if ctx.extended is None:
        nodes = ctx.source.index.of_type(cst.Attribute)
        names = ("add_module", "register_module")
        ctx.extended = {last_name(n.value) for n in nodes if n.attr.value in names}
    return ctx.extended


def last_name(node: cst.CSTNode) -> str:
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else ""


def numbered(ctx: Context, call: cst.Call, args: list[cst.Arg]) -> list[cst.Arg]:
    """The layers handed to a Sequential whose other children have names, as pairs of number and layer."""
    if not args or (len(args) == 1 and isinstance(ctx.kind(call.args[0].value), k.Mapping)):
        return args
    if len(args) == 1 and args[0].star == "*":
        template = syntax.parse("((str(i), layer) for i, layer in enumerate(__a__))")
        return [cst.Arg(syntax.substitute(template, {"__a__": args[0].value}))]
    if any(a.star or a.keyword is not None for a in args):
        raise Failure(
            call,
            "API007",
            "a Sequential of starred layers gains children with names",
            "hand all of its layers to the constructor",
        )
    pairs = [
        cst.Element(cst.Tuple([cst.Element(cst.SimpleString(f'"{i}"')), cst.Element(a.value)]))
        for i, a in enumerate(args)
    ]
    return [cst.Arg(cst.List(pairs))]


def _is_ordered_dict(rw: Rewriter, node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Call) and rw.ctx.facts.callee(node) == "collections.OrderedDict"


def gone_over(rw: Rewriter, node: cst.Call, called: int | None) -> cst.Call:
    """A call that goes over the layers of what it is handed, but for an argument that it calls or gives back."""
    args = [
        rw.visit(one)
        if place == called or one.star or one.keyword is not None
        else syntax.changed(one, value=layers_of(rw, one.value))
        for place, one in enumerate(node.args)
    ]
    return syntax.changed(node, func=rw.visit(node.func), args=args)


@converts(cst.Subscript)
def item(rw: Rewriter, node: cst.Subscript) -> Any:
    """``self.net[0]`` → ``self.net.layers[0]``; a slice of a Sequential is a Sequential again."""
    parent = rw.ctx.facts.tree.around(node)[-1] if rw.ctx.facts.tree.has(node) else None
    written = isinstance(parent, (cst.AssignTarget, cst.Del))
    if not is_sequential(rw, node.value):
        if not written and _is_of_layers(rw, node):
            return _of_some_container(rw, node, parent)
        kind = rw.ctx.kind(node.value)
        sliced = isinstance(node.slice[0].slice, cst.Slice) and not written
        if isinstance(kind, k.Module) and kind.cls == "torch.nn.ModuleList" and sliced:
            return cst.Call(syntax.parse("nnx.List"), [cst.Arg(rw.rebuild(node))])
        return None
    if isinstance(parent, cst.AssignTarget) and _names_children(rw, node.value):
        return rw.rebuild(node)
    if is_kept(rw.ctx, node, parent) and keeps_names(rw.ctx, node):
        return _slice_of(rw, node)
    layers = cst.Attribute(rw.visit(node.value), cst.Name("layers"))
    made = syntax.changed(node, value=layers, slice=[rw.visit(s) for s in node.slice])
    if isinstance(node.slice[0].slice, cst.Slice) and not written:
        tuples = hands_tuples(rw.ctx, rw.ctx.kind(node.value))
        func = _helper(rw, "Sequential") if tuples else syntax.parse("nnx.Sequential")
        return cst.Call(func, [cst.Arg(made, star="*")])
    return made


def _of_some_container(
    rw: Rewriter, node: cst.Subscript, parent: cst.CSTNode | None
) -> cst.BaseExpression:
    """``*encoder.net[1:]``, ``encoder.net[0]`` where only a run tells whether that is a Sequential or a list."""
    starred = isinstance(parent, cst.Arg) and bool(parent.star)
    if isinstance(node.slice[0].slice, cst.Slice) and not starred:
        return _slice_of(rw, node)
    items = _items(rw, rw.visit(node.value))
    return syntax.changed(node, value=items, slice=[rw.visit(one) for one in node.slice])


def _slice_of(rw: Rewriter, node: cst.Subscript) -> cst.Call:
    name = rw.ctx.helpers.need(module_file("rules.compat.containers"), "slice_of")
    part = node.slice[0].slice
    assert isinstance(part, cst.Slice)
    given = [part.lower, part.upper, *([part.step] if part.step is not None else [])]
    bounds = [rw.visit(one) if one is not None else None for one in given]
    args = [cst.Arg(one if one is not None else cst.Name("None")) for one in bounds]
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(rw.visit(node.value)), *args])


def _items(rw: Rewriter, container: cst.BaseExpression) -> cst.Call:
    name = rw.ctx.helpers.need(module_file("rules.compat.containers"), "items_of")
    return syntax.with_args(cst.Call(cst.Name(name)), [cst.Arg(container)])


_OF_LAYERS = frozenset(
    "weight bias in_features out_features in_channels out_channels kernel_size num_features".split()
)


def _is_of_layers(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether an item or a slice of what is not known is a layer, or several: by what becomes of it."""
    base = node.value if isinstance(node, cst.Subscript) else node
    if not (isinstance(base, cst.Attribute) and k.is_unknown_module(rw.ctx.kind(base))):
        return False
    if rw.ctx.frame is None or not rw.ctx.facts.tree.has(node):
        return False
    if isinstance(node, cst.Subscript) and not _is_by_place(rw, node):
        return False
    around = rw.ctx.facts.tree.around(node)
    parent = around[-1]
    if isinstance(parent, cst.Arg):
        call = around[-2]
        name = rw.ctx.facts.callee(call) if isinstance(call, cst.Call) else None
        return name in NAMES and name not in PARAMETERS
    if isinstance(node, cst.Subscript) and isinstance(parent, cst.Attribute):
        return parent.attr.value in _OF_LAYERS
    if isinstance(parent, cst.Call):
        return parent.func is node
    return isinstance(parent, cst.Assign) and _is_called(rw, parent)


def _is_by_place(rw: Rewriter, node: cst.Subscript) -> bool:
    """``[0]``, ``[1:]``."""
    index = node.slice[0].slice
    if len(node.slice) != 1:
        return False
    if isinstance(index, cst.Slice):
        return index.step is None
    return isinstance(index, cst.Index) and k.scalar_type(rw.ctx.kind(index.value)) == "int"


def _is_called(rw: Rewriter, node: cst.Assign) -> bool:
    """Whether a class calls the attribute that an assignment gives it."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return False
    if not rw.ctx.is_self(target.value) or rw.ctx.owner is None:
        return False
    return any(
        isinstance(call.func, cst.Attribute) and call.func.deep_equals(target)
        for method in rw.ctx.owner.methods.values()
        for call in rw.ctx.facts.tree.within(method.node.body, cst.Call)
    )


def layers_of(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """The children of a Sequential where it is iterated over."""
    if is_sequential(rw, node):
        made = rw.visit(node)
        spread = made.args[0] if isinstance(made, cst.Call) and len(made.args) == 1 else None
        if isinstance(node, cst.Subscript) and spread is not None and spread.star == "*":
            return spread.value  # the slice itself
        return cst.Attribute(syntax.fitted(_ATTRIBUTE, "value", made), cst.Name("layers"))
    made = rw.visit(node)
    return _items(rw, made) if has_layers(rw, node) else made


def has_layers(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether what is gone over is a Sequential, or a module of which only a run tells: a child of some name."""
    if is_sequential(rw, node):
        return True
    if isinstance(node, cst.Attribute):  # one of the class's own is looked for where it gets it
        return goes_over_layers(rw.ctx, node)
    if k.is_any_module(rw.ctx.kind(node)):
        return True
    frame = rw.ctx.frame
    if not isinstance(node, cst.Name) or frame is None or node.value in frame.info.params:
        return _is_some_child(rw, node)
    values = [
        line.value
        for line in rw.ctx.facts.tree.within(frame.info.node.body, cst.Assign)
        if any(node.value in syntax.names(one.target) for one in line.targets)
    ]
    return bool(values) and all(_is_some_child(rw, one) for one in values)


def _is_some_child(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """``getattr(self, name)``, which ``self._modules[name]`` is read as."""
    if not isinstance(node, cst.Call) or rw.ctx.facts.callee(node) != "builtins.getattr":
        return False
    unknown = isinstance(rw.ctx.kind(node), k.Unknown)
    return unknown and isinstance(rw.ctx.kind(node.args[0].value), k.Module)


_ATTRIBUTE = cst.Attribute(cst.Name("x"), cst.Name("layers"))


@converts(cst.Assign, targets=(cst.Tuple, cst.List))
def unpacked(rw: Rewriter, node: cst.Assign) -> Any:
    """``first, *rest = self.net``."""
    several = all(isinstance(t.target, (cst.Tuple, cst.List)) for t in node.targets)
    if not several or not is_sequential(rw, node.value):
        return None
    return syntax.changed(
        node, targets=[rw.visit(t) for t in node.targets], value=layers_of(rw, node.value)
    )


@converts(cst.CompFor)
def comprehension(rw: Rewriter, node: cst.CompFor) -> Any:
    """``for layer in self.net`` in a comprehension; the target is bound, not read."""
    inner = node.inner_for_in
    return syntax.changed(
        node,
        iter=syntax.fitted(node, "iter", layers_of(rw, node.iter)),
        ifs=[new for new in map(rw.visit, node.ifs) if not syntax.is_true(new.test)],
        inner_for_in=rw.visit(inner) if inner is not None else None,
    )


@converts(cst.Call)
def iterated(rw: Rewriter, node: cst.Call) -> Any:
    """``enumerate(self.net)``, ``len(self.net)``, ``f(*self.net)``, ``self.net.append(m)``."""
    ctx = rw.ctx
    listed = _listed(rw, node)
    if listed is not None:
        return listed
    builtin = node.func.value if isinstance(node.func, cst.Name) else ""
    if builtin in _ITERATING and any(has_layers(rw, a.value) for a in node.args):
        return gone_over(rw, node, 0 if builtin in ("map", "filter") else None)
    place = _GOING_OVER.get(ctx.facts.callee(node) or "", -1)
    if 0 <= place < len(node.args) and is_sequential(rw, node.args[place].value):
        args = [rw.visit(one) for one in node.args]
        given = node.args[place]
        args[place] = syntax.changed(given, value=layers_of(rw, given.value))
        return syntax.changed(node, func=rw.visit(node.func), args=args)
    if ctx.facts.callee(node) in _CHAINING and any(is_sequential(rw, a.value) for a in node.args):
        return gone_over(rw, node, None)
    if isinstance(node.func, cst.Attribute) and is_sequential(rw, node.func.value):
        method = node.func.attr.value
        if method in _FILLING and _names_children(rw, node.func.value):
            if method != "append":
                _check_numbered(rw, node, node.func.value)
            return rw.rebuild(node)
        elsewhere = method in LIST_METHODS and _is_made_elsewhere(rw, node.func.value)
        if method == "pop" and (elsewhere or _names_children(rw, node.func.value)) and node.args:
            return _take_out(rw, node.func.value, node.args[0].value)
        if elsewhere:
            what = "it is not known whether the children of what gains some here have names"
            raise Failure(node, "API007", what, "add them where the Sequential is made")
        if method in LIST_METHODS:
            _check_numbered(rw, node, node.func.value)
            layers = layers_of(rw, node.func.value)
            return syntax.changed(
                node,
                func=syntax.changed(node.func, value=layers),
                args=[rw.visit(a) for a in node.args],
            )
    if any(a.star == "*" and is_sequential(rw, a.value) for a in node.args):
        ctx_args = [
            syntax.changed(a, value=layers_of(rw, a.value)) if a.star == "*" else a
            for a in node.args
        ]
        kept = syntax.changed(node, args=ctx_args)
        ctx.facts.kinds[kept] = ctx.facts.kind(node)
        for a in ctx_args:
            ctx.facts.kinds.setdefault(a.value, k.Sequence(k.Module(), "iter"))
        return rw.visit(kept) if not any(is_sequential(rw, a.value) for a in ctx_args) else None
    return None


def _listed(rw: Rewriter, node: cst.Call) -> cst.BaseExpression | None:
    """``self._modules.values()`` of a Sequential or ModuleList: its layers in their order."""
    func = node.func
    if type(func) is not cst.Attribute or func.attr.value != "values" or node.args:
        return None
    table = func.value
    if type(table) is not cst.Attribute or table.attr.value != "_modules":
        return None
    own = rw.ctx.class_of(rw.ctx.kind(table.value))
    if not isinstance(rw.ctx.kind(table), k.Mapping):
        return None
    if own is not None and own.torch_base == "torch.nn.Module":
        return None
    return layers_of(rw, table.value)
