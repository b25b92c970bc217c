"""The Flax files beside the samples are what the converter writes today."""

from __future__ import annotations

from pathlib import Path

import pytest

from migrator.project import File, Manifest, convert_files, discover
from tests.samples.readability import PAGE, measured, page

ROOT = Path(__file__).resolve().parents[2]
FLAX = ROOT / "samples" / "flax"
SAMPLES = discover([ROOT / "samples"])


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.path.stem)
def test_generated_file_is_up_to_date(file: File) -> None:
    converted = convert_files([file]).files[0]
    advice = "run: migrate convert samples -o samples/flax --force"
    assert (FLAX / file.name).read_text() == converted.code, advice
    assert converted.complete == (file.path.stem != "moe")


def test_nothing_else_is_beside_them() -> None:
    assert {p.name for p in FLAX.glob("*.py")} == {file.name.name for file in SAMPLES}
    assert not [p for p in FLAX.glob("*.py") if Manifest(FLAX).problem(p)]


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.path.stem)
def test_converted_code_stands_alone(file: File) -> None:
    text = (FLAX / file.name).read_text()
    if file.path.stem != "moe":
        assert "import torch" not in text
    assert "migrator" not in text


def test_the_page_beside_each_other_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.samples.readability"


@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.path.stem)
def test_a_port_is_as_long_as_its_original(file: File) -> None:
    close = file.path.stem in ("gpt", "resnet", "vit")
    assert measured(file.path.stem).model <= (1.1 if close else 1.2)


def test_a_resnet_needs_few_helpers() -> None:
    assert measured("resnet").helpers <= 60


def test_a_gpt_needs_no_helpers() -> None:
    assert measured("gpt").helper_names == ()
