"""Flag rules by their examples: the first is found, the second is not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from migrator.analyze import analyze_source, load_flags
from migrator.analyze.docs import FOLDER, pages
from migrator.convert import convert_source
from rules.registry import FLAGS, Flag

load_flags()
HEADER = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
CHECKED = [flag for flag in FLAGS.values() if flag.check is not None]
RAISED = [flag for flag in FLAGS.values() if flag.check is None]


def ids(flag: Flag) -> str:
    return f"{flag.code}-{flag.name}"


def codes(text: str) -> set[str]:
    return {finding.rule for finding in analyze_source(HEADER + text)}


def converted(text: str) -> set[str]:
    return {finding.rule for finding in convert_source(HEADER + text).findings}


@pytest.mark.parametrize("flag", CHECKED, ids=ids)
def test_found(flag: Flag) -> None:
    assert flag.code in codes(flag.example)


@pytest.mark.parametrize("flag", CHECKED, ids=ids)
def test_not_found(flag: Flag) -> None:
    assert flag.code not in codes(flag.instead)


@pytest.mark.parametrize("flag", RAISED, ids=ids)
def test_raised_by_the_converter(flag: Flag) -> None:
    assert flag.code in converted(flag.example)


@pytest.mark.parametrize("flag", RAISED, ids=ids)
def test_not_raised_by_the_converter(flag: Flag) -> None:
    assert flag.code not in converted(flag.instead)


@pytest.mark.parametrize("flag", FLAGS.values(), ids=ids)
def test_the_alternative_blocks_nothing(flag: Flag) -> None:
    assert not [f for f in analyze_source(HEADER + flag.instead) if f.blocks]


@pytest.mark.parametrize("flag", FLAGS.values(), ids=ids)
def test_declared_in_full(flag: Flag) -> None:
    assert re.fullmatch(r"(DYN|TRC|MUT|DTY|API)\d{3}|CUDA\d{3}", flag.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", flag.name)
    assert flag.severity in ("error", "warning", "info")
    assert not flag.blocks or flag.severity == "error"
    assert not flag.what.endswith(".")
    assert flag.why.endswith(".")


def test_names_are_unique() -> None:
    assert len({flag.name for flag in FLAGS.values()}) == len(FLAGS)


def test_the_documentation_is_what_the_declarations_say() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.md")}
    assert written == pages(), "run python -m migrator.analyze.docs"


def test_every_code_that_is_used_is_declared() -> None:
    used = set()
    for folder in ("migrator", "rules"):
        for path in (Path(__file__).parents[2] / folder).rglob("*.py"):
            used |= set(re.findall(r'"((?:DYN|TRC|MUT|DTY|API)\d{3}|CUDA\d{3})"', path.read_text()))
    assert used == set(FLAGS)


@pytest.mark.parametrize(
    ("use", "told"),
    [
        ("out = x.new_zeros(k, 3)", "static"),
        ("out = x.view(-1, k)", "static"),
        ("out = x if k == 3 else x * 2\n        if k == 3:\n            out = x", "jnp.where"),
    ],
)
def test_a_number_by_a_name_is_told_of_by_its_use(use: str, told: str) -> None:
    """``k = int(t.max())`` that is a size cannot stay an array, nor can one that Python branches on."""
    source = "import torch\nfrom torch import nn\n\n\nclass M(nn.Module):\n    def forward(self, x: torch.Tensor):\n"
    source += f"        k = int(x.max())\n        {use}\n        return out\n"
    found = [f for f in convert_source(source).findings if f.rule == "DYN004"]
    assert found
    assert told in (found[0].advice or "")
