"""What shape the input of a model has, by the first layer that it is given to: what a message offers to be edited."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_Number = Callable[[int, int], int]
_OPERATORS: dict[type[ast.operator], _Number] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}
_AFTER = {
    **dict.fromkeys(("Conv1d", "BatchNorm1d", "LazyConv1d"), (32,)),
    **dict.fromkeys(("Conv2d", "BatchNorm2d", "InstanceNorm2d"), (32, 32)),
    **dict.fromkeys(("ConvTranspose2d",), (8, 8)),
    **dict.fromkeys(("Conv3d", "BatchNorm3d"), (8, 16, 16)),
    **dict.fromkeys(("ConvTranspose1d",), (8,)),
    **dict.fromkeys(("ConvTranspose3d",), (4, 8, 8)),
}
"""Layers whose first argument is the number of channels, and sizes that may follow these."""
_LAST = {
    "Linear": (),
    **dict.fromkeys("LayerNorm RMSNorm LSTM GRU RNN MultiheadAttention".split(), (8,)),
}
"""Layers whose first argument is the size of the last axis, and what may stand before it."""
_DEEPEST = 8
REQUIRED = 8
"""What a message offers for an argument that has no default."""


@dataclass(frozen=True)
class Hint:
    """The sizes behind the batch, and for whole numbers how many there are."""

    sizes: tuple[int, ...]
    below: int | None = None


@dataclass(frozen=True)
class _Made:
    """A class with what the parameters of its constructor are."""

    node: ast.ClassDef
    values: Mapping[str, int] = field(default_factory=dict)


def hint(
    classes: Mapping[str, ast.ClassDef],
    functions: Mapping[str, ast.FunctionDef],
    name: str,
    parameter: str,
) -> Hint | None:
    """What a parameter of a class's forward pass may look like; None where the file does not show it.

    Args:
      classes: those of the file.
      functions: those of the file, some of which make layers.
      name: which of the classes is called.
      parameter: of its ``forward``.
    """
    node = classes[name]
    made = _Made(node, _values(method_of(node, "__init__"), None))
    return _Search(classes, functions).of_method(made, "forward", parameter, 0)


@dataclass(frozen=True)
class _Search:
    classes: Mapping[str, ast.ClassDef]
    functions: Mapping[str, ast.FunctionDef]

    def of_method(self, made: _Made, method: str, parameter: str, depth: int) -> Hint | None:
        """By the first call of a layer or method of the object that is given the parameter."""
        function = method_of(made.node, method)
        if function is None or depth > _DEEPEST:
            return None
        calls = [one for one in ast.walk(function) if isinstance(one, ast.Call) and one.args]
        for call in sorted(calls, key=lambda one: (one.lineno, one.col_offset)):
            given = call.args[0]
            if not isinstance(given, ast.Name) or given.id != parameter:
                continue
            func = call.func
            if not _is_of_self(func):
                continue
            assert isinstance(func, ast.Attribute)
            own = method_of(made.node, func.attr)
            if own is not None and len(own.args.args) > 1:
                found = self.of_method(made, func.attr, own.args.args[1].arg, depth + 1)
            else:
                found = self.of_layer(made, _kept(made.node, func.attr), depth + 1)
            if found is not None:
                return found
        return None

    def of_layer(self, made: _Made, layer: ast.expr | None, depth: int) -> Hint | None:
        """By the class of a layer and its first argument."""
        if not isinstance(layer, ast.Call) or depth > _DEEPEST:
            return None
        name = layer.func.attr if isinstance(layer.func, ast.Attribute) else _name(layer.func)
        first = layer.args[0] if layer.args else next((k.value for k in layer.keywords), None)
        if name == "Sequential":
            return self.of_layer(made, _first(first, made), depth + 1)
        if name in self.functions:
            function = self.functions[name]
            values = _values(function, layer, made, receivers=0)
            return self.of_layer(_Made(made.node, values), _returned(function), depth + 1)
        if name in self.classes:
            node = self.classes[name]
            forward = method_of(node, "forward")
            init = method_of(node, "__init__")
            inner = _Made(node, _values(init, layer, made))
            if forward is None:  # class ConvBNReLU(nn.Sequential)
                return self.of_layer(inner, _handed_to_base(init), depth + 1)
            if len(forward.args.args) < 2:
                return None
            return self.of_method(inner, "forward", forward.args.args[1].arg, depth + 1)
        size = _number(first, made) if first is not None else None
        if size is None:
            return None
        if name == "Embedding":
            return Hint((8,), below=size)
        if name in _AFTER:
            return Hint((size, *_AFTER[name]))
        return Hint((*_LAST[name], size)) if name in _LAST else None


def _first(node: ast.expr | None, made: _Made) -> ast.expr | None:
    """The first layer of what a Sequential is made of."""
    if isinstance(node, ast.Call) and _name(node.func) == "OrderedDict" and node.args:
        node = node.args[0]
    if isinstance(node, ast.Starred) and isinstance(node.value, ast.Name):  # layers = [...]
        node = _assigned(method_of(made.node, "__init__"), node.value.id)
    while isinstance(node, (ast.List, ast.Tuple, ast.Starred)):
        if isinstance(node, ast.Starred):
            node = node.value
        else:
            node = node.elts[-1 if isinstance(node, ast.Tuple) else 0] if node.elts else None
    return node


def _handed_to_base(init: ast.FunctionDef | None) -> ast.expr | None:
    """The first layer of ``super().__init__(nn.Conv2d(…), …)``."""
    for one in ast.walk(init) if init is not None else ():
        if isinstance(one, ast.Call) and isinstance(one.func, ast.Attribute) and one.args:
            if one.func.attr == "__init__":
                return one.args[0]
    return None


def _returned(function: ast.FunctionDef) -> ast.expr | None:
    """What a function gives back, where one line says so."""
    lines = [one.value for one in ast.walk(function) if isinstance(one, ast.Return)]
    return lines[0] if len(lines) == 1 else None


def _values(
    function: ast.FunctionDef | None,
    call: ast.Call | None,
    made: _Made | None = None,
    receivers: int = 1,
) -> dict[str, int]:
    """What parameters are, where they are numbers: what a call gives them, their defaults, or what a message offers."""
    if function is None:
        return {}
    order = [*function.args.posonlyargs, *function.args.args][receivers:]
    found: dict[str, int] = {}
    for one, default in _defaults(function).items():
        number = REQUIRED if default is None else _number(default, None)
        if number is not None:
            found[one] = number
    if call is not None:
        given = {a.arg: v for a, v in zip(order, call.args, strict=False)}
        given |= {k.arg: k.value for k in call.keywords if k.arg is not None}
        for one, value in given.items():
            number = _number(value, made)
            found.pop(one, None)
            if number is not None:
                found[one] = number
    return found


def _defaults(function: ast.FunctionDef) -> dict[str, ast.expr | None]:
    """The parameters of a function, with their defaults."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args]
    found: dict[str, ast.expr | None] = {one.arg: None for one in every}
    for one, default in zip(reversed(every), reversed(arguments.defaults), strict=False):
        found[one.arg] = default
    for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found[one.arg] = value
    return found


