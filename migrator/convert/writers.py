"""Which calls may overwrite what they are handed: layers made with ``inplace=True``, and own code that writes to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import libcst as cst

from migrator import syntax, views
from migrator.convert.among_others import is_among_others
from migrator.convert.begins import begins_in_place
from migrator.convert.context import Context
from migrator.convert.made_in_place import is_handed_on, is_holder, last_name, makes
from migrator.convert.memory import Aliases, aliases
from migrator.convert.passing import passes
from migrator.convert.sharing import inplace_argument
from migrator.infer import ClassInfo, FunctionInfo
from migrator.infer import kinds as k
from migrator.infer.beginnings import Beginnings
from migrator.infer.first import is_own
from migrator.infer.python import PARTIAL


def may_write(ctx: Context, kind: k.Kind, func: cst.BaseExpression | None = None) -> bool:
    """Whether a call of a value of this kind, spelled ``func``, may write to its argument.

    Those of the file's own functions and classes are left out: who calls them is looked up where they write."""
    if isinstance(kind, k.Optional):
        kind = kind.inner
    if not isinstance(kind, k.Module):
        if isinstance(func, cst.Attribute) and func.attr.value in ("forward", "__call__"):
            run = ctx.kind(func.value)
            info = ctx.facts.classes.get(run.cls) if isinstance(run, k.Module) else None
            if isinstance(run, k.Module) and not (info and info.method("forward")):
                return may_write(ctx, run, func.value)
            if syntax.is_super(func.value) and ctx.owner is not None:
                return any(begins_in_place(ctx, one, _inside) for one in ctx.owner.parents)
        if isinstance(func, cst.IfExp):  # (self.act if self.training else torch.tanh)(x)
            return any(_part_writes(ctx, one) for one in (func.body, func.orelse))
        if not _is_nameless(kind):
            return False
        looked_up = _is_looked_up(func) or _is_never_given(ctx, func)
        return last_name(func) in holders(ctx) or (looked_up and _any_writes(ctx))
    if kind.cls == k.PARALLEL:
        forward = ctx.facts.classes.get(k.inside(kind).cls)
        own = forward.method("forward") if forward is not None else None
        return (
            writes_argument(ctx, own) if own is not None else may_write(ctx, k.inside(kind), func)
        )
    if ("inplace", False) in kind.args:
        return False
    if k.in_place(kind) is not False:
        return True
    for one in (kind, *kind.among):
        if _inside(ctx, one) or begins_in_place(ctx, ctx.facts.classes.get(one.cls), _inside):
            return True
    if kind.cls in ("torch.nn.Module", "torch.nn.Sequential"):
        return last_name(func) in holders(ctx)
    if holders(ctx) and last_name(func) in ctx.lost_holders and _is_perhaps_another(ctx, func):
        return True
    foreign = ctx.facts.linked is not None and kind.cls not in ctx.facts.classes
    if foreign and holders(ctx) and last_name(func) in ctx.foreign_holders:
        if not _made_here(ctx, kind, func):
            return True  # another file may have made it, or named its class
    return any(makes(ctx, call, kind.cls) for call in _untracked(ctx))


def _part_writes(ctx: Context, func: cst.BaseExpression) -> bool:
    forward = _run(ctx, ctx.kind(func))
    return (
        writes_argument(ctx, forward)
        if forward is not None
        else may_write(ctx, ctx.kind(func), func)
    )


def _is_perhaps_another(ctx: Context, func: cst.BaseExpression | None) -> bool:
    """Whether ``self.fn`` is what a constructor is handed, and some call hands it what nothing is known of."""
    owner = ctx.frame.info.owner if ctx.frame is not None else None
    init = owner.method("__init__") if owner is not None else None
    if init is None or not isinstance(func, cst.Attribute):
        return False
    for assign in ctx.facts.tree.within(init.node.body, cst.Assign):
        if any(syntax.code(one.target) == syntax.code(func) for one in assign.targets):
            handed = init.handed.get(last_name(assign.value), {}).values()
            if any(_is_nameless(one) or k.is_any_module(one) for one in handed):
                return True
    return False


