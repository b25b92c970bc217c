"""Expressions and statements with constants in the place of names, and what follows from them."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from migrator.convert.trim.known import (
    MARKS,
    PRESENT,
    Known,
    concerns,
    constant,
    examples,
    is_constant,
    is_own,
    is_plain,
    is_repeated,
    possible,
    renamed,
    truth,
)
from migrator.convert.trim.walking import changed, kept, rebuilt, stored, text, with_arguments
from migrator.python_tree import fields, walk

_COMPARE: dict[type, Callable[[Any, Any], bool]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_ARITHMETIC: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_TYPES: dict[str, type] = {
    "int": int,
    "str": str,
    "float": float,
    "bool": bool,
    "tuple": tuple,
    "list": list,
}
_PURE = frozenset(
    {
        "len",
        "min",
        "max",
        "tuple",
        "range",
        "isinstance",
        "int",
        "float",
        "sum",
        "abs",
        "sorted",
        "getattr",
        "hasattr",
    }
)


def is_present(node: ast.expr) -> bool:
    """Whether an expression is an array or a Variable, and so not None."""
    name = text(node.func) if isinstance(node, ast.Call) else ""
    return name.startswith(("jnp.", "lax.", "jax.nn.")) or name in (
        "nnx.Param",
        "nnx.BatchStat",
        "nnx.Variable",
    )


@kept
def is_pure(node: ast.AST) -> bool:
    """Whether leaving an expression out changes nothing else: it calls nothing that may draw, write or raise on purpose."""
    for one in walk(node):
        if isinstance(one, ast.Call):
            name = text(one.func)
            known = name.split(".")[0] in ("jnp", "lax", "jax", "math", "np")
            if (
                name not in _PURE
                and not known
                and not name.startswith(("rngs.params.", "nnx.initializers."))
            ):
                return False
        elif isinstance(one, ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom):
            return False
    return True


def expression(node: Any, known: Known) -> Any:
    """An expression with what is known put in; the node itself when nothing of it changes."""
    special = _SPECIAL.get(type(node))
    return special(node, known) if special is not None else _children(node, known)


def _children(node: Any, known: Known) -> Any:
    """A node with its children folded."""
    return rebuilt(node, lambda one: expression(one, known))


def _name(node: ast.Name, known: Known) -> ast.expr:
    if isinstance(node.ctx, ast.Load) and node.id in known.constants:
        return constant(known.constants[node.id], node.id)
    return node


def _attribute(node: ast.Attribute, known: Known) -> ast.expr:
    if is_own(node) and isinstance(node.ctx, ast.Load) and node.attr in known.attributes:
        return renamed(known.attributes[node.attr], f"self.{node.attr}")
    return _children(node, known)


def _joined(node: ast.JoinedStr, known: Known) -> ast.expr:
    """``f"{name}_orig"`` of a name that is known is a text."""
    made = _children(node, known)
    parts: list[str] = []
    for one in made.values if made is not node else ():
        whole = isinstance(one, ast.FormattedValue) and one.conversion == -1
        value = one.value if whole and one.format_spec is None else one
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            return made
        parts.append(value.value)
    return made if made is node else constant("".join(parts))


def _not(node: ast.UnaryOp, known: Known) -> ast.expr:
    made = _children(node, known)
    if isinstance(node.op, ast.Not):
        holds = truth(made.operand, known)
        return made if holds is None else ast.Constant(not holds)
    return made


def _bool(node: ast.BoolOp, known: Known) -> ast.expr:
    """``None is not None and x`` is False; ``True and x`` is x."""
    stops = isinstance(node.op, ast.Or)
    kept: list[ast.expr] = []
    same = True
    for place, value in enumerate(node.values):
        made = expression(value, known)
        same = same and made is value
        holds = truth(made, known)
        last = place == len(node.values) - 1
        if (
            holds is stops
            and (not kept or all(map(is_pure, kept)))
            and isinstance(made, ast.Constant)
        ):
            if not kept:
                return made
            if isinstance(made.value, bool):
                return made  # what stands before it decides nothing any more
        if holds is not None and holds is not stops and not last:
            same = False
            continue
        if (
            holds is not None
            and holds is not stops
            and last
            and kept
            and isinstance(made, ast.Constant)
        ):
            if isinstance(made.value, bool):
                same = False
                continue
        kept.append(made)
        if holds is stops:
            same = same and last
            break
    if same:
        return node
    return kept[0] if len(kept) == 1 else changed(node, values=kept)


def _compare(node: ast.Compare, known: Known) -> ast.expr:
    made = _children(node, known)
    if len(made.ops) == 1 and type(made.ops[0]) in _COMPARE:
        left, right = possible(made.left, known), possible(made.comparators[0], known)
        if left is not None and right is not None:
            if any(mark in (*left, *right) for mark in MARKS) and not isinstance(
                made.ops[0], ast.Is | ast.IsNot
            ):
                return made
            compare = _COMPARE[type(made.ops[0])]
            try:
                found = {compare(a, b) for a in left for b in right}
            except TypeError:
                return made
            if len(found) == 1:
                return ast.Constant(found.pop())
    return made


def _choice(node: ast.IfExp, known: Known) -> ast.expr:
    test = expression(node.test, known)
    holds = truth(test, known)
    if holds is not None:
        return expression(node.body if holds else node.orelse, known)
    return _children(node, known)


def _call(node: ast.Call, known: Known) -> ast.expr:
    made = _children(node, known)
    name = made.func.id if isinstance(made.func, ast.Name) else ""
    if name == "isinstance" and len(made.args) == 2:
        kinds = made.args[1].elts if isinstance(made.args[1], ast.Tuple) else [made.args[1]]
        types = tuple(_TYPES.get(one.id) if isinstance(one, ast.Name) else None for one in kinds)
        values = possible(made.args[0], known)
        if values is not None and PRESENT not in values and None not in types:
            found = {isinstance(value, types) for value in examples(values)}  # type: ignore[arg-type]
            if len(found) == 1:
                return ast.Constant(found.pop())
    if name == "hasattr" and text(made.args[1]) == "'__index__'":  # an integer, numpy's too
        values = possible(made.args[0], known)
        if values is not None and PRESENT not in values:
            found = {hasattr(value, "__index__") for value in examples(values)}
            if len(found) == 1:
                return ast.Constant(found.pop())
    inner = known.functions.get(name)
    if inner is not None and len(made.args) == len(inner.args.args) and not made.keywords:
        found_value = _of_one_line(inner, made, known)
        if found_value is not None:
            return found_value
    if any(isinstance(a, ast.Starred) and isinstance(a.value, ast.Tuple) for a in made.args):
        flat = [
            one
            for a in made.args
            for one in (
                a.value.elts
                if isinstance(a, ast.Starred) and isinstance(a.value, ast.Tuple)
                else [a]
            )
        ]
        made = changed(made, args=flat)
    return _without_nothing(made)


_LONGEST = 24
"""What a call of a function of one line becomes is no longer than this, or than the call."""


def _of_one_line(inner: ast.FunctionDef, call: ast.Call, known: Known) -> ast.expr | None:
    """``per_axis(1, 2)`` → ``(1, 1)``, and ``per_axis(value, 2)`` → ``(value,) * 2`` where the value is known to be an int."""
    arguments = call.args
    given = dict(zip((a.arg for a in inner.args.args), arguments, strict=True))
    constants = {p: a.value for p, a in given.items() if isinstance(a, ast.Constant)}
    values = {p: found for p, a in given.items() if (found := possible(a, known)) is not None}
    value = inner.body[-1].value  # type: ignore[attr-defined]
    made = expression(value, Known(constants, values))
    first = arguments[0]
    if is_plain(made):
        origin = getattr(first, "origin", "")
        return renamed(made, origin) if origin else None
    if isinstance(first, ast.Constant) or any(
        isinstance(n, ast.Call | ast.IfExp) for n in walk(made)
    ):
        return None
    made = with_arguments(made, given)
    return made if len(text(made)) <= max(_LONGEST, len(text(call))) else None


def _without_nothing(node: ast.Call) -> ast.Call:
    """``jnp.ones(n, None)`` → ``jnp.ones(n)``: a dtype of None is JAX's default, as are one group and no dilation."""
    name = text(node.func) if isinstance(node.func, ast.Attribute) else ""
    if not name.startswith(("jnp.", "rngs.", "lax.conv")):
        return node
    args = list(node.args)
    while len(args) > 1 and _is_nothing(args[-1]):
        args.pop()
    keywords = [one for one in node.keywords if not _is_default(one)]
    if len(args) == len(node.args) and len(keywords) == len(node.keywords):
        return node
    return changed(node, args=args, keywords=keywords)


