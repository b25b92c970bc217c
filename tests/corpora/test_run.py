"""A few architectures of the installed libraries from end to end (``-m sweep``)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpora.__main__ import ROOT
from tests.corpora.libraries import LIBRARIES
from tests.corpora.page import COMPLETE, status

pytestmark = pytest.mark.sweep
CHOSEN = {
    "torchvision": ["resnet18", "swin_t", "video.r3d_18"],
    "timm": ["vit_tiny_patch16_224", "resnet26t", "convnext_atto"],
}


@pytest.mark.parametrize("library", CHOSEN)
def test_architectures_are_complete_and_equal(library: str, tmp_path: Path) -> None:
    try:
        LIBRARIES[library].root  # noqa: B018
    except ModuleNotFoundError as error:
        pytest.skip(str(error))
    command = [sys.executable, "-m", "tests.corpora", "--library", library, "--work", str(tmp_path)]
    subprocess.run([*command, *CHOSEN[library]], cwd=ROOT, check=True, timeout=3000)
    lines = (tmp_path / f"{library}.jsonl").read_text(encoding="utf-8").splitlines()
    found = {one["name"]: one for one in map(json.loads, lines)}
    assert {name: status(one) for name, one in found.items()} == dict.fromkeys(
        CHOSEN[library], COMPLETE
    )
    assert all(one["train"] == "equal" for one in found.values())
