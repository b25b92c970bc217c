"""Parameters and buffers: ``nnx.Param``, ``nnx.Variable``, and ``[...]`` where their value is read."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_mutation
from migrator.convert.becoming import is_parameter
from migrator.convert.children import REGISTERING
from migrator.convert.context import Context, Failure
from migrator.convert.passes import after_static, targets
from migrator.convert.passes.assigned_modules import (
    check_child,
    check_hidden,
    child_by_assignment,
    lists_modules,
    plain_list,
    replaces_by_function,
)
from migrator.convert.passes.containers import check_receiver, is_made_sequential, is_sequential
from migrator.convert.passes.freezing import freezes
from migrator.convert.passes.functions import stopped
from migrator.convert.passes.held import (
    after_another,
    given_by_others,
    holds_arrays,
    only_functions,
    set_again,
)
from migrator.convert.passes.receivers import may_be_module
from migrator.convert.passes.taken_numbers import takes_numbers
from migrator.convert.passes.unregistered import registered_elsewhere
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.distributions import is_distribution
from migrator.infer.symbols import tensor_attribute
from migrator.wrappers import is_wrapper
from rules.definitions import module_file


@converts(cst.Call, called=("torch.nn.Parameter", "torch.nn.Buffer"))
def parameter(rw: Rewriter, node: cst.Call) -> Any:
    """``nn.Parameter(x)`` → ``nnx.Param(x)``; one without gradient is a plain Variable."""
    if rw.ctx.facts.callee(node) not in ("torch.nn.Parameter", "torch.nn.Buffer"):
        return None
    if not node.args:
        raise Failure(node, "API002", "an empty Parameter has no counterpart", "give it a value")
    trained: cst.BaseExpression = cst.Name("True")
    for item in node.args[1:]:
        if item.keyword is None or item.keyword.value in ("requires_grad", "persistent"):
            trained = item.value
    func, condition = _variable_class(rw, node, trained)
    value = rw.visit(node.args[0].value)
    made = syntax.with_args(
        syntax.changed(node, func=func),
        [
            node.args[0].with_changes(
                value=value,
                keyword=None,
                equal=cst.MaybeSentinel.DEFAULT,
                comma=cst.MaybeSentinel.DEFAULT,
            )
        ],
    )
    if rw.ctx.facts.callee(node) == "torch.nn.Buffer" and not syntax.is_true(trained):
        return syntax.add_keyword(made, "persistent", rw.visit(trained))
    if condition is None:
        return made
    helper = rw.ctx.helpers.need(module_file("rules.compat.named"), "set_trainable")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(made), cst.Arg(condition)])


def _variable_class(
    rw: Rewriter, node: cst.Call, trained: cst.BaseExpression
) -> tuple[cst.BaseExpression, cst.BaseExpression | None]:
    """The class of a new parameter, and whether it is trained where only a run tells.

    Files that ask for their parameters find the untrained ones among them."""
    rw.ctx.helpers.use("nnx")
    if rw.ctx.facts.callee(node) == "torch.nn.Buffer":
        return syntax.parse("nnx.Variable"), None
    if not isinstance(trained, cst.Name) or trained.value not in ("True", "False"):
        return syntax.parse("nnx.Param"), rw.visit(trained)
    if syntax.is_true(trained):
        return syntax.parse("nnx.Param"), None
    if any(word in rw.ctx.source.text for word in ("parameters(", ".requires_grad")):
        return cst.Name(rw.ctx.helpers.need(module_file("rules.compat.named"), "Frozen")), None
    return syntax.parse("nnx.Variable"), None


@converts(cst.Assign, values=(cst.Lambda,))
def wrapper(rw: Rewriter, node: cst.Assign) -> Any:
    """A lambda whose calls have been written out goes."""
    if rw.ctx.frame is None or not is_wrapper(node.value) or len(node.targets) != 1:
        return None
    read = syntax.names(rw.ctx.frame.info.node.body)
    return [] if read.get(syntax.code(node.targets[0].target), 0) == 1 else None


@converts(
    cst.Expr,
    named=("register_buffer", "register_parameter", "add_module", "register_module"),
    values=(cst.Call,),
)
def registration(rw: Rewriter, node: cst.Expr) -> Any:
    """``register_buffer``, ``register_parameter`` and ``add_module`` become assignments."""
    call = node.value
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    ctx, method = rw.ctx, call.func.attr.value
    if method not in ("register_buffer", "register_parameter", "add_module", "register_module"):
        return None
    if method in REGISTERING:
        check_receiver(rw, node, call.func.value)
    if not isinstance(ctx.kind(call.func.value), k.Module):
        return may_be_module(rw, node, call.func.value, method)
    if any(item.star for item in call.args):
        own = ctx.class_of(ctx.kind(call.func.value))
        plain = own is not None and own.torch_base == "torch.nn.Module"
        if plain and method.endswith("_module") and [a.star for a in call.args] == ["*"]:
            args = [cst.Arg(rw.visit(call.func.value)), rw.visit(call.args[0])]
            return cst.Expr(syntax.with_args(cst.Call(cst.Name("setattr")), args))
        raise Failure(node, "API002", f"{method} of starred arguments", "write them out")
    given: dict[str, cst.BaseExpression] = {}
    second = {"register_buffer": "tensor", "register_parameter": "param"}.get(method, "module")
    order = ["name", second, "persistent"]
    for i, item in enumerate(call.args):
        given[item.keyword.value if item.keyword is not None else order[i]] = item.value
    if not {"name", order[1]} <= given.keys() <= set(order):
        raise Failure(node, "API002", f"{method} with arguments of another method", "rename it")
    name = given["name"]
    value = given[order[1]]
    made = _registered(rw, method, value, given.get("persistent"))
    kind = ctx.facts.kind(name)
    receiver = rw.visit(call.func.value)
    if is_sequential(rw, call.func.value) or (
        method in REGISTERING and is_made_sequential(rw, call.func.value)
    ):
        new = syntax.changed(
            call,
            func=syntax.changed(call.func, value=receiver, attr=cst.Name("add_module")),
            args=[rw.visit(a) for a in call.args],
        )
        return cst.Expr(new)
    receiver_kind = ctx.kind(call.func.value)
    info = ctx.class_of(receiver_kind)
    base = info.torch_base if info is not None else getattr(receiver_kind, "cls", "")
    if base == "torch.nn.ModuleDict":
        entry = cst.Subscript(receiver, [cst.SubscriptElement(cst.Index(rw.visit(name)))])
        return cst.Assign([cst.AssignTarget(entry)], made)
    if (
        isinstance(name, cst.SimpleString)
        and isinstance(kind, k.Const)
        and str(kind.value).isidentifier()
    ):
        target = cst.Attribute(receiver, cst.Name(str(kind.value)))
        return cst.Assign([cst.AssignTarget(target)], made)
    if k.is_any_module(receiver_kind):
        new = syntax.with_args(
            cst.Call(cst.Name("setattr")),
            [cst.Arg(receiver), cst.Arg(rw.visit(name)), cst.Arg(made)],
        )
        return cst.Expr(new)
    if (
        not ctx.is_self(call.func.value)
        or ctx.owner is None
        or ctx.owner.torch_base != "torch.nn.Module"
    ):
        raise Failure(
            node,
            "API007",
            "a child is registered under a computed name",
            "use an nnx.Dict or nnx.List",
        )
    new = syntax.with_args(
        cst.Call(cst.Name("setattr")), [cst.Arg(receiver), cst.Arg(rw.visit(name)), cst.Arg(made)]
    )
    return cst.Expr(new)


def _chosen_buffer(
    rw: Rewriter, value: cst.IfExp, persistent: cst.BaseExpression | None
) -> cst.BaseExpression:
    """``None if dynamic else mask``: the arm that is a tensor becomes the buffer."""
    arms = []
    for arm in (value.body, value.orelse):
        none = rw.ctx.facts.kind(arm) == k.NONE
        made = cst.Name("None") if none else _registered(rw, "register_buffer", arm, persistent)
        arms.append(made)
    return syntax.changed(value, test=rw.visit(value.test), body=arms[0], orelse=arms[1])


def _with_persistence(
    rw: Rewriter, made: cst.Call, persistent: cst.BaseExpression | None
) -> cst.Call:
    if persistent is None or (isinstance(persistent, cst.Name) and persistent.value == "True"):
        return made
    return syntax.add_keyword(made, "persistent", rw.visit(persistent))


def _registered(
    rw: Rewriter, method: str, value: cst.BaseExpression, persistent: cst.BaseExpression | None
) -> cst.BaseExpression:
    ctx = rw.ctx
    ctx.helpers.use("nnx")
    if ctx.facts.kind(value) == k.NONE:
        return syntax.parse("nnx.data(None)")
    if method == "register_parameter" and targets.names_variable(ctx, value):
        return targets.variable_reference(rw, value)[0]  # a loop's, of a list of parameters
    if method == "register_buffer":
        if isinstance(value, cst.IfExp) and isinstance(ctx.facts.kind(value), k.Optional):
            return _chosen_buffer(rw, value, persistent)
        made = cst.Call(syntax.parse("nnx.Variable"), [cst.Arg(_plain(rw, value))])
        if isinstance(ctx.facts.kind(value), k.Optional) or _may_be_left_out(ctx, value):
            if not isinstance(value, cst.Name) or persistent is not None:
                name = ctx.helpers.need(module_file("rules.compat.buffers"), "buffer")
                return _with_persistence(rw, syntax.changed(made, func=cst.Name(name)), persistent)
            test = cst.Comparison(value, [cst.ComparisonTarget(cst.Is(), cst.Name("None"))])
            return cst.IfExp(test, cst.Name("None"), made)
        return _with_persistence(rw, made, persistent)
    result: cst.BaseExpression = rw.visit(value)
    return result


def _may_be_left_out(ctx: Context, value: cst.BaseExpression) -> bool:
    """Whether a value is a parameter of unknown kind that is None where nobody gives it."""
    kind = ctx.facts.kind(value)
    if isinstance(value, cst.Name) and isinstance(kind, k.Optional):
        return not isinstance(kind.inner, k.Tensor)
    if not isinstance(value, cst.Name) or not isinstance(kind, k.Unknown):
        return False
    params = ctx.facts.tree.within(ctx.frame.info.node.params, cst.Param) if ctx.frame else []
    return any(
        one.name.value == value.value
        and isinstance(one.default, cst.Name)
        and one.default.value == "None"
        for one in params
    )


def _plain(rw: Rewriter, value: cst.BaseExpression) -> cst.BaseExpression:
    made: cst.BaseExpression = rw.visit(value)
    return made


@converts(cst.Attribute, cst.Name, kinds=(k.Tensor,))
def read(rw: Rewriter, node: cst.Attribute | cst.Name) -> Any:
    """The value of a Variable is read with ``[...]``."""
    ctx = rw.ctx
    if not targets.is_variable(ctx, node):
        return None
    if isinstance(node, cst.Name):
        return targets.dereferenced(node)
    reference, transposed = targets.variable_reference(rw, node)
    kept = after_static.number_or_array(rw, node, reference)
    made: cst.BaseExpression = kept or targets.dereferenced(reference)
    if transposed:
        made = cst.Attribute(made, cst.Name("T"))
    if isinstance(ctx.facts.kind(node), k.Optional) and not targets.is_operand(ctx, node):
        test = cst.Comparison(reference, [cst.ComparisonTarget(cst.IsNot(), cst.Name("None"))])
        return cst.IfExp(test, made, cst.Name("None"))
    return made


@converts(cst.NamedExpr)
def named(rw: Rewriter, node: cst.NamedExpr) -> Any:
    """``(w := self.w)``: the name is bound, not read."""
    value = rw.visit(node.value)
    value = stopped(rw, value, node.value) if rw.ctx.no_grad else value
    return node if value is node.value else syntax.changed(node, value=value)


@converts(cst.Call, of=(k.Function,))
def none_call(rw: Rewriter, node: cst.Call) -> Any:
    """``exists(self.bias)`` asks about the attribute too."""
    kind = rw.ctx.kind(node.func)
    info = rw.ctx.facts.names.get(kind.name) if isinstance(kind, k.Function) else None
    if info is None or info.tests_none is None or len(node.args) != 1:
        return None
    value = node.args[0].value
    if not targets.is_variable(rw.ctx, value) or not isinstance(value, (cst.Name, cst.Attribute)):
        return None
    reference, _ = targets.variable_reference(rw, value)
    return node.with_changes(args=[node.args[0].with_changes(value=reference)])


@converts(cst.Attribute, named=("shape", "ndim", "dtype"))
def static_fact(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.weight.shape`` and ``.ndim`` need no value."""
    if node.attr.value not in ("shape", "ndim", "dtype"):
        return None
    if not targets.is_variable(rw.ctx, node.value):
        return None
    if isinstance(node.value, cst.Attribute):
        reference, transposed = targets.variable_reference(rw, node.value)
        if not transposed:
            return syntax.changed(node, value=reference)
    return None


