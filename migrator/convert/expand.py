"""Puts an expanded definition into the user's code: hoists, helpers, generators, parentheses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import libcst as cst

from migrator import python_tree, syntax
from migrator.convert.axes import as_axes
from migrator.convert.bindings import PYTHON
from migrator.convert.context import Context, Failure
from migrator.convert.inline import FACTS, RNGS, CallArg, Expansion, NoConversion, Template, expand
from migrator.convert.passes.targets import current
from migrator.convert.rewriter import Rewriter
from migrator.findings import UNCLEAR
from migrator.infer import kinds as k
from migrator.infer.signatures import spelled
from migrator.line_breaks import on_one_line
from rules.definitions import Rule


@dataclass
class Result:
    """A converted call: one expression, or one per component of a tuple."""

    nodes: list[cst.BaseExpression]
    is_tuple: bool

    @property
    def node(self) -> cst.BaseExpression:
        """The whole result as one expression."""
        if not self.is_tuple:
            return self.nodes[0]
        return make_tuple(self.nodes)


def make_tuple(nodes: Sequence[cst.BaseExpression], parens: bool = True) -> cst.Tuple:
    """A tuple display."""
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    elements = [
        cst.Element(
            n,
            comma=comma
            if i < len(nodes) - 1
            else (cst.Comma() if len(nodes) == 1 else cst.MaybeSentinel.DEFAULT),
        )
        for i, n in enumerate(nodes)
    ]
    return cst.Tuple(
        elements,
        lpar=[cst.LeftParen()] if parens else [],
        rpar=[cst.RightParen()] if parens else [],
    )


def call_args(rw: Rewriter, args: Sequence[cst.Arg]) -> list[CallArg]:
    """The arguments of a call, converted, with their kinds. A star of known length stays one argument."""
    found = []
    for item in args:
        if item.star == "**":
            options = known_options(rw, item.value)
            if options is not None:
                found += options
                continue
        keyword = item.star or (item.keyword.value if item.keyword else None)
        kind = rw.ctx.facts.kind(item.value)
        if is_strided(keyword, kind):
            continue
        found.append(CallArg(keyword, item.value, current(rw, item.value), kind))
    return found


def is_strided(keyword: str | None, kind: k.Kind) -> bool:
    """Whether an argument is ``layout=torch.strided``, the only layout that JAX has."""
    return keyword == "layout" and kind == k.Other("torch.layout")


def known_options(rw: Rewriter, node: cst.BaseExpression) -> list[CallArg] | None:
    """``**options`` as ``device=options["device"], …`` where the dict is written out once and never changed."""
    kind = rw.ctx.facts.kind(node)
    if not isinstance(kind, k.Mapping) or not kind.items or not isinstance(node, cst.Name):
        return None
    frame = rw.ctx.frame
    if frame is None or node.value not in only_spread(frame.info.node):
        return None
    found = []
    for key, one in kind.items:
        index = cst.SubscriptElement(cst.Index(cst.SimpleString(f'"{key}"')))
        entry = cst.Subscript(node, [index])
        found.append(CallArg(str(key), entry, entry, one))
    return found


@lru_cache(maxsize=64)
def only_spread(function: cst.FunctionDef) -> frozenset[str]:
    """Local names that a function assigns once and then uses as ``**name`` only."""
    spread: dict[str, int] = {}
    for node in syntax.walk(function.body):
        if isinstance(node, cst.Arg) and node.star == "**" and isinstance(node.value, cst.Name):
            spread[node.value.value] = spread.get(node.value.value, 0) + 1
    if not spread:
        return frozenset()
    uses = syntax.names(function)
    bound = [
        node.targets[0].target.value
        for node in syntax.walk(function.body)
        if isinstance(node, cst.Assign)
        and len(node.targets) == 1
        and isinstance(node.targets[0].target, cst.Name)
    ]
    return frozenset(
        n for n, count in spread.items() if bound.count(n) == 1 and uses[n] == count + 1
    )


def convert_call(
    rw: Rewriter,
    node: cst.CSTNode,
    name: str,
    rules: Sequence[Rule],
    args: list[CallArg],
    only: int | None = None,
) -> Result:
    """Convert a call of a torch name by its definitions.

    Args:
      node: where failures are reported.
      only: the component of a tuple result that is used, None for all.
    """
    ctx = rw.ctx
    if ctx.blocked and node in ctx.blocked:  # a part of what a pass converts as a whole
        raise Failure(node, *ctx.blocked[node])
    in_steps = any(rule.asks_steps for rule in rules) and ctx.may_hoist(node)
    expansion = _expanded(name, rules, args, node, in_steps)
    if expansion.template is not None and expansion.template.in_steps:
        before = len(ctx.statements[-1].before)
        made = _substitute(ctx, expansion, args, only, node)
        if made is not None:
            return made
        del ctx.statements[-1].before[before:]
        expansion = _expanded(name, rules, args, node)
    if expansion.template is not None:
        made = _substitute(ctx, expansion, args, only, node)
        if made is not None:
            return made
    return Result([helper_call(ctx, node, expansion.rule, args)], False)


def _expanded(
    name: str, rules: Sequence[Rule], args: list[CallArg], node: cst.CSTNode, in_steps: bool = False
) -> Expansion:
    try:
        return expand(name, rules, args, in_steps)
    except NoConversion as problem:
        raise failure(node, name, str(problem)) from problem


def failure(node: cst.CSTNode, name: str, reason: str) -> Failure:
    """The Failure for a refusal; a reason may begin with its own rule code (``DYN001: …``)."""
    head, separator, rest = reason.partition(": ")
    if separator and len(head) == 6 and head[:3].isupper() and head[3:].isdigit():
        return Failure(node, head, f"{name}: {rest}")
    message = f"{name}: {reason}" if name not in reason else reason
    return Failure(node, "API002", message, UNCLEAR if "not known" in reason else "")


def _substitute(
    ctx: Context, expansion: Expansion, args: list[CallArg], only: int | None, node: cst.CSTNode
) -> Result | None:
    template = expansion.template
    assert template is not None
    picked = range(len(template.nodes))
    if only is not None and template.is_tuple:
        if not -len(template.nodes) <= only < len(template.nodes):
            return None
        picked = range(only % len(template.nodes), only % len(template.nodes) + 1)
    mapping = {name: on_one_line(value) for name, value in expansion.mapping.items()}
    counts: dict[str, int] = {}
    for i in picked:
        for name, count in template.uses[i].items():
            counts[name] = counts.get(name, 0) + count
    originals = {id(a.updated): a.original for a in args}
    facts: dict[tuple[str, str], cst.BaseExpression] = {}
    for name, value in expansion.mapping.items():
        if counts.get(name, 0) > 1 and not syntax.is_cheap(value):
            made = _made_of(value) if template.asks else {}
            asked = [fact for i in picked for fact in _asked(template.nodes[i], name)]
            once = len(asked) == counts[name] == len(set(asked))
            if made and once and set(asked) <= set(made):
                facts |= {(name, fact): made[fact] for fact in asked}
                del mapping[name]
                continue
            if isinstance(value, cst.GeneratorExp):  # which could be gone through once only
                value = cst.ListComp(value.elt, value.for_in)
            # what is computed with is on its way to the result, and may have its name
            parameter = template.beside.get(name)
            called = (parameter, False) if parameter else ("h", True)
            hoisted = ctx.hoist(originals.get(id(value), node), value, *called)
            if hoisted is None:
                return None
            mapping[name] = hoisted
    if counts.get(RNGS):
        mapping[RNGS] = ctx.rngs(node)
    for name in template.globals:
        new = ctx.helpers.need(expansion.rule.file, name)
        if new != name:
            mapping[name] = cst.Name(new)
    for i in picked:
        for name in _of_python(template.nodes[i]):
            if name not in expansion.mapping and ctx.is_hidden(name):
                ctx.helpers.use("builtins")
                mapping[name] = cst.Attribute(cst.Name("builtins"), cst.Name(name))
    asks = template.asks and any(type(v) is cst.Subscript for v in mapping.values())

    def filled(part: cst.BaseExpression, values: Mapping[str, cst.BaseExpression]) -> Any:
        part = _apart(part, values)
        made = _with_facts(syntax.substitute(part, values), facts)
        if "tuple" in _of_python(part):
            made = as_axes(ctx, made)
        return _of_fresh(_without_value(made) if asks else made)

    nodes = [filled(template.nodes[i], mapping) for i in picked]
    if template.in_steps or (template.steps and len(syntax.code(nodes[0])) > _LINE):
        steps = _step_by_step(ctx, node, template, mapping, filled)
        if template.in_steps and not steps:
            return None
        nodes = steps or nodes
    return Result(nodes, template.is_tuple and only is None)


@lru_cache(maxsize=1024)
def _of_python(part: cst.BaseExpression) -> tuple[str, ...]:
    """The functions and classes of Python's own that a template may call."""
    return tuple(name for name in syntax.names(part) if name in PYTHON and name not in _bound(part))


