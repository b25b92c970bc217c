"""A folder without ``__init__.py`` whose files import one another by its name is a package; one of scripts is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli import main
from migrator.folders import Resolved, imports_itself
from migrator.project import convert_path
from tests.migrator.test_packages import LAYERS, NET, blocking, code


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    found = tmp_path / "project" / "tabby"
    found.mkdir(parents=True)
    (found / "layers.py").write_text(LAYERS)
    (found / "net.py").write_text(NET.replace("from .layers", "from tabby.layers"))
    return found


def test_its_files_know_each_other_and_import_relatively_under_another_name(
    folder: Path, tmp_path: Path
) -> None:
    found = convert_path([folder], tmp_path / "flaxed")
    assert not blocking(found)
    assert "from .layers import Block, make, pool" in code(found, "net.py")
    assert (tmp_path / "flaxed/__init__.py").read_text() == ""


def test_one_file_of_it_makes_no_package_of_where_it_goes(folder: Path, tmp_path: Path) -> None:
    convert_path([folder / "layers.py"], tmp_path / "layers_flax.py")
    assert not (tmp_path / "__init__.py").exists()


@pytest.mark.parametrize("at", [".", ".."])
def test_a_file_of_it_is_verified_from_anywhere(
    folder: Path, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder / at)
    name = "net.py" if at == "." else "tabby/net.py"
    ran = CliRunner().invoke(main, ["verify", f"{name}:Net", "--input", "B,5,4", "--examples", "2"])
    assert ran.exit_code == 0, ran.output
    assert "equal" in ran.output


def test_a_name_from_further_up_is_one_too(tmp_path: Path) -> None:
    folder = tmp_path / "project/models"
    folder.mkdir(parents=True)
    (folder / "blocks.py").write_text("import torch\n")
    (folder / "net.py").write_text("from project.models.blocks import torch\n")
    assert imports_itself(folder) == ("project", "models")


@pytest.mark.parametrize(
    "net",
    [
        pytest.param("from blocks import torch\nfrom models.blocks import torch\n", id="bare"),
        pytest.param("from models.other import torch\n", id="not there"),
        pytest.param("from elsewhere.models.blocks import torch\n", id="elsewhere"),
    ],
)
def test_a_folder_of_scripts_is_none(tmp_path: Path, net: str) -> None:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "blocks.py").write_text("import torch\n")
    (folder / "net.py").write_text(net)
    assert imports_itself(folder) == ()


def test_what_cannot_be_read_beside_the_files_is_passed_over(folder: Path) -> None:
    (folder / "old.py").mkdir()
    assert imports_itself(folder) == ("tabby",)


def test_a_folder_of_the_name_of_a_library_is_none(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/nn.py").write_text("import torch.nn\n")
    assert imports_itself(tmp_path / "torch") == ()


def test_a_path_is_resolved_as_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "a.py").touch()
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    (tmp_path / "link.py").symlink_to(tmp_path / "folder" / "a.py")
    (tmp_path / "inner").symlink_to(tmp_path)
    monkeypatch.chdir(tmp_path)
    resolved = Resolved()
    names = (
        "real/a.py",
        "folder/a.py",
        "folder/new.py",
        "link.py",
        "inner/link.py",
        "real/..",
        ".",
    )
    for path in [*map(Path, names), *(tmp_path / name for name in names), Path("none/../a.py")]:
        assert resolved(path) == path.resolve()