@converts(cst.Assign, targets=(cst.Attribute,))
def mark(rw: Rewriter, node: cst.Assign) -> Any:
    """``self.w._no_weight_decay = True``: what is set on a parameter is its metadata."""
    target = node.targets[0].target
    if len(node.targets) != 1 or not isinstance(target, cst.Attribute):
        return None
    holder, name = target.value, target.attr.value
    if not isinstance(holder, cst.Attribute) or not targets.is_variable(rw.ctx, holder):
        return None
    if tensor_attribute(name):
        return None
    reference, _ = targets.variable_reference(rw, holder)
    func = cst.Attribute(reference, cst.Name("set_metadata"))
    args = [cst.Arg(cst.SimpleString(f'"{name}"')), cst.Arg(rw.visit(node.value))]
    return cst.Expr(syntax.with_args(cst.Call(func), args))


def _may_be_tensors(rw: Rewriter, data: cst.Attribute, value: cst.BaseExpression) -> bool:
    """``p.data = s.data``: nothing is known of the variable, which may be an object with data, too."""
    name, kind = data.value, rw.ctx.kind(value)
    if not isinstance(name, cst.Name) or not isinstance(rw.ctx.kind(name), k.Unknown):
        return False
    reads = (n for n in syntax.walk(value) if isinstance(n, cst.Attribute))
    tensor = isinstance(kind, k.Tensor) or any(n.attr.value == "data" for n in reads)
    return tensor and not rw.ctx.is_self(name)


