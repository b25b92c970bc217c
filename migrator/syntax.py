"""libcst in the small: children without whitespace, precedence and parentheses, templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from functools import cache, partial
from operator import is_not
from typing import Any, TypeVar, get_origin

import libcst as cst

from migrator.nodes import copier
from migrator.writing import code as code
from migrator.writing import module_code as module_code
from rules.below import child_fields as child_fields
from rules.below import children as children
from rules.below import is_node as is_node
from rules.below import lister as lister
from rules.below import walk as walk

N = TypeVar("N", bound=cst.CSTNode)

_OPERATOR_PRECEDENCE: dict[str, int] = {
    "BitOr": 7,
    "BitXor": 8,
    "BitAnd": 9,
    "LeftShift": 10,
    "RightShift": 10,
    "Add": 11,
    "Subtract": 11,
    "Multiply": 12,
    "MatrixMultiply": 12,
    "Divide": 12,
    "FloorDivide": 12,
    "Modulo": 12,
    "Power": 14,
    "Or": 3,
    "And": 4,
}
ATOM = 16


def own_nodes(body: cst.CSTNode) -> list[cst.CSTNode]:
    """The nodes of a function without those of functions inside it."""
    found: list[cst.CSTNode] = [body]
    for item in found:
        if type(item) is not cst.FunctionDef and type(item) is not cst.Lambda:
            found.extend(children(item))
    return found


_PRECEDENCE: dict[type, int] = {
    cst.Comparison: 6,
    cst.IfExp: 2,
    cst.Lambda: 1,
    cst.NamedExpr: 0,
    cst.Tuple: 0,
    cst.Yield: 0,
    cst.Await: 15,
}


def precedence(node: Any) -> int:
    """How tightly an expression binds, from 0 (walrus, bare tuple) to ATOM."""
    kind = type(node)
    if kind is cst.BinaryOperation or kind is cst.BooleanOperation:
        found = _OPERATOR_PRECEDENCE[type(node.operator).__name__]
    elif kind is cst.UnaryOperation:
        found = 5 if isinstance(node.operator, cst.Not) else 13
    else:
        found = _PRECEDENCE.get(kind, ATOM)
    return ATOM if found < ATOM and node.lpar else found


def _required(parent: cst.CSTNode, field: str) -> int:
    """How tightly a child must bind to stand in a field without parentheses."""
    if isinstance(parent, (cst.Attribute, cst.Call, cst.Subscript)) and field in ("value", "func"):
        return ATOM
    if isinstance(parent, cst.BinaryOperation):
        own = _OPERATOR_PRECEDENCE[type(parent.operator).__name__]
        if isinstance(parent.operator, cst.Power):
            return own + 1 if field == "left" else 13
        return own if field == "left" else own + 1
    if isinstance(parent, cst.BooleanOperation):
        own = _OPERATOR_PRECEDENCE[type(parent.operator).__name__]
        return own if field == "left" else own + 1
    if isinstance(parent, cst.UnaryOperation):
        return 5 if isinstance(parent.operator, cst.Not) else 13
    if isinstance(parent, (cst.Comparison, cst.ComparisonTarget)):
        return 7
    if isinstance(parent, cst.IfExp):
        return 2 if field == "orelse" else 3
    if isinstance(parent, (cst.CompFor, cst.CompIf)):
        return 0 if field == "target" else 3
    if isinstance(parent, (cst.Element, cst.Arg, cst.Slice, cst.DictElement, cst.Lambda)):
        return 1
    if isinstance(parent, (cst.StarredElement, cst.Await)):
        return 7
    if isinstance(parent, (cst.FormattedStringExpression, cst.Param, cst.AnnAssign)):
        return 1
    return 0


def parenthesized(node: cst.CSTNode) -> cst.CSTNode:
    """The expression in one more pair of parentheses."""
    return node.with_changes(
        lpar=[cst.LeftParen(), *node.lpar],  # type: ignore[attr-defined]
        rpar=[*node.rpar, cst.RightParen()],  # type: ignore[attr-defined]
    )


def fitted(parent: cst.CSTNode, field: str, child: N) -> N:
    """The child, in parentheses where its place in the parent asks for them."""
    binds = precedence(child)
    if binds < ATOM:
        return parenthesized(child) if binds < _required(parent, field) else child  # type: ignore[return-value]
    if type(child) is cst.Integer and type(parent) is cst.Attribute and not child.lpar:  # type: ignore[attr-defined]
        return parenthesized(child)  # type: ignore[return-value]
    return child


def unparenthesized(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression without its outer parentheses (a generator or tuple keeps what it needs)."""
    if getattr(node, "lpar", None) and not isinstance(node, (cst.Tuple, cst.GeneratorExp)):
        if "\n" not in code(node):
            return node.with_changes(lpar=node.lpar[1:], rpar=node.rpar[:-1])
    return node


