"""``isinstance(layer, nn.ReLU)``: layers without parameters are told by the functions that they are in the output."""

from __future__ import annotations

import ast
from functools import cache

import libcst as cst

from migrator import python_tree, syntax
from migrator.convert.context import Failure
from migrator.convert.expand import make_tuple
from migrator.convert.rewriter import Rewriter
from migrator.infer import kinds as k
from rules import definitions
from rules.definitions import Rule, module_file
from rules.torch_names import table

Maker = tuple[str, ...]
"""The name that a rule gives a function, and what is given it by place: ``("ceil_max_pool", "2")``."""
_DERIVED = {"torch.nn.Hardtanh": ("torch.nn.ReLU6",)}
"""Layers of torch that derive from others."""


def asked_of_functions(
    rw: Rewriter, node: cst.Call, classes: cst.BaseExpression
) -> cst.BaseExpression | None:
    """The test for classes of which some are functions in the output; None where it asks for none of these."""
    from migrator.convert.passes.annotations import layer_class
    from migrator.convert.passes.class_values import is_derived_elsewhere

    tested = node.args[0].value
    nodes = [e.value for e in classes.elements] if isinstance(classes, cst.Tuple) else [classes]
    makers: list[cst.BaseExpression] = []
    others: list[cst.BaseExpression] = []
    for one in nodes:
        name = rw.ctx.facts.qualified_name(one) or ""
        found = _makers(name) if name.startswith("torch.nn.") else ()
        if not found or layer_class(rw, name) is not None:
            others.append(one)
            continue
        derived = any(info.torch_base == name for info in rw.ctx.facts.classes.values())
        derived = derived or is_derived_elsewhere(rw.ctx, [name], [])
        if derived or not _is_layer(rw, tested):
            return None  # what is said of such a class else
        file = definitions.layers(name)[0].file
        if rw.ctx.facts.tree.has(
            node
        ):  # else `type(layer) == nn.Hardtanh`, which asks for no other
            found += tuple(m for below in _DERIVED.get(name, ()) for m in _makers(below))
        makers += [_written(rw, file, maker) for maker in found]
    if not makers:
        return None
    if others and not isinstance(tested, (cst.Name, cst.Attribute)):
        advice = "give it a name first"
        raise Failure(node, "API011", "what is asked for classes is computed there", advice)
    where, helper = "layer_functions", "is_layer_of"
    if rw.ctx.traverses:
        where, helper = "children", "is_stateless_of"
    function = cst.Name(rw.ctx.helpers.need(module_file(f"rules.compat.{where}"), helper))
    args = [cst.Arg(rw.visit(tested)), *map(cst.Arg, makers)]
    test = syntax.with_args(cst.Call(function), args)
    if not others:
        return test
    wanted = others[0] if len(others) == 1 else make_tuple(others)
    rest = rw.visit(syntax.with_args(node, [node.args[0], cst.Arg(wanted)]))
    assert isinstance(rest, cst.BaseExpression)
    either = syntax.parenthesized(cst.BooleanOperation(test, cst.Or(), rest))
    assert isinstance(either, cst.BaseExpression)
    return either


def _is_layer(rw: Rewriter, node: cst.BaseExpression) -> bool:
    """Whether a value is no function of torch's beside layers: layers are wrapped where modules are gone through."""
    return rw.ctx.traverses or isinstance(rw.ctx.kind(node), k.Module)


def _written(rw: Rewriter, file: definitions.RuleFile, maker: Maker) -> cst.BaseExpression:
    name, *given = maker
    head, _, rest = name.partition(".")
    head = rw.ctx.helpers.need(file, head)
    text = f"{head}.{rest}" if rest else head
    return syntax.parse(f"({text}, {', '.join(given)})" if given else text)


def _makers(name: str) -> tuple[Maker, ...]:
    """The functions that stand for a layer of torch, if they stand for no other."""
    found = _standing_for().get(name, ())
    shared = {m for other, made in _standing_for().items() if other != name for m in made}
    return found if shared.isdisjoint(found) else ()


@cache
def _standing_for() -> dict[str, tuple[Maker, ...]]:
    made: dict[str, tuple[Maker, ...]] = {}
    for name in sorted(table()["class"]):
        rules = definitions.layers(name) if name.startswith("torch.nn.") else ()
        if rules and all(rule.returns.strip("'\"") == "Callable" for rule in rules):
            made[name] = tuple(dict.fromkeys(m for rule in rules for m in _returned(rule)))
    return made


def _returned(rule: Rule) -> list[Maker]:
    values = [one.value for one in python_tree.walk(rule.node) if isinstance(one, ast.Return)]
    found: list[Maker] = []
    while values:
        value = values.pop()
        if isinstance(value, ast.IfExp):
            values += [value.body, value.orelse]
            continue
        given: list[ast.expr] = []
        if isinstance(value, ast.Call) and ast.unparse(value.func) == "functools.partial":
            value, *given = value.args
        if isinstance(value, (ast.Name, ast.Attribute)):
            first = [ast.unparse(g) for g in given if isinstance(g, ast.Constant)]
            found.append((ast.unparse(value), *first))
        elif value is not None:
            found.append(("",))  # of which nothing is known
    return found[::-1]
