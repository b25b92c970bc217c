"""Whether a decorator hands the keywords of a call on to what it decorates, where a generator is among them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from migrator import syntax


def hands_keywords(node: cst.FunctionDef) -> bool:
    """Whether every function inside that calls a parameter of one around it does so with its own ``**kwargs``.

    ``def deco(init): def wrapped(self, *args, **kwargs): init(self, *args, **kwargs)``; what it is called with otherwise,
    ``init(self, **from_config(*args, **kwargs))``, need not hold everything.
    """
    return all(_hands_on(call, inner) for call, inner in _calls(node, (), frozenset()))


def _calls(
    node: cst.FunctionDef, around: tuple[cst.FunctionDef, ...], outer: frozenset[str]
) -> Iterator[tuple[cst.Call, cst.FunctionDef]]:
    """The calls of parameters of the functions around, each with the function that it stands in."""
    own = frozenset(syntax.parameters(node))
    waiting: list[cst.CSTNode] = [node.body]
    while waiting:
        one = waiting.pop()
        if isinstance(one, cst.FunctionDef):
            yield from _calls(one, (*around, node), outer | own)
            continue
        if isinstance(one, cst.Call) and isinstance(one.func, cst.Name):
            if one.func.value in outer - own:
                yield one, node
        waiting.extend(syntax.children(one))


def _hands_on(call: cst.Call, inner: cst.FunctionDef) -> bool:
    star = inner.params.star_kwarg
    if star is None:
        return False
    names = [
        arg.value.value for arg in call.args if arg.star == "**" and isinstance(arg.value, cst.Name)
    ]
    return star.name.value in names or any(_sifts(inner, n, star.name.value) for n in names)


def _sifts(inner: cst.FunctionDef, name: str, every: str) -> bool:
    """``init_kwargs = {k: v for k, v in kwargs.items() if not k.startswith("_")}``, which holds the generator too."""
    given = [
        node.value
        for node in syntax.walk(inner.body)
        if isinstance(node, (cst.Assign, cst.AnnAssign, cst.AugAssign, cst.NamedExpr))
        and any(n in (name, every) for n in _bound(node))
    ]
    if len(given) != 1 or not isinstance(given[0], cst.DictComp):
        return False
    made = given[0]
    loop, key = made.for_in, made.key
    if loop.inner_for_in is not None or not isinstance(key, cst.Name):
        return False
    if syntax.code(loop.iter) != f"{every}.items()" or not isinstance(loop.target, cst.Tuple):
        return False
    pair = [syntax.code(element.value) for element in loop.target.elements]
    if pair != [key.value, syntax.code(made.value)]:
        return False
    return all(_says(test.test, key.value) for test in loop.ifs)


def _bound(node: cst.Assign | cst.AnnAssign | cst.AugAssign | cst.NamedExpr) -> set[str]:
    targets = [t.target for t in node.targets] if isinstance(node, cst.Assign) else [node.target]
    return {name for target in targets for name in syntax.names(target)}


def _says(test: cst.BaseExpression, key: str) -> bool | None:
    """What a condition on the name of a keyword says of ``rngs``; None where that cannot be seen."""
    if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
        known = _says(test.expression, key)
        return None if known is None else not known
    if isinstance(test, cst.BooleanOperation):
        sides = [_says(test.left, key), _says(test.right, key)]
        settling = isinstance(test.operator, cst.Or)
        if settling in sides:
            return settling
        return None if None in sides else not settling
    if isinstance(test, cst.Call) and isinstance(test.func, cst.Attribute) and len(test.args) == 1:
        asked, part = test.func, test.args[0].value
        if isinstance(asked.value, cst.Name) and asked.value.value == key:
            if isinstance(part, cst.SimpleString) and isinstance(part.evaluated_value, str):
                if asked.attr.value == "startswith":
                    return GENERATOR.startswith(part.evaluated_value)
                if asked.attr.value == "endswith":
                    return GENERATOR.endswith(part.evaluated_value)
        return None
    return _compares(test, key)


def _compares(test: cst.BaseExpression, key: str) -> bool | None:
    """``k != "dim"``, ``k not in ("dim", "heads")``."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return None
    if not isinstance(test.left, cst.Name) or test.left.value != key:
        return None
    one = test.comparisons[0]
    other = one.comparator
    if isinstance(one.operator, (cst.In, cst.NotIn)):
        if not isinstance(other, (cst.Tuple, cst.List, cst.Set)):
            return None
        several = [element.value for element in other.elements]
        inverted = isinstance(one.operator, cst.NotIn)
    elif isinstance(one.operator, (cst.Equal, cst.NotEqual)):
        several, inverted = [other], isinstance(one.operator, cst.NotEqual)
    else:
        return None
    if not all(isinstance(item, cst.SimpleString) for item in several):
        return None
    found = any(
        isinstance(item, cst.SimpleString) and item.evaluated_value == GENERATOR for item in several
    )
    return found != inverted


GENERATOR = "rngs"
"""The keyword by which converted constructors take their generator."""
