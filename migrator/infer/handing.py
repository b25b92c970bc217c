"""Arguments that are layers made with ``inplace=True``, and the parameters of other files that they become.

``Block(act_layer=partial(nn.ReLU, inplace=True))`` in one file makes ``act_layer`` of ``Block`` in another something that
may overwrite its input. Followed by the names of functions and classes:

    Block@0, Block@act_layer   an argument as a call hands it over
    Block.act_layer            a parameter
    Block.**                   the arguments that ``**kwargs`` hands on
    :relu                      a name at the top of a file
    ::relu                     an attribute of what may be another file, ``acts.relu``
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property

from migrator.python_tree import below, children

SOURCE = "!"
"""Stands for a layer, class or function that is made to work in place."""
TOLD = "?"
"""Stands for what may be True, which tells ``def make(name, inplace=False)`` to make something that works in place."""
_FLAG = {
    **dict.fromkeys("ReLU ReLU6 SiLU SELU Mish Hardswish Hardsigmoid".split(), 0),
    **dict.fromkeys("LeakyReLU ELU CELU AlphaDropout FeatureAlphaDropout".split(), 1),
    **dict.fromkeys("Dropout Dropout1d Dropout2d Dropout3d".split(), 1),
    **dict.fromkeys("RReLU Hardtanh Threshold".split(), 2),
}
"""torch's layers that may work in place, and which of their arguments says so."""
_HOLDING = frozenset("list tuple dict OrderedDict ModuleList ModuleDict".split())
_FUNCTIONAL = ("F", "functional", "torch")
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_DEEPEST = 6
"""A value that comes through more assignments is not followed."""


def handed(tree: ast.Module) -> list[tuple[str, str]]:
    """What a file hands over: pairs of what a value comes from and of what it becomes."""
    found = set(_Scope(tree, None, None).pairs())
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        owner = _Class(node) if isinstance(node, ast.ClassDef) else None
        if owner is not None and owner.writes:
            found.add((SOURCE, f":{owner.name}"))
        for child in children(node):
            if isinstance(child, _Function):
                scope = owner.scope(child) if owner is not None else _Scope(child, child, None)
                found.update(scope.pairs())
            if not isinstance(child, ast.expr):  # which holds no function
                waiting.append(child)
    return sorted(found)


def parameters(
    files: Mapping[str, Iterable[Iterable[str]]], resolve: Callable[[str, str], tuple[str, str]]
) -> dict[str, frozenset[str]]:
    """The parameters of the files' definitions, as ``Block.act_layer``, that may be handed what works in place.

    Args:
      files: file → its pairs.
      resolve: gives the file that defines what a file means by a name, empty where that is not known, and its name there.
    """
    after: dict[str, set[str]] = {}
    for file, pairs in files.items():
        for one, other in pairs:
            for source in _meant(file, one, resolve):
                after.setdefault(source, set()).update(_meant(file, other, resolve))
    anywhere: dict[str, set[str]] = {}
    for place in [*after, *(one for several in after.values() for one in several)]:
        anywhere.setdefault(place.partition("/")[2], set()).add(place)
    told = {place for place in _reached({TOLD}, after, anywhere) if place.endswith(".inplace")}
    found = _reached({SOURCE} | told, after, anywhere)
    own: dict[str, set[str]] = {file: set() for file in files}
    for place in found:
        file, _, rest = place.partition("/")
        if "." in rest and "@" not in rest:
            for one in [file] if file else own:
                own.setdefault(one, set()).add(rest)
    return {file: frozenset(places) for file, places in own.items()}


