"""Whether the converted files still have what others of them import: the last look at a package.

What is torch's is written out where it is used, and the names that stood for it go, with their imports. A file that would
import such a name all the same could not be loaded: nothing that is wrong here may be called converted.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from migrator import python_tree
from migrator.findings import Finding, ordered
from migrator.package.build import Outcome
from migrator.package.run import Project
from migrator.package.scan import Import

_ADVICE = "import it from where it is defined, or write it by hand"


def check_imports(project: Project, done: Mapping[str, Outcome]) -> None:
    """Report imports of names that the converted file does not bind, and mark them in the code."""
    paths = {member.module: member.path for member in project.members}
    for module, outcome in done.items():
        gone = sorted(set(_gone(project, done, module)), key=repr)
        if gone:
            _report(outcome, project.texts[module], paths[module], gone)
        for path in sorted(set(_unread(project, done, module))):
            _report_reading(outcome, project.texts[module], paths[module], path)


def _gone(project: Project, done: Mapping[str, Outcome], module: str) -> Iterator[Import]:
    """The imports of a file's source whose name the converted file that they lead to does not bind."""
    table = project.table
    for _, one in table.scans[module].imports():
        target = table.absolute(module, one.module, one.level)
        if one.name is None or target is None or table.resolve(target, one.name) is None:
            continue  # a name that the source does not have either is reported by itself
        if target in done and not _has(project, done, target, one.name, set()):
            yield one
    for star in table.scans[module].stars:
        target = table.absolute(module, star.module, star.level)
        if target is None or target not in done:
            continue
        listed = table.scans[target].exports or ()
        for name in listed:  # Python looks for each of them, whether it is used or not
            kept = re.search(rf"""["']{name}["']""", done[target].code)
            if (
                kept
                and table.resolve(target, name)
                and not _has(project, done, target, name, set())
            ):
                yield replace(star, name="*")
                break


def _unread(project: Project, done: Mapping[str, Outcome], module: str) -> Iterator[str]:
    """What a file reads of other files, by their modules, that their converted files do not bind: ``utils.gradient``."""
    table = project.table
    for bound, one in table.scans[module].imports():
        target = table.absolute(module, one.module, one.level)
        if target is not None and one.name is not None:
            target = f"{target}.{one.name}"
        if target is None or not table.is_module(target):
            continue
        for path in table.scans[module].paths:
            name, *rest = path.split(".")
            found = target
            while name == bound and rest and table.is_module(f"{found}.{rest[0]}"):
                found = f"{found}.{rest.pop(0)}"
            if name != bound or not rest or table.resolve(found, rest[0]) is None:
                continue
            if found in done and not _has(project, done, found, rest[0], set()):
                yield path[: path.index(f".{rest[0]}") + len(rest[0]) + 1]


def _has(
    project: Project, done: Mapping[str, Outcome], module: str, name: str, seen: set[str]
) -> bool:
    """Whether a converted file has a name, by a star import perhaps; so is taken what is not known."""
    outcome, table = done.get(module), project.table
    if outcome is None or outcome.names is None or {name, "__getattr__"} & set(outcome.names):
        return True
    if table.is_module(f"{module}.{name}") or re.search(rf"\bglobal\b.*\b{name}\b", outcome.code):
        return True
    seen.add(module)
    for star in table.scans[module].stars:
        source = table.absolute(module, star.module, star.level)
        if source is None or not table.is_module(source):
            continue  # torch's are gone; what another library brings is not asked of this file
        if source not in seen and _has(project, done, source, name, seen):
            return True
    return False


def _report(outcome: Outcome, text: str, path: str, gone: Iterable[Import]) -> None:
    """Note each such import that the converted file has, and write the reason above it."""
    lines = outcome.code.splitlines(keepends=True)
    places = [(node, one) for one in gone for node in _imports(outcome.code, one)]
    for node, one in sorted(places, key=lambda place: place[0].lineno, reverse=True):
        named = "what __all__ lists" if one.name == "*" else one.name
        what = f"{named} of {'.' * one.level}{one.module} is not in its converted file"
        own = next(iter(_imports(text, one)), node)
        end = (own.end_lineno or own.lineno, (own.end_col_offset or own.col_offset) + 1)
        place = (own.lineno, own.col_offset + 1, *end, path)
        snippet = text.splitlines()[own.lineno - 1]
        finding = Finding(
            "API004", what, "error", *place, _ADVICE, snippet, effort=0.5, blocks=True
        )
        outcome.findings = ordered([*outcome.findings, finding])
        indent = " " * node.col_offset
        lines.insert(node.lineno - 1, f"{indent}# TODO(migrate): API004 {what}; {_ADVICE}\n")
    if places:
        outcome.code, outcome.complete = "".join(lines), False


def _report_reading(outcome: Outcome, text: str, path: str, read: str) -> None:
    """Note where a file still reads what another one no longer has, and write the reason above it."""
    found = _reading(outcome.code, read)
    own = _reading(text, read)
    if found is None or own is None:
        return
    module, _, name = read.rpartition(".")
    what = f"{name} of {module} is not in its converted file"
    start, end = own[1], (own[1].end_lineno or 0, (own[1].end_col_offset or 0) + 1)
    place = (start.lineno, start.col_offset + 1, *end, path)
    snippet = text.splitlines()[start.lineno - 1]
    finding = Finding("API004", what, "error", *place, _ADVICE, snippet, effort=0.5, blocks=True)
    outcome.findings = ordered([*outcome.findings, finding])
    lines = outcome.code.splitlines(keepends=True)
    indent = " " * found[0].col_offset
    lines.insert(found[0].lineno - 1, f"{indent}# TODO(migrate): API004 {what}; {_ADVICE}\n")
    outcome.code, outcome.complete = "".join(lines), False


def _reading(code: str, read: str) -> tuple[ast.stmt, ast.Attribute] | None:
    """The first place where code reads a dotted path, with the innermost statement around it."""
    if f".{read.rpartition('.')[2]}" not in code:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return None
    found: tuple[ast.stmt, ast.Attribute] | None = None
    for node in python_tree.walk(tree):  # outer statements before those in them
        if isinstance(node, ast.stmt) and (found is None or _holds(node, found[1])):
            for one in ast.walk(node):
                if isinstance(one, ast.Attribute) and ast.unparse(one) == read:
                    found = node, one
                    break
    return found


def _holds(node: ast.AST, inner: ast.AST) -> bool:
    return any(one is inner for one in ast.walk(node))


def _imports(code: str, wanted: Import) -> Iterator[ast.ImportFrom]:
    """The statements that import a name; a package that has another name in the output says so by dots."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
    except (SyntaxError, ValueError):
        return
    for node in python_tree.walk(tree):
        if not isinstance(node, ast.ImportFrom) or wanted.name not in [a.name for a in node.names]:
            continue
        module = node.module or ""
        same = (module, node.level) == (wanted.module, wanted.level)
        if same or (node.level and wanted.module.endswith(module)):
            yield node
