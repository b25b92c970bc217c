"""Torch names used as values, and attributes of tensors."""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.assignments import is_target
from migrator.convert.as_value import plain_function
from migrator.convert.called_untracked import gradients_off
from migrator.convert.context import Context, Failure
from migrator.convert.expand import CallArg, convert_call
from migrator.convert.passes.annotations import _CLASSES, dtype_of
from migrator.convert.passes.control import NEUTRAL
from migrator.convert.passes.functions import may_hold_tensor, stopped
from migrator.convert.passes.parameter_lists import is_entry
from migrator.convert.passes.replaced_forward import may_be_called, replaced
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import ClassInfo
from migrator.infer import kinds as k
from migrator.infer.annotations import TENSOR_DTYPES
from migrator.infer.devices import HOST
from migrator.infer.symbols import LAYERS, STORAGE, TORCH_VERSION, of_torch
from migrator.infer.symbols import tensor_attribute as has_attribute
from rules import definitions
from rules.definitions import module_file
from rules.elsewhere import advice_for
from rules.torch_names import VERSION


@converts(cst.Attribute, of=(k.Tuple,))
def component(rw: Rewriter, node: cst.Attribute) -> Any:
    """``x.max(1).values``: the component of a named tuple."""
    kind = rw.ctx.kind(node.value)
    if not isinstance(kind, k.Tuple) or node.attr.value not in kind.fields:
        return None
    index = kind.fields.index(node.attr.value)
    if isinstance(node.value, cst.Call):
        from migrator.convert.passes.calls import expands_to_components, torch_call

        result = torch_call(rw, node.value, only=index)
        if result is not None and expands_to_components(rw, node.value) and not result.is_tuple:
            if isinstance(result.nodes[0], cst.BaseExpression) and len(result.nodes) == 1:
                return result.nodes[0]
    item = cst.Subscript(
        syntax.fitted(node, "value", rw.visit(node.value)),
        [cst.SubscriptElement(cst.Index(cst.Integer(str(index))))],
    )
    return item