def _reached(
    found: set[str], after: Mapping[str, set[str]], anywhere: Mapping[str, set[str]]
) -> set[str]:
    """These places, and those that values come to from there."""
    waiting = list(found)
    while waiting:
        place = waiting.pop()
        new = set(after.get(place, ()))
        file, _, rest = place.partition("/")
        if not file:  # it is not known which of those that are called so
            new |= anywhere.get(rest, set())
        if rest.startswith(":"):
            new |= anywhere.get(f":{rest}", set())
        name, _, slot = place.partition("@")
        if slot and not slot.isdigit():  # what ``**kwargs`` takes up is handed on under its name
            new |= {f"{other[:-3]}@{slot}" for other in after.get(f"{name}.**", ())}
        new -= found
        found |= new
        waiting.extend(new)
    return found


def _meant(file: str, place: str, resolve: Callable[[str, str], tuple[str, str]]) -> list[str]:
    """A place with the file that its name is defined in."""
    if place in (SOURCE, TOLD):
        return [place]
    name = place.lstrip(":").partition("@")[0].partition(".")[0]
    home, there = resolve(file, name)
    return [f"{home}/{place.replace(name, there, 1)}"]


class _Class:
    """The methods of a class, and what they give its attributes."""

    def __init__(self, node: ast.ClassDef) -> None:
        self.name = node.name
        self.bases = [word(base) for base in node.bases]
        self.scopes = {id(m): _Scope(m, m, self) for m in node.body if isinstance(m, _Function)}

    @cached_property
    def writes(self) -> bool:
        """Whether its forward pass writes to an argument, by that name and whatever ``inplace`` says."""
        return any(s.name == "forward" and _writes_argument(s) for s in self.scopes.values())

    def scope(self, method: _Function) -> _Scope:
        """That of a method."""
        return self.scopes[id(method)]

    @cached_property
    def kept(self) -> dict[str, list[tuple[_Scope, ast.expr]]]:
        """Attribute → the values that methods give it."""
        found: dict[str, list[tuple[_Scope, ast.expr]]] = {}
        for scope in self.scopes.values():
            for node in scope.own:
                if isinstance(node, ast.Assign):
                    for target in node.targets:
                        if isinstance(target, ast.Attribute):
                            found.setdefault(target.attr, []).append((scope, node.value))
        return found


