"""``nn.init.*``: the tensor they write is assigned a freshly drawn value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import libcst as cst

from migrator import syntax, views
from migrator.convert.alias import check_mutation, root_name
from migrator.convert.context import Context, Failure
from migrator.convert.expand import CallArg, call_args, convert_call
from migrator.convert.passes import targets
from migrator.convert.passes.transposed import as_in_torch, walked_module
from migrator.convert.procedures import (
    check_made,
    results,
    targets_of,
    written_arguments,
    written_parameters,
)
from migrator.convert.rewriter import Rewriter, Starting, converts
from migrator.infer import FunctionInfo
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import module_file

LAYOUT_FREE = frozenset("normal_ uniform_ constant_ zeros_ ones_ trunc_normal_ fill_ zero_".split())


def _rules(rw: Rewriter, node: cst.CSTNode) -> tuple[str, Any]:
    name = rw.ctx.facts.callee(node) if isinstance(node, cst.Call) else None
    if not name or not name.startswith("torch.nn.init.") or "calculate_" in name:
        return "", ()
    if not definitions.ops(name) and not name.endswith("_") and definitions.ops(f"{name}_"):
        name = f"{name}_"
    return name, definitions.ops(name)


def _itself(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression:
    """``m.weight`` of ``torch.as_tensor(m.weight)`` and ``cast(torch.Tensor, m.weight)``, which give it back."""
    if not isinstance(node, cst.Call) or any(a.keyword or a.star for a in node.args):
        return node
    name, given = rw.ctx.facts.qualified_name(node.func), [a.value for a in node.args]
    if rw.ctx.facts.kind(node.func) == k.Other("typing.cast") and len(given) == 2:
        return _itself(rw, given[1])
    if name in ("torch.as_tensor", "torch.asarray") and len(given) == 1:
        return _itself(rw, given[0]) if isinstance(given[0], cst.Attribute) else node
    return node


@converts(cst.Expr, called=Starting("torch.nn.init."), values=(cst.Call,))
def statement(rw: Rewriter, node: cst.Expr) -> Any:
    """``nn.init.normal_(self.weight, std=0.02)``."""
    written = call = node.value
    name, rules = _rules(rw, call)
    if not name:
        return None
    assert isinstance(written, cst.Call)
    assert isinstance(call, cst.Call)
    if not rules:
        raise Failure(call, "API001", f"{name} has no definition", "write the initial value out")
    target = _itself(rw, call.args[0].value)
    if target is not call.args[0].value:
        itself = syntax.changed(call.args[0], value=target)
        call = syntax.changed(call, args=[itself, *call.args[1:]])
    target = views.undressed(target)
    viewed = _viewed(rw, target)
    if viewed is not None:
        value = convert_call(rw, call, name, rules, call_args(rw, call.args)).node
        check_mutation(rw.ctx, written, viewed)
        shape = cst.Attribute(rw.visit(viewed), cst.Name("shape"))
        value = cst.Call(cst.Attribute(value, cst.Name("reshape")), [cst.Arg(shape)])
        return targets.assign(rw, viewed, value, data=True)
    module = walked_module(rw.ctx, written, target)
    if module is not None and not as_in_torch(rw.ctx, rw.ctx.kind(module)):
        return _of_walked(rw, call, name, rules, module, target)
    free = name.rpartition(".")[2] in LAYOUT_FREE
    unknown = targets.found_at_run_time(rw.ctx, target)
    if unknown is not None:
        rest = call_args(rw, call.args[1:])
        first = CallArg(None, target, targets.whole(rw.ctx), k.TENSOR)
        value = convert_call(rw, call, name, rules, [first, *rest]).node
        return targets.initialized(rw, unknown, value)
    args = call_args(rw, call.args)
    args[0] = _current(rw, target, free, args[0])
    check_mutation(rw.ctx, written, target)
    value = convert_call(rw, call, name, rules, args).node
    return targets.assign(rw, target, value, layout_free=free, data=_written_later(rw, target))


def _of_walked(
    rw: Rewriter,
    call: cst.Call,
    name: str,
    rules: Any,
    module: cst.BaseExpression,
    target: cst.BaseExpression,
) -> cst.Expr:
    """``for p in net.parameters(): nn.init.kaiming_normal_(p)``: a Linear's is stored transposed."""
    first = CallArg(None, target, targets.whole(rw.ctx), k.TENSOR)
    value = convert_call(rw, call, name, rules, [first, *call_args(rw, call.args[1:])]).node
    helper = rw.ctx.helpers.need(module_file("rules.compat.initialize"), "initialize_parameter")
    function = cst.Lambda(cst.Parameters([cst.Param(targets.whole(rw.ctx))]), value)
    parameter = target if isinstance(target, cst.Name) else rw.rebuild(target)
    args = [cst.Arg(rw.visit(module)), cst.Arg(parameter), cst.Arg(function)]
    return cst.Expr(syntax.with_args(cst.Call(cst.Name(helper)), args))


