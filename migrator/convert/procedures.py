"""Functions without a result that write to tensors they are handed: they return them.

    self.init_(weight, bias, scale)      →      weight, bias = self.init_(weight, bias, scale)

Functions that write to their first argument alone, and are called with the parameters of layers as well, are those of
``passes.initializers``.
"""

from __future__ import annotations

import libcst as cst

from migrator import syntax
from migrator.convert.alias import bound_arguments, root_name, statement_of
from migrator.convert.context import Context, Failure
from migrator.convert.handed_on import is_handed_on
from migrator.convert.memory import aliases
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k


def written_parameters(ctx: Context, info: FunctionInfo) -> tuple[str, ...]:
    """The parameters that a function returns in the output, as its callers go on with what it writes to them."""
    if info.settled is not None:
        return ()
    if info not in ctx.written_parameters:
        ctx.written_parameters[info] = ()  # of one that calls itself
        ctx.written_parameters[info] = _found(ctx, info)
    return ctx.written_parameters[info]


def _found(ctx: Context, info: FunctionInfo) -> tuple[str, ...]:
    if not _may_write(ctx, info):
        return ()
    own = syntax.own_nodes(info.node.body)
    written = _written(ctx, info, own)
    if not written or not _is_plain(ctx, info, own, written):
        return ()
    wanted: set[str] = set()
    formless = {p for p in written if _takes_any_form(own, p)}
    for call, caller in info.call_sites.items():
        given = _names_given(ctx, call, info, written)
        if caller is None or given is None or not isinstance(call, cst.Call):
            return ()
        facts = aliases(ctx, caller)
        statement = statement_of(facts, call)
        if statement is None:
            return ()
        later = facts.read_after(statement)
        for param, value in given.items():
            if isinstance(value, cst.Attribute) and param in formless:
                return ()  # an assignment to what the parameter holds keeps its shape and dtype
            if isinstance(value, cst.Attribute) or value.value in later:
                wanted.add(param)
            elif is_walked(ctx, value) and _goes_by_no_axis(ctx, info, param):
                if not _builds(ctx, caller) or param in formless:
                    return ()
                wanted.add(param)
    return tuple(name for name in written if name in wanted)


