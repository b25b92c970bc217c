"""From a torch call to its JAX expression: bind, evaluate the definition, substitute the user's arguments."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import python_tree, syntax, texts
from migrator.convert.bind import Argument, choose
from migrator.convert.bindings import PYTHON
from migrator.convert.evaluate import Evaluator
from migrator.convert.values import Code, Lit, Open, Range, Refused, Seq, Star, Value, code
from migrator.infer import kinds as k
from rules.definitions import WORDS, Rule

RNGS = "__rngs__"
FACTS = frozenset({"shape", "ndim", "dtype", "size"})
"""Attributes that a Variable has like its value."""


@dataclass(frozen=True)
class CallArg:
    """One argument of the user's call: as written, as converted, and its kind."""

    keyword: str | None
    original: cst.BaseExpression
    updated: cst.BaseExpression
    kind: k.Kind


@dataclass(frozen=True)
class Step:
    """A local value of a definition: its placeholder, what the definition calls it, and what it is."""

    placeholder: str
    name: str
    node: cst.BaseExpression


@dataclass(frozen=True)
class Template:
    """An evaluated definition: expressions over placeholders, one for a single result or one per component."""

    nodes: tuple[cst.BaseExpression, ...]
    is_tuple: bool
    uses: tuple[dict[str, int], ...]
    globals: tuple[str, ...]
    """In a fixed order, in which the output carries them."""
    asks: bool
    """Whether it reads the shape or dtype of something."""
    beside: dict[str, str]
    """Placeholder of an argument after the first → the name of its parameter."""
    steps: tuple[Step, ...] = ()
    """The same in several statements: the local values of the definition, the last being the result."""
    in_steps: bool = False
    """Whether it is to be written in them, and is something else where they may not stand."""


@dataclass
class Expansion:
    """What a call becomes.

    ``helper`` names the definition to copy and call instead, when it cannot be inlined."""

    rule: Rule
    template: Template | None = None
    mapping: dict[str, cst.BaseExpression] = field(default_factory=dict)


class NoConversion(Exception):
    """The call has no conversion; the message says why."""


_EVALUATED: dict[Any, Template | str | None] = {}
"""Definition and the abstract values of its parameters → what it becomes."""
_CALLED: dict[Any, Expansion | str] = {}
"""Name, definitions and the abstract arguments of a call → the expansion without its mapping, or a refusal."""


class Abstraction:
    """Turns user arguments into abstract values under numbered placeholders."""

    def __init__(self) -> None:
        self.mapping: dict[str, cst.BaseExpression] = {}

    def _name(self, node: cst.BaseExpression) -> str:
        name = f"__a{len(self.mapping)}__"
        self.mapping[name] = node
        return name

    def value(self, original: Any, updated: Any, kind: k.Kind) -> Value:
        """The abstract value of an argument."""
        literal = _literal(original)
        if literal is not None:
            return Lit(literal.value, self._name(updated))
        if (
            type(original) in (cst.Tuple, cst.List)
            and type(original) is type(updated)
            and len(original.elements) == len(updated.elements)
        ):
            return self._sequence(original, updated, kind)
        if isinstance(kind, k.Const) and type(original) is cst.Name:
            return Lit(kind.value, self._name(updated))
        return Code(ast.Name(self._name(updated)), kind)

    def _sequence(self, original: Any, updated: Any, kind: k.Kind) -> Value:
        whole = self._name(updated)
        items: list[Value] = []
        for i, (a, b) in enumerate(zip(original.elements, updated.elements, strict=True)):
            item: k.Kind = k.UNKNOWN
            if isinstance(kind, k.Tuple) and i < len(kind.items):
                item = kind.items[i]
            elif isinstance(kind, k.Sequence):
                item = kind.item
            made = self.value(a.value, b.value, item)
            items.append(Star(made) if isinstance(a, cst.StarredElement) else made)
        return Seq(tuple(items), "list" if isinstance(original, cst.List) else "tuple", whole)


_NOT_FINITE = {
    f"float({quote}{text}{quote})": text for text in ("inf", "-inf", "nan") for quote in ("'", '"')
}


def _literal(node: cst.BaseExpression) -> k.Const | None:
    kind = type(node)
    if kind is cst.Integer or kind is cst.Float or kind is cst.SimpleString:
        return k.Const(syntax.literal(node))  # type: ignore[arg-type]
    if isinstance(node, cst.Name):
        known = {"True": True, "False": False, "None": None}
        return k.Const(known[node.value]) if node.value in known else None
    if (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Name)
        and node.func.value == "float"
    ):
        text = syntax.code(node)
        return k.Const(float(_NOT_FINITE[text])) if text in _NOT_FINITE else None
    if isinstance(node, cst.UnaryOperation) and isinstance(node.operator, cst.Minus):
        inner = _literal(node.expression)
        if inner is not None and isinstance(inner.value, (int, float)):
            return k.Const(-inner.value)
    return None


def _key(value: Value) -> Any:
    if isinstance(value, Code):
        node = value.node
        return ("c", node.id if type(node) is ast.Name else ast.dump(node), value.kind)
    if isinstance(value, Seq):
        return ("s", value.type, value.name, tuple(_key(i) for i in value.items))
    if isinstance(value, Star):
        return ("*", _key(value.value))
    if isinstance(value, Range):
        return ("r", value.values)
    assert isinstance(value, Lit)
    return ("l", type(value.value).__name__, repr(value.value), value.name)