def _viewed(rw: Rewriter, node: cst.BaseExpression) -> cst.BaseExpression | None:
    """The parameter that ``self.proj.weight.data.view(n, -1)`` shows in another shape, also by ``w = ….data``."""
    ctx = rw.ctx
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    if ctx.facts.callee(node) != "Tensor.view" or isinstance(ctx.kind(node), k.Tuple):
        return None
    base: cst.BaseExpression = node.func.value
    if isinstance(base, cst.Name):
        base = _only_meaning(ctx, node, base) or base
    while views.is_data(base):
        base = base.value
    known = isinstance(base, cst.Attribute) and targets.is_variable(ctx, base)
    return base if known and targets.found_at_run_time(ctx, base) is None else None


def _only_meaning(ctx: Context, call: cst.Call, name: cst.Name) -> cst.BaseExpression | None:
    """What a variable stands for that is assigned once, and read only for its shape and in this call."""
    function = ctx.frame.info.node if ctx.frame is not None else None
    if function is None:
        return None
    found: list[cst.BaseExpression] = []
    for node in ctx.facts.tree.within(function.body, cst.Name):
        if node.value != name.value or node is name:
            continue
        above = ctx.facts.tree.around(node)
        if isinstance(above[-1], cst.AssignTarget) and len(above[-2].targets) == 1:
            found.append(above[-2].value)
        elif not (isinstance(above[-1], cst.Attribute) and above[-1].attr.value == "shape"):
            return None
    return found[0] if len(found) == 1 else None


def _written_later(rw: Rewriter, target: cst.BaseExpression) -> bool:
    """Whether ``nn.init.…_`` writes past the gradient of a parameter, not into a tensor that is just being made."""
    kind = rw.ctx.kind(target)
    return isinstance(kind, k.Tensor) and kind.role == "param"


@converts(
    cst.Assign, called=Starting("torch.nn.init."), targets=(cst.Attribute,), values=(cst.Call,)
)
def assigned_to_itself(rw: Rewriter, node: cst.Assign) -> Any:
    """``m.weight = nn.init.kaiming_normal_(m.weight)``: the weight is written, and assigned to where it is."""
    call, target = node.value, node.targets[0].target
    if len(node.targets) != 1 or not isinstance(call, cst.Call) or not call.args:
        return None
    name = rw.ctx.facts.callee(call) or ""
    if not name.startswith("torch.nn.init.") or not isinstance(target, cst.Attribute):
        return None
    if syntax.code(target) != syntax.code(call.args[0].value):
        return None
    return rw.visit(cst.Expr(call))


