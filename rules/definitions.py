"""Reads the rule files as source: which definition covers a torch name, its signature and its body.

Nothing here imports a rule file, so neither jax nor torch is loaded.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent
WORDS = frozenset(
    "sizes surely in_steps axes is_tensor is_float is_integer is_bool is_complex".split()
)
"""Words of ``rules.registry`` that a body may call; they never reach converted code."""


@dataclass(frozen=True)
class Param:
    """One parameter of a definition. ``mode`` is "positional", "keyword", "*" or "**"."""

    name: str
    mode: str
    default: ast.expr | None = None
    annotation: str = ""


@dataclass(eq=False)
class RuleFile:
    """One parsed file under ``rules/`` and what its top-level names mean."""

    path: Path
    text: str
    tree: ast.Module

    @cached_property
    def lines(self) -> list[str]:
        return self.text.splitlines(keepends=True)

    @cached_property
    def imports(self) -> dict[str, tuple[str, str | None]]:
        """Local name → (module, attribute or None): ``jnp`` → ("jax.numpy", None)."""
        found: dict[str, tuple[str, str | None]] = {}
        for node in self.tree.body:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    local = alias.asname or alias.name.partition(".")[0]
                    found[local] = (alias.name if alias.asname else local, None)
            elif isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
                for alias in node.names:
                    found[alias.asname or alias.name] = (node.module, alias.name)
        return found

    @cached_property
    def definitions(self) -> dict[str, ast.stmt]:
        """Top-level functions, classes and constants by name."""
        found: dict[str, ast.stmt] = {}
        for node in self.tree.body:
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found[node.name] = node
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name):
                        found[target.id] = node
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                found[node.target.id] = node
        return found

    def segment(self, node: ast.stmt, decorated: bool = False) -> str:
        """The source text of a top-level statement, by default without its decorators."""
        first = node.lineno
        if decorated and isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            first = min([first, *(d.lineno for d in node.decorator_list)])
        return "".join(self.lines[first - 1 : node.end_lineno])

    def attached(self, name: str) -> list[ast.stmt]:
        """The statements that complete a function: ``@name.defjvp`` above another, ``name.defvjp(…)``."""

        def completes(node: ast.expr) -> bool:
            node = node.func if isinstance(node, ast.Call) else node
            owner = node.value if isinstance(node, ast.Attribute) else None
            return isinstance(owner, ast.Name) and owner.id == name

        return [
            node
            for node in self.tree.body
            if (isinstance(node, ast.FunctionDef) and any(map(completes, node.decorator_list)))
            or (isinstance(node, ast.Expr) and completes(node.value))
        ]


@dataclass(eq=False)
class Rule:
    """One definition, read from source."""

    group: str
    names: tuple[str, ...]
    node: ast.FunctionDef
    file: RuleFile
    params: tuple[Param, ...]
    returns: str
    example: dict[str, str] = field(default_factory=dict)
    weights: dict[str, str] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    call: str = "Tensor"
    general: bool = False

    @property
    def name(self) -> str:
        return self.node.name

    @cached_property
    def texts(self) -> frozenset[str]:
        """The parameters that the definition compares with strings: ``reduction``, ``mode``. No tensor is one."""
        found = {
            compare.left.id
            for compare in ast.walk(self.node)
            if isinstance(compare, ast.Compare) and isinstance(compare.left, ast.Name)
            for other in compare.comparators
            for part in ast.walk(other)
            if isinstance(part, ast.Constant) and isinstance(part.value, str)
        }
        return frozenset(p.name for p in self.params if p.name in found)

    @cached_property
    def draws(self) -> bool:
        """Whether the definition takes ``rngs``."""
        return any(p.name == "rngs" for p in self.params)

    @cached_property
    def asks_steps(self) -> bool:
        """Whether the definition asks ``in_steps()``."""
        return any(isinstance(n, ast.Name) and n.id == "in_steps" for n in ast.walk(self.node))

    @cached_property
    def positional(self) -> list[str]:
        """The names of the parameters that may be given by place."""
        return [p.name for p in self.params if p.mode == "positional"]

    @cached_property
    def by_name(self) -> dict[str, Param]:
        return {p.name: p for p in self.params}


def _params(args: ast.arguments) -> tuple[Param, ...]:
    def annotation(arg: ast.arg) -> str:
        return ast.unparse(arg.annotation) if arg.annotation else ""

    positional = [*args.posonlyargs, *args.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(args.defaults))
    defaults += args.defaults
    found = [
        Param(a.arg, "positional", d, annotation(a))
        for a, d in zip(positional, defaults, strict=True)
    ]
    if args.vararg:
        found.append(Param(args.vararg.arg, "*", None, annotation(args.vararg)))
    for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        found.append(Param(a.arg, "keyword", d, annotation(a)))
    if args.kwarg:
        found.append(Param(args.kwarg.arg, "**", None, annotation(args.kwarg)))
    return tuple(found)


def _literal(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _rules(file: RuleFile) -> Iterator[Rule]:
    for node in file.tree.body:
        if not isinstance(node, ast.FunctionDef):
            continue
        for decorator in node.decorator_list:
            if not (isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name)):
                continue
            group = decorator.func.id
            if group not in ("op", "layer"):
                continue
            options = {k.arg: _literal(k.value) for k in decorator.keywords}
            yield Rule(
                group,
                tuple(_literal(a) for a in decorator.args),
                node,
                file,
                _params(node.args),
                ast.unparse(node.returns) if node.returns else "",
                options.get("example") or {},
                options.get("weights") or {},
                tuple(options.get("fields") or ()),
                options.get("call") or "Tensor",
                bool(options.get("general")),
            )


@cache
def read(path: Path) -> RuleFile:
    """Parse one rule file."""
    text = path.read_text(encoding="utf-8")
    return RuleFile(path, text, ast.parse(text))


@cache
def module_file(module: str) -> RuleFile:
    """The file of a module such as ``rules.compat.conv``."""
    return read(ROOT.parent.joinpath(*module.split(".")).with_suffix(".py"))


@cache
def index(group: str) -> dict[str, tuple[Rule, ...]]:
    """Torch name → its definitions in order, for ``"op"`` (rules/ops) or ``"layer"`` (rules/layers)."""
    found: dict[str, list[Rule]] = {}
    for path in sorted((ROOT / f"{group}s").glob("*.py")):
        for rule in _rules_of(path):
            if rule.group == group:
                for name in rule.names:
                    found.setdefault(name, []).append(rule)
    return {name: tuple(rules) for name, rules in found.items()}


@cache
def _quoting(group: str) -> dict[str, list[Path]]:
    """What stands in quotes in a group's files → those files, in order: few of them need to be parsed for one name."""
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / f"{group}s").glob("*.py")):
        for name in set(_QUOTED.findall(path.read_text(encoding="utf-8"))):
            found.setdefault(name, []).append(path)
    return found


_QUOTED = re.compile(r'"([^"\n]+)"')


@cache
def _named(group: str, name: str) -> tuple[Rule, ...]:
    rules = [rule for path in _quoting(group).get(name, ()) for rule in _rules_of(path)]
    return tuple(rule for rule in rules if rule.group == group and name in rule.names)


@cache
def _rules_of(path: Path) -> tuple[Rule, ...]:
    return tuple(_rules(read(path)))


_TOP = re.compile(r"^(?:(?:class|def) (\w+)|(\w+)(?:: [^\n]+?)? = )", re.MULTILINE)


def defined(path: Path) -> tuple[str, ...]:
    """The names of ``RuleFile.definitions`` without parsing the file."""
    text = path.read_text(encoding="utf-8")
    return tuple(dict.fromkeys(a or b for a, b in _TOP.findall(text)))


def ops(name: str) -> tuple[Rule, ...]:
    """The definitions of a torch function, method or operator; empty when there is none."""
    return _named("op", name)


def layers(name: str) -> tuple[Rule, ...]:
    """The definitions of a ``torch.nn`` class; empty when there is none."""
    return _named("layer", name)
