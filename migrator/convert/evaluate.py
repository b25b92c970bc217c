"""The partial evaluator: a definition's body and abstract arguments in, one expression out.

It decides what literals and kinds decide, substitutes the rest, and gives up with ``Open`` where a body stays
several statements or a decision stays open; the caller then copies the definition and calls it.
"""

from __future__ import annotations

import ast
import copy
import operator
from collections.abc import Callable, Sequence
from typing import Any

from migrator import python_tree
from migrator.convert.signature import target_signature
from migrator.convert.values import (
    Code,
    Lit,
    Open,
    Range,
    Seq,
    Star,
    Value,
    code,
    kind_of,
    lift,
    static,
)
from migrator.convert.words import Words
from migrator.infer import kinds as k
from rules.defaults import target_defaults
from rules.definitions import Rule

_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_PYTHON = {"int": int, "float": float, "bool": bool, "str": str, "tuple": tuple, "list": list}
_DTYPE_WORDS = {
    "is_float": "float",
    "is_integer": "int",
    "is_bool": "bool",
    "is_complex": "complex",
}
_TENSOR_DTYPE = {"float": float, "int": int, "bool": bool, "complex": complex}


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


class Evaluator(Words):
    """Evaluates one definition for one call."""

    def __init__(self, rule: Rule, arguments: dict[str, Value], in_steps: bool = False) -> None:
        self.rule = rule
        self.in_steps = in_steps
        self.env: dict[str, Value] = {
            name: _unless_guessed(value) if name in rule.texts else value
            for name, value in arguments.items()
        }
        self.lets: dict[str, ast.expr] = {}
        self.local: dict[str, str] = {}
        """Placeholder of a local value → what the definition calls it."""
        self.steps: list[tuple[str, str, ast.expr]] = []
        """Local values that the result needs, in order: placeholder, name in the definition, expression."""
        self.last: ast.expr | None = None
        """The result with its local values as placeholders."""

    def run(self) -> Value:
        """The value the definition returns; Open or Refused when there is no single expression."""
        try:
            self._block(self.rule.node.body)
        except _Return as returned:
            return self._settle(returned.value)
        raise Open

    def _settle(self, value: Value) -> Value:
        """Put local values back where they are used once; a second use would compute twice."""
        if not self.lets:
            return value
        node = code(value)
        self._note(node)
        for name in reversed(list(self.lets)):
            uses = sum(isinstance(n, ast.Name) and n.id == name for n in python_tree.walk(node))
            bound = self.lets[name]
            if uses > 1 and not _cheap(bound):
                raise Open
            node = _Substitute(name, bound).visit(node)
        return Code(node, kind_of(value))

    def _note(self, last: ast.expr) -> None:
        """Keep the result and the local values it needs as they are before these are put in their places."""
        self.last = copy.deepcopy(last)
        needed = _names(last)
        for name in reversed(list(self.lets)):
            if name in needed:
                needed |= _names(self.lets[name])
                self.steps.insert(0, (name, self.local[name], copy.deepcopy(self.lets[name])))

    # --- statements ---------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.Return):
                raise _Return(self.eval(statement.value) if statement.value else Lit(None))
            if isinstance(statement, ast.If):
                branch = statement.body if self.decide(statement.test) else statement.orelse
                self._block(branch)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._assign(statement.targets[0], self.eval(statement.value))
            elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                target = statement.target
                self._assign(target, self.eval(ast.BinOp(target, statement.op, statement.value)))
            elif isinstance(statement, ast.Expr):
                if not isinstance(statement.value, ast.Constant):
                    self.eval(statement.value)
            elif not isinstance(statement, ast.Pass):
                raise Open

    def _assign(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            if isinstance(value, Code) and not _cheap(value.node):
                name = f"__let{len(self.lets)}__"
                self.lets[name] = value.node
                self.local[name] = target.id
                value = Code(ast.Name(name), value.kind)
            self.env[target.id] = value
        elif (
            isinstance(target, ast.Tuple)
            and isinstance(value, Seq)
            and value.fixed
            and len(value.items) == len(target.elts)
        ):
            for element, item in zip(target.elts, value.items, strict=True):
                self._assign(element, item)
        else:
            raise Open

    def decide(self, test: ast.expr) -> bool:
        """The truth of a test; Open when it is not known."""
        value = self.eval(test)
        if isinstance(value, Lit):
            return bool(value.value)
        if isinstance(value, Seq) and (value.fixed or len(value.items) > 1):
            return bool(value.items)
        raise Open

    # --- expressions --------------------------------------------------------------------------------------------

    def eval(self, node: ast.expr) -> Value:
        """The abstract value of an expression of the body."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise Open
        result: Value = method(node)
        return result

    def _constant(self, node: ast.Constant) -> Value:
        return Lit(node.value)

    def _name(self, node: ast.Name) -> Value:
        return self.env.get(node.id) or Code(ast.Name(node.id))

    def _attribute(self, node: ast.Attribute) -> Value:
        value = self.eval(node.value)
        kind = kind_of(value)
        if node.attr == "ndim" and isinstance(kind, k.Tensor) and kind.rank is not None:
            return Lit(kind.rank)
        return Code(ast.Attribute(code(value), node.attr), self._attribute_kind(kind, node.attr))

    @staticmethod
    def _attribute_kind(kind: k.Kind, attr: str) -> k.Kind:
        if isinstance(kind, k.Tensor):
            if attr == "shape":
                return k.Sequence(k.INT, "size")
            if attr in ("T", "mT"):
                return kind
            if attr in ("ndim", "size"):
                return k.INT
            if attr == "dtype":
                return k.DType()
        return k.UNKNOWN

    def _tuple(self, node: ast.Tuple | ast.List) -> Value:
        return Seq(
            tuple(self._spread(node.elts)), "list" if isinstance(node, ast.List) else "tuple"
        )

    _list = _tuple

    def _spread(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """Evaluate an argument or element list, opening stars of known length."""
        found: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.eval(node.value)
                if isinstance(value, Seq):
                    found.extend(value.items)
                elif isinstance(value, Range):
                    found.extend(Lit(v) for v in value.values)
                elif isinstance(value, Star):
                    found.append(value)
                else:
                    found.append(Star(value))
            else:
                found.append(self.eval(node))
        return found

    def _dict(self, node: ast.Dict) -> Value:
        keys = [code(self.eval(key)) if key else None for key in node.keys]
        return Code(ast.Dict(keys, [code(self.eval(v)) for v in node.values]))

    def _ifexp(self, node: ast.IfExp) -> Value:
        try:
            chosen = self.decide(node.test)
        except Open:
            test = code(self.eval(node.test))
            return Code(ast.IfExp(test, code(self.eval(node.body)), code(self.eval(node.orelse))))
        return self.eval(node.body if chosen else node.orelse)

    def _boolop(self, node: ast.BoolOp) -> Value:
        stop = isinstance(node.op, ast.Or)
        rest: list[Value] = []
        for item in node.values:
            value = self.eval(item)
            try:
                truth = bool(static(value)) if not isinstance(value, Code) else None
            except Open:
                truth = None
            if truth is None:
                rest.append(value)
            elif truth is stop:
                if not rest:
                    return value
                rest.append(value)
                break
        if not rest:
            return Lit(not stop)
        if len(rest) == 1:
            return rest[0]
        # A known false in an `and` (true in an `or`) settles the whole test, whatever the rest is.
        if isinstance(rest[-1], Lit) and bool(rest[-1].value) is stop:
            return rest[-1]
        return Code(ast.BoolOp(node.op, [code(v) for v in rest]))

    def _unaryop(self, node: ast.UnaryOp) -> Value:
        value = self.eval(node.operand)
        if isinstance(node.op, ast.Not):
            if isinstance(value, Lit):
                return Lit(not value.value)
            if isinstance(value, Seq) and value.fixed:
                return Lit(not value.items)
        elif isinstance(value, Lit) and isinstance(node.op, ast.USub):
            return Lit(-value.value)
        return Code(ast.UnaryOp(node.op, code(value)), kind_of(value))

    def _binop(self, node: ast.BinOp) -> Value:
        left, right = self.eval(node.left), self.eval(node.right)
        if type(node.op) in _BINARY:
            if isinstance(left, Seq) and isinstance(right, Seq) and isinstance(node.op, ast.Add):
                return Seq(left.items + right.items, left.type)
            if isinstance(left, Seq) and isinstance(right, Lit) and isinstance(node.op, ast.Mult):
                return Seq(left.items * right.value, left.type)
            if isinstance(left, Lit) and isinstance(right, Lit):
                return self._fold(_BINARY[type(node.op)], left.value, right.value)
        tensor = isinstance(kind_of(left), k.Tensor) or isinstance(kind_of(right), k.Tensor)
        kind = k.TENSOR if tensor else k.UNKNOWN
        return Code(ast.BinOp(code(left), node.op, code(right)), kind)

    @staticmethod
    def _fold(function: Callable[[Any, Any], Any], left: Any, right: Any) -> Value:
        try:
            return lift(function(left, right))
        except (TypeError, ZeroDivisionError, ValueError) as error:
            raise Open from error

    def _compare(self, node: ast.Compare) -> Value:
        if len(node.ops) == 2:
            return self.eval(
                ast.BoolOp(
                    ast.And(),
                    [
                        ast.Compare(node.left, node.ops[:1], node.comparators[:1]),
                        ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:]),
                    ],
                )
            )
        left, right = self.eval(node.left), self.eval(node.comparators[0])
        op = node.ops[0]
        if isinstance(op, (ast.Is, ast.IsNot)):
            if isinstance(right, Lit) and right.value is None:
                none = _is_none(left)
                if none is not None:
                    return Lit(none is isinstance(op, ast.Is))
        elif type(op) in _COMPARE:
            try:
                return self._fold(_COMPARE[type(op)], static(left), static(right))
            except Open:
                decided = self._unlike(op, left, right)
                if decided is not None:
                    return Lit(decided)
        return Code(ast.Compare(code(left), [op], [code(right)]), k.BOOL)

    @staticmethod
    def _unlike(op: ast.cmpop, left: Value, right: Value) -> bool | None:
        """``x == "mean"`` for an x that is surely no string (a tensor, a number) is False."""
        for a, b in ((left, right), (right, left)):
            if isinstance(b, Lit) and (isinstance(b.value, str) or b.value is None):
                kind = kind_of(a)
                numeric = k.scalar_type(kind) not in (None, "str")
                if isinstance(kind, (k.Tensor, k.Tuple, k.Sequence)) or numeric:
                    if isinstance(op, ast.Eq):
                        return False
                    if isinstance(op, ast.NotEq):
                        return True
        return None

    def _subscript(self, node: ast.Subscript) -> Value:
        value = self.eval(node.value)
        if isinstance(node.slice, ast.Slice):
            parts = [node.slice.lower, node.slice.upper, node.slice.step]
            bounds = [self.eval(p) if p is not None else Lit(None) for p in parts]
            settled = all(isinstance(b, Lit) for b in bounds)
            if settled and isinstance(value, Seq) and value.fixed:
                return Seq(value.items[slice(*[static(b) for b in bounds])], value.type)
        else:
            if isinstance(value, Seq) and value.fixed:
                index = self.eval(node.slice)
                if isinstance(index, Lit) and isinstance(index.value, int):
                    if not -len(value.items) <= index.value < len(value.items):
                        raise Open
                    return value.items[index.value]
        index_node = self._index(node.slice)
        kind = kind_of(value)
        element: k.Kind = k.INT if kind == k.Sequence(k.INT, "size") else k.UNKNOWN
        if isinstance(kind, k.Tensor):
            element = k.TENSOR
        if isinstance(node.slice, ast.Slice) and element == k.INT:
            element = kind
        return Code(ast.Subscript(code(value), index_node), element)

    def _index(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Slice):
            parts = [node.lower, node.upper, node.step]
            return ast.Slice(*[code(self.eval(p)) if p is not None else None for p in parts])
        if isinstance(node, ast.Tuple):
            return ast.Tuple([self._index(e) for e in node.elts])
        if isinstance(node, ast.Starred):
            value = self.eval(node.value)
            return ast.Starred(code(value))
        return _spelled(code(self.eval(node)))

    def _lambda(self, node: ast.Lambda) -> Value:
        saved = dict(self.env)
        for arg in node.args.args:
            self.env[arg.arg] = Code(ast.Name(arg.arg))
        try:
            return Code(ast.Lambda(node.args, code(self.eval(node.body))))
        finally:
            self.env = saved

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp) -> Value:
        if len(node.generators) != 1:
            raise Open
        generator = node.generators[0]
        source = self.eval(generator.iter)
        if isinstance(source, Range):
            source = Seq(tuple(Lit(v) for v in source.values))
        saved = dict(self.env)
        try:
            if isinstance(source, Seq) and source.fixed:
                items = []
                for item in source.items:
                    self._assign(generator.target, item)
                    if all(self.decide(test) for test in generator.ifs):
                        items.append(self.eval(node.elt))
                return Seq(tuple(items), "list")
            for name in python_tree.walk(generator.target):
                if isinstance(name, ast.Name):
                    self.env[name.id] = Code(ast.Name(name.id))
            clause = ast.comprehension(
                generator.target, code(source), [code(self.eval(t)) for t in generator.ifs], 0
            )
            return Code(type(node)(code(self.eval(node.elt)), [clause]))
        finally:
            self.env = saved

    _generatorexp = _listcomp

    # --- calls --------------------------------------------------------------------------------------------------

    def _call(self, node: ast.Call) -> Value:
        if isinstance(node.func, ast.Name) and node.func.id not in self.env:
            word = getattr(self, f"_word_{node.func.id}", None)
            if word is not None:
                result: Value | None = word(node.args)
                if result is not None:
                    return result
            if node.func.id in _DTYPE_WORDS:
                return self._dtype_word(_DTYPE_WORDS[node.func.id], node.args[0])
        function = code(self.eval(node.func))
        args = [code(v) for v in self._spread(node.args)]
        keywords = []
        for keyword in node.keywords:
            value = self.eval(keyword.value)
            if keyword.arg is None and isinstance(value, Code) and isinstance(value.node, ast.Dict):
                keywords += _opened(value.node)
                continue
            target = function
            if args and ast.unparse(function) == "functools.partial":
                target = args[0]
            if keyword.arg is not None and self._is_default(target, keyword.arg, value):
                continue
            keywords.append(ast.keyword(keyword.arg, code(value)))
        if len(args) == 1 and not keywords and ast.unparse(function) == "functools.partial":
            return Code(args[0])
        return Code(ast.Call(function, args, keywords), k.UNKNOWN)

    def _is_default(self, function: ast.expr, keyword: str, value: Value) -> bool:
        target = ast.unparse(function)
        own = target_signature(self.rule.file, target)
        if own is not None:
            if keyword not in own:
                return False
            try:
                known = static(value)
            except Open:
                return isinstance(value, Code) and ast.unparse(value.node) == own[keyword]
            return repr(known) == own[keyword]
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            if function.value.id.startswith("__"):
                target = f"jax.Array.{function.attr}"
        defaults = target_defaults(target)
        if keyword not in defaults:
            return False
        try:
            known = static(value)
        except Open:
            return isinstance(value, Code) and ast.unparse(value.node) == defaults[keyword]
        return type(known) is type(defaults[keyword]) and known == defaults[keyword]


def _opened(arguments: ast.Dict) -> list[ast.keyword]:
    """``**{"a": x}`` as keywords, where every key is written out."""
    names = [key.value if isinstance(key, ast.Constant) else None for key in arguments.keys]
    if not all(isinstance(name, str) for name in names):
        raise Open
    return [ast.keyword(name, value) for name, value in zip(names, arguments.values, strict=True)]  # type: ignore[arg-type]


def _unless_guessed(value: Value) -> Value:
    """An option that is taken for a tensor, as nothing says what it is, is of no known kind."""
    return Code(value.node) if isinstance(value, Code) and value.kind == k.TENSOR else value


def _is_none(value: Value) -> bool | None:
    if isinstance(value, Lit):
        return value.value is None
    if isinstance(value, (Seq, Range)):
        return False
    kind = kind_of(value)
    if isinstance(kind, (k.Unknown, k.Optional)):
        return None
    return isinstance(kind, k.Const) and kind.value is None


def _spelled(index: ast.expr) -> ast.expr:
    """A subscript as one writes it: ``:`` for ``slice(None)``, no tuple around a single index."""
    if not isinstance(index, ast.Tuple):
        return index
    items: list[ast.expr] = [
        ast.Slice() if ast.unparse(item) == "slice(None)" else item for item in index.elts
    ]
    return items[0] if len(items) == 1 else ast.Tuple(items)


def _names(node: ast.expr) -> set[str]:
    return {one.id for one in python_tree.walk(node) if isinstance(one, ast.Name)}


def _cheap(node: ast.expr) -> bool:
    """Whether computing an expression twice costs nothing: names, attributes and constants."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Subscript):
        return _cheap(node.value) and isinstance(node.slice, (ast.Constant, ast.Name, ast.UnaryOp))
    return isinstance(node, (ast.Name, ast.Constant))


class _Substitute(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self.name, self.value = name, value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.value if node.id == self.name else node