@converts(cst.Attribute, named=("forward",))
def forward_pass(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.block.forward`` as a value, ``net.forward(x)`` of an argument: the module itself, which is called."""
    if node.attr.value != "forward" or not may_be_called(rw, node.value):
        return None
    index = rw.ctx.source.index
    parent = index.around(node)[-1] if index.has(node) else None
    if isinstance(rw.ctx.kind(node.value), k.Module):
        known = isinstance(rw.ctx.facts.kind(node), k.Function)
        taken = parent is None or isinstance(parent, (cst.Arg, cst.Element, cst.Assign, cst.Return))
        return rw.visit(node.value) if known and taken else None
    return rw.visit(node.value)


@converts(cst.Call, called=("builtins.getattr",))
def read_by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(self, "kernel_{}".format(i))`` where a class registers tensors under names that it makes up."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.getattr" or len(node.args) not in (2, 3):
        return None
    if not ctx.is_self(node.args[0].value) or isinstance(ctx.kind(node.args[1].value), k.Const):
        return None
    frame, owner = ctx.frame, ctx.owner
    if frame is None or owner is None or ctx.plan.builds_time(frame.info):
        return None
    if not isinstance(ctx.kind(node), k.Unknown) or not _registers_by_name(ctx, owner):
        return None
    above = ctx.facts.tree.parent(node)
    if isinstance(above, cst.Call) and above.func is node:
        return None  # a layer, which is called
    if isinstance(above, cst.Arg) and ctx.facts.callee(ctx.facts.tree.parent(above)) in _ASKING:
        return None
    found = forward_by_name(rw, node) or syntax.with_args(node, [rw.visit(a) for a in node.args])
    helper = ctx.helpers.need(module_file("rules.compat.named"), "held")
    return syntax.with_args(cst.Call(cst.Name(helper)), [cst.Arg(found)])


_ASKING = frozenset(f"builtins.{name}" for name in "isinstance setattr type callable".split())


def _registers_by_name(ctx: Context, owner: ClassInfo) -> bool:
    """Whether a class registers parameters or buffers under names that only a run tells."""
    classes = [c for c in ctx.facts.classes.values() if owner in c.lineage()]
    for info in [*owner.lineage(), *classes]:
        if info.settled is not None:  # of another file, which may do so
            if info.torch_base is not None:
                return True
            continue
        for call in ctx.facts.tree.within(info.node, cst.Call):
            func = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
            word = func.value if isinstance(func, cst.Name) else ""
            if word in ("register_buffer", "register_parameter") and call.args:
                if not isinstance(call.args[0].value, cst.SimpleString):
                    return True
            elif word == "setattr" and len(call.args) == 3:
                given = call.args[1].value, ctx.facts.kind(call.args[2].value)
                if not isinstance(given[0], cst.SimpleString) and isinstance(
                    given[1], (k.Tensor, k.Unknown)
                ):
                    return True
    return False


_NAMING = frozenset({"named_parameters", "named_buffers"})


@converts(cst.Call, called=("builtins.getattr",))
def parameter_by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(layer, name)`` with a name that torch gives the parameters of a layer, of which Flax has others."""
    if rw.ctx.facts.callee(node) != "builtins.getattr" or len(node.args) != 2:
        return None
    layer, name = node.args[0].value, node.args[1].value
    kind = rw.ctx.kind(layer)
    info = rw.ctx.facts.classes.get(kind.cls) if isinstance(kind, k.Module) else None
    if info is not None and info.torch_base == "torch.nn.Module":
        return None
    if not isinstance(kind, (k.Module, k.Unknown)) or not _names_parameters(rw, name):
        return None
    above = rw.ctx.facts.tree.around(node)[-2:]
    sets = isinstance(above[0], cst.Call) and rw.ctx.facts.callee(above[0]) == "builtins.setattr"
    if not sets or above[0].args[0] is not above[1]:
        what = "a parameter of a layer is asked for by torch's name for it, which may be another in Flax"
        raise Failure(node, "API005", what, "go over the parameters themselves")
    helper = rw.ctx.helpers.need(module_file("rules.compat.named"), "weight_of")
    return syntax.changed(node, func=cst.Name(helper), args=[rw.visit(a) for a in node.args])


def _names_parameters(rw: Rewriter, name: cst.BaseExpression) -> bool:
    """Whether a variable runs over the names of parameters: ``for name, p in layer.named_parameters()``."""
    if not isinstance(name, cst.Name):
        return False
    for loop in (
        n for n in rw.ctx.facts.tree.around(name) if isinstance(n, (cst.For, cst.CompFor))
    ):
        named = any(
            isinstance(n, cst.Attribute) and n.attr.value in _NAMING for n in syntax.walk(loop.iter)
        )
        if named and name.value in syntax.names(loop.target):
            return True
    return False


@converts(cst.Call, called=("builtins.getattr", "builtins.setattr"))
def forward_by_name(rw: Rewriter, node: cst.Call) -> Any:
    """``getattr(net, "forward")``, ``getattr(net, self.method)`` where the method may be ``forward``."""
    name = rw.ctx.facts.callee(node)
    if name not in ("builtins.getattr", "builtins.setattr") or len(node.args) < 2:
        return None
    if not may_be_called(rw, node.args[0].value):
        return None
    kind = rw.ctx.kind(node.args[1].value)
    if isinstance(kind, k.Const):
        if kind.value != "forward":
            return None
        if name == "builtins.setattr":
            raise replaced(node)
        return rw.visit(node.args[0].value) if len(node.args) == 2 else None
    if name == "builtins.setattr" or not _names_forward(rw):
        return None
    helper = rw.ctx.helpers.need(module_file("rules.compat.by_name"), "method")
    return syntax.changed(node, func=cst.Name(helper), args=[rw.visit(a) for a in node.args])


def _names_forward(rw: Rewriter) -> bool:
    """Whether the file has the word "forward" as a string."""
    strings = rw.ctx.source.index.of_type(cst.SimpleString)
    return any(one.evaluated_value == "forward" for one in strings)


@converts(cst.Attribute, of=(k.Tensor,))
def tensor_attribute(rw: Rewriter, node: cst.Attribute) -> Any:
    """``x.T``, ``x.is_cuda``, ``x.grad``: attributes with a definition of their own."""
    ctx = rw.ctx
    kind = ctx.kind(node.value)
    if not isinstance(kind, k.Tensor):
        return None
    name = node.attr.value
    if name in ("shape", "ndim", "dtype"):
        return None
    if name == "device":
        return cst.Name("None")  # arrays under jit have no device; what took it ignores it now
    rules = definitions.ops(f"Tensor.{name}")
    own = ctx.facts.kind(node)
    if isinstance(own, k.Function):
        raise Failure(
            node, "API001", f"the method Tensor.{name} as a value has no conversion", "call it"
        )
    if not rules and not has_attribute(name):
        return None  # no tensor after all
    if not rules:
        raise Failure(
            node, "API001", f"Tensor.{name} has no conversion", advice_for(f"Tensor.{name}")
        )
    args = [CallArg(None, node.value, rw.visit(node.value), kind)]
    return convert_call(rw, node, f"Tensor.{name}", rules, args).node


@converts(cst.Attribute, of=(k.Device,))
@converts(cst.Call, called=("builtins.str",))
def device_type(rw: Rewriter, node: cst.Attribute | cst.Call) -> Any:
    """``x.device.type`` and ``str(x.device)`` → ``"cpu"``, as where both versions are compared."""
    if isinstance(node, cst.Attribute):
        if not isinstance(rw.ctx.facts.kind(node.value), k.Device):
            return None
        if node.attr.value == "type":
            return cst.SimpleString(f'"{HOST}"')
        if node.attr.value == "index":
            return cst.Name("None")
        what = f"`{node.attr.value}` of a device has no conversion"
        raise Failure(node, "API001", what, "arrays lie where JAX puts them")
    if rw.ctx.facts.callee(node) != "builtins.str" or len(node.args) != 1:
        return None
    shown = isinstance(rw.ctx.facts.kind(node.args[0].value), k.Device)
    return cst.SimpleString(f'"{HOST}"') if shown else None


@converts(cst.Attribute, cst.Name)
def torch_symbol(rw: Rewriter, node: cst.Attribute | cst.Name) -> Any:
    """A function, class, dtype or constant of torch used as a value."""
    if not rw.ctx.is_import(node):
        return None
    kind = rw.ctx.facts.kind(node)
    if isinstance(kind, k.DType) and kind.name:
        return dtype_of(rw, node, f"torch.{kind.name}")
    if isinstance(kind, k.Class) and kind.name.startswith(_WORDS):
        return cst.SimpleString(f'"{kind.name.rpartition(".")[2]}"')
    if isinstance(kind, (k.Function, k.Class)) and kind.name.startswith(("torch.", *LAYERS)):
        return value_of(rw, node, kind)
    if isinstance(kind, k.Function) and kind.name.startswith("Tensor.") and kind.bound is None:
        return value_of(rw, node, kind)  # torch.Tensor.clone
    if isinstance(node, cst.Attribute) and rw.ctx.facts.kind(node.value) == k.Class("torch.Tensor"):
        what = f"torch.Tensor.{node.attr.value} as a value has no conversion"
        raise Failure(node, "API001", what, "call a function of jax.numpy")
    if isinstance(node, cst.Attribute) and kind == TORCH_VERSION:
        return cst.SimpleString(f'"{VERSION}"')
    if isinstance(kind, k.Namespace) and of_torch(kind.name):
        raise Failure(
            node, "API001", f"{kind.name} as a value has no conversion", advice_for(kind.name)
        )
    if isinstance(node, cst.Attribute) and isinstance(rw.ctx.facts.kind(node.value), k.Namespace):
        namespace = rw.ctx.facts.kind(node.value)
        assert isinstance(namespace, k.Namespace)
        if of_torch(namespace.name):
            return _constant(rw, node, f"{namespace.name}.{node.attr.value}")
    return None


_WORDS = ("torch.nn.attention.SDPBackend.", "torch.distributed.ReduceOp.")
"""Kernels of attention, and what a process group reckons: nothing in JAX is told them, and their names stand for them."""


def _constant(rw: Rewriter, node: cst.CSTNode, name: str) -> cst.BaseExpression:
    if name in STORAGE:  # nothing reads it but the program itself
        return cst.SimpleString(f'"{name.removeprefix("torch.")}"')
    text = {
        "torch.pi": "jnp.pi",
        "torch.inf": "jnp.inf",
        "torch.nan": "jnp.nan",
        "torch.e": "jnp.e",
        "torch.newaxis": "None",
    }.get(name)
    if text is None:
        raise Failure(node, "API001", f"{name} has no conversion", advice_for(name))
    if text != "None":
        rw.ctx.helpers.use("jnp")
    return syntax.parse(text)


@converts(cst.Call, called=("functools.partial",))
def partial(rw: Rewriter, node: cst.Call) -> cst.Call | None:
    """``functools.partial(F.softplus, beta=2)``: a copy of the definition, which takes torch's arguments."""
    if rw.ctx.facts.callee(node) != "functools.partial" or len(node.args) < 2:
        return None
    first, *rest = node.args
    kind = rw.ctx.facts.kind(first.value)
    if not isinstance(kind, k.Function) or not kind.name.startswith("torch."):
        return None
    if kind.name in NEUTRAL:
        return None  # a context that does nothing
    if kind.name == "torch.arange":
        return _range(rw, node, rest)
    given = {a.keyword.value for a in rest if a.keyword is not None}
    function = value_of(rw, first.value, kind, given)
    made = [a.with_changes(value=rw.visit(a.value)) for a in rest]
    return syntax.with_args(node, [cst.Arg(function), *made])


def _range(rw: Rewriter, node: cst.Call, rest: Sequence[cst.Arg]) -> Any:
    """``partial(torch.arange, device=x.device)`` → ``jnp.arange``, whose arguments stand in the same order.

    Integers give integers in both, and floats float32."""
    kept = [a for a in rest if a.keyword is None or a.keyword.value not in ("device", "pin_memory")]
    if not all(a.star == "" and (a.keyword is None or a.keyword.value == "dtype") for a in kept):
        return None
    rw.ctx.helpers.use("jnp")
    function = syntax.parse("jnp.arange")
    made = [syntax.changed(a, value=rw.visit(a.value)) for a in kept]
    return syntax.with_args(node, [cst.Arg(function), *made]) if made else function


def _is_called(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether what stands here, maybe as one of two, gets a name by which the file calls something."""
    around = ctx.facts.tree.around(node) if ctx.facts.tree.has(node) else []
    while around and isinstance(around[-1], cst.IfExp):
        node = around.pop()
    above = around[-1] if around else None
    if isinstance(above, cst.Call):
        return above.func is node
    if not isinstance(above, cst.Assign):
        return False
    given = {syntax.code(one.target) for one in above.targets}
    return any(syntax.code(one.func) in given for one in ctx.source.index.of_type(cst.Call))


def value_of(
    rw: Rewriter, node: cst.CSTNode, kind: k.Function | k.Class, given: Set[str] | None = None
) -> cst.BaseExpression:
    """A torch function or class that is handed around.

    Args:
      given: the names of arguments that are given already, where some are, by place or by name.
    """
    ctx = rw.ctx
    name = kind.name
    if name == "torch.Size":
        return cst.Name("tuple")
    if name in TENSOR_DTYPES:
        what = f"{name} as a value has no conversion: it makes tensors and stands for a dtype"
        raise Failure(node, "API001", what, "use a dtype")
    if name in _CLASSES:
        if name == "torch.autograd.Variable" and _is_called(ctx, node):
            what = "Variable as a value is called, and a class of arrays makes none"
            raise Failure(node, "API001", what, "call it where it is chosen")
        ctx.helpers.use(_CLASSES[name].partition(".")[0])
        return syntax.parse(_CLASSES[name])
    if isinstance(kind, k.Class) and name.startswith(LAYERS):
        from migrator.convert.passes.layers import factory

        return factory(rw, node, name)
    rules = definitions.ops(name)
    if not rules:
        raise Failure(node, "API001", f"{name} has no conversion", advice_for(name))
    made = plain_function(ctx, name, rules) if given is None else None
    if made is not None:
        return made
    rules = tuple(rule for rule in rules if (given or set()) <= set(rule.by_name)) or rules
    rules = tuple(rule for rule in rules if rule.general) or rules
    if len(rules) > 1:
        raise Failure(
            node, "API001", f"{name} as a value has several meanings", "wrap it in a lambda"
        )
    if rules[0].draws and not ctx.in_init:
        what = f"{name} draws random numbers, and as a value takes none along"
        raise Failure(node, "API001", what, "call it where a module is built, or in a lambda")
    function = cst.Name(ctx.helpers.need(rules[0].file, rules[0].name))
    if not rules[0].draws:
        return function
    ctx.helpers.use("functools")
    made = syntax.with_args(cst.Call(syntax.parse("functools.partial")), [cst.Arg(function)])
    return syntax.add_keyword(made, "rngs", ctx.rngs(node))


_GATHERING = ("append", "extend", "add", "appendleft", "put", "insert", "update", "setdefault")


@converts(cst.Expr, named=_GATHERING, values=(cst.Call,))
def gathered(rw: Rewriter, node: cst.Expr) -> Any:
    """``outputs.append(model(x))`` under ``no_grad``: what the list is read for later has no gradient either."""
    call, frame = node.value, rw.ctx.frame
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return None
    # a list of its own that a function fills is looked after where it returns it
    outlives = isinstance(call.func.value, cst.Attribute)
    outlives |= frame is not None and bool(
        set(syntax.names(call.func.value)) & set(frame.info.params)
    )
    if not rw.ctx.no_grad and not (outlives and gradients_off(rw.ctx)):
        return None
    if call.func.attr.value not in _GATHERING or any(one.star for one in call.args):
        return None
    if isinstance(rw.ctx.kind(call.func.value), k.Tensor):
        return None
    made = rw.visit(call)
    held = [one for one in call.args if may_hold_tensor(rw, one.value)]
    if not isinstance(made, cst.Call) or len(made.args) != len(call.args) or not held:
        return syntax.changed(node, value=made) if isinstance(made, cst.BaseExpression) else None
    given = [
        syntax.changed(one, value=stopped(rw, one.value, old.value)) if old in held else one
        for one, old in zip(made.args, call.args, strict=True)
    ]
    return syntax.changed(node, value=syntax.changed(made, args=given))


def _shares_unknown(rw: Rewriter, target: cst.BaseExpression, value: cst.BaseExpression) -> bool:
    """``head.weight = embed.weight`` of layers of which nothing is known: most call their weights otherwise in Flax."""
    from migrator.convert.passes import targets

    if type(target) is not cst.Attribute or type(value) is not cst.Attribute:
        return False
    same = target.attr.value == value.attr.value and not rw.ctx.is_self(target.value)
    return same and targets.found_at_run_time(rw.ctx, value) is not None


@converts(cst.Assign)
def assignment(rw: Rewriter, node: cst.Assign) -> Any:
    """Any other assignment: the value is converted, a target's attribute is not read."""
    from migrator.convert.passes import targets

    for item in node.targets:
        target = item.target
        shares = targets.is_variable(rw.ctx, node.value) or _shares_unknown(rw, target, node.value)
        if type(target) is cst.Attribute and shares:
            if not isinstance(rw.ctx.kind(target.value), (k.Module, k.Other)):
                raise Failure(
                    node,
                    "API009",
                    "a parameter is shared with a module that is not known",
                    "say what the module is with a type hint",
                )
    value = rw.visit(node.value)
    if rw.ctx.no_grad and may_hold_tensor(rw, node.value):
        value = stopped(rw, value, node.value)
    elif (
        isinstance(node.value, cst.Call)
        and isinstance(value, cst.Tuple)
        and value.lpar
        and value.elements
    ):
        new = None if _reads_unnamed(rw) else _only_used(node, value)
        if new is not None:
            return new
        value = syntax.changed(value, lpar=[], rpar=[])
    elif value is not node.value:
        value = syntax.unparenthesized(value)
    made = [syntax.changed(t, target=target_of(rw, t.target)) for t in node.targets]
    if value is node.value and all(
        a.target is b.target for a, b in zip(made, node.targets, strict=True)
    ):
        return node
    return syntax.changed(node, targets=made, value=value)


def target_of(rw: Rewriter, node: Any) -> Any:
    """An assignment target: what it hangs on is converted, it is not read itself."""
    if type(node) is cst.Attribute:
        from migrator.convert.passes.layer_classes import name_in_flax
        from migrator.convert.passes.perhaps_layers import check_written

        name = name_in_flax(rw.ctx, node, written=True)
        if name == node.attr.value:
            check_written(rw.ctx, node)
        attr = syntax.changed(node.attr, value=name)
        value = syntax.fitted(node, "value", rw.visit(node.value))
        return syntax.changed(node, value=value, attr=attr)
    if isinstance(node, (cst.Tuple, cst.List)):
        elements = [syntax.changed(e, value=target_of(rw, e.value)) for e in node.elements]
        if all(a.value is b.value for a, b in zip(elements, node.elements, strict=True)):
            return node
        return syntax.changed(node, elements=elements)
    if isinstance(node, cst.Name):
        return node
    if isinstance(node, cst.Subscript) and is_entry(rw, node):
        return rw.rebuild(node)
    return rw.visit(node)


def _reads_unnamed(rw: Rewriter) -> bool:
    """Whether a function reads ``_``, which most only assign to."""
    tree = rw.ctx.facts.tree
    body = rw.ctx.frame.info.node if rw.ctx.frame is not None else rw.ctx.source.tree
    names = [n for n in tree.within(body, cst.Name) if n.value == "_"]
    return any(
        isinstance(tree.parent(name), cst.AugAssign) or not is_target(tree.around(name), name)
        for name in names
        if tree.has(name)
    )


def _only_used(node: cst.Assign, value: cst.Tuple) -> cst.Assign | None:
    """``_, i = a, b`` → ``i = b``: what goes to ``_`` need not be computed."""
    if len(node.targets) != 1 or not isinstance(node.targets[0].target, cst.Tuple):
        return None
    names = [e.value for e in node.targets[0].target.elements]
    if len(names) != len(value.elements) or not all(isinstance(n, cst.Name) for n in names):
        return None
    used = [i for i, n in enumerate(names) if isinstance(n, cst.Name) and n.value != "_"]
    if len(used) != 1:
        return None
    return syntax.changed(
        node,
        targets=[syntax.changed(node.targets[0], target=names[used[0]])],
        value=value.elements[used[0]].value,
    )


@converts(cst.AnnAssign)
def annotated_assignment(rw: Rewriter, node: cst.AnnAssign) -> Any:
    """``x: torch.Tensor = f(y)``: the hint in JAX's terms, or none."""
    from migrator.convert.passes.annotations import convert_hint

    hint = convert_hint(rw, node.annotation.annotation)
    value: Any = None
    target = node.target
    if node.value is not None:
        # the hint changes nothing of what an assignment does
        plain = rw.visit(cst.Assign([cst.AssignTarget(node.target)], node.value))
        if not isinstance(plain, cst.Assign):
            return plain
        target, value = plain.targets[0].target, plain.value
    if hint is None:
        if value is None:
            return []
        return cst.Assign([cst.AssignTarget(target)], value)
    return syntax.changed(
        node,
        target=target,
        annotation=syntax.changed(node.annotation, annotation=hint),
        value=value,
    )


@converts(cst.Comparison, cst.Attribute)
def type_by_name(rw: Rewriter, node: cst.Comparison | cst.Attribute) -> Any:
    """``x.type() == "torch.FloatTensor"``: an array's dtype has another name, and says nothing of the device."""
    if isinstance(node, cst.Attribute):
        read = _is_type_name(rw, node.value)
    else:
        sides = [node.left, *(one.comparator for one in node.comparisons)]
        read = any(_is_type_name(rw, side) for side in sides)
        read = read and any(k.scalar_type(rw.ctx.kind(side)) == "str" for side in sides)
    if not read:
        return None
    raise Failure(
        node, "API002", "the name of a tensor's type is read", "compare x.dtype with a dtype"
    )


def _is_type_name(rw: Rewriter, node: cst.CSTNode) -> bool:
    """Whether an expression is ``x.type()`` of a tensor, or of what may be one."""
    if not isinstance(node, cst.Call) or node.args or not isinstance(node.func, cst.Attribute):
        return False
    kind = rw.ctx.kind(node.func.value)
    return node.func.attr.value == "type" and isinstance(kind, (k.Tensor, k.Unknown))