@lru_cache(maxsize=1024)
def _bound(part: cst.BaseExpression) -> frozenset[str]:
    """The names that comprehensions and lambdas of a template bind."""
    found: set[str] = set()
    for node in syntax.walk(part):
        if isinstance(node, cst.CompFor):
            found.update(syntax.names(node.target))
        elif isinstance(node, cst.Param):
            found.add(node.name.value)
    return frozenset(found)


def _apart(
    part: cst.BaseExpression, values: Mapping[str, cst.BaseExpression]
) -> cst.BaseExpression:
    """A template whose own variables are none of those that are read in what is put into it."""
    bound = _bound(part)
    if not bound:
        return part
    read = {
        name for key in syntax.names(part) if key in values for name in syntax.names(values[key])
    }
    fresh: dict[str, cst.BaseExpression] = {}
    for name in sorted(bound & read):
        number = 2
        while f"{name}{number}" in read | bound:
            number += 1
        fresh[name] = cst.Name(f"{name}{number}")
    return syntax.substitute(part, fresh) if fresh else part


_LINE = 88
"""An expression longer than this is written as the definition has it, in several statements, where they may stand."""


def _step_by_step(
    ctx: Context,
    call: cst.CSTNode,
    template: Template,
    mapping: Mapping[str, cst.BaseExpression],
    filled: Callable[[cst.BaseExpression, Mapping[str, cst.BaseExpression]], Any],
) -> list[cst.BaseExpression]:
    """The local values of a definition as statements before this one, and the result of them; empty if not possible."""
    made = dict(mapping)
    last: dict[str, str] = {}
    for i, step in enumerate(template.steps[:-1], 1):
        # a value that nothing reads any more hands its name on: weights = dropout(weights)
        before = last.get(step.name)
        free = before and not any(before in syntax.names(s.node) for s in template.steps[i:])
        again = made[before] if before and free else None
        name = ctx.hoist(call, filled(step.node, made), step.name, as_result=False, again=again)
        if name is None:
            return []
        made[step.placeholder] = name
        last[step.name] = step.placeholder
    return [filled(template.steps[-1].node, made)]


