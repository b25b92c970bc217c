"""``torch.nn`` layers: constructor calls by their definitions, calls of instances that write in place."""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.alias import check_in_place_layer, check_mutation, check_temporary, reads_in
from migrator.convert.context import Context, Failure
from migrator.convert.expand import call_args, convert_call
from migrator.convert.handed import check_handed_over, check_written
from migrator.convert.overwritten import overwritten
from migrator.convert.own_gradient import check_own_gradient
from migrator.convert.passes import tying
from migrator.convert.passes.annotations import layer_class
from migrator.convert.passes.containers import NAMES
from migrator.convert.passes.front_in_place import run_before
from migrator.convert.passes.zero_dims import names_half
from migrator.convert.rewriter import Rewriter, Starting, converts
from migrator.convert.signature import never, plain_class
from migrator.convert.writers import may_write
from migrator.infer import kinds as k
from migrator.infer.python import class_of_object
from migrator.infer.symbols import LAYERS
from rules import definitions
from rules.definitions import module_file
from rules.elsewhere import BY_HAND


@converts(cst.Assign, targets=(cst.Attribute,))
def tied_head(rw: Rewriter, node: cst.Assign) -> Any:
    """The Linear that shares an embedding's matrix is not built."""
    return tying.assignment(rw, node)


@converts(cst.Attribute, named=("weight",))
def tied_weight(rw: Rewriter, node: cst.Attribute) -> Any:
    """``self.head.weight`` of a tied head."""
    return tying.attribute(rw, node)


@converts(cst.Call, called=Starting(*LAYERS))
def layer(rw: Rewriter, node: cst.Call) -> Any:
    """``nn.Linear(…)``."""
    ctx = rw.ctx
    kind = ctx.facts.kind(node.func)
    if not isinstance(kind, k.Class) or not kind.name.startswith(LAYERS):
        return None
    of_another = class_of_object(node.func) is not None  # type(self.fc)(4, 4)
    if kind.name in NAMES or not (of_another or ctx.is_import(node.func)):
        return None
    if kind.name == "torch.nn.Module" and not node.args:
        ctx.helpers.use("nnx")
        return syntax.parse("nnx.Module()")
    rules = definitions.layers(kind.name)
    if not rules:
        raise Failure(
            node,
            "API001",
            f"{kind.name} has no Flax counterpart here",
            BY_HAND,
        )
    if kind.name in overwritten(ctx):
        made: cst.BaseExpression = _without_first_values(rw, node, kind.name)
    else:
        made = convert_call(rw, node, kind.name, rules, call_args(rw, node.args)).node
    if isinstance(made, cst.Call):
        made = syntax.changed(made, func=of_input(rw, made.func))
    if ctx.traverses and layer_class(rw, kind.name) is None:
        wrapper = ctx.helpers.need(module_file("rules.compat.children"), "Stateless")
        return syntax.with_args(cst.Call(cst.Name(wrapper)), [cst.Arg(made)])
    return made


def _without_first_values(rw: Rewriter, node: cst.Call, name: str) -> cst.BaseExpression:
    """A layer with Flax's own first values, which are set anew before anybody sees them."""
    ctx = rw.ctx
    args = call_args(rw, node.args)
    saved = ctx.helpers.snapshot()
    made = convert_call(rw, node, name, definitions.layers(name), args).node
    if not isinstance(made, cst.Call):
        return made
    if name == "torch.nn.Linear":
        ctx.helpers.restore(saved)
        ctx.helpers.use("nnx")
        return syntax.changed(made, func=syntax.parse("nnx.Linear"))
    kept = [a for a in made.args if a.keyword is None or a.keyword.value != "embedding_init"]
    return syntax.with_args(made, kept)


_OF_INPUT = {"nnx.LayerNorm": "LayerNormOfInput", "nnx.RMSNorm": "RMSNormOfInput"}
"""Layers of Flax whose result is as wide as their parameters, and those that keep the input's dtype."""


def of_input(rw: Rewriter, layer: Any) -> Any:
    """A layer of Flax, or the one whose result is of the input's dtype, as torch's is with parameters in float32.

    All floats of a file that names no narrow type are of one."""
    name = _OF_INPUT.get(syntax.code(layer))
    if name is None or not names_half(rw.ctx):
        return layer
    return cst.Name(rw.ctx.helpers.need(module_file("rules.compat.norm"), name))