class _Scope:
    """A function, or the top of a file, and where the values of its names come from."""

    def __init__(self, node: ast.AST, function: _Function | None, owner: _Class | None) -> None:
        self.node, self.function, self.owner = node, function, owner
        self.name = ""
        self.params: list[str] = []
        self.named: list[str] = []
        if function is None:
            return
        self.name = function.name
        arguments = function.args
        every = [*arguments.posonlyargs, *arguments.args]
        if owner is not None and not any(
            word(d) == "staticmethod" for d in function.decorator_list
        ):
            every = every[1:]
            if function.name == "__init__":
                self.name = owner.name
        self.params = [a.arg for a in every]
        self.named = [*self.params, *(a.arg for a in arguments.kwonlyargs)]

    @cached_property
    def off(self) -> frozenset[str]:
        """``inplace``, where it is a parameter of a function that is off by default and is bound to nothing else."""
        if self.function is None or self.owner is not None or "inplace" in self.assigned:
            return frozenset()
        pairs = _defaults(self.function.args)
        off = [one for p, one in pairs if p.arg == "inplace" and isinstance(one, ast.Constant)]
        return frozenset({"inplace"} if any(one.value in (False, None) for one in off) else ())

    @cached_property
    def own(self) -> list[ast.AST]:
        """The nodes of this function, or of the top of the file, without those of functions in it."""
        return below(self.node, (ast.FunctionDef, ast.AsyncFunctionDef))

    @cached_property
    def assigned(self) -> dict[str, list[ast.expr]]:
        """Name → the values that statements of the function give it."""
        found: dict[str, list[ast.expr]] = {}
        for node in self.own if self.function is not None else ():
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    found.setdefault(word(target), []).append(node.value)
        return found

    def pairs(self) -> Iterator[tuple[str, str]]:
        """What this hands over, and what its parameters are."""
        yield from self._parameters()
        for node in self.own:
            if isinstance(node, ast.Call):
                yield from self._call(node)
            elif isinstance(node, ast.Return) and self.owner is None:
                yield from ((one, f":{self.name}") for one in self.begins(node.value))
            elif self.function is None and isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        yield from ((one, f":{target.id}") for one in self.begins(node.value))

    def _parameters(self) -> Iterator[tuple[str, str]]:
        if self.function is None:
            return
        for i, name in enumerate(self.params):
            yield f"{self.name}@{i}", f"{self.name}.{name}"
        for name in self.named:
            yield f"{self.name}@{name}", f"{self.name}.{name}"
        for parameter, default in _defaults(self.function.args):
            if default is not None:
                yield from ((one, f"{self.name}.{parameter.arg}") for one in self.begins(default))

    def _call(self, node: ast.Call) -> Iterator[tuple[str, str]]:
        callees = list(self._called(node))
        star = self.function.args.kwarg if self.function is not None else None
        for callee in callees:
            for i, item in enumerate(node.args):
                yield from ((one, f"{callee}@{i}") for one in self.begins(item))
                if _is_true(item) or word(item) == "inplace":
                    yield TOLD, f"{callee}@{i}"
            for keyword in node.keywords:
                if keyword.arg is not None:
                    values = self.begins(keyword.value)
                    yield from ((one, f"{callee}@{keyword.arg}") for one in values)
                elif isinstance(keyword.value, ast.Name) and star is not None:
                    if keyword.value.id == star.arg:
                        yield f"{self.name}.**", f"{callee}.**"
                elif isinstance(keyword.value, (ast.Call, ast.Dict)):
                    yield from self._entries(keyword.value, callee)

    def _entries(self, node: ast.Call | ast.Dict, callee: str) -> Iterator[tuple[str, str]]:
        """``**dict(act_layer=…)``."""
        given: list[tuple[object, ast.expr]] = []
        if isinstance(node, ast.Call):
            given = [(k.arg, k.value) for k in node.keywords]
        else:
            for key, value in zip(node.keys, node.values, strict=True):
                given.append((key.value if isinstance(key, ast.Constant) else None, value))
        for name, value in given:
            if isinstance(name, str):
                yield from ((one, f"{callee}@{name}") for one in self.begins(value))

    def _called(self, node: ast.Call) -> Iterator[str]:
        name = word(node.func)
        above = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
        if name == "__init__" and above and self.owner is not None:
            yield from self.owner.bases
        elif name and name not in _HOLDING and name not in ("Sequential", "partial"):
            yield name

    # --- values ---------------------------------------------------------------------------------------------------

    def begins(self, node: ast.AST | None, depth: int = 0) -> set[str]:
        """What a value is, or hands its input to first."""
        if depth > _DEEPEST or node is None:
            return set()
        if isinstance(node, ast.Name):
            return self._named(node.id, depth)
        if isinstance(node, ast.Attribute):
            works = node.attr.endswith("_") and not node.attr.endswith("__")
            if works and word(node.value) in _FUNCTIONAL:
                return {SOURCE}
            if isinstance(node.value, ast.Name) and node.value.id == "self":
                return self._kept(node.attr, depth)
            return {f"::{node.attr}"}
        if isinstance(node, ast.Call):
            return self._made(node, depth)
        if isinstance(node, ast.Lambda):
            return {SOURCE} if _writes(node.body) else self.begins(node.body, depth + 1)
        if isinstance(node, (ast.Subscript, ast.Starred)):
            return self.begins(node.value, depth + 1)
        parts: list[ast.expr] = []
        if isinstance(node, ast.IfExp):
            parts = [node.body, node.orelse]
        elif isinstance(node, ast.BoolOp):
            parts = node.values
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            parts = node.elts
        elif isinstance(node, ast.Dict):
            parts = node.values
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            parts = [node.elt]
        return set[str]().union(*(self.begins(part, depth + 1) for part in parts))

    def _named(self, name: str, depth: int) -> set[str]:
        if name in self.named:
            return {f"{self.name}.{name}"}
        found = {f":{name}"}
        for value in self.assigned.get(name, ()):
            if not isinstance(value, ast.Name) or value.id != name:
                found |= self.begins(value, depth + 1)
        return found

    def _kept(self, name: str, depth: int) -> set[str]:
        """What methods of the class give ``self.name``."""
        found = set[str]()
        for scope, value in self.owner.kept.get(name, ()) if self.owner is not None else ():
            found |= scope.begins(value, depth + 2)
        return found

    def _made(self, node: ast.Call, depth: int) -> set[str]:
        name = word(node.func)
        told = [k.value for k in node.keywords if k.arg == "inplace"]
        if _FLAG.get(name, len(node.args)) < len(node.args):
            told.append(node.args[_FLAG[name]])
        functional = isinstance(node.func, ast.Attribute) and word(node.func.value) in _FUNCTIONAL
        if any(not _is_false(one) for one in told) and not functional:
            off = [one for one in told if isinstance(one, ast.Name) and one.id in self.off]
            return {f"{self.name}.inplace"} if off == told else {SOURCE}
        if name == "Sequential":
            one = node.args[0] if node.args else None
            if isinstance(one, ast.Call) and word(one.func) == "OrderedDict" and one.args:
                one = one.args[0]
            if isinstance(one, (ast.List, ast.Tuple)):
                one = one.elts[0] if one.elts else None
                one = one.elts[-1] if isinstance(one, ast.Tuple) and one.elts else one
            return self.begins(one, depth + 1)
        if name in _HOLDING:
            values = [*node.args, *(k.value for k in node.keywords)]
            return set[str]().union(*(self.begins(one, depth + 1) for one in values))
        if name == "partial":
            return self.begins(node.args[0] if node.args else None, depth + 1)
        func = node.func
        if isinstance(func, ast.Attribute):  # acts.get_act(name)
            named = isinstance(func.value, ast.Name) and func.value.id != "self"
        else:
            named = isinstance(func, (ast.Name, ast.Subscript))  # Own(), ACTS[name]()
        return self.begins(func, depth + 1) if named else set()