def expand(
    name: str, rules: Sequence[Rule], args: Sequence[CallArg], in_steps: bool = False
) -> Expansion:
    """Choose a definition for a call and evaluate it; NoConversion says why it cannot be.

    Args:
      in_steps: whether statements may stand before the call.
    """
    abstraction = Abstraction()
    bound_args = [
        Argument(a.keyword, abstraction.value(a.original, a.updated, a.kind)) for a in args
    ]
    given = tuple((a.keyword, _key(a.value)) for a in bound_args)
    key = (name, tuple(map(id, rules)), given, in_steps)
    found = _CALLED.get(key)
    if found is None:
        found = _CALLED[key] = _expansion(name, rules, bound_args, in_steps)
    if isinstance(found, str):
        raise NoConversion(found)
    return Expansion(found.rule, found.template, abstraction.mapping)


def _expansion(
    name: str, rules: Sequence[Rule], args: Sequence[Argument], in_steps: bool
) -> Expansion | str:
    choice = choose(name, rules, args)
    if choice.rule is None:
        return choice.problem
    if choice.bound is None:
        return Expansion(choice.rule)
    in_steps &= choice.rule.asks_steps
    key = (id(choice.rule), tuple((n, _key(v)) for n, v in choice.bound.items()), in_steps)
    if key not in _EVALUATED:
        _EVALUATED[key] = _evaluate(choice.rule, choice.bound, in_steps)
    template = _EVALUATED[key]
    return template if isinstance(template, str) else Expansion(choice.rule, template)


def _evaluate(rule: Rule, bound: dict[str, Value], in_steps: bool) -> Template | str | None:
    """A Template, the reason of a refusal, or None when the definition must be copied."""
    try:
        evaluator = Evaluator(rule, bound, in_steps)
        result = evaluator.run()
        is_tuple = isinstance(result, Seq) and result.name is None
        items = list(result.items) if isinstance(result, Seq) and is_tuple else [result]
        asts = [_Sizes().visit(code(item)) for item in items]
    except Refused as refused:
        return str(refused)
    except Open:
        return None
    found: set[str] = set()
    local: set[str] = set()
    for node in asts:
        for item in python_tree.walk(node):
            if isinstance(item, ast.Name):
                found.add(item.id)
            elif isinstance(item, ast.Lambda):
                local |= {a.arg for a in item.args.args}
            elif isinstance(item, ast.comprehension):
                local |= {n.id for n in python_tree.walk(item.target) if isinstance(n, ast.Name)}
    names = {n for n in found - local if not n.startswith("__")}
    if names & WORDS:
        return None
    nodes = tuple(texts.from_ast(node) for node in asts)
    asks = any(
        isinstance(item, ast.Attribute) and item.attr in FACTS
        for node in asts
        for item in python_tree.walk(node)
    )
    uses = tuple(syntax.names(n) for n in nodes)
    # what is computed later must find its values under names that stay
    later = any(isinstance(one, _LATER) for node in asts for one in python_tree.walk(node))
    beside = {
        value.node.id: name
        for name, value in list(bound.items())[1:]
        if isinstance(value, Code) and isinstance(value.node, ast.Name) and name not in PYTHON
    }
    beside = {} if later else beside
    steps = () if is_tuple or later else _steps(evaluator)
    in_steps = in_steps and bool(steps)
    return Template(nodes, is_tuple, uses, tuple(sorted(names)), asks, beside, steps, in_steps)


_LATER = (ast.Lambda, ast.GeneratorExp)


def _steps(evaluator: Evaluator) -> tuple[Step, ...]:
    """What a definition computes one after the other; empty where it is one expression from the start."""
    if not evaluator.steps or evaluator.last is None:
        return ()
    every = [*evaluator.steps, ("", "", evaluator.last)]
    return tuple(
        Step(placeholder, "h" if name in PYTHON else name, texts.from_ast(_Sizes().visit(node)))
        for placeholder, name, node in every
    )


class _Sizes(ast.NodeTransformer):
    """``(n, x.shape[-2], x.shape[-1])`` → ``(n, *x.shape[-2:])``."""

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        self.generic_visit(node)
        run, last = 0, _size(node.elts[-1]) if node.elts else None
        while run < len(node.elts) and last and _size(node.elts[-1 - run]) == (last[0], run + 1):
            run += 1
        if run > 1:
            shape = node.elts[-1].value  # type: ignore[attr-defined]
            start = ast.UnaryOp(ast.USub(), ast.Constant(run))
            last_sizes = ast.Subscript(shape, ast.Slice(start))
            if run == len(node.elts):
                return last_sizes
            node.elts[-run:] = [ast.Starred(last_sizes)]
        return node


def _size(node: ast.expr) -> tuple[str, int] | None:
    """x and 2 of ``x.shape[-2]``."""
    match node:
        case ast.Subscript(
            ast.Attribute(ast.Name(name), "shape"),
            ast.UnaryOp(ast.USub(), ast.Constant(int() as index)),
        ):
            return name, index
    return None