def _is_nameless(kind: k.Kind) -> bool:
    """Whether nothing says what a value is that is called, or that it is a torch function with bound arguments."""
    if isinstance(kind, (k.Function, k.Class)):
        return not kind.name or kind.name.startswith(PARTIAL)
    return isinstance(kind, k.Unknown)


def _is_looked_up(func: cst.BaseExpression | None) -> bool:
    """``getattr(self, f"layer{i}")``, ``self._modules[name]``: a child by its name."""
    if isinstance(func, cst.Call):
        return isinstance(func.func, cst.Name) and func.func.value == "getattr"
    if not isinstance(func, cst.Subscript) or not isinstance(func.value, cst.Attribute):
        return False
    return func.value.attr.value == "_modules"


def _is_never_given(ctx: Context, func: cst.BaseExpression | None) -> bool:
    """``self.layer0``, to which the file assigns nothing under that name."""
    if not isinstance(func, cst.Attribute) or not isinstance(func.value, cst.Name):
        return False
    targets = [one.target for one in ctx.source.index.of_type(cst.AssignTarget, cst.AnnAssign)]
    return not any(
        isinstance(t, cst.Attribute) and t.attr.value == func.attr.value for t in targets
    )


def _any_writes(ctx: Context) -> bool:
    """Whether a layer that the file registers under a made up name may write to its argument."""
    if ctx.any_registered_writes is None:
        ctx.any_registered_writes = False  # what is registered may look its own children up
        ctx.any_registered_writes = any(_value_writes(ctx, one) for one in _by_name(ctx))
    return ctx.any_registered_writes


def _by_name(ctx: Context) -> Iterator[cst.BaseExpression]:
    """What the file registers as children under names: ``setattr(self, name, layer)``, ``self.add_module(name, layer)``."""
    for call in ctx.source.index.of_type(cst.Call):
        given = [one.value for one in call.args]
        func = call.func
        if isinstance(func, cst.Name) and func.value == "setattr" and len(given) == 3:
            yield given[2]
        elif isinstance(func, cst.Attribute) and len(given) == 2:
            if func.attr.value in ("add_module", "register_module"):
                yield given[1]
    for assign in ctx.source.index.of_type(cst.Assign):
        if any(_is_looked_up(one.target) for one in assign.targets):
            yield assign.value


def _value_writes(ctx: Context, value: cst.BaseExpression) -> bool:
    kind = ctx.facts.kind(value)
    own = isinstance(kind, k.Module) and kind.cls in ctx.facts.classes
    return not own and may_write(
        ctx, kind, value
    )  # who calls a class of the file is looked up where it writes


def holders(ctx: Context) -> set[str]:
    """The names of what holds a layer made with ``inplace=True`` that no kind speaks of, or makes one."""
    if ctx.holders is None:
        ctx.foreign_holders = _closed(ctx, _of_other_files(ctx))
        own = {name for call in _untracked(ctx) for name in _receivers(ctx, call)}
        own |= {name for call in _begun(ctx) for name in _receivers(ctx, call, wide=True)}
        ctx.holders = _closed(ctx, own) | ctx.foreign_holders | _out_of_lists(ctx)
        # whether a class writes asks what holds such layers
        lost = list(_lost(ctx))
        always = {name for node, one in lost if one for name in _receivers(ctx, node, wide=True)}
        ctx.lost_everywhere = _closed(ctx, always | _lost_in_others(ctx), wide=True)
        names = {name for node, _ in lost for name in _receivers(ctx, node, wide=True)}
        wide = _closed(ctx, names | own, wide=True) | ctx.lost_everywhere
        ctx.lost_holders = wide - ctx.holders
        ctx.holders |= ctx.lost_holders
    return ctx.holders


def holders_for_others(ctx: Context) -> set[str]:
    """Those of them that other files are told of: not what may be a class of the file, by the names of its tables alone."""
    return holders(ctx) - ctx.lost_holders