def _current(rw: Rewriter, target: cst.BaseExpression, free: bool, arg: CallArg) -> CallArg:
    """The tensor to be drawn anew; in Flax's own layout when the layout does not matter."""
    updated = arg.updated
    if free and targets.is_variable(rw.ctx, target):
        reference, _ = targets.variable_reference(rw, target)
        updated = targets.dereferenced(reference)
    return CallArg(None, target, updated, rw.ctx.kind(target))


@converts(cst.Expr, values=(cst.Call,))
def procedure_statement(rw: Rewriter, node: cst.Expr) -> Any:
    """``self.init_(weight, bias)`` with an own method that writes to several tensors and returns them."""
    if not isinstance(node.value, cst.Call):
        return None
    taken = targets_of(rw.ctx, node.value)
    if not taken:
        return None
    for one in written_arguments(rw.ctx, node.value):
        if isinstance(one, cst.Name) and one.value != "None":
            check_made(rw.ctx, node, one)
            check_mutation(rw.ctx, node.value, one)
    name = syntax.code(taken).removesuffix("[...]")
    given = [item.value for item in node.value.args if syntax.code(item.value) == name]
    return _where_there_is_one(
        rw,
        given[0] if len(given) == 1 else taken,
        lambda: [cst.Assign([cst.AssignTarget(taken)], rw.visit(node.value))],
    )


@converts(cst.Expr, of=(k.Function,), values=(cst.Call,))
def writer_statement(rw: Rewriter, node: cst.Expr) -> Any:
    """``init_(self.weight)`` with an own function that writes to its first argument and returns it."""
    call = node.value
    if not isinstance(call, cst.Call) or not call.args:
        return None
    kind = rw.ctx.kind(call.func)
    info = rw.ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or call.args[0].keyword is not None or call.args[0].star:
        return None
    if not writes_first_parameter(rw.ctx, info):
        return None
    target = call.args[0].value
    target = views.undressed(target)
    unknown = targets.found_at_run_time(rw.ctx, target)
    if unknown is not None:
        tensor = targets.whole(rw.ctx)
        rw.ctx.facts.kinds[tensor] = k.TENSOR
        first = syntax.changed(call.args[0], value=tensor)
        made = syntax.changed(call, args=[first, *call.args[1:]])
        rw.ctx.facts.kinds[made] = k.TENSOR
        return targets.initialized(rw, unknown, rw.visit(made))
    if not isinstance(rw.ctx.kind(target), k.Tensor):
        return None
    check_made(rw.ctx, node, target)
    check_mutation(rw.ctx, call, target)
    return _where_there_is_one(
        rw,
        target,
        lambda: targets.assign(rw, target, rw.visit(call), data=_written_later(rw, target)),
    )


def _where_there_is_one(
    rw: Rewriter, target: cst.BaseExpression, made: Callable[[], list[cst.BaseSmallStatement]]
) -> Any:
    """``if self.bias is not None: self.bias[...] = zeros(self.bias[...])`` of what may be None."""
    kind = rw.ctx.facts.kind(target)
    if not isinstance(kind, k.Optional) or not targets.names_variable(rw.ctx, target):
        return made()
    rw.ctx.facts.kinds[target] = kind.inner
    try:
        lines = made()
    finally:
        rw.ctx.facts.kinds[target] = kind
    reference, _ = targets.variable_reference(rw, target)
    test = cst.Comparison(reference, [cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))])
    return cst.If(test, cst.IndentedBlock([cst.SimpleStatementLine([one]) for one in lines]))


