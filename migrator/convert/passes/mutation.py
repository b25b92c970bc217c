"""In-place methods, ``out=``, item assignment and augmented assignment become functional updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import libcst as cst

from migrator import syntax, views
from migrator.convert.alias import (
    check_in_place_layer,
    check_mutation,
    check_temporary,
    check_unknown,
    ends,
    innermost,
)
from migrator.convert.chained import check_chain
from migrator.convert.context import Context, Failure
from migrator.convert.expand import CallArg, call_args, convert_call
from migrator.convert.handed_on import may_run
from migrator.convert.made_of_globals import check_made_of_global
from migrator.convert.named_weights import check_named_weight
from migrator.convert.own_gradient import (
    adds,
    check_own_gradient,
    with_constant,
)
from migrator.convert.passes import targets, unknown_items, unknown_weights
from migrator.convert.passes.bounded_writes import fills, within_bounds
from migrator.convert.passes.changed_items import changed_item
from migrator.convert.passes.past_gradients import (
    augmented_past,
    augmented_variable,
    keeps_its_own,
)
from migrator.convert.passes.state_alias import named_state, with_state
from migrator.convert.passes.unknown_layers import is_of_argument
from migrator.convert.passes.view_writes import (
    is_new,
    is_part_of_new,
    is_view,
    only_reshapes_part,
    read_elsewhere,
    used_view,
)
from migrator.convert.passes.walked import check_written
from migrator.convert.possible_calls import may_be_run
from migrator.convert.rewriter import Rewriter, Starting, converts
from migrator.convert.sharing import inplace_argument
from migrator.convert.surroundings import names_one, told
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import Rule, module_file


def in_place_name(rw: Rewriter, node: cst.CSTNode) -> str | None:
    """``Tensor.add_`` for a call of an in-place method on a tensor."""
    if not isinstance(node, cst.Call) or not isinstance(node.func, cst.Attribute):
        return None
    name = rw.ctx.facts.callee(node) or ""
    if name in ("Tensor.requires_grad_", "Tensor.share_memory_", "Tensor.is_shared"):
        return None
    if name.startswith("Tensor.") and name.endswith("_") and not name.endswith("__"):
        return name
    return None


def in_place_function(rw: Rewriter, node: cst.CSTNode) -> str | None:
    """``torch.relu`` for ``torch.relu_(x)``, ``F.relu`` for ``F.relu(x, inplace=True)``: the name that makes the value."""
    if not isinstance(node, cst.Call) or not node.args or node.args[0].star:
        return None
    name = rw.ctx.facts.callee(node) or ""
    if not name.startswith("torch.") or name.endswith("()"):
        return None
    if node.args[0].keyword is not None and node.args[0].keyword.value != "input":
        return None
    if isinstance(rw.ctx.facts.kind(node.func), k.Class):
        return None  # nn.Dropout(p, inplace=True) makes a layer, it writes nothing yet
    if inplace_argument(name, node) is not None:
        return name
    plain = name.removesuffix("_")
    if plain == name or name.startswith("torch.nn.init."):
        return None
    if definitions.ops(name):  # of a definition of its own: torch.fill_(x, 1)
        return name if name in ("torch.fill_", "torch.zero_") else None
    return plain if definitions.ops(plain) else None


def surely_in_place(rw: Rewriter, node: cst.Call) -> bool:
    flag = inplace_argument(rw.ctx.facts.callee(node) or "", node)
    return flag is None or rw.ctx.kind(flag.value) == k.Const(True)


def functional(name: str) -> tuple[str, tuple[Rule, ...]]:
    """The functional definition behind an in-place name: its own, or the one without the underscore."""
    rules = definitions.ops(name)
    if rules:
        return name, rules
    return name[:-1], definitions.ops(name[:-1])


def new_value(rw: Rewriter, node: cst.Call, name: str) -> cst.BaseExpression:
    """What an in-place call writes."""
    assert isinstance(node.func, cst.Attribute)
    base, rules = functional(name)
    if not rules:
        raise Failure(node, "API001", f"{name} has no definition", "")
    receiver = views.undressed(node.func.value)
    inner = in_place_name(rw, receiver)
    if inner is not None:
        check_chain(rw.ctx, node, written(rw, receiver))
        current = new_value(rw, receiver, inner)
    else:
        current = targets.current(rw, receiver)
    args = [CallArg(None, receiver, current, rw.ctx.kind(receiver)), *call_args(rw, node.args)]
    args += [one for one in told(rw.ctx, node, args, rules) if one.keyword in ("fits", "distinct")]
    if base.endswith("_") or not _changes_dtype(rw, rules, args):
        return convert_call(rw, node, base, rules, args).node  # its own definition keeps the dtype
    if inner is not None:  # all of a chain keep the dtype of what it writes to
        current = targets.current(rw, written(rw, node))
    if not syntax.is_cheap(current):
        named = rw.ctx.hoist(receiver, args[0].updated, "x")
        if named is None:
            what = "a result in place keeps the dtype of its tensor, which has no name here"
            raise Failure(node, "MUT002", what, "give the tensor a name on a line of its own")
        args[0] = CallArg(None, receiver, named, args[0].kind)
        current = named
    value = convert_call(rw, node, base, rules, args).node
    made = syntax.parse("_value.astype(_current.dtype)")
    return syntax.substitute(made, {"_value": value, "_current": current})


def _changes_dtype(rw: Rewriter, rules: tuple[Rule, ...], args: list[CallArg]) -> bool:
    """Whether what is computed may have another dtype than the tensor that ``x.eq_(y)``, ``x.add_(y)`` leave it with."""
    kind = rw.ctx.kind(args[0].original)
    boolean = all(rule.returns.replace("'", '"') == 'Tensor["bool"]' for rule in rules)
    wider = any(_may_widen(rw, kind, rw.ctx.kind(a.original)) for a in args[1:])
    return (boolean or wider) and not (isinstance(kind, k.Tensor) and kind.dtype == "bool")


_NARROW_FLOATS = frozenset("half bfloat16 float16".split())
_NARROW_INTEGERS = frozenset("short byte char int8 uint8 int16".split())


def narrow_dtypes(rw: Rewriter) -> tuple[bool, ...]:
    """Whether a file names floats, and whole numbers, of fewer bits than the usual ones."""
    if rw.ctx.narrow is None:
        rw.ctx.narrow = tuple(names_one(rw.ctx, w) for w in (_NARROW_FLOATS, _NARROW_INTEGERS))
    return rw.ctx.narrow


def _may_widen(rw: Rewriter, target: k.Kind, other: k.Kind) -> bool:
    """Whether a tensor written in place may have fewer digits than the operand: torch keeps the dtype it has.

    All tensors of one kind have one dtype in files that name no narrow one."""
    floats, whole = narrow_dtypes(rw)
    dtype = target.dtype if isinstance(target, k.Tensor) else None
    named = {"float": floats, "complex": floats, "int": whole, "bool": False}
    if not named.get(dtype or "", floats or whole) or k.scalar_type(other) is not None:
        return False
    return not (isinstance(other, k.Tensor) and other.dtype == "bool")


def _function_value(rw: Rewriter, node: cst.Call, name: str) -> cst.BaseExpression:
    """What a function that works in place writes into its first argument."""
    target = node.args[0].value
    first = CallArg(None, target, rw.visit(target), rw.ctx.kind(target))
    flag = inplace_argument(rw.ctx.facts.callee(node) or "", node)
    rest = call_args(rw, [a for a in node.args[1:] if a is not flag])
    return convert_call(rw, node, name, definitions.ops(name), [first, *rest]).node


def _receiver(call: cst.Call) -> cst.BaseExpression:
    assert isinstance(call.func, cst.Attribute)
    return cast(cst.BaseExpression, views.undressed(call.func.value))


def written(rw: Rewriter, node: cst.Call) -> cst.BaseExpression:
    """The tensor that a chain of in-place calls writes."""
    assert isinstance(node.func, cst.Attribute)
    receiver = views.undressed(node.func.value)
    if in_place_name(rw, receiver) is not None:
        return written(rw, receiver)
    return receiver


_RESHAPING = frozenset(
    "squeeze_ unsqueeze_ t_ transpose_ swapaxes_ swapdims_ resize_ resize_as_ as_strided_".split()
)
"""Methods that write no numbers."""


def _through_data(call: cst.Call) -> bool:
    """Whether a chain of in-place calls starts at the ``data`` of a tensor, or at it detached."""
    node: cst.CSTNode = call
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        if views.is_detached(node):
            return True
        node = node.func.value
    return views.is_data(node)


@converts(cst.Expr, values=(cst.Call,))
def expression_statement(rw: Rewriter, node: cst.Expr) -> Any:
    """``x.add_(y)`` and ``torch.add(x, y, out=z)`` as statements."""
    call = node.value
    if not isinstance(call, cst.Call):
        return None
    name = in_place_name(rw, call)
    if name is not None:
        target = written(rw, call)
        unknown = targets.found_at_run_time(rw.ctx, target)
        base, rules = functional(name)
        if unknown is not None and rules and in_place_name(rw, _receiver(call)) is None:
            first = CallArg(None, target, targets.whole(rw.ctx), k.TENSOR)
            value = convert_call(rw, call, base, rules, [first, *call_args(rw, call.args)]).node
            return targets.initialized(rw, unknown, value)
        reshapes = name.rpartition(".")[2] in _RESHAPING
        check_mutation(rw.ctx, call, target, reshapes)
        data: bool | None = _through_data(call)
        if reshapes:
            if data:
                what = (
                    "the shape is changed of what .data gives, and not of the tensor it is asked of"
                )
                raise Failure(call, "MUT001", what, "change the shape of the tensor itself")
            data = None
        if name == "Tensor.detach_":
            if data:
                return []  # what .data gives has no gradient to cut off
            data = None
        if isinstance(target, cst.Subscript) and fills(rw.ctx, call):
            given = call.args[0].value if call.args else None
            number = rw.visit(given) if given is not None else cst.Integer("0")
            filled = within_bounds(rw, target, number, given)
            if filled is not None:
                return targets.assign(rw, target.value, filled, data=data)
        return targets.assign(rw, target, new_value(rw, call, name), data=data)
    function = in_place_function(rw, call)
    if function is not None and surely_in_place(rw, call):
        target = call.args[0].value
        check_mutation(rw.ctx, call, target)
        return targets.assign(rw, target, _function_value(rw, call, function))
    out = _out_argument(rw, call)
    if out is not None:
        check_mutation(rw.ctx, call, out)
        return targets.assign(rw, out, rw.visit(_without_out(call)))
    return None


@converts(cst.Assign, called=Starting("torch."), targets=(cst.Name,), values=(cst.Call,))
def result_of_out(rw: Rewriter, node: cst.Assign) -> Any:
    """``y = torch.add(x, z, out=x)``: the tensor gets its new value, and y is that tensor."""
    call = node.value
    out = _out_argument(rw, call) if isinstance(call, cst.Call) else None
    if out is None or not isinstance(call, cst.Call) or not isinstance(out, cst.Name):
        return None
    if not all(isinstance(t.target, cst.Name) for t in node.targets):
        return None
    check_mutation(rw.ctx, call, out)
    written = targets.assign(rw, out, rw.visit(_without_out(call)))
    if all(t.target.deep_equals(out) for t in node.targets):
        return written
    return [*written, syntax.changed(node, value=rw.visit(out))]


def _out_argument(rw: Rewriter, call: cst.Call) -> cst.BaseExpression | None:
    name = rw.ctx.facts.callee(call) or ""
    if not name.startswith("torch."):
        return None
    for item in call.args:
        if item.keyword is not None and item.keyword.value == "out":
            return None if syntax.code(item.value) == "None" else item.value
    return None


def _without_out(call: cst.Call) -> cst.Call:
    """The call without ``out=``; it keeps its kinds because its parts are the same nodes."""
    kept = [a for a in call.args if not (a.keyword is not None and a.keyword.value == "out")]
    if kept:
        kept[-1] = syntax.changed(kept[-1], comma=cst.MaybeSentinel.DEFAULT)
    return syntax.changed(call, args=kept)


@converts(cst.Call, called=Starting("torch.", "Tensor."))
def in_place_call(rw: Rewriter, node: cst.Call) -> Any:
    """An in-place call whose result is used."""
    name = in_place_name(rw, node)
    if name is not None:
        if name != "Tensor.detach_":
            check_own_gradient(rw.ctx, node, written(rw, node))
        return _used_result(rw, node, written(rw, node), lambda: new_value(rw, node, name))
    function = in_place_function(rw, node)
    if function is None:
        return None
    check_own_gradient(rw.ctx, node, node.args[0].value)
    try:  # nobody reads the old value: the new one need not replace it
        check_in_place_layer(rw.ctx, node)
    except Failure:
        if not surely_in_place(rw, node):
            raise
        target = node.args[0].value
        return _used_result(rw, node, target, lambda: _function_value(rw, node, function))
    return _function_value(rw, node, function)


def _used_result(
    rw: Rewriter, node: cst.Call, target: cst.BaseExpression, value: Callable[[], Any]
) -> cst.BaseExpression:
    """The target, once the statement before has given it its new value; the value alone for a temporary."""
    ctx = rw.ctx
    if isinstance(target, cst.Name) and not targets.is_variable(ctx, target):
        statement = ctx.statements[-1] if ctx.statements else None
        check_mutation(ctx, node, target, reshapes=True)
        alone = statement is not None and not read_elsewhere(statement.node, node, target)
        state = named_state(ctx, target) is not None
        if statement is not None and statement.target == target.value and alone and not state:
            return value()
        if statement is not None and _is_last_use(ctx, statement.node, node, target) and not state:
            return value()
        if (
            statement is None
            or not statement.may_hoist
            or read_elsewhere(statement.node, node, target)
        ):
            raise Failure(
                node,
                "MUT002",
                f"`{target.value}` is changed in the middle of an expression",
                "give the change a statement of its own",
            )
        line = cst.Assign([cst.AssignTarget(target)], value())
        for one in with_state(rw, target, [line]):
            statement.before.append(cst.SimpleStatementLine([one]))
        return target
    if only_reshapes_part(rw, node, target):
        return value()
    if isinstance(target, cst.Call):
        if is_new(rw, target):
            return value()
        if is_view(rw, target):
            return used_view(rw, node, target, value)
        check_temporary(ctx, node, target)
        return value()
    if isinstance(target, (cst.BinaryOperation, cst.UnaryOperation, cst.Comparison)):
        return value()
    if is_part_of_new(rw, target):
        return value()
    whole = not isinstance(target, cst.Subscript) or isinstance(ctx.kind(target.value), k.Tensor)
    if whole and views.is_assigned_to(ctx.statements[-1].node if ctx.statements else None, target):
        check_mutation(ctx, node, target, reshapes=True)
        return value()
    item = changed_item(rw, node, target, value)
    if item is not None:
        return item
    what = "a tensor is changed in the middle of an expression"
    raise Failure(node, "MUT002", what, "give the change a statement of its own")


def _is_last_use(ctx: Context, statement: cst.CSTNode, call: cst.CSTNode, target: cst.Name) -> bool:
    """``return x.mul_(g) if inplace else x * g``: after the change the name is read by nobody."""
    small = statement.body[0] if isinstance(statement, cst.SimpleStatementLine) else None
    value = small.value if isinstance(small, (cst.Return, cst.Assign)) else None
    rebinds = isinstance(small, cst.Return) or (
        isinstance(small, cst.Assign)
        and len(small.targets) == 1
        and syntax.code(small.targets[0].target) == target.value
    )
    if value is None or not rebinds:
        return False
    if isinstance(small, cst.Return) and not ends(ctx, statement):
        return False
    while isinstance(value, cst.IfExp) and value is not call:
        value = value.body if call in syntax.walk(value.body) else value.orelse
    once = isinstance(small, cst.Return) or syntax.names(call).get(target.value, 0) == 1
    return value is call and once


@converts(cst.Assign, targets=(cst.Subscript, cst.Tuple, cst.List))
def item_assignment(rw: Rewriter, node: cst.Assign) -> Any:
    """``x[i] = v``."""
    if len(node.targets) != 1:
        if any(isinstance(t.target, cst.Subscript) for t in node.targets):
            if any(
                isinstance(rw.ctx.kind(t.target.value), k.Tensor)
                for t in node.targets
                if isinstance(t.target, cst.Subscript)
            ):
                return _one_by_one(rw, node)
        return None
    target = node.targets[0].target
    if isinstance(target, (cst.Tuple, cst.List)):
        for element in target.elements:
            item = element.value
            if isinstance(item, cst.Subscript) and isinstance(rw.ctx.kind(item.value), k.Tensor):
                raise Failure(node, "MUT002", "an unpacking writes into a tensor", "split it")
        return None
    if type(target) is not cst.Subscript:
        return None
    targets.check_named(rw.ctx, target)
    if unknown_items.may_be_either(rw, target, node.value):
        return unknown_items.written(rw, node, target, node.value)
    if not isinstance(rw.ctx.kind(target.value), k.Tensor):
        return _item_of_unknown(rw, node, target)
    check_mutation(rw.ctx, node, target)
    if unknown_items.may_be_a_list(rw, target):
        return unknown_items.with_item(rw, target, rw.visit(node.value))
    from migrator.convert.passes.item_writes import selects_the_same, set_items

    # what a mask selects from another tensor has no shape of its own: it is not converted by itself
    value = node.value if selects_the_same(rw, target, node.value) else rw.visit(node.value)
    return set_items(rw, target, value, node.value)


def _item_of_unknown(rw: Rewriter, node: cst.Assign, target: cst.Subscript) -> Any:
    """``layer.bias.data[:n] = 0`` of a layer whose class is known only at run time."""
    from migrator.convert.passes.item_writes import set_items

    held = target.value
    if isinstance(held, cst.Name):
        check_named_weight(rw.ctx, node, held, sure=False)
    if is_of_argument(rw.ctx, held):
        what = "parts of a parameter are written whose layer is not known"
        raise Failure(node, "MUT002", what, "annotate the layer, or write to `weight.data`")
    unknown = unknown_weights.with_parts(rw.ctx, held)
    if unknown is None:
        return None
    whole = targets.whole(rw.ctx)
    rw.ctx.facts.kinds[whole] = k.TENSOR
    items = syntax.changed(target, value=whole)
    made = set_items(rw, items, rw.visit(node.value), node.value)
    if len(made) != 1 or not isinstance(made[0], cst.Assign):
        what = "parts of a parameter are written whose layer is not known"
        raise Failure(node, "MUT002", what, "annotate the layer")
    return targets.initialized(rw, unknown, made[0].value)


def _one_by_one(rw: Rewriter, node: cst.Assign) -> list[Any]:
    """``x[i] = last = v`` → ``last = v`` and ``x[i] = last``, where the order of the two changes nothing."""
    from migrator.convert.passes.functions import may_hold_tensor, stopped
    from migrator.convert.passes.item_writes import set_items

    names = [t.target for t in node.targets if isinstance(t.target, cst.Name)]
    items = [t.target for t in node.targets if isinstance(t.target, cst.Subscript)]
    read = {name for item in items for name in syntax.names(item)}
    tensors = all(isinstance(rw.ctx.kind(item.value), k.Tensor) for item in items)
    if len(names) != 1 or len(items) + 1 != len(node.targets) or not tensors:
        raise Failure(node, "MUT002", "a chained assignment writes into a tensor", "split it")
    if names[0].value in read:
        raise Failure(node, "MUT002", "a chained assignment writes into a tensor", "split it")
    value = rw.visit(node.value)
    if rw.ctx.no_grad and may_hold_tensor(rw, node.value):
        value = stopped(rw, value, node.value)
    made: list[Any] = [cst.Assign([cst.AssignTarget(names[0])], value)]
    for item in items:
        check_mutation(rw.ctx, node, item)
        made += set_items(rw, item, names[0])
    return made


@converts(cst.AugAssign)
def augmented(rw: Rewriter, node: cst.AugAssign) -> Any:
    """``x[i] += v`` becomes an indexed update; ``x += v`` on a tensor writes in place in torch."""
    from migrator.convert.passes.training import add_to_training

    unknown = unknown_weights.augmented(rw, node)
    if unknown is not None:
        return unknown
    mode = add_to_training(rw, node)
    if mode is not None:
        return mode
    made = _augmented_in_dtype(rw, node)
    if isinstance(node.target, cst.Name) and isinstance(made, (cst.AugAssign, cst.Assign)):
        return with_state(rw, node.target, [made])
    return made


def _augmented_in_dtype(rw: Rewriter, node: cst.AugAssign) -> Any:
    made = _augmented(rw, node)
    kind = rw.ctx.kind(node.target)
    if not isinstance(made, cst.AugAssign) or not isinstance(kind, k.Tensor):
        return made
    if not _may_widen(rw, kind, rw.ctx.kind(node.value)):
        return made
    read = syntax.code(made.target)
    operator = syntax.code(made.operator).strip().removesuffix("=")
    if _began_as_number(rw, node.target):
        helper = rw.ctx.helpers.need(module_file("rules.compat.data"), "in_dtype_of")
        template = syntax.parse(f"{helper}(__x__, __x__ {operator} __y__)")
    else:
        template = syntax.parse(f"(__x__ {operator} __y__).astype(__x__.dtype)")
    value = syntax.substitute(template, {"__x__": syntax.parse(read), "__y__": made.value})
    return cst.Assign([cst.AssignTarget(made.target)], value)


def _began_as_number(rw: Rewriter, target: cst.BaseExpression) -> bool:
    """``loss = 0`` before ``loss += …``: the first time around nothing is written in place."""
    frame = rw.ctx.frame
    if not isinstance(target, cst.Name) or frame is None:
        return not targets.is_variable(rw.ctx, target)
    return any(
        isinstance(one.targets[0].target, cst.Name)
        and one.targets[0].target.value == target.value
        and k.scalar_type(rw.ctx.facts.kind(one.value)) is not None
        for one in rw.ctx.facts.tree.within(frame.info.node.body, cst.Assign)
    )


def _may_hold_tensor(rw: Rewriter, target: cst.Subscript) -> bool:
    """Whether an item of a list or dict may be a tensor: ``cfg["width"] *= 2`` while a model is built is none."""
    ctx, kind = rw.ctx, rw.ctx.kind(target)
    index = target.slice[0].slice
    named = isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString)
    if named and not isinstance(kind, k.Tensor) and ctx.frame is not None:
        return may_run(ctx, ctx.frame.info)
    return k.scalar_type(kind) is None


def _augmented(rw: Rewriter, node: cst.AugAssign) -> Any:
    ctx = rw.ctx
    target = node.target
    if isinstance(target, cst.Subscript) and isinstance(ctx.kind(target.value), k.Tensor):
        check_mutation(ctx, node, target)
        from migrator.convert.passes.item_writes import update_items

        return update_items(rw, target, node)
    targets.check_named(ctx, target)
    if isinstance(target, cst.Attribute) and k.scalar_type(ctx.kind(target)) is None:
        check_made_of_global(ctx, node, syntax.code(target))
    if isinstance(target, cst.Subscript) and unknown_items.may_be_either(rw, target, node.value):
        return unknown_items.added_to(rw, node, target)
    if isinstance(target, cst.Subscript) and _may_hold_tensor(rw, target):
        check_mutation(ctx, node, target)  # feats[i] += x writes to the tensor that feats holds
    if isinstance(ctx.kind(target), (k.Unknown, k.Optional)):
        if isinstance(target, cst.Name):
            check_unknown(ctx, node, target)
        elif ctx.frame is not None and not ctx.in_init and may_be_run(ctx, innermost(ctx)):
            check_mutation(ctx, node, target)
    if targets.registered_by_name(ctx, target):
        check_mutation(ctx, node, target)
        made = targets.dereferenced(rw.rebuild(target))
        return syntax.changed(node, target=made, value=rw.visit(node.value))
    if isinstance(ctx.kind(target), k.Tensor):
        if keeps_its_own(ctx, node) and not targets.is_variable(ctx, target):
            if adds(rw, node):
                return with_constant(rw, node)
            if not ctx.no_grad:
                check_mutation(ctx, node, target)
                return augmented_past(rw, node, target, target, data=False)
            raise Failure(
                node, "MUT002", "an in-place update under no_grad keeps x's own gradient", ""
            )
        check_mutation(ctx, node, target)
        if isinstance(target, cst.Name) and targets.holds_parameter(ctx, target):
            return syntax.changed(
                node, target=targets.dereferenced(target), value=rw.visit(node.value)
            )
        if targets.is_variable(ctx, target) and isinstance(target, (cst.Attribute, cst.Name)):
            if isinstance(target, cst.Name):
                check_written(ctx, target)
            return augmented_variable(rw, node, target)
        if isinstance(target, cst.Attribute) and target.attr.value == "data":
            if targets.is_variable(ctx, target.value):
                return augmented_variable(rw, node, target.value, data=True)
            return augmented_past(rw, node, target.value, rw.visit(target.value), data=True)
        if isinstance(node.operator, (cst.MatrixMultiplyAssign,)):
            raise Failure(node, "MUT002", "in-place matmul has no counterpart", "write x = x @ y")
    value = rw.visit(node.value)
    return (
        node if value is node.value else syntax.changed(node, value=syntax.unparenthesized(value))
    )


@converts(cst.Assign, named=("data",))
def data_of_several(rw: Rewriter, node: cst.Assign) -> None:
    """Raise a Failure for ``m.gamma.data = value`` where ``m`` may be of one of several classes."""
    target = node.targets[0].target
    held = target.value if isinstance(target, cst.Attribute) else None
    kind = rw.ctx.kind(held.value) if isinstance(held, cst.Attribute) else None
    own = rw.ctx.facts.classes
    if isinstance(kind, k.Module) and kind.among and all(one.cls in own for one in kind.among):
        what = "the data of a parameter of one of several classes is replaced"
        raise Failure(node, "MUT001", what, "write to it: `p.data.copy_(value)`")