def lost_for_others(ctx: Context) -> set[str]:
    """The names of what may be a class of the project that writes to its argument whatever it is told.

    Of those that write where an argument ``inplace`` says so, which whole tables of activations do, others are told
    by that argument.
    """
    holders(ctx)
    return ctx.lost_everywhere


def _lost_in_others(ctx: Context) -> set[str]:
    linked = ctx.facts.linked
    return set(linked.lost(ctx.facts.module)) if linked is not None else set()


def _lost(ctx: Context) -> Iterator[tuple[cst.Name, bool]]:
    """The file's classes that write to what they are called with, where no kind says that it may be one of them.

    ``{"own": Own, "gelu": nn.GELU}[name]()``: one of torch's and the file's own is any class. With whether it writes
    whatever it is told.
    """
    for node in ctx.source.index.of_type(cst.Name):
        kind = ctx.facts.kinds.get(node)
        own = ctx.facts.classes.get(kind.name) if isinstance(kind, k.Class) else None
        forward, layer = _run(ctx, kind), isinstance(kind, k.Module) and k.in_place(kind) is True
        if not (layer or own or forward) or not is_among_others(ctx, node):
            continue
        if layer or (forward is None and may_begin_in_place(ctx, own)):  # type: ignore[arg-type]
            yield node, True
        elif forward is not None and writes_argument(ctx, forward):
            everywhere = writes_argument(ctx, forward, told=False)
            if everywhere or forward.settled is None:
                yield node, everywhere


def told(ctx: Context) -> dict[str, int]:
    """The functions of the file that make something to work in place only where an argument ``inplace`` says so.

    With the place of that argument; what is called with it by its name is found by that name.
    """
    found: dict[str, int] = {}
    for info in ctx.facts.functions.values():
        params = [p.name.value for p in info.node.params.params]
        if info.owner is not None or info.outer is not None or "inplace" not in params:
            continue
        at = params.index("inplace")
        default = info.node.params.params[at].default
        off = isinstance(default, cst.Name) and default.value in ("None", "False")
        if off and info.short in holders(ctx) and _asks_everywhere(ctx, info):
            found[info.short] = at
    return found


def _asks_everywhere(ctx: Context, info: FunctionInfo) -> bool:
    """Whether all that a function makes is handed its own ``inplace``, which it does not change."""
    below = ctx.facts.tree.below(info.node.body)
    if any("inplace" in syntax.names(t.target) for t in below if isinstance(t, cst.AssignTarget)):
        return False
    inside = set(map(id, below))
    for call in _untracked(ctx):
        given = [a.value for a in call.args if a.keyword and a.keyword.value == "inplace"]
        if id(call) in inside and [syntax.code(one) for one in given] != ["inplace"]:
            return False
    local = {
        n for one in below if isinstance(one, cst.AssignTarget) for n in syntax.names(one.target)
    }
    known = holders(ctx) - local - {info.short, "inplace"}
    return not any(isinstance(n, cst.Name) and n.value in known for n in below)


def _closed(ctx: Context, found: set[str], wide: bool = False) -> set[str]:
    """The names that the values of these go to, with them."""
    known = -1
    while found and len(found) > known:
        known = len(found)
        for node in ctx.source.index.of_type(cst.Name):
            if node.value in found:
                found |= _receivers(ctx, node, wide)
    return found


def _of_other_files(ctx: Context) -> set[str]:
    """The names for what other files make, and the parameters that they may hand it to."""
    linked = ctx.facts.linked
    if linked is None:
        return set()
    every = (base for info in ctx.facts.classes.values() for base in info.lineage())
    bases = {base.name for base in every if base.settled is not None}
    made, asking = linked.holders(ctx.facts.module, sorted(bases))
    found = set(made)
    for call in ctx.source.index.of_type(cst.Call):
        places = sum(a.keyword is None for a in call.args)
        if places > asking.get(last_name(call.func), places):
            found |= _receivers(ctx, call)  # ``create_act("relu", True)``
    handed = linked.in_place(ctx.facts.module)
    for info in ctx.facts.functions.values():
        name = (
            info.owner.short if info.owner is not None and info.short == "__init__" else info.short
        )
        found |= {p for p in info.params if f"{name}.{p}" in handed}
    return found