def _writes_argument(scope: _Scope) -> bool:
    """Whether a method writes to a parameter that still is what it was called with."""
    told = [
        set(map(id, ast.walk(node)))
        for node in scope.own
        if isinstance(node, (ast.If, ast.IfExp)) and "inplace" in ast.dump(node.test)
    ]
    bound: dict[str, int] = {}
    for name, values in scope.assigned.items():
        bound[name] = min(one.lineno for one in values)
    for node in scope.own:
        written: ast.AST | None = None
        if isinstance(node, ast.AugAssign):
            written = node.target
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            written = node.targets[0]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            written = node.func.value if name.endswith("_") and not name.endswith("__") else None
        while isinstance(written, ast.Subscript):
            written = written.value
        if not isinstance(written, ast.Name) or written.id not in scope.params:
            continue
        if written.lineno <= bound.get(written.id, written.lineno) and not any(
            id(node) in one for one in told
        ):
            return True
    return False


def _writes(node: ast.AST) -> bool:
    """Whether an expression works in place: ``F.relu(x, inplace=True)``, ``x.relu_()``."""
    if not isinstance(node, ast.Call):
        return False
    name = word(node.func)
    functional = isinstance(node.func, ast.Attribute) and word(node.func.value) in _FUNCTIONAL
    told = any(k.arg == "inplace" and not _is_false(k.value) for k in node.keywords)
    return (told and functional) or (name.endswith("_") and not name.endswith("__"))


def _defaults(arguments: ast.arguments) -> list[tuple[ast.arg, ast.expr | None]]:
    every = [*arguments.posonlyargs, *arguments.args]
    named = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return [*zip(reversed(every), reversed(arguments.defaults), strict=False), *named]


def _is_false(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _is_true(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def word(node: ast.AST) -> str:
    """``act`` of ``self.act``, ``self.act[0]`` and ``act``."""
    while isinstance(node, (ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
