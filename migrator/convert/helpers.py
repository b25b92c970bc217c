"""Code that the output carries: definitions and compat functions, copied once, with what they need."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from migrator import python_tree
from migrator.convert.bindings import PYTHON
from migrator.convert.layout import fitted
from rules.definitions import ROOT, WORDS, RuleFile, defined, module_file

LIBRARIES = {
    ("jax", None): "import jax",
    ("jax.numpy", None): "import jax.numpy as jnp",
    ("flax", "nnx"): "from flax import nnx",
    ("jax", "lax"): "from jax import lax",
    ("math", None): "import math",
    ("functools", None): "import functools",
    ("numpy", None): "import numpy as np",
}


@dataclass
class Helpers:
    """What the output must import and carry.

    Attributes:
      taken: every identifier of the file, which a new name must not repeat.
      bound: names that the file binds itself; a helper of that name gets another.
      imports: local name → import line.
      names: file and name of a helper → the name it has in the output.
      wanted: that name → (file, its name there), in the order of first use.
    """

    taken: frozenset[str]
    bound: frozenset[str] = frozenset()
    names: dict[tuple[Path, str], str] = field(default_factory=dict)
    imports: dict[str, str] = field(default_factory=dict)
    wanted: dict[str, tuple[RuleFile, str]] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    """Names for what one statement alone reads: locals, which a helper of that name would be hidden by."""
    factories: set[str] = field(default_factory=set)
    """Layer definitions used as values: they accept ``rngs`` whether they need it or not."""
    unique: bool = False
    """Helpers have names that no two of all share, since many files get them from one module."""
    elsewhere: str = ""
    """The module that the file imports its helpers from, with dots; empty where it carries them itself."""

    def snapshot(self) -> tuple[dict[str, str], dict, dict, frozenset[str]]:
        """The state to return to when a statement turns out not to convert.

        Tables are replaced, never changed, so that this costs nothing; it is asked for at every statement."""
        return self.imports, self.wanted, self.names, self.taken

    def restore(self, state: tuple[dict[str, str], dict, dict, frozenset[str]]) -> None:
        """Forget what was asked for since a snapshot."""
        self.imports, self.wanted, self.names, self.taken = state

    def take(self, name: str) -> None:
        """Use an identifier for something new in the file."""
        self.taken |= {name}

    def need(self, file: RuleFile, name: str) -> str:
        """Make a global name of a rule file available in the output; returns the name it has there."""
        if name in file.definitions:
            return self._carry(file, name)
        if name in file.imports:
            module, attribute = file.imports[name]
            if module.startswith("rules.compat"):
                return self.need(module_file(module), attribute or name)
            if module.startswith("rules."):
                return self._word(attribute or name)
            self.library(name, module, attribute)
        return name

    def has(self, name: str) -> str:
        """What a wanted definition of the rules is called in the output; empty where it is not wanted."""
        return next((new for new, (_, known) in self.wanted.items() if known == name), "")

    def library(self, name: str, module: str, attribute: str | None) -> None:
        """Import a library under the name the rules use for it."""
        line = LIBRARIES.get((module, attribute))
        if line is None:
            alias = f" as {name}" if name != (attribute or module) else ""
            line = (
                f"from {module} import {attribute}{alias}"
                if attribute
                else f"import {module}{alias}"
            )
        if self.imports.get(name) != line:
            self.imports = {**self.imports, name: line}

    def use(self, *names: str) -> None:
        """Import ``jax``, ``jnp``, ``nnx``, ``lax``, ``functools`` or ``math``."""
        known = {
            "jnp": ("jax.numpy", None),
            "nnx": ("flax", "nnx"),
            "lax": ("jax", "lax"),
            "np": ("numpy", None),
        }
        for name in names:
            module, attribute = known.get(name, (name, None))
            self.library(name, module, attribute)

    def _word(self, name: str) -> str:
        """A registry word inside a copied definition."""
        if name == "unsupported" or name not in WORDS:
            return name
        return self._carry(module_file("rules.compat.words"), name)

    def _carry(self, file: RuleFile, name: str) -> str:
        key = (file.path, name)
        if key in self.names:
            return self.names[key]
        new = wish = _unique_names()[key] if self.unique else name
        shadows = wish in PYTHON and wish in self.taken  # the file may mean Python's own
        bound = wish in self.bound or wish in self.passing
        if shadows or bound or wish in self.wanted:  # or of another rule file
            new = f"{wish}_"
            while new in self.taken:
                new += "_"
        self.names = {**self.names, key: new}
        self.wanted = {**self.wanted, new: (file, name)}
        self.take(new)
        if self.elsewhere:
            return new
        for dependency in sorted(_needs(file, name)):
            self.need(file, dependency)
        return new

    def _name_of(self, file: RuleFile, name: str) -> str | None:
        """What a global name of a rule file is called in the output, if it is carried."""
        while name in file.imports:
            module, attribute = file.imports[name]
            if not module.startswith("rules."):
                return None
            compat = module if module.startswith("rules.compat") else "rules.compat.words"
            file, name = module_file(compat), attribute or name
        return self.names.get((file.path, name))

    def import_line(self) -> str:
        """The import of what another module carries; empty when nothing is needed of it."""
        parts = []
        for local, (file, name) in sorted(self.wanted.items()) if self.elsewhere else ():
            if name == LAYER_CLASS:  # it stands above what is imported
                continue
            there = _unique_names()[file.path, name]
            parts.append(there if there == local else f"{there} as {local}")
        line = f"from {self.elsewhere} import {', '.join(parts)}" if parts else ""
        if len(line) <= 100:
            return line
        rows = "".join(f"    {part},\n" for part in parts)
        return f"from {self.elsewhere} import (\n{rows})"

    def texts(self) -> list[str]:
        """The source of each helper, what others use first."""
        if self.elsewhere:
            return []
        done: list[str] = []
        order: dict[str, str] = {}

        def place(output: str) -> None:
            if output in order or output in done:
                return
            done.append(output)
            file, name = self.wanted[output]
            text = _render(file, name, output in self.factories)
            renamed = {name: output}
            for dependency in sorted(_needs(file, name)):
                carried = self._name_of(file, dependency)
                if carried is not None:
                    renamed[dependency] = carried
                    if not self._derives(carried, name):  # else it comes behind its base
                        place(carried)
            for old, new in renamed.items():
                if old != new:
                    text = re.sub(rf"(?<![\w.\"']){old}(?!\w)", new, text)
            order[output] = text

        above = next((o for o, (_, name) in self.wanted.items() if name == LAYER_CLASS), None)
        for output in [above, *self.wanted] if above else list(self.wanted):
            place(output)
            if above and self._makes_layers(output):
                order[output] = f"@{above}\n{order[output]}"
        return list(order.values())

    def _derives(self, output: str, base: str) -> bool:
        """Whether a helper is a class whose base is the one of that name."""
        file, name = self.wanted[output]
        node = file.definitions[name]
        bases = node.bases if isinstance(node, ast.ClassDef) else []
        return any(isinstance(item, ast.Name) and item.id == base for item in bases)

    def _makes_layers(self, output: str) -> bool:
        """Whether a helper is a function that stands for one of torch's classes of layers."""
        file, name = self.wanted[output]
        made = isinstance(file.definitions[name], ast.FunctionDef)
        return made and (output in self.factories or name in self.factories)