def _made_here(ctx: Context, kind: k.Module, func: cst.BaseExpression | None) -> bool:
    """Whether a layer is made in this file, by the name of its class and no other."""
    name, short = last_name(func), kind.cls.rpartition(".")[2]
    made = [
        assign.value
        for assign in ctx.source.index.of_type(cst.Assign)
        if any(last_name(t.target) == name for t in assign.targets)
    ]
    direct = [isinstance(one, cst.Call) and last_name(one.func) == short for one in made]
    return bool(direct) and all(direct)


def _receivers(ctx: Context, node: cst.CSTNode, wide: bool = False) -> set[str]:
    """The names that stand for the value of an expression, or for a container that begins with it.

    ``wide``: also a parameter that a call of known kind hands it to."""
    around = ctx.source.index.around(node)
    while around:
        parent = around.pop()
        if isinstance(parent, cst.Assign):
            return {last_name(t.target) for t in parent.targets} if node is parent.value else set()
        if isinstance(parent, cst.Param):
            return {parent.name.value} if node is parent.default else set()
        if isinstance(parent, cst.Return):
            function = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
            return {function.name.value} if function is not None else set()
        if isinstance(parent, cst.Arg):
            call = around.pop()
            if not _begins_with(ctx, call, parent):
                taken = _taken_as(ctx, call, parent, wide)
                if not _may_give_back(ctx, call):
                    return taken
                return taken | _receivers(ctx, call, wide)
            parent = call
        elif isinstance(parent, cst.Attribute) and node is not parent.attr:
            return set()
        elif isinstance(parent, cst.Call) and _is_told_not_to(parent):
            return set()
        elif not isinstance(parent, _HANDING_ON):
            return set()
        elif isinstance(parent, cst.IfExp) and node is parent.test:
            return set()
        node = parent
    return set()


def _taken_as(ctx: Context, call: cst.CSTNode, arg: cst.Arg, wide: bool) -> set[str]:
    """The name of the parameter that an argument of a call is handed to, where the file says so."""
    if arg.keyword is not None:
        return {arg.keyword.value}
    if not isinstance(call, cst.Call) or arg.star:
        return set()
    if not wide and not _is_nameless(ctx.facts.kind(call)):
        return set()
    before = call.args[: next(i for i, one in enumerate(call.args) if one is arg)]
    if any(one.star for one in before):
        return set()
    found: set[str] = set()
    for info in ctx.facts.functions.values():
        if call in info.call_sites:
            names = [one.name.value for one in info.node.params.params]
            found |= set(names[len(before) + info.receivers :][:1])
    return found


def _may_give_back(ctx: Context, call: cst.CSTNode) -> bool:
    """Whether a function of another file may give back what a call hands to it, called or not: nothing says what it gives."""
    linked = ctx.facts.linked
    if linked is None or not isinstance(call, cst.Call):
        return False
    return linked.shared(ctx.facts.callee(call) or "") and _is_nameless(ctx.facts.kind(call))


def _out_of_lists(ctx: Context) -> set[str]:
    """The names of lists such as ``[self.act, torch.tanh]``, whose kind says nothing of the layer, and what loops take out."""
    if "inplace" not in ctx.words:
        return set()
    index, lists = ctx.source.index, set[str]()
    for node in index.of_type(cst.Attribute, cst.Name):
        if k.in_place(ctx.facts.kinds.get(node)) is not False:
            around = index.around(node)
            if isinstance(around[-1], (cst.Element, cst.DictElement)):
                lists |= _receivers(ctx, node)
    found = set(lists)
    for loop in index.of_type(cst.For, cst.CompFor) if lists else ():
        if any(last_name(one) in lists for one in index.within(loop.iter, cst.Attribute, cst.Name)):
            found |= set(syntax.names(loop.target))
    return found


def _is_told_not_to(call: cst.Call) -> bool:
    """``create_act(name, inplace=False)``."""
    told = [a.value for a in call.args if a.keyword is not None and a.keyword.value == "inplace"]
    return any(isinstance(one, cst.Name) and one.value == "False" for one in told)