def _made_of(value: cst.BaseExpression) -> dict[str, cst.BaseExpression]:
    """Shape and dtype of an array that is made on the spot: ``jnp.empty((2, n))`` need not be made to ask for them."""
    match value:
        case cst.Call(
            cst.Attribute(cst.Name("jnp"), cst.Name("empty" | "zeros" | "ones")),
            [cst.Arg(cst.Tuple() as shape, None, star=""), *rest],
        ):
            match rest:
                case []:
                    return {"shape": shape, "dtype": syntax.parse("jnp.float32")}
                case [cst.Arg(dtype, None | cst.Name("dtype"), star="")]:
                    return {"shape": shape, "dtype": dtype}
    return {}


def _of_fresh(node: Any) -> Any:
    """``jnp.full((2, n), 0, jnp.float32)`` for ``jnp.full_like(jnp.empty((2, n), jnp.float32), 0)``."""
    match node:
        case cst.Call(
            cst.Attribute(
                cst.Name("jnp"), cst.Name(("full_like" | "zeros_like" | "ones_like") as called)
            ),
            [cst.Arg(made, None, star=""), *given],
        ):
            facts = _made_of(made)
            if not facts or any(a.keyword is not None or a.star for a in given):
                return node
            short = called.removesuffix("_like")
            values = [a.value for a in given]
            if len(values) != (short == "full"):
                return node
            func = cst.Attribute(cst.Name("jnp"), cst.Name(short))
            args = [facts["shape"], *values, facts["dtype"]]
            return syntax.with_args(cst.Call(func), [cst.Arg(one) for one in args])
    return node