@converts(cst.Assign, targets=(cst.Attribute,))
def attribute_assignment(rw: Rewriter, node: cst.Assign) -> Any:
    """Assignments to attributes: new values of Variables, shared parameters, None before data."""
    if len(node.targets) != 1 or type(node.targets[0].target) is not cst.Attribute:
        return None
    ctx = rw.ctx
    target = node.targets[0].target
    if target.attr.value == "data" and isinstance(ctx.kind(target.value), k.Tensor):
        if not targets.is_variable(ctx, target.value) or isinstance(target.value, cst.Attribute):
            check_mutation(ctx, node, target, reshapes=True)
        return targets.replace(rw, target, rw.visit(node.value), node.value)
    of_layer = targets.found_at_run_time(ctx, target.value) if target.attr.value == "data" else None
    layer = ctx.kind(of_layer.value) if of_layer is not None else k.NONE
    if of_layer is not None and (k.is_any_module(layer) or isinstance(layer, k.Unknown)):
        whole = targets.casts(node.value) or not targets.keeps_form(ctx, of_layer, node.value)
        return targets.initialized(rw, of_layer, rw.visit(node.value), whole)
    kind = ctx.facts.kind(node.value)
    if target.attr.value == "data" and _may_be_tensors(rw, target, node.value):
        what = f"`{syntax.code(target.value)}` may be a tensor, and its data is written"
        raise Failure(node, "MUT001", what, "say what it is with a type hint")
    owner = ctx.class_of(ctx.kind(target.value))
    if owner is not None and owner.torch_base == "torch.nn.Sequential":
        child = child_by_assignment(rw, node, target)
        if child is not None:
            return child
    check_child(rw, node, target)
    check_hidden(rw, node, target)
    known = owner.attribute(target.attr.value) if owner is not None else None
    if kind == k.NONE and isinstance(node.value, cst.Name):
        inner = known.inner if isinstance(known, k.Optional) else known
        given = ctx.in_init and given_by_others(rw, target.attr.value)
        if isinstance(inner, k.Module) and not given and only_functions(rw, target.attr.value):
            return None
        held = isinstance(inner, (k.Tensor, k.Module)) or holds_arrays(inner)
        held = held or is_distribution(inner)
        held = held and not (_in_branch(rw, node) and not set_again(rw, node, target.attr.value))
        if held or given:
            ctx.helpers.use("nnx")
            return syntax.changed(node, value=syntax.parse("nnx.data(None)"))
        return None
    if replaces_by_function(rw, target, node.value):
        ctx.helpers.use("nnx")
        function = cst.Call(syntax.parse("nnx.static"), [cst.Arg(rw.visit(node.value))])
        new_target = syntax.changed(node.targets[0], target=_plain_target(rw, target))
        return syntax.changed(node, targets=[new_target], value=function)
    if _is_empty_list(node.value) and isinstance(known, k.Module):
        ctx.helpers.use("nnx")
        return syntax.changed(node, value=syntax.parse("nnx.List([])"))
    if _shares(rw, target, node.value):
        return _share(rw, node, target)
    if isinstance(kind, k.Sequence) and isinstance(kind.item, k.Tensor) and kind.type == "list":
        if ctx.is_self(target.value) and ctx.in_init:
            ctx.helpers.use("nnx")
            value = rw.visit(node.value)
            return syntax.changed(node, value=cst.Call(syntax.parse("nnx.List"), [cst.Arg(value)]))
    for one in (kind, known if _is_empty_list(node.value) else None):
        if lists_modules(rw, target, one):
            return plain_list(rw, node, target)
    inner_known = known.inner if isinstance(known, k.Optional) else known
    if isinstance(inner_known, k.Tensor) and inner_known.role:
        if _makes_variable(rw, node.value):
            return None
        value = rw.visit(node.value)
        if inner_known.role == "param" and ctx.in_init and ctx.is_self(target.value):
            reads = ctx.source.index.reading(node.value, target.attr.value)
            if any(syntax.is_own(one, target.attr.value) for one in reads):
                return _replaced(rw, target, value)  # of what is a buffer then
            return after_static.before_registration(rw, node, value)
        state = owner is not None and target.attr.value in (owner.state or ())
        state |= ctx.is_self(target.value) and registered_elsewhere(ctx, node, target.attr.value)
        if state and ctx.in_init and not _is_registered(rw, target):
            ctx.helpers.use("nnx")
            if isinstance(kind, (k.Const, k.Scalar, k.Unknown)) and kind != k.NONE:
                ctx.helpers.use("jnp")
                value = cst.Call(syntax.parse("jnp.asarray"), [cst.Arg(_in_parens(value))])
            made: cst.BaseExpression = syntax.add_keyword(
                cst.Call(syntax.parse("nnx.Variable"), [cst.Arg(_in_parens(value))]),
                "persistent",
                cst.Name("False"),
            )
            if after_static.set_on_the_way(ctx, target, node.value):
                return after_static.in_two_steps(node, _plain_target(rw, target), made)
            if _may_be_left_out(ctx, node.value):
                made = _if_given(rw, node, target, made)
            return syntax.changed(
                node,
                targets=[syntax.changed(node.targets[0], target=_plain_target(rw, target))],
                value=made,
            )
        if inner_known.role == "buffer" and k.scalar_type(kind) is not None and kind != k.NONE:
            ctx.helpers.use("jnp")
            value = cst.Call(syntax.parse("jnp.asarray"), [cst.Arg(_in_parens(value))])
        if inner_known.role == "buffer" and not targets.keeps_form(ctx, target, node.value):
            return _replaced(rw, target, value)
        new = None if inner_known.role == "buffer" else False  # it has a gradient of its own
        return targets.assign(rw, _as_variable(rw, target, inner_known), value, data=new)
    if isinstance(kind, k.Tensor) and targets.registered_by_name(ctx, target):
        if k.is_any_module(ctx.kind(target.value)) and not _makes_variable(rw, node.value):
            return [
                cst.Assign(
                    [cst.AssignTarget(targets.dereferenced(rw.rebuild(target)))],
                    rw.visit(node.value),
                )
            ]
        what = f"it is not known whether this is the `{target.attr.value}` that a module registers"
        raise Failure(node, "API005", what, "say by an annotation what it is an attribute of")
    if targets.layer_weight(ctx, target) is not None and isinstance(kind, k.Tensor):
        made_by = ctx.facts.callee(node.value) if isinstance(node.value, cst.Call) else None
        if made_by == "torch.nn.Parameter":
            assert isinstance(node.value, cst.Call)
            return _new_weight(rw, target, node.value)
    plain = isinstance(kind, k.Tensor) and not kind.role and ctx.is_self(target.value)
    if plain and not ctx.in_init:
        if known is not None and ctx.owner is not None and ctx.owner.torch_base:
            ctx.report(
                node,
                "MUT004",
                f"`{target.attr.value}` is a plain tensor attribute that the forward pass changes",
                "register it as a buffer if it is state",
                severity="info",
                blocks=False,
            )
    return after_another(rw, node, target)