def _may_write(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a line of a function, or of one inside it, writes to a tensor among its parameters."""
    params = {p for p, kind in info.params.items() if _is_tensor(kind)}
    if not params:
        return False
    nodes = ctx.facts.tree.within(info.node.body, *_WRITING)
    return not params.isdisjoint(_target(ctx, node) for node in nodes)


_WRITING = (cst.AugAssign, cst.AssignTarget, cst.Expr)


def _target(ctx: Context, node: cst.CSTNode) -> str:
    """The name of what an item of a line writes to; "" where it writes to nothing that has one."""
    if isinstance(node, cst.AugAssign):
        return _root(node.target)
    if isinstance(node, cst.AssignTarget):
        indexed = isinstance(node.target, cst.Subscript) or _is_data(node.target)
        return _root(node.target) if indexed else ""
    called = isinstance(node, cst.Expr) and isinstance(node.value, cst.Call)
    return _written_by(ctx, node.value) if called else ""  # type: ignore[attr-defined]


def _written(ctx: Context, info: FunctionInfo, own: list[cst.CSTNode]) -> tuple[str, ...]:
    """The tensors among the parameters that a function writes to by their names, and never gives another meaning."""
    found, rebound = set(), set()
    for node in own:
        if isinstance(node, _WRITING):
            found.add(_target(ctx, node))
        if isinstance(node, cst.AssignTarget):
            if not (isinstance(node.target, cst.Subscript) or _is_data(node.target)):
                rebound |= set(syntax.names(node.target))
        elif isinstance(node, (cst.For, cst.AnnAssign, cst.NamedExpr, cst.CompFor)):
            rebound |= set(syntax.names(node.target))
        elif isinstance(node, cst.AsName):
            rebound |= set(syntax.names(node.name))
    params = [p for p in info.params if _is_tensor(info.params[p])]
    return tuple(p for p in params if p in found and p not in rebound)


def _is_data(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.Attribute) and node.attr.value == "data"


def _takes_any_form(own: list[cst.CSTNode], param: str) -> bool:
    """Whether ``param.data`` is assigned to, which may give it another shape or dtype."""
    targets = [node.target for node in own if isinstance(node, cst.AssignTarget)]
    return any(_is_data(target) and _root(target) == param for target in targets)


def _written_by(ctx: Context, call: cst.Call) -> str:
    """``x`` of ``x.zero_()`` and ``nn.init.zeros_(x)``."""
    callee = ctx.facts.callee(call) or ""
    if not callee.endswith("_"):
        return ""
    if callee.startswith("Tensor.") and isinstance(call.func, cst.Attribute):
        held = call.func.value
        if isinstance(held, cst.Call) and (ctx.facts.callee(held) or "").endswith("_"):
            return _written_by(ctx, held)  # of a chain the first call
        return _root(held)
    given = callee.startswith("torch.nn.init.") and bool(call.args)
    return _root(call.args[0].value) if given else ""


def _root(node: cst.CSTNode) -> str:
    name = root_name(node)
    return name.value if name is not None else ""


def _is_tensor(kind: k.Kind) -> bool:
    return isinstance(kind.inner if isinstance(kind, k.Optional) else kind, k.Tensor)


def _is_plain(
    ctx: Context, info: FunctionInfo, own: list[cst.CSTNode], written: tuple[str, ...]
) -> bool:
    """Whether a function has no result but what it writes to, stands for itself alone and is seen wherever it is called."""
    if info.generator or info.outer is not None or info.nested or info.node.decorators:
        return False
    results = [n.value for n in own if isinstance(n, cst.Return) and n.value is not None]
    if any(not isinstance(one, cst.Name) or (one.value,) != written for one in results):
        return False
    if not info.call_sites:
        return False
    if any(isinstance(n, (cst.FunctionDef, cst.Lambda)) for n in own) or is_handed_on(ctx, info):
        return False
    if info.owner is None:
        return not info.shared
    if info.short == "forward" or info.short.startswith("__"):
        return False
    named = [c for c in ctx.facts.classes.values() if info.short in c.methods]
    asked = [n for n in ctx.facts.tree.of_type(cst.Attribute) if n.attr.value == info.short]
    calls = {id(call.func) for call in info.call_sites if isinstance(call, cst.Call)}
    return len(named) == 1 and all(id(node) in calls for node in asked)


def _names_given(
    ctx: Context, call: cst.CSTNode, info: FunctionInfo, written: tuple[str, ...]
) -> dict[str, cst.Name | cst.Attribute] | None:
    """The variable, or the parameter of a model being built, that a call gives for each parameter written to.

    None where the call is no statement of its own, or gives anything else."""
    if not isinstance(call, cst.Call) or any(a.star for a in call.args):
        return None
    if _called(call) != info.short:
        return None
    if not any(one.value is call for one in ctx.source.index.of_type(cst.Expr)):
        return None
    given = {
        name: _undressed(item.value)
        for name, item in bound_arguments(call, info)
        if name in written
    }
    builds = call in info.call_sites and _builds(ctx, info.call_sites[call])
    names = {
        p: v
        for p, v in given.items()
        if isinstance(v, cst.Name)
        or (isinstance(v, cst.Attribute) and builds and _is_own_parameter(ctx, v))
    }
    texts = [syntax.code(v) for v in names.values()]
    distinct = len(set(texts)) == len(names)
    return names if len(names) == len(written) and distinct else None


def _undressed(node: cst.BaseExpression) -> cst.BaseExpression:
    """``self.weight`` of ``self.weight.data``."""
    return node.value if isinstance(node, cst.Attribute) and _is_data(node) else node


def is_walked(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a name is that of a Variable: ``for name, p in self.named_parameters(): init_(name, p)``."""
    kind = ctx.kind(node)
    return isinstance(node, cst.Name) and isinstance(kind, k.Tensor) and bool(kind.role)


_FILLING = frozenset(
    "constant_ zeros_ ones_ normal_ uniform_ trunc_normal_ xavier_uniform_ xavier_normal_ fill_ zero_".split()
)
_COUNTED = frozenset("dim ndim numel".split())


def _goes_by_no_axis(ctx: Context, info: FunctionInfo, param: str) -> bool:
    """Whether a function does the same to a tensor whose axes stand in another order."""
    for node in ctx.facts.tree.within(info.node.body, cst.Name):
        if node.value != param or not ctx.facts.tree.has(node):
            continue
        around = ctx.facts.tree.around(node)
        above = around[-1]
        if isinstance(above, cst.Attribute) and above.value is node and above.attr.value == "data":
            above = around[-2]
        if isinstance(above, cst.Attribute):
            if above.attr.value not in _FILLING | _COUNTED:
                return False
        elif isinstance(above, cst.Arg):
            call = next(one for one in reversed(around) if isinstance(one, cst.Call))
            if (ctx.facts.callee(call) or "").rpartition(".")[2] not in _FILLING:
                return False
        else:
            return False
    return True


def _builds(ctx: Context, caller: FunctionInfo | None) -> bool:
    return caller is not None and ctx.plan.builds_time(caller)


def _is_own_parameter(ctx: Context, node: cst.Attribute) -> bool:
    kind = ctx.kind(node)
    own = isinstance(node.value, cst.Name) and node.value.value == "self"
    of_layer = ctx.kind(node.value)
    owner = ctx.facts.classes.get(of_layer.cls) if isinstance(of_layer, k.Module) else None
    if owner is None or owner.torch_base != "torch.nn.Module":
        return False  # what a layer of torch registers has another name or layout here
    return own and isinstance(kind, k.Tensor) and kind.role in ("param", "buffer")


def results(ctx: Context, info: FunctionInfo) -> cst.Name | cst.Subscript | cst.Tuple | None:
    """What such a function returns; None for any other."""
    return _names(list(written_parameters(ctx, info)))


def targets_of(ctx: Context, call: cst.Call) -> cst.Name | cst.Subscript | cst.Tuple | None:
    """The variables that take what a call of such a function returns; None for a call of any other."""
    names = [
        f"{syntax.code(v)}[...]"
        if isinstance(v, cst.Attribute) or is_walked(ctx, v) or _is_new(ctx, v)
        else v.value
        for v in written_arguments(ctx, call)
    ]
    return _names(["_" if name == "None" else name for name in names])


def written_arguments(ctx: Context, call: cst.Call) -> list[cst.Name | cst.Attribute]:
    """The arguments that a call of such a function writes to, in the order in which it returns them."""
    name = _called(call)
    called = [f for f in ctx.facts.functions.values() if f.short == name and call in f.call_sites]
    written = written_parameters(ctx, called[0]) if len(called) == 1 else ()
    given = _names_given(ctx, call, called[0], written) if written else None
    return [given[one] for one in written] if given else []


def check_made(ctx: Context, line: cst.CSTNode, node: cst.BaseExpression) -> None:
    """Raise a Failure for a name of what may be a parameter, and is not told to be one: ``w = P(x) if c else None``."""
    tree = ctx.facts.tree
    if not isinstance(node, cst.Name) or not tree.has(node) or is_walked(ctx, node):
        return
    inside = [one for one in tree.around(node) if isinstance(one, cst.FunctionDef)]
    new = bool(inside) and _is_new(ctx, node)
    for one in (
        tree.within(inside[-1].body, cst.Assign, cst.AnnAssign, cst.NamedExpr) if inside else ()
    ):
        places = [to.target for to in one.targets] if isinstance(one, cst.Assign) else [one.target]
        if new and len(places) == 1:
            continue  # ``self.w = w = P(x)``: the name is that of the array there
        named = any(node.value in syntax.names(to) for to in places)
        if named and one.value is not None:
            for call in tree.within(one.value, cst.Call):
                if ctx.facts.callee(call) == "torch.nn.Parameter":
                    what = f"`{node.value}` may be a parameter, which is written to by another name"
                    raise Failure(line, "API009", what, "initialise the attribute of the module")


def _is_new(ctx: Context, node: cst.BaseExpression) -> bool:
    """Whether a local name stands for a parameter that the function has made: ``w = nn.Parameter(x)``."""
    from migrator.convert.passes.targets import new_parameters

    tree = ctx.facts.tree
    around = tree.around(node) if isinstance(node, cst.Name) and tree.has(node) else []
    inside = [one for one in around if isinstance(one, cst.FunctionDef)]
    return bool(inside) and node.value in new_parameters(ctx, inside[-1].body)  # type: ignore[attr-defined]


def _called(call: cst.Call) -> str:
    func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return func.value if isinstance(func, cst.Name) else ""


def _names(names: list[str]) -> cst.Name | cst.Subscript | cst.Tuple | None:
    made = syntax.parse(", ".join(names)) if names else None
    return made if isinstance(made, (cst.Name, cst.Subscript, cst.Tuple)) else None
