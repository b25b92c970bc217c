"""``pytest --migrate`` in a user's project."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.migrator.test_verifying import FLAX, PROJECT, TORCH


def run_pytest(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:migrate",
        "-p",
        "migrator.pytest_plugin",
        *options,
    ]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def test_cases_are_tests_that_processes_share(tmp_path: Path) -> None:
    (tmp_path / "ported").mkdir()
    second = PROJECT.partition("[[")[2].replace('name = "scale"', 'name = "wrong"')
    second = second.replace(
        'torch = "model.py:Scale"', 'torch = "model.py:Scale"\njax = "bad.py:Scale"'
    )
    (tmp_path / "pyproject.toml").write_text(f"{PROJECT}\n[[{second}")
    (tmp_path / "model.py").write_text(TORCH)
    (tmp_path / "ported" / "model.py").write_text(FLAX)
    (tmp_path / "bad.py").write_text(FLAX.replace("+ self.shift", "- self.shift"))
    (tmp_path / "test_own.py").write_text(
        "def test_port(migrate_case):\n"
        "    torch_module, flax_module, inputs = migrate_case\n"
        "    assert torch_module.weight.shape == flax_module.weight.shape\n"
    )
    result = run_pytest(tmp_path, "--migrate", "test_own.py", "-n", "2")
    assert "1 failed, 3 passed" in result.stdout, result.stdout + result.stderr
    assert "migrate case wrong" in result.stdout
    assert "first difference in: the module itself" in result.stdout
    assert "Traceback" not in result.stdout
    assert "2 passed" in run_pytest(tmp_path, "test_own.py").stdout