def _is_default(keyword: ast.keyword) -> bool:
    if keyword.arg == "feature_group_count" or keyword.arg in ("rhs_dilation", "lhs_dilation"):
        value = keyword.value
        ones = value.elts if isinstance(value, ast.Tuple) else [value]
        return all(isinstance(e, ast.Constant) and e.value == 1 for e in ones) and is_constant(
            value
        )
    return keyword.arg == "dtype" and _is_nothing(keyword.value)


def _is_nothing(node: ast.expr) -> bool:
    return (
        isinstance(node, ast.Constant) and node.value is None and bool(getattr(node, "origin", ""))
    )


def _arithmetic(node: ast.BinOp, known: Known) -> ast.expr:
    made = _children(node, known)
    left, right = made.left, made.right
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        if type(left.value) is int and type(right.value) is int and type(made.op) in _ARITHMETIC:
            value = _ARITHMETIC[type(made.op)](left.value, right.value)
            return ast.Constant(value) if value >= 0 else made
    if isinstance(made.op, ast.Add) and isinstance(right, ast.Constant) and right.value is False:
        return left  # 1 + bidirectional
    if made is not node and isinstance(made.op, ast.Mult) and _is_one(right):
        return left
    if isinstance(made.op, ast.Mult) and isinstance(left, ast.Tuple) and is_plain(left):
        if isinstance(right, ast.Constant) and type(right.value) is int and len(left.elts) == 1:
            return ast.Tuple(left.elts * right.value, ast.Load())
    if isinstance(made.op, ast.FloorDiv) and isinstance(right, ast.Constant) and right.value == 1:
        return left
    return made