_SPACED = frozenset(
    {
        cst.Assert,
        cst.Await,
        cst.BooleanOperation,
        cst.ClassDef,
        cst.CompFor,
        cst.CompIf,
        cst.Comparison,
        cst.ComparisonTarget,
        cst.Del,
        cst.DictComp,
        cst.ExceptHandler,
        cst.For,
        cst.From,
        cst.GeneratorExp,
        cst.If,
        cst.IfExp,
        cst.Lambda,
        cst.ListComp,
        cst.Match,
        cst.MatchCase,
        cst.NamedExpr,
        cst.Raise,
        cst.Return,
        cst.SetComp,
        cst.UnaryOperation,
        cst.While,
        cst.With,
        cst.WithItem,
        cst.Yield,
    }
)
"""Nodes with keywords that a bracket may follow without a space: ``return(x)``, ``not(x)``."""


def changed(node: N, **changes: Any) -> N:
    """A node with other fields; the node itself when nothing differs.

    ``with_changes`` checks every field, which takes longer than all else: done only where a keyword could run
    into its neighbour. There an expression that lost its parentheses gets them back.
    """
    for name, value in changes.items():
        if getattr(node, name) is not value:
            break
    else:
        return node
    kind = type(node)
    if kind in _SPACED and not _has_room(node, changes):
        try:
            return node.with_changes(**changes)
        except cst.CSTValidationError:
            new = {n: v for n, v in changes.items() if v is not getattr(node, n)}
            return node.with_changes(**{n: _enclosed(value) for n, value in new.items()})
    made: N = copier(kind)(node)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


_ROOM: dict[type, tuple[str, ...]] = {
    cst.Assert: ("whitespace_after_assert",),
    cst.CompIf: ("whitespace_before", "whitespace_before_test"),
    cst.For: ("whitespace_after_for", "whitespace_before_in", "whitespace_after_in"),
    cst.If: ("whitespace_before_test",),
    cst.IfExp: (
        "whitespace_before_if",
        "whitespace_after_if",
        "whitespace_before_else",
        "whitespace_after_else",
    ),
    cst.Return: ("whitespace_after_return",),
    cst.While: ("whitespace_after_while",),
}
"""The fields that keep a keyword from its neighbours."""


def _has_room(node: Any, changes: Mapping[str, Any]) -> bool:
    """Whether white space stands around all keywords of a node, whatever its expressions become."""
    kind = type(node)
    if kind is cst.Comparison:
        targets = changes.get("comparisons", node.comparisons)
        owners = [target.operator for target in targets]
    elif kind is cst.ComparisonTarget or kind is cst.BooleanOperation:
        owners = [node.operator]
    elif kind in _ROOM and changes.keys().isdisjoint(_ROOM[kind]):
        return all(getattr(getattr(node, name), "value", None) for name in _ROOM[kind])
    else:
        return False
    return "operator" not in changes and all(
        getattr(getattr(owner, name), "value", None)
        for owner in owners
        for name in ("whitespace_before", "whitespace_after")
    )