def _if_given(
    rw: Rewriter, node: cst.Assign, target: cst.Attribute, made: cst.BaseExpression
) -> cst.IfExp:
    """``None if alpha is None else nnx.Variable(…)`` of an argument that is None by default.

    Raises:
      Failure: a later assignment does not start from the attribute: it may be the first that gives it a tensor.
    """
    ctx, name = rw.ctx, target.attr.value
    index, asked = ctx.source.index, (cst.Attribute, cst.BinaryOperation, cst.Subscript)
    for info in ctx.owner.lineage() if ctx.owner is not None else ():
        for method in info.methods.values() if info.settled is None else ():
            for item in ctx.facts.tree.within(method.node.body, cst.Assign):
                given = [n for one in item.targets for n in index.reading(one, name)]
                reads = [n for n in index.reading(item.value, name) if syntax.is_own(n, name)]
                own = method.short != "__init__" and any(syntax.is_own(n, name) for n in given)
                if own and not any(isinstance(index.parent(n), asked) for n in reads):
                    what = f"`{name}` may be None here, and be given a tensor later"
                    raise Failure(node, "API005", what, "register it as a buffer")
    none = cst.Comparison(node.value, [cst.ComparisonTarget(cst.Is(), cst.Name("None"))])
    return cst.IfExp(test=none, body=cst.Name("None"), orelse=made)


