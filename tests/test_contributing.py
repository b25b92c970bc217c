"""CONTRIBUTING can be followed to the letter, in a copy that lacks the rule it adds."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks, follow

NAME = "torch.special.spherical_bessel_j0"


def remove_rule(copy: Path, name: str) -> None:
    """Delete every definition of a torch name, so that it can be added."""
    for path in (copy / "rules" / "ops").glob("*.py"):
        text = path.read_text()
        lines = text.splitlines(keepends=True)
        for node in reversed(ast.parse(text).body):
            if isinstance(node, ast.FunctionDef) and f'"{name}"' in "".join(
                ast.unparse(d).replace("'", '"') for d in node.decorator_list
            ):
                start = min(d.lineno for d in node.decorator_list) - 1
                del lines[start : node.end_lineno]
        path.write_text("".join(lines))


@pytest.mark.slow
def test_a_rule_is_added_in_three_steps(tmp_path: Path) -> None:
    copy = tmp_path / "clone"
    copy.mkdir()
    for name in ("migrator", "rules", "numerics", "tests"):
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    remove_rule(copy, NAME)
    for block in blocks(ROOT / "CONTRIBUTING.md"):
        shown = follow(block, copy, imports=copy)
        assert shown == block.text, f"CONTRIBUTING.md, line {block.line} printed\n{shown}"