def _number(node: ast.expr, made: _Made | None) -> int | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and made is not None:
        return made.values.get(node.id)
    if isinstance(node, (ast.List, ast.Tuple)) and node.elts:
        return _number(node.elts[0], made)
    if _is_of_self(node) and made is not None:
        assert isinstance(node, ast.Attribute)
        kept = _kept(made.node, node.attr)
        circular = kept is not None and any(map(_is_of_self, ast.walk(kept)))
        return None if kept is None or circular else _number(kept, made)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _number(node.left, made), _number(node.right, made)
        if left is None or not right:
            return None
        return _OPERATORS[type(node.op)](left, right)
    return None


def _is_of_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and _name(node.value) == "self"


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def _kept(node: ast.ClassDef, name: str) -> ast.expr | None:
    """What the constructor of a class assigns to an attribute."""
    return _assigned(method_of(node, "__init__"), name)


def _assigned(function: ast.FunctionDef | None, name: str) -> ast.expr | None:
    """What a function assigns first to a name, or to an attribute of that name."""
    for one in ast.walk(function) if function is not None else ():
        if isinstance(one, ast.Assign):
            for target in one.targets:
                if getattr(target, "attr", _name(target)) == name:
                    return one.value
    return None


def method_of(node: ast.ClassDef | None, name: str) -> ast.FunctionDef | None:
    """A method of a class by its name; None where it has none."""
    body = (
        one for one in (node.body if node is not None else ()) if isinstance(one, ast.FunctionDef)
    )
    return next((one for one in body if one.name == name), None)
