"""Models that say themselves how they are called: a module with ``get_inputs()`` and ``get_init_inputs()``."""

from __future__ import annotations

import ast
import inspect
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from migrator.errors import UserError
from migrator.shape_hints import REQUIRED, Hint, hint, method_of

INPUTS, INIT = "get_inputs", "get_init_inputs"
GROUPS = ("get_input_groups", "get_inputs_dyn_list")
"""Functions that make the arguments of several calls, each what ``get_inputs`` would return: a list of lists."""
MAIN = "Model"
"""The class such a file is about, where it has one of this name."""


@dataclass(frozen=True)
class Outline:
    """What a file offers, read without importing it: its classes and functions at module level."""

    path: Path
    classes: Mapping[str, ast.ClassDef]
    functions: Mapping[str, ast.FunctionDef]

    @property
    def inputs(self) -> str | None:
        """The function of the file that makes its inputs; None where it has none."""
        names = [name for name in (INPUTS, *GROUPS) if name in self.functions]
        if names[:1] == [INPUTS] and len(names) > 1 and _required(self.functions[INPUTS], 0):
            return names[1]  # ``get_inputs(case)`` is what the groups are made by
        return names[0] if names else None


def outline(path: Path) -> Outline:
    """Read a file's outline.

    Raises:
      UserError: no such file, or not Python.
    """
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise UserError(f"{path}: no such file") from None
    except SyntaxError as error:
        place = ":".join(str(one) for one in (path, error.lineno, error.offset) if one)
        raise UserError(f"{place}: syntax error: {error.msg}") from None
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8: {error}") from None
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    return Outline(path, classes, functions)


def main_class(file: Outline) -> str:
    """The class the file is about: ``Model``, else the only one with a ``forward`` that no other makes use of.

    One that has the name of the file (``Net`` of ``net.py`` or ``12_Net.py``) goes before others of that kind.

    Raises:
      UserError: there is none, or it is not clear which.
    """
    if MAIN in file.classes:
        return MAIN
    models = [
        name
        for name, node in file.classes.items()
        if method_of(node, "forward") is not None and not _is_function(node)
    ]
    used = {
        name
        for owner in models
        for name in _reached(file, owner)
        if name != owner and name in models
    }
    tops = [name for name in models if name not in used]
    if len(tops) > 1:
        stem = re.sub(r"^\d+_", "", file.path.stem)
        tops = [name for name in tops if name.lower() == stem.lower()] or tops
    if len(tops) == 1:
        return tops[0]
    if not models:
        raise UserError(f"{file.path}: no class with a forward method in it")
    choice = ", ".join(f"{file.path}:{name}" for name in (tops or models)[:6])
    raise UserError(f"{file.path}: which class? Write one of {choice}")


def _is_function(node: ast.ClassDef) -> bool:
    """Whether a class is a function with a gradient written by hand, by its base's name."""
    last = (
        base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
        for base in node.bases
    )
    return "Function" in last


def _reached(file: Outline, owner: str) -> set[str]:
    """The names that a class makes use of, itself, by functions of the file, or as what its parts derive from."""
    found: set[str] = set()
    pending: list[ast.AST] = [file.classes[owner]]
    while pending:
        fresh = set(_names(pending.pop())) - found
        found |= fresh
        pending += [file.functions[name] for name in fresh if name in file.functions]
        for name in fresh & set(file.classes) - {owner}:
            pending += file.classes[name].bases
    return found


def _names(node: ast.AST) -> Iterator[str]:
    return (part.id for part in ast.walk(node) if isinstance(part, ast.Name))


# --- a model without inputs ---------------------------------------------------------------------------------


