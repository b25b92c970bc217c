"""``import package`` and ``import package.layers`` in a package that has another name in the output.

The statement names the original. Files of the output import one another relatively, and there is no such import of a
dotted name: ``package.layers.Block`` becomes ``layers.Block``, under ``from . import layers``. Where that file imports
this one, or the package itself is wanted, the name is bound to the package as the statement did.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import libcst as cst

from migrator import syntax
from migrator.convert.context import Context
from migrator.convert.rewriter import Rewriter, converts
from migrator.infer import Linked
from migrator.source import dotted

_OURS = frozenset({"jax", "jnp", "lax", "nnx", "np", "functools", "inspect", "math", "optax"})
"""What the output imports under these names."""
_SCOPES = (cst.FunctionDef, cst.ClassDef, cst.Lambda)


@dataclass
class PackageNames:
    """What becomes of the dotted names of a file's own package.

    Attributes:
      statements: each import, and what it imports instead.
      names: each ``package.layers``, and ``package`` of a ``package.Block`` that it merely hands on, and its new name.
    """

    statements: dict[cst.ImportAlias, list[cst.BaseSmallStatement]] = field(default_factory=dict)
    names: dict[cst.CSTNode, str] = field(default_factory=dict)


def package_names(ctx: Context) -> PackageNames:
    """The dotted names of a file, looked for once."""
    if ctx.package_names is None:
        ctx.package_names = PackageNames()
        linked = ctx.facts.linked
        if linked is not None:
            _find(ctx, linked, ctx.package_names)
    found: PackageNames = ctx.package_names
    return found


def _concerns(ctx: Context) -> bool:
    return bool(package_names(ctx).names)


@converts(cst.Name, cst.Attribute, when=_concerns)
def renamed(rw: Rewriter, node: cst.Name | cst.Attribute) -> Any:
    """``package.layers`` → ``layers``."""
    name = package_names(rw.ctx).names.get(node)
    return None if name is None else cst.Name(name)


def with_new_names(ctx: Context, tree: cst.Module) -> cst.Module:
    """The converted file with the new names in what no pass goes through, such as hints and bases."""
    names = package_names(ctx).names

    def renamed(node: cst.CSTNode) -> cst.CSTNode:
        name = names.get(node)
        return syntax.rebuild(node, renamed) if name is None else cst.Name(name)

    return syntax.rebuild(tree, renamed) if names else tree


@dataclass(frozen=True)
class _Root:
    """A name that an import binds to a package of the project."""

    name: str
    package: str


def _find(ctx: Context, linked: Linked, found: PackageNames) -> None:
    here = ctx.source.module
    imports: dict[str, list[tuple[cst.ImportAlias, str]]] = {}
    tops: dict[str, str] = {}
    inside: set[str] = set()
    for node, alias in _imports(ctx):
        written = dotted(alias.name) or ""
        module = linked.head(here, written)
        if linked.place(here, written, 0, None) != "own" or not linked.is_module(module):
            continue
        if linked.spelled(here, written, 0) == (written, 0):
            continue
        name, direct = alias.evaluated_alias, "." in module
        if name is not None and direct:  # import package.layers as layers
            found.statements[alias] = [_statement(linked, here, module, name)]
            continue
        if module != written:
            continue
        top = module.partition(".")[0]
        imports.setdefault(name or top, []).append((alias, module))
        tops[name or top] = top
        if any(isinstance(n, _SCOPES) for n in ctx.source.index.around(node)):
            inside.add(name or top)
    for name, several in imports.items():
        root = _Root(name, tops[name])
        if name in inside or not _name(ctx, linked, root, several, found):
            _bind(ctx, linked, root, several, found)


def _imports(ctx: Context) -> Iterator[tuple[cst.Import, cst.ImportAlias]]:
    for node in ctx.source.index.of_type(cst.Import):
        for alias in node.names:
            yield node, alias


def _name(
    ctx: Context,
    linked: Linked,
    root: _Root,
    several: list[tuple[cst.ImportAlias, str]],
    found: PackageNames,
) -> bool:
    """Settle all uses of one name; whether its files can be imported in its place."""
    uses: dict[cst.CSTNode, str] = {}
    modules = [module for _, module in several if "." in module]
    for node in _named(ctx, root.name):
        use = _use(ctx, linked, root, node)
        if use is None:
            return False
        uses.update([use])
        modules.append(use[1])
    here = ctx.source.module
    imported = {module for _, module in several}
    if any(linked.reaches(module, here) for module in modules if module not in imported):
        return False  # it would be imported before this one is there
    names: dict[str, str] = {}
    taken = {n.value for n in ctx.source.index.of_type(cst.Name) if not _is_part(ctx, n)} | _OURS
    for module in dict.fromkeys(modules):
        short = module.rpartition(".")[2]
        chosen = short if short not in taken else module.replace(".", "_")
        if chosen in taken:
            return False
        taken.add(chosen)
        names[module] = chosen
    places = _places(ctx, several, uses)
    for alias, _ in several:
        if _is_at_top(ctx, alias):
            wanted = [module for module in names if places.get(module) is alias]
        else:
            wanted = list(names)  # one under a condition may not run
        found.statements[alias] = [_statement(linked, here, m, names[m]) for m in wanted]
    found.names.update((place, names[module]) for place, module in uses.items())
    return True


def _places(
    ctx: Context,
    several: list[tuple[cst.ImportAlias, str]],
    uses: dict[cst.CSTNode, str],
) -> dict[str, cst.ImportAlias]:
    """The import under no condition in whose place each file is imported: its own, as files may need the order.

    The last one before its first use where no import names the file, or only a later one: some other file has it there
    by then."""
    top = [(alias, module) for alias, module in several if _is_at_top(ctx, alias)]
    lines = {alias: ctx.source.span(alias).line for alias, _ in top}
    early: dict[str, int] = {}
    for place, module in uses.items():
        if not _runs_later(ctx, place):
            line = ctx.source.span(place).line
            early[module] = min(line, early.get(module, line))
    found: dict[str, cst.ImportAlias] = {}
    for module in {**dict.fromkeys(uses.values()), **dict.fromkeys(m for _, m in top)}:
        before = [one for one in top if lines[one[0]] <= early.get(module, lines[one[0]])]
        own = [alias for alias, imported in before if imported == module]
        others = [alias for alias, _ in before or top[:1]]
        if own or others:
            found[module] = own[0] if own else others[-1]
    return found


def _runs_later(ctx: Context, node: cst.CSTNode) -> bool:
    """Whether a part of a file does not run where it stands: it is in the body of a function."""
    around = ctx.source.index.around(node)
    return any(
        isinstance(outer, (cst.FunctionDef, cst.Lambda)) and inner is outer.body
        for outer, inner in zip(around, [*around[1:], node], strict=True)
    )


def _is_at_top(ctx: Context, alias: cst.ImportAlias) -> bool:
    """Whether an import stands under no condition."""
    around = ctx.source.index.around(alias)
    return not any(isinstance(one, cst.BaseCompoundStatement) for one in around)


def _bind(
    ctx: Context,
    linked: Linked,
    root: _Root,
    several: list[tuple[cst.ImportAlias, str]],
    found: PackageNames,
) -> None:
    """Bind the name to the package, and have the files imported that the statements name."""
    if "importlib" in ctx.words:
        return
    _, dots = linked.spelled(ctx.source.module, root.package, 0)
    for alias, module in several:
        path = module.partition(".")[2]
        lines = ["import importlib"]
        lines.append(f'{root.name} = importlib.import_module("{"." * dots}", __package__)')
        if path:
            lines.append(f'importlib.import_module("{"." * dots}{path}", __package__)')
        found.statements[alias] = [_small(line) for line in lines]


def _named(ctx: Context, name: str) -> list[cst.Name]:
    """Where a file names a variable, its imports apart."""
    tree = ctx.source.index
    every = [n for n in tree.of_type(cst.Name) if n.value == name and not _is_part(ctx, n)]
    return [n for n in every if not any(isinstance(a, cst.Import) for a in tree.around(n))]


def _is_part(ctx: Context, node: cst.Name) -> bool:
    """Whether a name is that of an attribute, or stands in an import."""
    around = ctx.source.index.around(node)
    if any(isinstance(one, (cst.Import, cst.ImportFrom)) for one in around[-4:]):
        return True
    return isinstance(around[-1], cst.Attribute) and around[-1].attr is node


def _use(
    ctx: Context, linked: Linked, root: _Root, node: cst.Name
) -> tuple[cst.CSTNode, str] | None:
    """The part of ``package.layers.Block`` that is a file of the project, and its module.

    Of ``package.Block`` that is ``package``, which hands the class on from another file."""
    place: cst.CSTNode = node
    module = root.package
    above = list(ctx.source.index.around(node))
    while above and isinstance(outer := above[-1], cst.Attribute) and outer.value is place:
        inner = f"{module}.{outer.attr.value}"
        if linked.is_module(inner):
            place, module = above.pop(), inner
            continue
        if "." in module:
            return place, module
        symbol = linked.defined(module, outer.attr.value)  # the package hands it on
        found = symbol is not None and "." in symbol[0] and symbol[1] == outer.attr.value
        return (place, symbol[0]) if symbol is not None and found else None
    return (place, module) if "." in module else None


def _statement(linked: Linked, here: str, module: str, name: str) -> cst.ImportFrom:
    """``from .. import layers``, with ``as`` where the name is another."""
    parent, _, last = module.rpartition(".")
    path, dots = linked.spelled(here, parent, 0)
    text = f"from {'.' * dots}{path} import {last}" + (f" as {name}" if name != last else "")
    return cst.ensure_type(_small(text), cst.ImportFrom)


def _small(text: str) -> cst.BaseSmallStatement:
    return cst.ensure_type(cst.parse_statement(text), cst.SimpleStatementLine).body[0]
