"""Methods that a module keeps as values: ``self.attend = self._flash if flash else self._plain``.

A bound method belongs to the module it was taken from. Flax's transformations work on copies, which would go on calling
the module that was built: with its old weights, and without a gradient. So the name is kept, and looked up by each call.
A lambda that reads parts of the module is handed the module by each call.
"""

from __future__ import annotations

import re
from typing import Any

import libcst as cst

from migrator import syntax, texts
from migrator.convert.closures import names_of_parts, reads_module, trains, written_here
from migrator.convert.context import Context, Failure
from migrator.convert.kept_either import assigned_attributes, is_method, kept_either
from migrator.convert.rewriter import Rewriter, converts
from migrator.convert.stateless import is_stateless
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from rules.definitions import module_file

_USUAL = frozenset(
    "__init__ forward reset_parameters init_weights _init_weights extra_repr __repr__".split()
)
"""Methods that nobody means by a name of which nothing is known."""
_NO_FUNCTIONS = (k.Tensor, k.Scalar, k.Const, k.Module, k.DType, k.Device)


@converts(cst.Assign, targets=(cst.Attribute,))
def kept(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.attend = self._plain`` → ``self.attend = "_plain"``."""
    ctx, owner = rw.ctx, rw.ctx.owner
    targets = [one.target for one in node.targets]
    if owner is None or owner.torch_base is None:
        return None
    if not any(isinstance(one, cst.Attribute) for one in targets):
        return None
    target, value = targets[0], node.value
    if isinstance(target, cst.Attribute) and (_holds(ctx, value) or _is_choice(ctx, value)):
        if (owner.name, target.attr.value) in kept_by_name(ctx):
            return syntax.changed(node, value=_named(rw, value))
    if isinstance(target, cst.Attribute) and (owner.name, target.attr.value) in kept_either(ctx):
        return syntax.changed(node, value=_of_module(rw, value))
    if not _holds(ctx, value):
        return None
    if isinstance(target, cst.Attribute) and (owner.name, target.attr.value) in _functions(ctx):
        assert isinstance(value, cst.Lambda)
        return syntax.changed(node, value=_handed_the_module(rw, value))
    raise _failure(node)


@converts(cst.Assign, targets=(cst.Tuple, cst.List))
def kept_together(rw: Rewriter, node: cst.Assign) -> None:
    """``self.go, self.back = self.back, self.go``, ``self.go, self.n = self.chosen()``: methods among other values."""
    owner, places = rw.ctx.owner, [one.target for one in node.targets]
    if owner is None or owner.torch_base is None:
        return
    if not any(isinstance(one, cst.Attribute) for place in places for one in syntax.walk(place)):
        return
    if isinstance(node.value, cst.Call):
        getter = _method(rw.ctx, node.value.func)
        if getter is not None and any(_holds(rw.ctx, v) for v in _returned(rw.ctx, getter)):
            raise _failure(node)
    if not isinstance(node.value, _SEQUENCES):
        return
    for place in places:
        targets: list[cst.BaseExpression] = [place]
        if isinstance(place, _SEQUENCES) and len(place.elements) == len(node.value.elements):
            targets = [one.value for one in place.elements]
        values = [one.value for one in node.value.elements]
        for number, value in enumerate(values):
            to = targets[number] if len(targets) == len(values) else place
            if not isinstance(to, cst.Name) and _holds(rw.ctx, value):
                raise _failure(node)


_SEQUENCES = (cst.Tuple, cst.List)


@converts(cst.Assign, targets=(cst.Name,), values=(cst.Dict,))
def table(rw: Rewriter, node: cst.Assign) -> Any:
    """``table = {"a": self._a, "b": self._b}`` of which one is kept by its name."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Name):
        return None
    if not isinstance(node.value, cst.Dict) or _table_of(rw.ctx, target) is not node.value:
        return None
    return syntax.changed(node, value=_named(rw, node.value))


def _handed_the_module(rw: Rewriter, node: cst.Lambda) -> cst.Lambda:
    """``lambda x: m.act(x)`` → ``lambda self, x: self.mlp.act(x)``."""
    parts = names_of_parts(rw.ctx, node)
    assert parts is not None, "asked before"
    made = rw.visit(node)
    if "rngs" in syntax.names(made):  # it would draw from what the constructor was given
        raise _failure(node)
    first = cst.Param(cst.Name("self"), comma=cst.MaybeSentinel.DEFAULT)
    params = syntax.changed(made.params, params=[first, *made.params.params])
    made = syntax.changed(made, params=params, body=syntax.substitute(made.body, parts))
    whole: cst.Lambda = made.with_changes(whitespace_after_lambda=cst.SimpleWhitespace(" "))
    return whole


def _of_module(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """``nn.Linear(8, 9) if own else self._tied`` → ``nnx.Linear(8, 9, rngs=rngs) if own else type(self)._tied``."""
    if isinstance(node, cst.IfExp):
        arms = {"body": _of_module(rw, node.body), "orelse": _of_module(rw, node.orelse)}
        return syntax.changed(node, test=rw.visit(node.test), **arms)
    if isinstance(node, cst.Lambda):
        return _handed_the_module(rw, node)
    if is_method(rw.ctx, node):
        return syntax.changed(node, value=syntax.parse("type(self)"))
    made: cst.BaseExpression = rw.visit(node)
    return made


@converts(cst.Attribute, kinds=(k.Function,))
def chosen(rw: Rewriter, node: cst.Attribute) -> Any:
    """``return self._plain`` of a method that chooses what is kept."""
    frame = rw.ctx.frame
    if frame is None or frame.info.owner is None or not _is_choice(rw.ctx, node):
        return None
    if not any(node is one for one in _returned(rw.ctx, frame.info)):
        return None
    return _named(rw, node) if _is_getter(rw.ctx, frame.info) else None


@converts(cst.Call)
def called(rw: Rewriter, node: cst.Call) -> Any:
    """``self.attend(x)`` → ``getattr(self, self.attend)(x)``.

    Raises:
      Failure: a module is built with such a method, which it would keep.
    """
    ctx, func = rw.ctx, node.func
    every = (kept_by_name(ctx), _functions(ctx), kept_either(ctx))
    if any(every) and ctx.owner is not None:
        kept = func.value if isinstance(func, cst.Subscript) else func
        if isinstance(kept, cst.Attribute) and ctx.is_self(kept.value):
            family = [(one.name, kept.attr.value) for one in _family(ctx, ctx.owner)]
            if any(one in kept_by_name(ctx) for one in family):
                both = [cst.Arg(kept.value), cst.Arg(rw.visit(func))]
                made = syntax.with_args(cst.Call(cst.Name("getattr")), both)
                return syntax.changed(node, func=made, args=[rw.visit(arg) for arg in node.args])
            among = [kept_either(ctx)[one] for one in family if one in kept_either(ctx)]
            if among and kept is func and any(among):  # a layer as it is
                both = [cst.Arg(kept.value), cst.Arg(rw.visit(func))]
                helper = ctx.helpers.need(module_file("rules.compat.containers"), "of_module")
                made = syntax.with_args(cst.Call(cst.Name(helper)), both)
                return syntax.changed(node, func=made, args=[rw.visit(arg) for arg in node.args])
            if kept is func and (among or any(one in _functions(ctx) for one in family)):
                args = [cst.Arg(kept.value), *(rw.visit(arg) for arg in node.args)]
                return syntax.with_args(node, args)
    if ctx.in_init and ctx.owner is not None and ctx.owner.torch_base is not None:
        sets = isinstance(func, cst.Name) and func.value == "setattr"
        given = node.args[2:] if sets else node.args
        if given and (sets or _builds(ctx, node)) and any(_holds(ctx, arg.value) for arg in given):
            raise _failure(node)
    return None


def _failure(node: cst.CSTNode) -> Failure:
    return Failure(
        node,
        "API001",
        "a method of the module is kept as a value: in Flax it would belong to the module as it was built",
        "keep the method's name, and look it up where it is called: getattr(self, self.name)(x)",
    )


# --- what is kept ------------------------------------------------------------------------------------------------


def _method(ctx: Context, node: cst.CSTNode) -> FunctionInfo | None:
    """The method of an own module that ``self._plain`` is."""
    kind = ctx.facts.kind(node)
    if not isinstance(node, cst.Attribute) or not isinstance(kind, k.Function):
        return None
    info = ctx.facts.names.get(kind.name)
    if info is None or info.owner is None or info.owner.torch_base is None:
        return None
    return None if _is_bare(ctx, info) else info


def _is_bare(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a method reads nothing of its module: kept as a value, it belongs to none."""
    return bool({"staticmethod", "classmethod"} & set(info.decorators)) or is_stateless(ctx, info)


def _binds(ctx: Context, func: cst.BaseExpression) -> bool:
    """``types.MethodType``, ``scale.__get__``, ``weakref.ref``: what holds on to the object that it is handed."""
    if isinstance(func, cst.Attribute) and func.attr.value == "__get__":
        return True
    return ctx.facts.qualified_name(func) in _BINDING


_BINDING = frozenset({"types.MethodType", "weakref.ref", "weakref.proxy", "weakref.WeakMethod"})


def _holds(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value holds a method of a module, or a function that reads the module around it."""
    if _method(ctx, node) is not None:
        return True
    if isinstance(node, cst.Attribute) and node.attr.value in ("forward", "__call__"):
        return isinstance(ctx.kind(node.value), k.Module)
    if isinstance(node, cst.Name):
        return _is_method_name(ctx, node) or _is_table_of_methods(ctx, node)
    if isinstance(node, cst.Subscript):
        return _holds(ctx, node.value)
    if isinstance(node, cst.IfExp):
        return _holds(ctx, node.body) or _holds(ctx, node.orelse)
    if isinstance(node, (cst.List, cst.Tuple)):
        return any(_holds(ctx, element.value) for element in node.elements)
    if isinstance(node, cst.Dict):
        return any(_holds(ctx, element.value) for element in node.elements)
    if isinstance(node, (cst.ListComp, cst.GeneratorExp, cst.SetComp)):
        return _holds(ctx, node.elt)
    if isinstance(node, cst.DictComp):
        return _holds(ctx, node.value)
    if isinstance(node, cst.Lambda):
        return reads_module(ctx, node)
    if isinstance(node, cst.Call):
        if ctx.facts.callee(node) == "functools.partial":
            return any(_holds(ctx, a.value) or trains(ctx.kind(a.value)) for a in node.args)
        if _binds(ctx, node.func):
            return any(isinstance(ctx.kind(a.value), k.Module) for a in node.args)
        if isinstance(node.func, cst.Name) and node.func.value == "getattr":
            return _asks_for_method(ctx, node)
        if ctx.facts.callee(node) in ("builtins.tuple", "builtins.list", "builtins.dict"):
            return any(_holds(ctx, arg.value) for arg in node.args)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value in ("get", "pop"):
            return _holds(ctx, node.func.value)
        if _builds_plain(ctx, node):
            return any(_holds(ctx, a.value) or trains(ctx.kind(a.value)) for a in node.args)
        if _gives_function_of_module(ctx, node):
            return True
        getter = _method(ctx, node.func)
        return getter is not None and _gives_methods(ctx, getter)
    return False


def _gives_function_of_module(ctx: Context, node: cst.Call) -> bool:
    """``self.make()``, which returns a function that reads the module; ``make(self)`` of a function that returns one."""
    made = ctx.facts.kind(node)
    if not isinstance(made, k.Function):
        return False
    kind = ctx.facts.kind(node.func)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or info.settled is not None:
        return False
    if info.owner is None:
        return any(ctx.is_self(a.value) or trains(ctx.kind(a.value)) for a in node.args)
    for value in _returned(ctx, info):
        inner = written_here(ctx, value) if isinstance(value, cst.Name) else value
        if isinstance(value, (cst.Name, cst.Lambda)) and inner is not None:
            if ctx.facts.tree.has(inner) and reads_module(ctx, inner):
                return True
    return False


def _is_method_name(ctx: Context, node: cst.Name) -> bool:
    """Whether a name stands for a bound method, or a function within one that reads the module."""
    kind = ctx.facts.kind(node)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or not isinstance(kind, k.Function):
        inner = written_here(ctx, node)
        return inner is not None and ctx.facts.tree.has(inner) and reads_module(ctx, inner)
    if info.outer is not None:
        return reads_module(ctx, info.node.body) or reads_module(ctx, info.node.params)
    return isinstance(kind.bound, k.Module) and info.owner is not None


def _is_table_of_methods(ctx: Context, node: cst.Name) -> bool:
    """Whether a display that a local name is given holds a method, also by way of other names."""
    if node.value in ctx.looked_into:
        return False  # ``size = (size, size)``
    ctx.looked_into.add(node.value)
    try:
        return any(_holds(ctx, table) for table in _tables(ctx, node))
    finally:
        ctx.looked_into.discard(node.value)


def _tables(ctx: Context, node: cst.Name) -> list[cst.BaseExpression]:
    """The displays that a local name is given: ``table = {"a": self._plain}``."""
    frame = ctx.frame
    if frame is None or not ctx.facts.tree.has(frame.info.node):
        return []
    if frame.info not in ctx.displays:
        found: dict[str, list[cst.BaseExpression]] = {}
        for one in ctx.facts.tree.within(frame.info.node, cst.Assign):
            if isinstance(one.value, (cst.Dict, cst.List, cst.Tuple)):
                targets = (t.target for t in one.targets)
                for name in {t.value for t in targets if isinstance(t, cst.Name)}:
                    found.setdefault(name, []).append(one.value)
        ctx.displays[frame.info] = found
    return ctx.displays[frame.info].get(node.value, [])


def _builds_plain(ctx: Context, node: cst.Call) -> bool:
    """Whether a call makes an object of the project that is no module: Flax does not look for modules in it."""
    kind = ctx.facts.kind(node.func)
    info = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    return info is not None and info.torch_base is None


def _asks_for_method(ctx: Context, node: cst.Call) -> bool:
    """``getattr(self, "_plain")``, ``getattr(self, f"_{kind}")``."""
    if len(node.args) < 2 or not ctx.is_self(node.args[0].value) or ctx.owner is None:
        return False
    return _may_be(ctx.owner, node.args[1].value) is not False


def _gives_methods(ctx: Context, info: FunctionInfo) -> bool:
    """Whether what a method returns may be a method of its module: one that is not called where it is named."""
    returned = _returned(ctx, info)
    if any(_method(ctx, value) is not None for value in returned):
        return True
    if info.settled is not None or not returned or isinstance(info.returns, _NO_FUNCTIONS):
        return False
    return any(_names_method(ctx, node) for node in ctx.facts.tree.within(info.node, cst.Attribute))


def _names_method(ctx: Context, node: cst.Attribute) -> bool:
    outer = ctx.facts.tree.around(node)[-1]
    called = isinstance(outer, cst.Call) and outer.func is node
    return not called and _method(ctx, node) is not None


def _returned(ctx: Context, info: FunctionInfo) -> list[cst.BaseExpression]:
    found = []
    for node in ctx.facts.tree.within(info.node, cst.Return):
        value = node.value
        if isinstance(value, cst.IfExp):
            found += [value.body, value.orelse]
        elif value is not None:
            found.append(value)
    return found


def _builds(ctx: Context, node: cst.Call) -> bool:
    kind = ctx.facts.kind(node.func)
    info = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
    return info is not None and info.torch_base is not None


# --- what can be kept by its name ----------------------------------------------------------------------------------


def _is_choice(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a method of the module itself, or one of two."""
    if isinstance(node, cst.IfExp):
        return _is_choice(ctx, node.body) and _is_choice(ctx, node.orelse)
    if isinstance(node, cst.Subscript):
        return _is_table(ctx, node.value)
    if isinstance(node, cst.Call):
        if _looked_up(ctx, node) is not None:
            return True
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
            rest = node.args[1:]
            return _is_table(ctx, node.func.value) and all(_is_choice(ctx, a.value) for a in rest)
        getter = _method(ctx, node.func)
        return getter is not None and _is_getter(ctx, getter)
    if not isinstance(node, cst.Attribute) or not isinstance(node.value, cst.Name):
        return False
    kind = ctx.facts.kind(node)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or info.owner is None or info.owner.torch_base is None:
        return False
    if node.value.value != "self" or info.short in ("forward", "__call__"):
        return False
    return ctx.plan.how(info) != "param" and not {"property"} & set(info.decorators)


def _is_kept(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a method of the module that can be named, or a display of nothing but such methods."""
    if isinstance(node, (cst.List, cst.Tuple)):
        return bool(node.elements) and all(
            type(one) is cst.Element and _is_choice(ctx, one.value) for one in node.elements
        )
    return _is_choice(ctx, node) or (isinstance(node, cst.Dict) and _is_table(ctx, node))


def _reads_module(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether one of the methods that a choice is made of reads its module; the others may be kept as they are."""
    if isinstance(node, cst.IfExp):
        return _reads_module(ctx, node.body) or _reads_module(ctx, node.orelse)
    if isinstance(node, (cst.Dict, cst.List, cst.Tuple)):
        return any(_reads_module(ctx, one.value) for one in node.elements)
    if isinstance(node, cst.Subscript):
        return _reads_module(ctx, node.value)
    if isinstance(node, cst.Name):
        table = _table_of(ctx, node)
        return table is not None and _reads_module(ctx, table)
    if isinstance(node, cst.Call):
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
            rest = [one.value for one in node.args[1:]]
            return any(_reads_module(ctx, one) for one in (node.func.value, *rest))
        return True  # ``getattr(self, …)``, a method that chooses
    return _method(ctx, node) is not None


def _is_table(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a value is a dict of nothing but methods, or a local name of one that is only looked up to be kept."""
    if isinstance(node, cst.Dict):
        return _reads_module(ctx, node) and all(
            isinstance(one, cst.DictElement) and _is_choice(ctx, one.value) for one in node.elements
        )
    return isinstance(node, cst.Name) and _table_of(ctx, node) is not None


def _table_of(ctx: Context, node: cst.Name) -> cst.Dict | None:
    """The dict that a local name is given once, where each of its uses chooses a method that an attribute keeps."""
    tree = ctx.facts.tree
    around = tree.around(node) if tree.has(node) else []
    function = next((one for one in reversed(around) if isinstance(one, cst.FunctionDef)), None)
    if function is None:
        return None
    found: cst.Dict | None = None
    for one in tree.within(function, cst.Name):
        if one.value != node.value:
            continue
        *_, further, outer = tree.around(one)
        if isinstance(outer, cst.AssignTarget) and isinstance(further, cst.Assign):
            value = further.value if found is None and len(further.targets) == 1 else None
            if not isinstance(value, cst.Dict) or not _is_table(ctx, value):
                return None
            found = value
            continue
        if isinstance(outer, cst.Attribute) and outer.attr.value == "get":
            outer, further = further, tree.around(further)[-1]
        if not isinstance(further, cst.Assign) or further.value is not outer:
            return None
        if not isinstance(further.targets[0].target, cst.Attribute):
            return None
    return found


def _looked_up(ctx: Context, node: cst.Call) -> cst.BaseExpression | None:
    """The name in ``getattr(self, f"_{kind}")`` where it can be nothing but a method's."""
    if not isinstance(node.func, cst.Name) or node.func.value != "getattr" or len(node.args) != 2:
        return None
    if not ctx.facts.tree.has(node):
        return None
    given, around = node.args[0].value, ctx.facts.tree.around(node)
    cls = next((one for one in around if isinstance(one, cst.ClassDef)), None)
    owner = next((one for one in ctx.facts.classes.values() if one.node is cls), None)
    if owner is None or not isinstance(given, cst.Name) or given.value != "self":
        return None
    return node.args[1].value if _may_be(owner, node.args[1].value) is True else None


def _may_be(owner: ClassInfo, name: cst.BaseExpression) -> bool | None:
    """Whether an attribute of a computed name is a method: None where it may be one or something else."""
    pattern = texts.pattern(name)
    others = [n for c in owner.lineage() for n in (*c.attributes, *c.statics)]
    methods = {n for c in owner.lineage() for n in c.methods}
    if pattern == ".*":
        methods -= _USUAL
    if not any(re.fullmatch(pattern, n) for n in methods):
        return False
    return None if any(re.fullmatch(pattern, n) for n in others) else True


def _is_getter(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a method does nothing but choose a method that its caller keeps."""
    returned = _returned(ctx, info)
    if not returned or not all(isinstance(v, cst.Attribute) for v in returned):
        return False
    if not all(_is_choice(ctx, value) for value in returned) or not info.call_sites:
        return False
    if all(_method(ctx, value) is None for value in returned):
        return False  # of nothing but functions that read no module
    for site in info.call_sites:
        outer = ctx.facts.tree.around(site)[-1] if ctx.facts.tree.has(site) else None
        if not isinstance(outer, cst.Assign) or outer.value is not site:
            return False
        if not all(isinstance(one.target, cst.Attribute) for one in outer.targets):
            return False
    return True


def _family(ctx: Context, info: ClassInfo) -> list[ClassInfo]:
    """A class with those it derives from and those that derive from it."""
    others = ctx.facts.classes.values()
    return [*info.lineage(), *(one for one in others if one is not info and info in one.lineage())]


def kept_by_name(ctx: Context) -> frozenset[tuple[str, str]]:
    """The classes and attributes that keep nothing but methods of the module, and are only called."""
    if ctx.kept_methods is None:
        given: dict[tuple[str, str], list[cst.Assign]] = {}
        for info, name, node in assigned_attributes(ctx):
            if _is_kept(ctx, node.value):
                given.setdefault((info.name, name), []).append(node)
        ctx.kept_methods = frozenset(
            (cls, name)
            for (cls, name), nodes in given.items()
            if any(_reads_module(ctx, node.value) for node in nodes)
            and _only_called(ctx, ctx.facts.classes[cls], name)
        )
    return ctx.kept_methods


def _functions(ctx: Context) -> frozenset[tuple[str, str]]:
    """The classes and attributes that keep one lambda which reads the module, and are only called."""
    if ctx.kept_functions is None:
        found = set()
        for info, name, node in assigned_attributes(ctx):
            value = node.value
            if not isinstance(value, cst.Lambda) or not reads_module(ctx, value):
                continue
            if names_of_parts(ctx, value) is not None and _only_called(ctx, info, name, node):
                found.add((info.name, name))
        ctx.kept_functions = frozenset(found)
    return ctx.kept_functions


def _only_called(ctx: Context, info: ClassInfo, name: str, only: cst.Assign | None = None) -> bool:
    """Whether an attribute is given methods of the module (or one lambda) alone, and read where it is called alone."""
    if f'"{name}"' in ctx.source.text or f"'{name}'" in ctx.source.text:
        return False
    family = _family(ctx, info)
    if any(one.settled is not None or name in one.methods for one in family):
        return False
    displays: set[bool] = set()
    for node in ctx.source.index.of_type(cst.Attribute):
        if node.attr.value != name:
            continue
        around = ctx.facts.tree.around(node)
        cls = next((one for one in around if isinstance(one, cst.ClassDef)), None)
        own = any(one.node is cls for one in family)
        if not isinstance(node.value, cst.Name) or node.value.value != "self":
            return False
        if not own:
            continue
        outer = around[-1]
        if isinstance(outer, cst.AssignTarget):
            whole = around[-2]
            allowed = _is_kept(ctx, whole.value) if only is None else whole is only
            if len(whole.targets) != 1 or not allowed:
                return False
            displays |= {isinstance(whole.value, (cst.Dict, cst.List, cst.Tuple))}
        elif isinstance(outer, cst.Call) and outer.func is node:
            displays |= {False}
        elif isinstance(outer, cst.Subscript) and isinstance(around[-2], cst.Call):
            if around[-2].func is not outer or outer.value is not node:
                return False
            displays |= {True}
        else:
            return False
        if len(displays) > 1:
            return False
    return True


def _named(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """``self._a if test else self._b`` → ``"_a" if test else "_b"``."""
    if isinstance(node, cst.IfExp):
        arms = {"body": _named(rw, node.body), "orelse": _named(rw, node.orelse)}
        return syntax.changed(node, test=rw.visit(node.test), **arms)
    if isinstance(node, cst.Attribute):
        return cst.SimpleString(f'"{node.attr.value}"')
    if isinstance(node, cst.Subscript):
        return syntax.changed(rw.visit(node), value=_named(rw, node.value))
    if isinstance(node, (cst.Dict, cst.List, cst.Tuple)):
        made = [syntax.changed(one, value=_named(rw, one.value)) for one in node.elements]
        return syntax.changed(node, elements=made)
    if isinstance(node, cst.Call):
        name = _looked_up(rw.ctx, node)
        if name is not None:
            return rw.visit(name)
        if isinstance(node.func, cst.Attribute) and node.func.attr.value == "get":
            func = syntax.changed(node.func, value=_named(rw, node.func.value))
            rest = [syntax.changed(a, value=_named(rw, a.value)) for a in node.args[1:]]
            return syntax.changed(node, func=func, args=[rw.visit(node.args[0]), *rest])
    whole: cst.BaseExpression = rw.visit(node)
    return whole