def _rectified_before(rw: Rewriter, node: cst.Call, kind: k.Module) -> bool:
    """``x + self.block(x)`` with a block that begins with ReLU(inplace=True): torch adds the rectified x.

    ReLU of what is rectified changes nothing, so that x may be rectified in a statement before this one."""
    ctx = rw.ctx
    first = dict(kind.args).get("0", kind)
    if k.in_place(first) is not True or first.cls != "torch.nn.ReLU" or len(node.args) != 1:
        return False
    name, line = node.args[0].value, ctx.statements[-1] if ctx.statements else None
    if not isinstance(name, cst.Name) or line is None or not line.may_hoist or line.before:
        return False
    if any(effect is not node for effect in line.effects):
        return False
    if reads_in(line.node, name.value) != 1 + _added(line.node, node, name.value):
        return False
    check_mutation(ctx, node, name)
    ctx.helpers.use("jax")
    line.before.append(syntax.statement(f"{name.value} = jax.nn.relu({name.value})"))
    return True


def _written_before(rw: Rewriter, node: cst.Call, kind: k.Module) -> cst.Name | None:
    """``y = self.act(x)`` with SiLU(inplace=True), and x is read again: ``x = self.act(x)`` before, and ``y = x``."""
    ctx = rw.ctx
    if k.in_place(kind) is not True or kind.cls in _CONTAINERS or len(node.args) != 1:
        return None
    name, line = node.args[0].value, ctx.statements[-1] if ctx.statements else None
    if not isinstance(name, cst.Name) or line is None or not line.may_hoist or line.before:
        return None
    if any(effect is not node for effect in line.effects) or node.args[0].star:
        return None
    if reads_in(line.node, name.value) != 1 or not isinstance(ctx.kind(name), k.Tensor):
        return None
    check_mutation(ctx, node, name)
    made = syntax.changed(node, func=rw.visit(node.func), args=[cst.Arg(name)])
    written = cst.Assign([cst.AssignTarget(name)], made)
    line.before.append(cst.SimpleStatementLine([written]))
    return name


_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.Module"})


def _added(statement: cst.CSTNode, call: cst.Call, name: str) -> int:
    """How often a name is an operand beside a call, so that it is read when the call has returned."""
    found = 0
    for node in syntax.walk(statement):
        if isinstance(node, cst.BinaryOperation):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                inside = one if isinstance(one, cst.BinaryOperation) else None
                holds = one is call or (inside is not None and call in (inside.left, inside.right))
                found += holds and isinstance(other, cst.Name) and other.value == name
    return found


@converts(cst.Call)
def called(rw: Rewriter, node: cst.Call) -> Any:
    """Calls of layer instances: tied heads, layers with ``inplace=True``."""
    tied = tying.call(rw, node)
    if tied is not None:
        return tied
    kind = rw.ctx.kind(node.func)
    if isinstance(kind, k.Module):
        if kind.cls.startswith("torch.nn.") and any(_is_input(a) for a in node.args):
            return rw.visit(_input_first(node))
        rw.ctx.effect(node)
        own = rw.ctx.class_of(kind)
        forward = own.method("forward") if own is not None else None
        if forward is not None:
            check_handed_over(rw.ctx, node, forward)
        for one in kind.among:
            perhaps = rw.ctx.class_of(one)
            forward = perhaps.method("forward") if perhaps is not None else None
            if forward is not None:
                check_written(rw.ctx, node, forward)
        if _is_handed_tensor(rw, node) and may_write(rw.ctx, kind, node.func):
            if kind.cls.startswith("torch.nn.") and kind.item is None and node.args:
                check_own_gradient(rw.ctx, node, node.args[0].value)
            try:
                check_in_place_layer(rw.ctx, node)
            except Failure as failure:
                if failure.rule == "MUT003":
                    raise  # who calls this function reads what it was handed
                if not _rectified_before(rw, node, kind):
                    owner = rw.ctx.frame.info.owner if rw.ctx.frame is not None else None
                    written = run_before(rw, node, owner) or _written_before(rw, node, kind)
                    if written is None:
                        raise
                    return written
        if isinstance(node.func, cst.Call):
            return _applied(rw, node)
    elif _is_handed_tensor(rw, node) and may_write(rw.ctx, kind, node.func):
        check_in_place_layer(rw.ctx, node)
    return None