def _enclosed(value: Any) -> Any:
    """Expressions in parentheses, also those in lists and in parts of comparisons and comprehensions."""
    if isinstance(value, (list, tuple)):
        return [_enclosed(item) for item in value]
    if isinstance(value, cst.BaseExpression):
        return value if getattr(value, "lpar", None) else parenthesized(value)
    if isinstance(value, cst.ComparisonTarget):
        return value.with_changes(comparator=_enclosed(value.comparator))
    if isinstance(value, cst.CompFor):
        return value.with_changes(iter=_enclosed(value.iter))
    if isinstance(value, cst.CompIf):
        return value.with_changes(test=_enclosed(value.test))
    return value


def rebuild(node: N, transform: Callable[[cst.CSTNode], cst.CSTNode]) -> N:
    """Apply a function to each child; the node itself when nothing changed."""
    differing = _comparer(type(node))
    if differing is None:
        return node
    changes = differing(node, transform)
    return changed(node, **changes) if changes else node


_ONE = """
    new = transform(value)
    if new is not value:
        changes["{0}"] = fitted(node, "{0}", new)"""
_SEVERAL = """
    items = [transform(one) for one in value]
    if any(map(is_not, items, value)):
        changes["{0}"] = items"""


@cache
def _comparer(kind: type[cst.CSTNode]) -> Callable[..., dict[str, Any]] | None:
    """A function from a node of this type to the fields in which a transform of its children differs.

    Made like ``lister``, None when such a node never has any children.
    """
    types = {f.name: f.type for f in fields(kind)}
    lines = ["def differing(node, transform):", "    changes = {}"]
    for name in child_fields(kind):
        one, several = _ONE.format(name), _SEVERAL.format(name).replace("\n", "\n    ")
        declared = types[name]
        lines.append(f"    value = node.{name}")
        if isinstance(declared, type) and is_node(declared):
            lines.append(one)
        elif get_origin(declared) is Sequence:
            lines.append(f"    if value:{several}")
        else:
            one = one.replace("\n", "\n    ")
            lines.append(f"    if is_node(type(value)):{one}")
            lines.append(f"    elif value and type(value) in (list, tuple):{several}")
    if len(lines) == 2:
        return None
    namespace: dict[str, Any] = {"is_node": is_node, "is_not": is_not, "fitted": fitted}
    exec("\n".join([*lines, "    return changes"]), namespace)
    made: Callable[..., dict[str, Any]] = namespace["differing"]
    return made


@cache
def parse(text: str) -> cst.BaseExpression:
    """Parse an expression once; nodes are immutable and may be shared."""
    return cst.parse_expression(text)


@cache
def statement(text: str) -> cst.SimpleStatementLine | cst.BaseCompoundStatement:
    """Parse a statement once."""
    return cst.parse_statement(text)


def substitute(node: N, mapping: Mapping[str, cst.BaseExpression]) -> N:
    """Put expressions in place of the names of a template."""

    return _substituted(mapping, node)  # type: ignore[return-value]


def _substituted(mapping: Mapping[str, cst.BaseExpression], item: Any) -> cst.CSTNode:
    kind = type(item)
    if kind is cst.Name:
        return mapping.get(item.value, item)
    if kind is cst.Integer or kind is cst.SimpleString or kind is cst.Float:
        return item
    if kind is cst.Arg:
        value = _substituted(mapping, item.value)
        if value is item.value:
            return item
        bare = unparenthesized(value)  # type: ignore[arg-type]
        return changed(item, value=value if item.star else bare)
    if kind is cst.Attribute:
        value = _substituted(mapping, item.value)
        if value is item.value:
            return item
        return changed(item, value=fitted(item, "value", value))
    return rebuild(item, partial(_substituted, mapping))


def parameters(function: cst.FunctionDef) -> dict[str, cst.Param]:
    """The parameters of a function by their names, but for ``*args`` and ``**kwargs``."""
    params = function.params
    every = (*params.posonly_params, *params.params, *params.kwonly_params)
    return {param.name.value: param for param in every}


def is_own(node: cst.CSTNode, name: str) -> bool:
    """``self.name``."""
    return (
        isinstance(node, cst.Attribute)
        and node.attr.value == name
        and isinstance(node.value, cst.Name)
        and node.value.value == "self"
    )


