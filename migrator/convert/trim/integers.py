"""Parameters of a file's functions that are integers: by their hints, and by every call of them that the file makes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from migrator.convention import GROUPS, INIT, INPUTS
from migrator.python_tree import children, walk

Function = ast.FunctionDef | ast.AsyncFunctionDef
_WHOLE = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)


@dataclass(eq=False)
class _Callee:
    """A function, or the constructor of a class.

    Attributes:
      params: those that a call gives, in order; ``positional``: how many of them by place.
      integers: parameters that are taken for integers so far.
    """

    node: Function
    params: list[str]
    positional: int
    integers: set[str]

    @cached_property
    def stored(self) -> dict[str, list[ast.expr | None]]:
        """Local names with what is assigned to each; None for what is no expression."""
        return _stored(self.node.body)


@dataclass
class _Call:
    """What is given to one of some functions, and the function that calls it."""

    args: Sequence[ast.expr]
    keywords: Sequence[ast.keyword]
    targets: Sequence[_Callee]
    caller: _Callee | None


def integers(tree: ast.Module) -> dict[int, set[str]]:
    """The id of each function that has such parameters → their names.

    A function that is handed on as a value may be what any call of something unknown calls.
    """
    if not any(isinstance(n, ast.arg) and _is_int(n.annotation) for n in walk(tree)):
        return {}
    file = _File(tree)
    if not any(one.integers for one in file.every):
        return {}
    calls = list(file.calls())
    changed = True
    while (
        changed
    ):  # what one function hands on may be an integer no more once its own callers are seen
        changed = False
        for call in calls:
            for target in call.targets:
                wrong = {p for p in target.integers if not file.gives_integer(call, target, p)}
                target.integers -= wrong
                changed = changed or bool(wrong)
    return {id(one.node): one.integers for one in file.every if one.integers}


class _File:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.every: list[_Callee] = []
        self.named: dict[str, list[_Callee]] = {}
        self.methods: dict[str, list[_Callee]] = {}
        self.known: set[str] = set()
        self.made: list[tuple[ast.Call, _Callee | None]] = []
        self._visit(tree, "", None)
        called = {id(call.func) for call, _ in self.made}
        read = [n for n in walk(tree) if id(n) not in called]
        names = {n.id for n in read if isinstance(n, ast.Name)}
        self.values = [one for name in names for one in self.named.get(name, ())]
        self.values += self.methods.get("__call__", [])
        for name in {n.attr for n in read if isinstance(n, ast.Attribute)}:
            for method in self.methods.get(name, ()):
                method.integers.clear()  # it may be handed on

    @cached_property
    def globals(self) -> dict[str, list[ast.expr | None]]:
        """What is bound in the file, wherever: a name that is bound twice is what both are."""
        return _stored(self.tree.body)

    def _visit(self, node: ast.AST, owner: str, function: _Callee | None) -> None:
        if isinstance(node, ast.Import | ast.ImportFrom):
            self.known |= {(a.asname or a.name).partition(".")[0] for a in node.names}
        elif isinstance(node, ast.Call):
            self.made.append((node, function))
        elif isinstance(node, Function):
            function = self._function(node, owner)
            owner = ""
        elif isinstance(node, ast.ClassDef):
            self.known.add(node.name)
            owner = node.name
        for child in children(node):
            self._visit(child, owner, function)

    def _function(self, node: Function, owner: str) -> _Callee:
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        static = any(
            isinstance(d, ast.Name) and d.id == "staticmethod" for d in node.decorator_list
        )
        plain = plain[1:] if owner and not static else plain
        params = [a.arg for a in (*plain, *args.kwonlyargs)]
        made = _Callee(node, params, len(plain), _hinted(node))
        if made.integers:
            made.integers -= made.stored.keys()
        self.every.append(made)
        if owner:
            self.methods.setdefault(node.name, []).append(made)
        if not owner or node.name == "__init__":
            self.named.setdefault(owner or node.name, []).append(made)
        return made

    def calls(self) -> Iterator[_Call]:
        """All calls that may be of a function of the file."""
        for call, caller in self.made:
            func, args = call.func, call.args
            if args and _last(func) == "partial":
                func, args = args[0], args[1:]
            yield _Call(args, call.keywords, self._targets(func, caller), caller)
        makers = {INIT: "__init__", **dict.fromkeys((INPUTS, *GROUPS), "__call__")}
        for maker, method in makers.items():
            for one in self.named.get(maker, ()):
                yield from _listed(one, self.methods.get(method, []))

    def _targets(self, func: ast.expr, caller: _Callee | None) -> Sequence[_Callee]:
        if isinstance(func, ast.Name):
            if func.id in self.named:
                return self.named[func.id]
            bound = func.id in self.globals or (
                caller is not None and func.id in {*caller.params, *caller.stored}
            )
            return self.values if bound else []
        if isinstance(func, ast.Attribute) and func.attr in self.methods:
            return self.methods[func.attr]
        root = func
        while isinstance(root, ast.Attribute | ast.Call):
            root = root.value if isinstance(root, ast.Attribute) else root.func
        imported = isinstance(root, ast.Name) and root.id in self.known - {"functools", "partial"}
        return [] if imported else self.values

    def gives_integer(self, call: _Call, target: _Callee, param: str) -> bool:
        """Whether what a call gives to a parameter is an integer, or its default."""
        for keyword in call.keywords:
            if keyword.arg == param:
                return self._is_integer(keyword.value, call.caller, set())
        place = target.params.index(param) if param in target.params else target.positional
        before = call.args[: place + 1]
        if any(isinstance(a, ast.Starred) for a in before):
            return False
        if place < min(len(call.args), target.positional):
            return self._is_integer(call.args[place], call.caller, set())
        return all(keyword.arg is not None for keyword in call.keywords)

    def _is_integer(self, node: ast.expr | None, function: _Callee | None, seen: set[str]) -> bool:
        if isinstance(node, ast.Constant):
            return type(node.value) is int
        if isinstance(node, ast.BinOp):
            sides = (node.left, node.right)
            return isinstance(node.op, _WHOLE) and all(
                self._is_integer(side, function, seen) for side in sides
            )
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self._is_integer(node.operand, function, seen)
        if isinstance(node, ast.IfExp):
            return all(self._is_integer(one, function, seen) for one in (node.body, node.orelse))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            return node.func.id in ("int", "len")
        if not isinstance(node, ast.Name):
            return False
        if function is not None and node.id in function.integers:
            return True
        if function is not None and node.id in function.params and node.id not in function.stored:
            return False
        stored = function.stored if function is not None and node.id in function.stored else None
        values = (stored if stored is not None else self.globals).get(node.id, [None])
        if node.id in seen:
            return True  # as far as what it is made of is
        local = function if stored is not None else None
        return all(self._is_integer(one, local, {*seen, node.id}) for one in values)


def _is_int(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id == "int"


def _last(node: ast.expr) -> str:
    """``partial`` of ``functools.partial``"""
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _listed(maker: _Callee, targets: Sequence[_Callee]) -> Iterator[_Call]:
    """What ``return [3, (2, 2)]`` or ``return [[3], {"stride": 2}]`` hands to a model."""
    for node in walk(maker.node):
        if isinstance(node, ast.List | ast.Tuple):
            if not any(isinstance(one, ast.Dict) for one in node.elts):
                yield _Call(node.elts, [], targets, maker)
        elif isinstance(node, ast.Dict):
            pairs = zip(node.keys, node.values, strict=True)
            given = [ast.keyword(getattr(key, "value", None), value) for key, value in pairs]
            yield _Call([], given, targets, maker)


def _hinted(node: Function) -> set[str]:
    """The parameters of a function that are ``int`` by their hints and defaults."""
    args = node.args
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + args.defaults
    every = [
        *zip(plain, defaults, strict=True),
        *zip(args.kwonlyargs, args.kw_defaults, strict=True),
    ]
    return {
        arg.arg
        for arg, default in every
        if _is_int(arg.annotation)
        and (default is None or (isinstance(default, ast.Constant) and type(default.value) is int))
    }


def _stored(body: Sequence[ast.stmt]) -> dict[str, list[ast.expr | None]]:
    """The names that statements bind, those of lambdas and inner functions with them, and to what."""
    found: dict[str, list[ast.expr | None]] = {}
    plain: set[int] = set()
    every = [n for s in body for n in walk(s)]
    for node in every:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node.value)
                    plain.add(id(target))
        elif isinstance(node, ast.For | ast.comprehension) and isinstance(node.target, ast.Name):
            if isinstance(node.iter, ast.Call) and _last(node.iter.func) == "range":
                found.setdefault(node.target.id, []).append(ast.Constant(0))
                plain.add(id(node.target))
    for node in every:
        if isinstance(node, ast.arg):
            found.setdefault(node.arg, []).append(None)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            if id(node) not in plain:
                found.setdefault(node.id, []).append(None)
    return found