LAYER_CLASS = "layer_class"
"""The helper that stands above functions which are classes in torch, where code asks what they are."""


@cache
def _unique_names() -> dict[tuple[Path, str], str]:
    """Every definition of the rules → a name that no other one has."""
    found: dict[tuple[Path, str], str] = {}
    taken: set[str] = set()
    for folder in ("compat", "ops", "layers"):
        for path in sorted((ROOT / folder).glob("*.py")):
            for name in defined(path):
                new = name
                while new in taken:
                    new = f"{new}_{path.stem}" if new == name else f"{new}_"
                taken.add(new)
                found[path, name] = new
    return found


@cache
def _needs(file: RuleFile, name: str) -> frozenset[str]:
    """Global names that a definition and what completes it read."""
    parts = [file.definitions[name], *file.attached(name)]
    return frozenset().union(*map(_globals, parts)) - {name}


@cache
def _globals(definition: ast.stmt) -> frozenset[str]:
    """Names a definition reads that it does not bind itself; decorators of rules left out."""
    found: set[str] = set()
    bound: set[str] = set()
    if isinstance(definition, ast.FunctionDef) and any(map(_is_rare, definition.body)):
        definition = ast.FunctionDef(
            **{**definition.__dict__, "body": [s for s in definition.body if not _is_rare(s)]}
        )
    for node in python_tree.walk(definition):
        if isinstance(node, ast.Name):
            (found if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node is not definition:
            bound.add(node.name)
    skip: set[str] = set()
    for node in python_tree.walk(definition):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            for decorator in node.decorator_list:
                if _is_rule(decorator):
                    skip |= {n.id for n in python_tree.walk(decorator) if isinstance(n, ast.Name)}
    return frozenset(found - bound - skip)


def _is_rule(decorator: ast.expr) -> bool:
    return (
        isinstance(decorator, ast.Call)
        and isinstance(decorator.func, ast.Name)
        and decorator.func.id in ("op", "layer")
    )


_UNSUPPORTED = re.compile(r"\b(?:return )?unsupported\(")
_ANNOTATION = re.compile(r"\) -> [^\n:]*(?:\[[^\n]*\])?:\n")


@cache
def _render(file: RuleFile, name: str, factory: bool = False) -> str:
    """A definition's text as it stands in the output, with what completes it."""
    definition = file.definitions[name]
    if isinstance(definition, ast.FunctionDef) and any(map(_is_rule, definition.decorator_list)):
        text = _UNSUPPORTED.sub("raise NotImplementedError(", file.segment(definition))
        made = _made(file, name) if factory else ""
        parts = [_plain_signature(definition, text, factory, made)]
    else:
        nodes = [definition, *file.attached(name)]
        parts = [file.segment(node, decorated=True) for node in nodes]
    return "\n\n".join(part if part.endswith("\n") else part + "\n" for part in parts)


def _made(file: RuleFile, name: str) -> str:
    """The class of the layers that a function makes, as an annotation: code may ask what made a layer."""
    definition = file.definitions[name]
    returns = definition.returns if isinstance(definition, ast.FunctionDef) else None
    text = ast.unparse(returns).strip("'\"") if returns is not None else ""
    known = text in _needs(file, name) or text.startswith("nnx.")
    return f" -> {text}" if known and text != "Callable" else ""


def _plain_signature(definition: ast.FunctionDef, text: str, factory: bool, made: str = "") -> str:
    """Take the kind annotations, which mean something to the converter only, out of a signature."""
    args = _without_annotations(definition.args)
    if factory and not any(a.arg == "rngs" for a in args.kwonlyargs):
        args.kwonlyargs.append(ast.arg("rngs"))
        args.kw_defaults.append(ast.Constant(None))
    body_start = definition.body[0].lineno - definition.lineno
    lines = text.splitlines(keepends=True)
    for statement in definition.body:
        first = statement.lineno - definition.lineno
        if _is_rare(statement) and _tells_forms_apart(statement):
            lines[first] = re.sub(r"surely\((.*)\):", r"\1:", lines[first])
        elif _is_rare(statement):
            last = (statement.end_lineno or statement.lineno) - definition.lineno + 1
            lines[first:last] = [""] * (last - first)
    body = lines[body_start:]
    header = f"def {definition.name}({ast.unparse(args)}){made}:".replace("'", '"')
    return "\n".join(fitted(header)) + "\n" + "".join(body)


def _is_rare(statement: ast.stmt) -> bool:
    """``if surely(…):`` without an else: a case that JAX itself refuses when the usual code meets it."""
    if not isinstance(statement, ast.If) or statement.orelse:
        return False
    test = statement.test
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    return (
        isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "surely"
    )


def _tells_forms_apart(statement: ast.stmt) -> bool:
    """``if surely(isinstance(shape, tuple) and len(shape) == 1): shape = shape[0]``: torch takes either form."""
    assert isinstance(statement, ast.If)
    calls = [n.func for n in python_tree.walk(statement.test) if isinstance(n, ast.Call)]
    names = {one.id for one in calls if isinstance(one, ast.Name)}
    return names == {"surely", "isinstance", "len"} and isinstance(statement.body[0], ast.Assign)


def _without_annotations(args: ast.arguments) -> ast.arguments:
    def plain(arg: ast.arg) -> ast.arg:
        return ast.arg(arg.arg)

    return ast.arguments(
        posonlyargs=[plain(a) for a in args.posonlyargs],
        args=[plain(a) for a in args.args],
        vararg=plain(args.vararg) if args.vararg else None,
        kwonlyargs=[plain(a) for a in args.kwonlyargs],
        kw_defaults=args.kw_defaults,
        kwarg=plain(args.kwarg) if args.kwarg else None,
        defaults=args.defaults,
    )


def compat_files() -> list[Path]:
    """Every file under rules/compat."""
    return sorted((Path(module_file("rules.compat.words").path).parent).glob("*.py"))