def names(node: cst.CSTNode) -> dict[str, int]:
    """Every Name read in an expression and how often (attribute names and keywords left out)."""
    found: dict[str, int] = {}

    pending: list[Any] = [node]
    while pending:
        item = pending.pop()
        kind = type(item)
        if kind is cst.Name:
            found[item.value] = found.get(item.value, 0) + 1
        elif kind is cst.Attribute or kind is cst.Arg:
            pending.append(item.value)
        else:
            pending += reversed(children(item))
    return found


def reads(node: cst.CSTNode) -> set[str]:
    """Names an expression or statement reads; what a plain assignment binds is not read."""
    if isinstance(node, cst.Assign):
        found = set(names(node.value))
        for target in node.targets:
            if not isinstance(target.target, (cst.Name, cst.Tuple, cst.List)):
                found |= set(names(target.target))
        return found
    return set(names(node))


def literal(node: cst.Integer | cst.Float | cst.SimpleString) -> Any:
    """The value of a literal; libcst's own ``evaluated_value`` compiles the text each time."""
    text = node.value
    if isinstance(node, cst.Integer):
        return int(text.replace("_", ""), 0)
    if isinstance(node, cst.Float):
        return float(text.replace("_", ""))
    if text[0] in "\"'" and "\\" not in text and "\r" not in text:
        return text[3:-3] if text[:3] in ('"""', "'''") else text[1:-1]
    return node.evaluated_value


def is_true(node: cst.CSTNode) -> bool:
    """Whether a node is the constant True."""
    return isinstance(node, cst.Name) and node.value == "True"


def is_number(node: cst.CSTNode) -> bool:
    """Whether a node is a number that is written down, with a sign or without."""
    if isinstance(node, cst.UnaryOperation):
        node = node.expression
    return isinstance(node, (cst.Integer, cst.Float))


def is_docstring(node: cst.CSTNode) -> bool:
    """Whether a statement is just a text."""
    return (
        isinstance(node, cst.SimpleStatementLine)
        and isinstance(node.body[0], cst.Expr)
        and isinstance(node.body[0].value, (cst.SimpleString, cst.ConcatenatedString))
    )


def is_super(node: cst.CSTNode) -> bool:
    """``super()`` and ``super(Net, self)``."""
    return type(node) is cst.Call and type(node.func) is cst.Name and node.func.value == "super"


def is_cheap(node: cst.BaseExpression) -> bool:
    """Whether writing an expression twice costs nothing and changes nothing: names, attributes, literals."""
    if isinstance(node, (cst.Name, cst.Integer, cst.Float, cst.SimpleString, cst.Ellipsis)):
        return True
    if isinstance(node, cst.Attribute):
        return is_cheap(node.value)
    if isinstance(node, cst.UnaryOperation):
        return is_cheap(node.expression)
    if isinstance(node, cst.Tuple):
        return all(is_cheap(e.value) for e in node.elements)
    if isinstance(node, cst.Subscript) and len(node.slice) == 1:
        index = node.slice[0].slice
        return (
            isinstance(index, cst.Index) and is_cheap(node.value) and is_cheap(index.value)
        ) and (
            isinstance(index.value, cst.Ellipsis)
            or (isinstance(node.value, cst.Attribute) and node.value.attr.value == "shape")
        )
    return False


def arg(value: cst.BaseExpression, keyword: str | None = None) -> cst.Arg:
    """A call argument without stray whitespace."""
    if keyword is None:
        return cst.Arg(value)
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return cst.Arg(value, keyword=cst.Name(keyword), equal=equal)


