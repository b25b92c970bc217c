"""Every helper that converted files may carry is documented, stands alone, and is reached by a comparison with torch."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest

from rules.definitions import ROOT, RuleFile, index, module_file
from tests.rules import coverage

Helper = tuple[str, str]
"""File under rules/compat, name."""
TESTS = Path(__file__).resolve().parents[1]


@cache
def files() -> dict[str, RuleFile]:
    """The files of rules/compat by name."""
    paths = sorted((ROOT / "compat").glob("*.py"))
    return {p.stem: module_file(f"rules.compat.{p.stem}") for p in paths if p.stem != "__init__"}


def used(file: RuleFile, node: ast.AST) -> set[Helper]:
    """The helpers that a definition names."""
    found = set()
    for item in ast.walk(node):
        name = item.id if isinstance(item, ast.Name) else ""
        module, original = file.imports.get(name, ("", None))
        if module.startswith("rules.compat.") and original:
            found.add((module.rpartition(".")[2], original))
        elif file is files().get(file.path.stem) and name in file.definitions:
            found.add((file.path.stem, name))
    return found


def with_all_they_use(helpers: Iterable[Helper]) -> set[Helper]:
    """Helpers and those that they call."""
    seen: set[Helper] = set()
    queue = list(helpers)
    while queue:
        helper = queue.pop()
        file = files().get(helper[0])
        node = file.definitions.get(helper[1]) if file is not None else None
        if helper in seen or file is None or node is None:
            continue
        seen.add(helper)
        queue += used(file, node)
    return seen


def by_the_database() -> set[Helper]:
    """Helpers of the definitions of which a sample of torch's databases was compared."""
    found = set()
    for group in ("op", "layer"):
        for name, rules in index(group).items():
            if any(outcome.startswith("verified") for *_, outcome in coverage.outcomes(name)):
                found |= {helper for rule in rules for helper in used(rule.file, rule.node)}
    return found


def by_a_test() -> set[Helper]:
    """Helpers that a test imports and names."""
    found = set()
    for path in sorted(TESTS.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules: dict[str, str] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module == "rules.compat":
                modules |= {alias.asname or alias.name: alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
                "rules.compat."
            ):
                file = str(node.module).rpartition(".")[2]
                found |= {(file, alias.name) for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                found.add((modules.get(node.value.id, ""), node.attr))
    return found


def by_a_pass() -> set[Helper]:
    """Helpers that a pass of the converter writes by name: the tests of the pass run what it wrote."""
    named = set()
    for path in sorted((ROOT.parent / "migrator").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                named |= set(node.value.split())
    return {helper for helper in public() if helper[1] in named}


def public() -> list[Helper]:
    """All functions and classes of rules/compat that other files may use."""
    return [
        (stem, name)
        for stem, file in files().items()
        for name, node in file.definitions.items()
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not name.startswith("_")
    ]


def test_every_helper_is_compared_with_torch() -> None:
    reached = with_all_they_use({*by_the_database(), *by_a_test(), *by_a_pass()})
    assert [helper for helper in public() if helper not in reached] == []


def test_every_helper_says_what_it_computes() -> None:
    silent = []
    for stem, name in public():
        node = files()[stem].definitions[name]
        assert isinstance(node, (ast.FunctionDef, ast.ClassDef))
        if not ast.get_docstring(node):
            silent.append((stem, name))
    assert silent == []


@pytest.mark.parametrize("stem", sorted(files()))
def test_helpers_stand_alone(stem: str) -> None:
    """Converted files need not begin with ``from __future__ import annotations``."""
    text = files()[stem].text.replace("from __future__ import annotations\n", "")
    exec(compile(text, stem, "exec", dont_inherit=True), {"__name__": stem})
