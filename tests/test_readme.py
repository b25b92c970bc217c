"""Every example in the README does what it shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documents import ROOT, blocks, follow, matches

README = ROOT / "README.md"


@pytest.mark.slow
def test_the_readme_can_be_followed(tmp_path: Path) -> None:
    for block in blocks(README):
        assert follow(block, tmp_path) == block.text, f"README.md, line {block.line}"


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"\bmake (\w+)", README.read_text()):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_links_lead_somewhere() -> None:
    for document in (README, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))):
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text()):
            assert (document.parent / link).exists(), f"{document.name}: {link}"


@pytest.mark.parametrize(
    ("shown", "printed", "expected"),
    [
        pytest.param("a … c", "a b\nb c\n", True, id="an ellipsis is any text"),
        pytest.param("error 1.2e-07", "error 3.4e-06", True, id="measured numbers may differ"),
        pytest.param("3 findings", "4 findings", False, id="counts may not"),
        pytest.param("a", "a b", False, id="nothing is left over"),
    ],
)
def test_outputs_are_compared_in_full(shown: str, printed: str, expected: bool) -> None:
    assert matches(shown, printed) is expected