def with_args(call: cst.Call, args: list[cst.Arg]) -> cst.Call:
    """The call with other arguments, commas repaired."""
    made = []
    for i, item in enumerate(args):
        item = _beside(item) if len(args) > 1 else item
        last = i == len(args) - 1
        if not last and not isinstance(item.comma, cst.Comma):
            item = item.with_changes(comma=cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")))
        elif last and _is_plain(item.comma):
            item = item.with_changes(comma=cst.MaybeSentinel.DEFAULT)
        made.append(item)
    return call.with_changes(args=made)


def _is_plain(comma: Any) -> bool:
    """A comma between two arguments of one line, which is none at the end of a call."""
    return isinstance(comma, cst.Comma) and isinstance(comma.whitespace_after, cst.SimpleWhitespace)


def _beside(item: cst.Arg) -> cst.Arg:
    """An argument beside others: a generator, which may stand alone without them, needs its parentheses."""
    if isinstance(item.value, cst.GeneratorExp) and not item.value.lpar:
        value = item.value.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
        return item.with_changes(value=value)
    return item


def add_keyword(call: cst.Call, keyword: str, value: cst.BaseExpression) -> cst.Call:
    """The call with one more keyword argument, before a ``**kwargs``, keeping the layout of a multi-line call.

    One that hands it over already, as in a file that makes modules of Flax beside torch's, stays as it is."""
    if any(item.keyword is not None and item.keyword.value == keyword for item in call.args):
        return call
    args = [_beside(item) for item in call.args]
    new = arg(value, keyword)
    if args and args[-1].star == "**":
        return with_args(call, [*args[:-1], new, args[-1]])
    if args and isinstance(args[-1].comma, cst.Comma):
        last = args[-1]
        before = args[-2].comma if len(args) > 1 else last.comma
        if not isinstance(before, cst.Comma):
            before = last.comma
        args[-1] = last.with_changes(comma=before)
        return call.with_changes(args=[*args, new.with_changes(comma=last.comma)])
    if args and not isinstance(args[-1].whitespace_after_arg, cst.SimpleWhitespace):
        # the closing parenthesis stands on a line of its own: keep it there
        last = args[-1]
        comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
        for earlier in args[:-1]:
            if isinstance(earlier.comma, cst.Comma):
                comma = earlier.comma
        args[-1] = last.with_changes(whitespace_after_arg=cst.SimpleWhitespace(""), comma=comma)
        return call.with_changes(
            args=[*args, new.with_changes(whitespace_after_arg=last.whitespace_after_arg)]
        )
    return with_args(call, [*args, new])


def key_of(node: cst.Subscript) -> cst.BaseExpression | None:
    """What a subscript looks up: ``("up", 0)`` of ``convs["up", 0]``; None for slices."""
    keys: list[cst.BaseExpression] = []
    for element in node.slice:
        if not isinstance(element.slice, cst.Index) or element.slice.star:
            return None
        keys.append(element.slice.value)
    if len(keys) == 1 and node.slice[0].comma == cst.MaybeSentinel.DEFAULT:
        return keys[0]
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    last = cst.MaybeSentinel.DEFAULT if len(keys) > 1 else cst.Comma()
    return cst.Tuple(
        [cst.Element(key, comma if key is not keys[-1] else last) for key in keys],
        lpar=[cst.LeftParen()],
        rpar=[cst.RightParen()],
    )


def assigned_to(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """The targets of ``a = b = x`` or ``a: int = x``; none of any other node."""
    if isinstance(node, cst.Assign):
        return [one.target for one in node.targets]
    return [node.target] if isinstance(node, cst.AnnAssign) and node.value is not None else []


def is_left_open(function: cst.FunctionDef) -> bool:
    """Whether a function does nothing, and leaves to others what it stands for: ``raise NotImplementedError``, ``pass``."""
    return all(map(_does_nothing, function.body.body))


def _does_nothing(line: cst.CSTNode) -> bool:
    small = line.body[0] if isinstance(line, cst.SimpleStatementLine) else line
    if isinstance(small, cst.Return):
        return small.value is None or code(small.value) == "None"
    if isinstance(small, cst.Raise):
        return small.exc is not None and code(small.exc).startswith("NotImplemented")
    text = isinstance(small, cst.Expr) and isinstance(small.value, (cst.BaseString, cst.Ellipsis))
    return text or isinstance(small, cst.Pass)


def named_parameters(params: cst.Parameters) -> tuple[cst.Param, ...]:
    """What a function or a lambda takes by name, in their order: all but ``*args`` and ``**kwargs``."""
    return (*params.posonly_params, *params.params, *params.kwonly_params)