def _is_registered(rw: Rewriter, target: cst.Attribute) -> bool:
    """Whether a constructor registers an attribute as a buffer, which it stays when it is assigned again."""
    owner = rw.ctx.owner
    for info in owner.lineage() if owner is not None else ():
        method = info.methods.get("__init__")
        lines = method.node.body.body if method is not None else ()
        for line in lines:
            call = line.body[0] if isinstance(line, cst.SimpleStatementLine) else None
            made = call.value if isinstance(call, cst.Expr) else None
            if not isinstance(made, cst.Call) or not isinstance(made.func, cst.Attribute):
                continue
            name = made.args[0].value if made.args else None
            if made.func.attr.value == "register_buffer" and isinstance(name, cst.SimpleString):
                if name.evaluated_value == target.attr.value:
                    return True
    return False


def _replaced(rw: Rewriter, target: cst.Attribute, value: cst.BaseExpression) -> cst.Expr:
    """``self.hidden.set_value(h)``: what an assignment puts there may be of another shape and dtype.

    ``self.hidden[...] = h`` would cast and broadcast it to those of the old value.
    """
    func = cst.Attribute(_plain_target(rw, target), cst.Name("set_value"))
    return cst.Expr(syntax.with_args(cst.Call(func), [cst.Arg(_in_parens(value))]))