def _begins_with(ctx: Context, call: cst.CSTNode, arg: cst.Arg) -> bool:
    """Whether what a call makes hands its input to an argument first: a Sequential to its first, any list to each."""
    if not isinstance(call, cst.Call):
        return False
    kind = ctx.facts.kind(call)
    if isinstance(kind, k.Module) and kind.cls == "torch.nn.Sequential":
        return arg is call.args[0]
    lists = isinstance(kind, k.Module) and kind.cls in (
        "torch.nn.ModuleList",
        "torch.nn.ModuleDict",
    )
    partial = ctx.facts.callee(call) == "functools.partial" and arg is call.args[0]
    return lists or partial or isinstance(kind, k.Mapping)


_HANDING_ON = (
    cst.Attribute,
    cst.BooleanOperation,
    cst.Call,
    cst.Dict,
    cst.DictComp,
    cst.DictElement,
    cst.Element,
    cst.GeneratorExp,
    cst.IfExp,
    cst.Lambda,
    cst.List,
    cst.ListComp,
    cst.NamedExpr,
    cst.StarredElement,
    cst.Subscript,
    cst.Tuple,
)


def may_begin_in_place(ctx: Context, info: ClassInfo) -> bool:
    """Whether a Sequential of the file, with a constructor of its own, may overwrite what it is called with."""
    bases = [one for one in info.lineage() if one.method("__init__") is not None]
    return any(begins_in_place(ctx, one, _inside) for one in (info, *bases))


def _inside(ctx: Context, kind: k.Module) -> bool:
    """Whether a Sequential may hand its input to a child that writes to it."""
    if kind.cls != "torch.nn.Sequential":
        return False
    children = [child for name, child in kind.args if name.isdigit()]
    for child in children or [kind.item]:
        if not isinstance(child, k.Module):
            return False
        own = ctx.facts.classes.get(child.cls)
        forward = own.method("forward") if own is not None else None
        if forward is not None and writes_argument(ctx, forward):
            return True
        if forward is None and may_write(ctx, child):
            return bool(children) or k.in_place(child) is False
        if children and not passes(ctx, child):
            return False
    return False


def _untracked(ctx: Context) -> list[cst.Call]:
    """The layers that are made with ``inplace=True`` and handed around, so that any call may be one of theirs."""
    if ctx.untracked is None:
        if not ctx.foreign_holders:
            ctx.foreign_holders = _closed(ctx, _of_other_files(ctx))
        every = ctx.source.index.of_type(cst.Call)
        ctx.untracked = [c for c in every if is_handed_on(ctx, c) or is_holder(ctx, c.func)]
    return ctx.untracked


def writes_argument(ctx: Context, info: FunctionInfo, told: bool = True) -> bool:
    """Whether a function may write to the memory of one of its arguments.

    ``told`` is False for what it does whatever an argument or attribute called ``inplace`` says.
    """
    if info.settled is not None:
        return bool(info.settled.mutates) and (told or not info.settled.told_to)
    known = ctx.writing if told else ctx.writing_untold
    if info not in known:
        known[info] = False  # a recursive one writes if another line of it does
        if has_writes(ctx, info):
            facts = aliases(ctx, info)
            known[info] = any(_writes(ctx, facts, statement, told) for statement in facts.before)
    return known[info]