def writes_first_parameter(ctx: Context, info: FunctionInfo) -> bool:
    """Whether a plain function of the project writes to its first parameter and returns it."""
    if info.settled is not None:
        return info.settled.writes_first
    if info in ctx.writers:
        return ctx.writers[info]
    ctx.writers[info] = False
    params = info.node.params.params
    if info.owner is not None or not params:
        return False
    first = params[0].name.value
    wrote = False
    own = syntax.own_nodes(info.node.body)
    procedure = not any(isinstance(item, cst.Return) and item.value is not None for item in own)
    for item in own:
        if isinstance(item, cst.Return) and not procedure:
            if item.value is None or _root(item.value) != first:
                if not (isinstance(item.value, cst.Call) and _writes(ctx, item.value, first)):
                    return False
                wrote = True
        elif isinstance(item, cst.Call) and _writes(ctx, item, first):
            wrote = True
        elif isinstance(item, cst.AugAssign) and _root(item.target) == first:
            wrote = True
    if procedure:
        if written_parameters(ctx, info):
            return False
        tensor = isinstance(info.params.get(first, k.UNKNOWN), (k.Tensor, k.Unknown))
        ctx.writers[info] = wrote and tensor and "generator" not in info.decorators
        if ctx.writers[info]:
            ctx.procedures.add(info)
        return ctx.writers[info]
    last = info.node.body.body[-1]
    returns = isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return)
    if isinstance(last, cst.With):
        inner = last.body.body[-1]
        returns = isinstance(inner, cst.SimpleStatementLine) and isinstance(
            inner.body[-1], cst.Return
        )
    ctx.writers[info] = wrote and returns
    return ctx.writers[info]


def returned_parameter(ctx: Context, info: FunctionInfo) -> str | None:
    """The tensor that a function without a result writes to: its callers need the new value."""
    if info.owner is not None or not writes_first_parameter(ctx, info):
        return None
    return info.node.params.params[0].name.value if info in ctx.procedures else None


def returned_parameters(ctx: Context, info: FunctionInfo) -> cst.BaseExpression | None:
    """What a function returns that has no result in torch: what it writes to, which its callers need."""
    first = returned_parameter(ctx, info)
    return cst.Name(first) if first is not None else results(ctx, info)


def _writes(ctx: Context, call: cst.Call, name: str) -> bool:
    callee = ctx.facts.callee(call) or ""
    if callee.startswith("torch.nn.init.") and "calculate_" not in callee:
        return bool(call.args) and _root(call.args[0].value) == name
    if (
        callee.startswith("Tensor.")
        and callee.endswith("_")
        and isinstance(call.func, cst.Attribute)
    ):
        return _root(call.func.value) == name
    kind = ctx.kind(call.func)
    info = ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is not None and call.args and _root(call.args[0].value) == name:
        return writes_first_parameter(ctx, info)
    return False


def _root(node: cst.CSTNode) -> str:
    name = root_name(node)
    return name.value if name is not None else ""


def _is_lambda(rw: Rewriter, node: cst.Call) -> bool:
    """``fn = lambda w: nn.init.normal_(w)``, which gives the new value: who calls it assigns it."""
    from migrator.convert.passes.handed_initializers import is_initializing, stays_here

    above = rw.ctx.facts.tree.around(node)[-1]
    if not isinstance(above, cst.Lambda) or above.body is not node:
        return False
    return is_initializing(rw.ctx, above) and stays_here(rw.ctx, above)


@converts(cst.Call, called=Starting("torch.nn.init."))
def expression(rw: Rewriter, node: cst.Call) -> Any:
    """``nn.Parameter(nn.init.normal_(torch.empty(3)))``: the tensor is a temporary."""
    name, rules = _rules(rw, node)
    if not name:
        return None
    if not rules:
        raise Failure(node, "API001", f"{name} has no definition", "write the initial value out")
    frame = rw.ctx.frame
    own = frame is not None and writes_first_parameter(rw.ctx, frame.info)
    if (
        not isinstance(node.args[0].value, cst.Call)
        and not _is_lambda(rw, node)
        and not (
            own
            and frame is not None
            and _root(node.args[0].value) == frame.info.node.params.params[0].name.value
        )
    ):
        raise Failure(
            node,
            "MUT002",
            "a tensor is initialised in the middle of an expression",
            "give the initialisation a statement of its own",
        )
    return convert_call(rw, node, name, rules, call_args(rw, node.args)).node
