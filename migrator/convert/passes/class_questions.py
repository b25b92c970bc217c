"""Questions whether something is a class, or a function.

A layer of torch that is handed around is a class, and some are functions here: where code asks, those become classes.
"""

from __future__ import annotations

from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context, Failure
from migrator.convert.expand import make_tuple
from migrator.convert.helpers import LAYER_CLASS
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import kinds as k
from migrator.infer.python import class_of_object
from rules import definitions
from rules.definitions import module_file

_ASKS = frozenset(f"inspect.{name}" for name in "isfunction isclass isroutine isbuiltin".split())
_CLASSES = frozenset(["type", "builtins.type", "types.FunctionType", "types.LambdaType"])


_WORDS = ("isfunction", "isclass", "isroutine", "isbuiltin", "isinstance", "issubclass")


def _may_ask(ctx: Context) -> bool:
    return any(word in ctx.source.text for word in _WORDS)


@converts(cst.Call, when=_may_ask)
def asked_for_class(rw: Rewriter, node: cst.Call) -> Any:
    """``isfunction(default)``, ``isinstance(act, type)`` and ``issubclass(norm, nn.Module)``."""
    asks = isinstance(node.func, cst.Name) and node.func.value in ("isinstance", "issubclass")
    if not asks and rw.ctx.facts.qualified_name(node.func) not in _ASKS:
        return None
    classes = _classes(node)
    of_layers = _is_name(node.func, "issubclass") and len(classes) == 1
    of_layers = of_layers and rw.ctx.facts.qualified_name(classes[0]) == "torch.nn.Module"
    if not of_layers and not _asks(rw, node, classes):
        return None
    if not node.args or not _may_be_layer(rw.ctx.kind(node.args[0].value)):
        return None
    file = module_file("rules.compat.factories")
    if not rw.ctx.traverses:  # else they are classes already
        rw.ctx.helpers.need(file, LAYER_CLASS)
    if not of_layers:
        return None
    rw.ctx.helpers.use("nnx")
    both = f"(nnx.Module, {rw.ctx.helpers.need(file, 'LayerClass')})"
    args = [rw.visit(node.args[0]), syntax.changed(node.args[1], value=syntax.parse(both))]
    return syntax.changed(node, args=args)


@converts(cst.Call, when=_may_ask, named=("issubclass",))
def derived_test(rw: Rewriter, node: cst.Call) -> Any:
    """``issubclass(conv, nn.Conv2d)``: what makes such layers where the class is handed around, and what derives from it.

    Raises:
      Failure: nothing in the output stands for the class.
    """
    from migrator.convert.passes.annotations import layer_class
    from migrator.convert.passes.instances import public_classes
    from migrator.convert.passes.layers import factory

    if not _is_name(node.func, "issubclass") or len(node.args) != 2:
        return None
    tested = class_of_object(node.args[0].value)
    if tested is not None:  # ``issubclass(type(m), nn.Conv2d)``
        args = [cst.Arg(tested), node.args[1]]
        return rw.visit(syntax.with_args(cst.Call(cst.Name("isinstance")), args))
    wanted = public_classes(rw, node.args[1].value)
    nodes = [e.value for e in wanted.elements] if isinstance(wanted, cst.Tuple) else [wanted]
    names = [rw.ctx.facts.qualified_name(one) or "" for one in nodes]
    if not any(name.startswith("torch.") for name in names):
        return None
    if names == ["torch.nn.Module"] and _is_beside_texts(rw.ctx, node):
        return syntax.with_args(cst.Call(cst.Name("callable")), [rw.visit(node.args[0])])
    found: list[cst.BaseExpression] = []
    for one, name in zip(nodes, names, strict=True):
        if not definitions.layers(name):
            if name.startswith("torch."):
                what = f"nothing in the output tells what derives from {name}"
                raise Failure(node, "API011", what, "name the layers that it may be")
            found.append(rw.visit(one))
            continue
        for made in (factory(rw, one, name), layer_class(rw, name)):
            if made is not None and not any(made.deep_equals(other) for other in found):
                found.append(made)
    if not rw.ctx.traverses:  # else they are classes already
        rw.ctx.helpers.need(module_file("rules.compat.factories"), LAYER_CLASS)
    asked = found[0] if len(found) == 1 else make_tuple(found)
    args = [rw.visit(node.args[0]), syntax.changed(node.args[1], value=asked)]
    return syntax.changed(node, args=args)


def _is_beside_texts(ctx: Context, node: cst.Call) -> bool:
    """``if isinstance(act, str): … elif issubclass(act, nn.Module): … else: raise``: of what is no text, a class.

    torch refuses to ask anything else, and what makes a layer in the output can be called, a class or not.
    """
    tree = ctx.facts.tree
    around = tree.around(node) if tree.has(node) else ()
    if len(around) < 2 or not isinstance(around[-1], cst.If) or around[-1].test is not node:
        return False
    inner, outer = around[-1], around[-2]
    tested = node.args[0].value
    other = inner.orelse
    if other is not None and not (
        isinstance(other, cst.Else)
        and isinstance(other.body.body[-1], cst.SimpleStatementLine)
        and isinstance(other.body.body[-1].body[-1], cst.Raise)
    ):
        return False
    while isinstance(outer, cst.If) and outer.orelse is inner:
        test = outer.test
        if (
            isinstance(test, cst.Call)
            and ctx.facts.callee(test) == "builtins.isinstance"
            and len(test.args) == 2
            and test.args[0].value.deep_equals(tested)
            and ctx.facts.qualified_name(test.args[1].value) in ("str", "builtins.str")
        ):
            return isinstance(tested, cst.Name)
        inner = outer
        outer = tree.parent(outer)
    return False


def _asks(rw: Rewriter, node: cst.Call, classes: list[cst.BaseExpression]) -> bool:
    """Whether a call asks for what kind of thing that is called something is."""
    if rw.ctx.facts.qualified_name(node.func) in _ASKS:
        return True
    names = {syntax.code(c) for c in classes} | {rw.ctx.facts.qualified_name(c) for c in classes}
    return _is_name(node.func, "isinstance") and not names.isdisjoint(_CLASSES)


def _classes(node: cst.Call) -> list[cst.BaseExpression]:
    """The classes that ``isinstance`` or ``issubclass`` asks for."""
    if len(node.args) != 2:
        return []
    wanted = node.args[1].value
    return [e.value for e in wanted.elements] if isinstance(wanted, cst.Tuple) else [wanted]


def _is_name(node: cst.BaseExpression, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def _may_be_layer(kind: k.Kind) -> bool:
    """Whether a value may be a class of torch's layers."""
    return isinstance(kind, (k.Unknown, k.Class, k.Function, k.Optional))