def _new_weight(rw: Rewriter, target: cst.Attribute, made: cst.Call) -> list[Any]:
    """``layer.weight = nn.Parameter(w, requires_grad=False)``: a new value, and whether it is trained."""
    ctx = rw.ctx
    value = rw.visit(made.args[0].value)
    ctx.facts.kinds[target] = k.Tensor(role="param")
    statements: list[Any] = [*targets.replace(rw, target, value, made.args[0].value)]
    given = [a.value for a in made.args[1:] if a.keyword is None or "grad" in a.keyword.value]
    trained = given[0] if given else cst.Name("True")
    if freezes(ctx.source.text) or not syntax.is_true(trained):
        helper = ctx.helpers.need(module_file("rules.compat.named"), "set_trainable")
        reference, _ = targets.variable_reference(rw, target)
        args = [cst.Arg(reference), cst.Arg(rw.visit(trained))]
        statements.append(cst.Expr(syntax.with_args(cst.Call(cst.Name(helper)), args)))
    return statements


def _is_empty_list(node: cst.BaseExpression) -> bool:
    if isinstance(node, cst.Call) and not node.args:
        return isinstance(node.func, cst.Name) and node.func.value == "list"
    return isinstance(node, cst.List) and not node.elements


def _makes_variable(rw: Rewriter, value: cst.CSTNode) -> bool:
    """Whether a value is a new parameter, maybe under a condition (``nn.Parameter(x) if affine else None``)."""
    if isinstance(value, cst.Name):
        return is_parameter(rw.ctx, value) or targets.holds_parameter(rw.ctx, value)
    return any(targets.makes_parameter(rw.ctx, n) for n in syntax.walk(value))