def _is_one(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 1


def _item(node: ast.Subscript, known: Known) -> ast.expr:
    """``{"mean": jnp.mean, …}["mean"]``"""
    made = _children(node, known)
    if isinstance(made.value, ast.Dict) and isinstance(made.slice, ast.Constant):
        for key, value in zip(made.value.keys, made.value.values, strict=True):
            if isinstance(key, ast.Constant) and key.value == made.slice.value:
                return value
    return made


def _tuple(node: ast.Tuple, known: Known) -> ast.expr:
    """``(n, *(size,) * 2)`` → ``(n, size, size)``"""
    made = _children(node, known)
    elements: list[ast.expr] = []
    for one in made.elts:
        value = one.value if isinstance(one, ast.Starred) else None
        repeated = value is not None and _of_a_name(value)
        elements += repeated if repeated else [one]
    return made if len(elements) == len(made.elts) else changed(made, elts=elements)


def _of_a_name(node: ast.expr) -> list[ast.expr] | None:
    """The elements of ``(size,) * 2``."""
    if not is_repeated(node) or not isinstance(node, ast.BinOp):
        return None
    left, times = node.left, node.right
    assert isinstance(left, ast.Tuple)
    short = isinstance(times, ast.Constant) and type(times.value) is int and times.value <= 3
    if not short or len(left.elts) != 1 or not isinstance(left.elts[0], ast.Name):
        return None
    return left.elts * times.value  # type: ignore[attr-defined]


def _inner(node: Any, known: Known) -> Any:
    """A lambda or comprehension, which binds names of its own."""
    if isinstance(node, ast.Lambda):
        args = node.args
        bound = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    else:
        bound = [n.id for g in node.generators for n in walk(g.target) if isinstance(n, ast.Name)]
    return _children(node, known.without(bound))


_SPECIAL: dict[type, Callable[[Any, Known], Any]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.UnaryOp: _not,
    ast.BoolOp: _bool,
    ast.Compare: _compare,
    ast.IfExp: _choice,
    ast.Call: _call,
    ast.BinOp: _arithmetic,
    ast.Subscript: _item,
    ast.Tuple: _tuple,
    ast.JoinedStr: _joined,
    ast.Lambda: _inner,
    ast.ListComp: _inner,
    ast.SetComp: _inner,
    ast.DictComp: _inner,
    ast.GeneratorExp: _inner,
}


# --- statements --------------------------------------------------------------------------------------------------------


def statements(body: list[ast.stmt], known: Known) -> list[ast.stmt]:
    """Statements with what is known put in; the list itself when nothing changes.

    A name that a statement of the list binds anew is known no longer behind it.
    """
    made: list[ast.stmt] = []
    for one in body:
        made += _statement(one, known) if concerns(known, one) else _alone(one)
        bound = stored(one)
        if bound & (known.constants.keys() | known.values.keys() | known.functions.keys()):
            known = known.without(bound)
        known = _learned(known, made[-1] if made else one)
        if made and isinstance(made[-1], ast.Return | ast.Raise):
            break
    if len(made) == len(body) and all(a is b for a, b in zip(made, body, strict=True)):
        return body
    return made


_NOTHING = Known()


@kept
def _alone(node: ast.stmt) -> list[ast.stmt]:
    """A statement folded with nothing known."""
    return _statement(node, _NOTHING)


def _learned(known: Known, node: ast.stmt) -> Known:
    """What is known behind a statement: a name of an array is not None, and a function of one line is at hand."""
    if isinstance(node, ast.FunctionDef):
        if (
            len(node.body) == 1
            and isinstance(node.body[0], ast.Return)
            and len(node.args.args) == 1
        ):
            return replace(known, functions={**known.functions, node.name: node})
        return known
    pairs = _single(node)
    if pairs is not None and isinstance(pairs[0], ast.Name) and is_present(pairs[1]):
        return replace(known, values={**known.values, pairs[0].id: (PRESENT,)})
    if pairs is not None and isinstance(pairs[0], ast.Name):
        values = possible(pairs[1], known)
        read = isinstance(pairs[1], ast.Attribute | ast.Subscript)
        if values is not None and (read or values == (None,)):
            return replace(known, values={**known.values, pairs[0].id: values})
    return known


def _single(node: ast.stmt) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        return node.targets[0], node.value
    return None


def _statement(node: ast.stmt, known: Known) -> list[ast.stmt]:
    if isinstance(node, ast.If):
        test = expression(node.test, known)
        holds = truth(test, known)
        if holds is not None:
            return statements(node.body if holds else node.orelse, known)
        body, orelse = statements(node.body, known), statements(node.orelse, known)
        if not body and not orelse:
            return []
        if test is node.test and body is node.body and orelse is node.orelse:
            return [node]
        return [changed(node, test=test, body=body or [ast.Pass()], orelse=orelse)]
    if isinstance(node, ast.FunctionDef):
        args = node.args
        own = [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
        own += [a.arg for a in (args.vararg, args.kwarg) if a is not None]
        inside = known.without([*own, *(n for s in node.body for n in stored(s))])
        body = statements(node.body, inside)
        return [node] if body is node.body else [changed(node, body=body)]
    if isinstance(node, ast.For | ast.While | ast.With | ast.Try):
        # a name bound in a loop is known nowhere in it: the next round sees it
        return [_compound(node, known.without(stored(node)))]
    if isinstance(node, ast.Assign) and (pairs := _pairs(node)) is not None:
        values = [expression(value, known) for _, value in pairs]
        if all(a is b for a, (_, b) in zip(values, pairs, strict=True)):
            return [node]
        return [changed(node, value=ast.Tuple(values, ast.Load()))]
    made = _children(node, known)
    if made is not node and isinstance(made, ast.Expr):
        made = _set(made)
    return [] if made is not node and _is_idle(made) else [made]


def _set(node: ast.Expr) -> ast.stmt:
    """``module.weight_orig = w`` for ``setattr(module, "weight_orig", w)``."""
    call = node.value
    if not isinstance(call, ast.Call) or text(call.func) != "setattr" or len(call.args) != 3:
        return node
    owner, name, value = call.args
    if not isinstance(name, ast.Constant) or not str(name.value).isidentifier() or call.keywords:
        return node
    target = ast.Attribute(owner, str(name.value), ast.Store())
    made = ast.copy_location(ast.Assign([target], value), node)
    vars(made).update(lines=vars(node).get("lines"), changed=True)
    return made


def _is_idle(node: ast.stmt) -> bool:
    """``x = x`` and ``shapes |= {}``"""
    if isinstance(node, ast.AugAssign):
        return (
            isinstance(node.op, ast.BitOr)
            and isinstance(node.value, ast.Dict)
            and not node.value.keys
        )
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    target, value = node.targets[0], node.value
    named = isinstance(target, ast.Name) and isinstance(value, ast.Name)
    return named and target.id == value.id  # type: ignore[attr-defined]


def _compound(node: Any, known: Known) -> Any:
    changes: dict[str, Any] = {}
    for name in fields(type(node)):
        value = getattr(node, name, None)
        if isinstance(value, list) and value and isinstance(value[0], ast.stmt):
            new: Any = statements(value, known)
            new = new or [ast.Pass()]
        elif isinstance(value, list):
            new = [expression(v, known) if isinstance(v, ast.AST) else v for v in value]
            if all(a is b for a, b in zip(new, value, strict=True)):
                new = value
        elif isinstance(value, ast.AST):
            new = expression(value, known)
        else:
            continue
        if new is not value:
            changes[name] = new
    return changed(node, **changes) if changes else node


def _pairs(node: ast.Assign) -> list[tuple[ast.expr, ast.expr]] | None:
    """``a, b = x, y`` as its pairs."""
    target = node.targets[0]
    if (
        len(node.targets) != 1
        or not isinstance(target, ast.Tuple)
        or not isinstance(node.value, ast.Tuple)
    ):
        return None
    if len(target.elts) != len(node.value.elts):
        return None
    if any(isinstance(e, ast.Starred) for e in (*target.elts, *node.value.elts)):
        return None
    return list(zip(target.elts, node.value.elts, strict=True))


def pairs(node: ast.stmt) -> list[tuple[ast.expr, ast.expr]] | None:
    """The targets of an assignment with their values, one by one."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return None
    return _pairs(node) or [(node.targets[0], node.value)]


def assigned(node: ast.Assign, kept: list[tuple[ast.expr, ast.expr]]) -> list[ast.stmt]:
    """An assignment of fewer pairs."""
    if not kept:
        return []
    if len(kept) == 1:
        return [changed(node, targets=[kept[0][0]], value=kept[0][1])]
    targets = ast.Tuple([t for t, _ in kept], ast.Store())
    return [changed(node, targets=[targets], value=ast.Tuple([v for _, v in kept], ast.Load()))]