@converts(cst.Call, called=("builtins.map",))
def mapped(rw: Rewriter, node: cst.Call) -> Any:
    """``map(self.act, xs)`` with a layer that works in place: nobody may read the elements as they were."""
    ctx = rw.ctx
    if ctx.facts.callee(node) != "builtins.map" or ctx.in_init or len(node.args) < 2:
        return None
    func, first = (one.value for one in node.args[:2])
    if may_write(ctx, ctx.kind(func), func):
        check_temporary(ctx, node, first)
    return None


def _is_handed_tensor(rw: Rewriter, node: cst.Call) -> bool:
    """Whether the first argument of a call may be a tensor that a layer could write to."""
    kind = rw.ctx.kind(node.args[0].value) if node.args else k.NONE
    return not rw.ctx.in_init and isinstance(kind, (k.Tensor, k.Unknown, k.Optional))


def _is_input(arg: cst.Arg) -> bool:
    return arg.keyword is not None and arg.keyword.value == "input"


def _input_first(node: cst.Call) -> cst.Call:
    """``layer(input=x)`` → ``layer(x)``: Flax layers give their first argument another name."""
    given = next(a for a in node.args if _is_input(a))
    rest = [a for a in node.args if a is not given]
    first = cst.Arg(given.value)
    return syntax.with_args(node, [first, *rest])


def _applied(rw: Rewriter, node: cst.Call) -> cst.BaseExpression:
    """``nn.Softmax(dim=1)(x)`` → ``jax.nn.softmax(x, axis=1)``, not a partial that is called at once."""
    saved, rw.ctx.traverses = rw.ctx.traverses, False
    func = rw.visit(node.func)
    rw.ctx.traverses = saved
    args = [syntax.changed(a, value=rw.visit(a.value)) for a in node.args]
    if isinstance(func, cst.Call) and syntax.code(func.func) == "functools.partial":
        function, *rest = func.args
        if all(a.keyword is not None for a in rest) and not any(a.star for a in args):
            return syntax.with_args(syntax.changed(node, func=function.value), [*args, *rest])
    return syntax.changed(node, func=syntax.fitted(node, "func", func), args=args)


def factory(rw: Rewriter, node: cst.CSTNode, name: str) -> cst.BaseExpression:
    """A layer class that is handed around as a value: a class or definition that takes torch's arguments."""
    if name in NAMES:
        rw.ctx.helpers.use("nnx")
        return syntax.parse(NAMES[name])
    rules = definitions.layers(name)
    if len(rules) != 1:
        raise Failure(
            node,
            "API001",
            f"{name} as a value has no Flax counterpart here",
            "wrap it in a function",
        )
    rule = rules[0]
    why = never(rule)
    if why:
        raise Failure(node, "API001", f"{name}: {why}", "write it by hand in JAX")
    plain = plain_class(rule)
    if plain is not None:
        return cst.Name(rw.ctx.helpers.need(rule.file, plain))
    if _derives_from_argument(rw.ctx):
        what = f"{name} is a function in the output, and the file derives a class from an argument"
        raise Failure(node, "API001", what, "derive the class from the layer by its name")
    rw.ctx.helpers.factories.add(rule.name)
    made = cst.Name(rw.ctx.helpers.need(rule.file, rule.name))
    if rw.ctx.traverses and layer_class(rw, name) is None:
        wrapper = rw.ctx.helpers.need(module_file("rules.compat.children"), "stateless")
        return syntax.with_args(cst.Call(cst.Name(wrapper)), [cst.Arg(made)])
    return made


def _derives_from_argument(ctx: Context) -> bool:
    """``def with_defaults(layer_class): class Layer(layer_class): …``, of any function around the class."""
    for one in ctx.source.index.of_type(cst.ClassDef):
        named = {base.value.value for base in one.bases if isinstance(base.value, cst.Name)}
        for above in ctx.facts.tree.around(one) if named else ():
            if isinstance(above, cst.FunctionDef):
                if any(p.name.value in named for p in syntax.named_parameters(above.params)):
                    return True
    return False