def has_writes(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a function writes to anything: most do not, and whose memory is whose need not be asked of them."""
    nodes = ctx.facts.tree.within(info.node.body, *WRITING)
    return any(target_of(ctx, node) is not None for node in nodes)


def _writes(ctx: Context, facts: Aliases, statement: cst.CSTNode, told: bool) -> bool:
    state = facts.before[statement]
    for node in writing(ctx, statement):
        written = target_of(ctx, node, told)
        if written is None or (not told and _is_told_to(ctx, node)):
            continue
        if any(one.startswith("param:") for one in facts.memory(written, state)):
            return True
    return False


def _begun(ctx: Context) -> Iterator[cst.Call]:
    """``nn.Sequential(*layers)`` of a list that may begin with a layer of the project that writes to its argument."""
    for call in ctx.source.index.of_type(cst.Call):
        if ctx.facts.callee(call) != "torch.nn.Sequential" or len(call.args) != 1:
            continue
        given, kind = call.args[0], ctx.facts.kind(call)
        item = kind.item if isinstance(kind, k.Module) else None
        several = item.among if isinstance(item, k.Module) else ()
        if given.star != "*" or not any(_kind_writes(ctx, one) for one in several):
            continue
        around = ctx.source.index.around(call)
        node = next((n for n in reversed(around) if isinstance(n, cst.FunctionDef)), None)
        info = ctx.facts.functions.get(node) if node is not None else None
        named = isinstance(given.value, cst.Name) or is_own(given.value)
        if info is None or not named:
            yield call
            continue
        firsts = Beginnings(ctx.facts, info, given.value, call).found
        if any(one is None or _kind_writes(ctx, ctx.facts.kind(one)) for one in firsts):
            yield call


def _kind_writes(ctx: Context, kind: k.Kind) -> bool:
    """Whether what is of a class of the project may write to what it is called with."""
    run = _run(ctx, kind)
    return run is not None and writes_argument(ctx, run)


def _run(ctx: Context, kind: k.Kind | None) -> FunctionInfo | None:
    """What a call of an instance runs: of a class that is named, of a module or of another object."""
    if isinstance(kind, k.Other):
        own = ctx.facts.classes.get(kind.type)
        return own.method("__call__") if own is not None else None
    name = kind.name if isinstance(kind, k.Class) else getattr(kind, "cls", "")
    own = ctx.facts.classes.get(name) if name else None
    return own.method("forward") if own is not None else None


def _is_told_to(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether something is done where ``inplace`` says so: ``x.mul_(y) if self.inplace else …``, ``F.relu(x, inplace)``."""
    asked: list[cst.CSTNode] = [node] if isinstance(node, cst.Call) else []
    for around in reversed(ctx.source.index.around(node)):
        if isinstance(around, cst.FunctionDef):
            break
        if isinstance(around, (cst.If, cst.IfExp)):
            asked.append(around.test)
    names = (name for one in asked for name in ctx.source.index.within(one, cst.Name))
    return any(name.value in ("inplace", "in_place") for name in names)


WRITING = (cst.AugAssign, cst.Assign, cst.Call)
"""What may write to a tensor in place."""


def writing(ctx: Context, statement: cst.CSTNode) -> Sequence[Any]:
    """What in a line of simple statements may write in place; what is in a suite has a line of its own."""
    if type(statement) is not cst.SimpleStatementLine:
        return ()
    return ctx.facts.tree.within(statement, *WRITING)


def target_of(ctx: Context, node: cst.CSTNode, told: bool = True) -> cst.BaseExpression | None:
    """What a node writes to in place; ``told`` as for ``writes_argument``."""
    if isinstance(node, cst.AugAssign):
        plain = k.scalar_type(ctx.kind(node.target)) is not None
        return None if plain else views.written_base(node.target, ctx.is_module)
    if isinstance(node, cst.Assign):
        subscripts = [t.target for t in node.targets if isinstance(t.target, cst.Subscript)]
        return views.written_base(subscripts[0], ctx.is_module) if subscripts else None
    if not isinstance(node, cst.Call) or (
        not node.args and not isinstance(node.func, cst.Attribute)
    ):
        return None
    if isinstance(node.func, cst.Attribute):
        name = node.func.attr.value
        if name.endswith("_") and not name.endswith("__"):
            return views.written_base(node.func.value, ctx.is_module)
    called = ctx.facts.callee(node) or ""
    kind = ctx.kind(node.func)
    own = ctx.facts.classes.get(kind.cls) if isinstance(kind, k.Module) else None
    info = own.method("forward") if own is not None else ctx.facts.names.get(called)
    writes = may_write(ctx, kind, node.func) if info is None else writes_argument(ctx, info, told)
    if node.args and (writes or inplace_argument(called, node) is not None):
        return node.args[0].value
    return None