def missing_inputs(file: Outline, name: str) -> str | None:
    """What to tell a person whose model has arguments that nothing describes; None when it needs none.

    The line shows the table to write, with the parameters of ``forward`` filled in, in shapes that fit the layers they
    are given to first where the file shows these.
    """
    node = file.classes.get(name)
    forward = method_of(node, "forward")
    if forward is None and name not in file.functions:
        return None  # inherited, or no such name: running it will tell
    parameters = _required(forward)
    if forward is not None and not parameters:
        return None
    hints: dict[str, Hint | None] = {}
    if node is not None:
        hints = {p.arg: hint(file.classes, file.functions, name, p.arg) for p in parameters}
    tables = ", ".join(_table(p, hints[p.arg]) for p in parameters) or '{ shape = ["B", 3] }'
    place = os.path.relpath(file.path)
    made = [] if INIT in file.functions else _required(method_of(node, "__init__"))
    table = (
        f"init = {{ kwargs = {{ {', '.join(f'{p.arg} = {REQUIRED}' for p in made)} }} }}, "
        if made
        else ""
    )
    flag = f'--init "{", ".join(f"{p.arg}={REQUIRED}" for p in made)}" ' if made else ""
    return (
        f"what does {name} take? {place} has no {INPUTS}(), so write the case in pyproject.toml:"
        f' [[tool.migrate.case]] torch = "{place}:{name}", {table}dims = {{ B = [1, 4] }},'
        f" inputs = [{tables}]; or on the command line: migrate verify {place}:{name}"
        f" {flag}{' '.join(f'--input {_flag(p, hints[p.arg])}' for p in parameters) or '--input B,3'}"
    )


def _required(method: ast.FunctionDef | None, skipped: int = 1) -> list[ast.arg]:
    """The parameters without a default, less ``self``."""
    if method is None:
        return []
    arguments = [*method.args.posonlyargs, *method.args.args]
    positional = arguments[skipped : len(arguments) - len(method.args.defaults)]
    pairs = zip(method.args.kwonlyargs, method.args.kw_defaults, strict=True)
    return positional + [argument for argument, default in pairs if default is None]


def _is_index(parameter: ast.arg) -> bool:
    annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
    words = ("ids", "idx", "index", "token", "label", "target")
    return "Long" in annotation or "Int" in annotation or any(w in parameter.arg for w in words)


def _looks(parameter: ast.arg, shown: Hint | None) -> tuple[Hint, str]:
    """What an input may look like, and its dtype where that is not the default: by its first layer, or its name."""
    if shown is not None:
        return shown, "int64" if shown.below is not None else ""
    if _is_index(parameter):
        return Hint((8,), below=100), "int64"
    return Hint((8,)), "bool" if "mask" in parameter.arg else ""


def _table(parameter: ast.arg, shown: Hint | None) -> str:
    looks, dtype = _looks(parameter, shown)
    extra = f', dtype = "{dtype}"' if dtype else ""
    extra += f", range = [0, {looks.below}]" if looks.below is not None else ""
    sizes = ", ".join(map(str, looks.sizes))
    return f'{{ name = "{parameter.arg}", shape = ["B", {sizes}]{extra} }}'


def _flag(parameter: ast.arg, shown: Hint | None) -> str:
    looks, dtype = _looks(parameter, shown)
    extra = f":{dtype}" if dtype else ""
    extra += f":0:{looks.below}" if looks.below is not None else ""
    return f"B,{','.join(map(str, looks.sizes))}{extra}"


# --- constructor arguments ------------------------------------------------------------------------------------


def init_call(factory: Callable[..., Any], given: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """``(args, kwargs)`` meant by what ``get_init_inputs`` returns.

    A list holds the arguments, a dict those passed by name; ``[[…], {…}]`` is both, if the constructor takes
    it so.
    """
    if given is None:
        return (), {}
    if isinstance(given, Mapping):
        return (), dict(given)
    if not isinstance(given, Sequence) or isinstance(given, str):
        return (given,), {}
    if len(given) == 2 and isinstance(given[0], list | tuple) and isinstance(given[1], Mapping):
        args, kwargs = tuple(given[0]), dict(given[1])
        if _binds(factory, args, kwargs):
            return args, kwargs
    return tuple(given), {}


def init_of_each(factory: Callable[..., Any], given: Any) -> list[Any] | None:
    """The constructor's arguments for each group of inputs, where ``get_init_inputs`` lists these; else None."""
    if not isinstance(given, list | tuple) or not given:
        return None
    if not all(isinstance(one, list | tuple) for one in given) or _binds(factory, given, {}):
        return None
    return list(given)


def _binds(factory: Callable[..., Any], args: Any, kwargs: Any) -> bool:
    if not all(isinstance(key, str) for key in kwargs):
        return False
    try:
        inspect.signature(factory).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return False
    return True


def is_plain(value: Any) -> bool:
    """Whether a constructor argument means the same to both sides: numbers, strings, and containers of them."""
    if isinstance(value, Mapping):
        return type(value) is dict and all(is_plain(part) for part in value.values())
    if isinstance(value, list | tuple):
        return type(value) in (list, tuple) and all(is_plain(part) for part in value)
    return value is None or isinstance(value, bool | int | float | complex | str)