def _in_parens(value: cst.BaseExpression) -> cst.BaseExpression:
    if isinstance(value, cst.Tuple) and not value.lpar:
        return syntax.parenthesized(value)  # type: ignore[return-value]
    return value


def _plain_target(rw: Rewriter, target: cst.Attribute) -> cst.Attribute:
    return syntax.changed(target, value=rw.visit(target.value))


def _as_variable(rw: Rewriter, target: cst.Attribute, kind: k.Tensor) -> cst.Attribute:
    rw.ctx.facts.kinds[target] = kind
    return target


def _in_branch(rw: Rewriter, node: cst.Assign) -> bool:
    """Whether a statement stands in an ``if`` whose other branch may set the attribute."""
    frame = rw.ctx.frame
    if frame is None:
        return False
    top = [s for s in frame.info.node.body.body if isinstance(s, cst.SimpleStatementLine)]
    # by its value: an assignment with a hint is looked at as one without
    return not any(getattr(small, "value", None) is node.value for s in top for small in s.body)


def _shares(rw: Rewriter, target: cst.Attribute, value: cst.BaseExpression) -> bool:
    """``self.a.weight = self.b.weight``: one parameter under two names."""
    named = isinstance(value, cst.Attribute) and targets.is_variable(rw.ctx, value)
    held = named and isinstance(rw.ctx.kind(target.value), k.Module)
    if not rw.ctx.in_init and getattr(rw.ctx.kind(value), "role", "") == "buffer":
        info = rw.ctx.class_of(rw.ctx.kind(target.value))
        own = info.attribute(target.attr.value) if info is not None else None
        if own is not None and not k.is_registered(own):
            return False  # torch registers no buffer by an assignment
    return held and not takes_numbers(rw.ctx, target, value)


def _share(rw: Rewriter, node: cst.Assign, target: cst.Attribute) -> Any:
    ctx, value = rw.ctx, node.value
    assert isinstance(value, cst.Attribute)
    mine, theirs = targets.layer_weight(ctx, target), targets.layer_weight(ctx, value)
    left = (mine or (target.attr.value, False))[1]
    right = (theirs or (value.attr.value, False))[1]
    from migrator.convert.passes.tied_arguments import check_shared

    check_shared(
        ctx, node, [one for one, it in ((target, mine), (value, theirs)) if it is not None]
    )
    if left == right:
        new_value, _ = targets.variable_reference(rw, value)
        ctx.facts.kinds[target] = k.Tensor(role="param")
        new_target, _ = targets.variable_reference(rw, target)
        return syntax.changed(
            node, targets=[syntax.changed(node.targets[0], target=new_target)], value=new_value
        )
    from migrator.convert.passes.tying import tie

    return tie(rw, node, target, value)