def _asked(node: cst.CSTNode, name: str) -> Iterator[str]:
    """What a template asks of a placeholder: "shape", "dtype"."""
    for one in syntax.walk(node):
        match one:
            case cst.Attribute(cst.Name(value), cst.Name(fact)) if value == name:
                yield fact


def _with_facts(node: Any, facts: Mapping[tuple[str, str], cst.BaseExpression]) -> Any:
    """The template with what is known already in the place of ``x.shape``."""
    if not facts:
        return node
    match node:
        case cst.Attribute(cst.Name(name), cst.Name(fact)) if (name, fact) in facts:
            return facts[name, fact]
    return syntax.rebuild(node, lambda child: _with_facts(child, facts))


def _without_value(node: Any) -> Any:
    """``w[...].shape`` → ``w.shape``: a Variable knows its shape, rank and dtype itself."""
    made = syntax.rebuild(node, _without_value)
    if (
        isinstance(made, cst.Attribute)
        and made.attr.value in FACTS
        and isinstance(made.value, cst.Subscript)
        and len(made.value.slice) == 1
        and isinstance(made.value.slice[0].slice, cst.Index)
        and isinstance(made.value.slice[0].slice.value, cst.Ellipsis)
    ):
        return syntax.changed(made, value=made.value.value)
    return made


def helper_call(
    ctx: Context, node: cst.CSTNode, rule: Rule, args: Sequence[CallArg]
) -> cst.BaseExpression:
    """Copy a definition and call it with the user's arguments."""
    name = ctx.helpers.need(rule.file, rule.name)
    unread = _unread(rule)
    made: list[cst.Arg] = []
    positional = [p.name for p in rule.params if p.mode == "positional"]
    several = next((p.name for p in rule.params if p.mode == "*"), None)
    for i, item in enumerate(args):
        if item.keyword in ("*", "**"):
            made.append(cst.Arg(item.updated).with_changes(star=item.keyword))
            continue
        keyword = item.keyword
        if keyword is not None and keyword == several:
            made.insert(0, syntax.arg(item.updated))  # ``size=shape`` stands for all of ``*size``
            continue
        if keyword is not None:
            keyword = spelled(keyword, rule.by_name)
        if keyword in unread:
            continue
        if keyword is None and i < len(positional) and positional[i] in unread:
            if all(a.keyword is None for a in args[i + 1 :]) and i + 1 < len(args):
                pass
            elif i + 1 == len(args):
                continue
        made.append(syntax.arg(item.updated, keyword))
    if rule.draws:
        made.append(syntax.arg(ctx.rngs(node), "rngs"))
    return syntax.with_args(cst.Call(cst.Name(name)), made)


def _unread(rule: Rule) -> set[str]:
    """Parameters that the body never looks at (device, memory_format…)."""
    import ast

    read = {
        n.id for stmt in rule.node.body for n in python_tree.walk(stmt) if isinstance(n, ast.Name)
    }
    return {p.name for p in rule.params if p.name not in read and p.name != "rngs"}


def tensor_value(ctx: Context, original: cst.CSTNode) -> bool:
    """Whether an expression of the original tree is surely a tensor."""
    return isinstance(ctx.kind(original), k.Tensor)


def any_node(value: Any) -> cst.BaseExpression:
    """For type checkers: an expression."""
    assert isinstance(value, cst.BaseExpression)
    return value
