"""Two files that are converted one after the other into one directory share the copies of libraries there."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from migrator.cli import main
from migrator.shared_copies import merged
from tests.migrator.test_follow_models import NET, installed  # noqa: F401
from tests.migrator.test_stand_ins import library  # noqa: F401

FIRST = """
import torch
from torch import nn
from transformers.activations import ACT2FN
from transformers.pytorch_utils import Conv1D


class A(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.act = Conv1D(3, 4), ACT2FN["gelu"]
        self.norm = nn.GroupNorm(1, 3)

    def forward(self, x):
        return self.norm(self.act(self.conv(x)).transpose(1, 2))
"""
SECOND = """
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput


class B(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.pool = nn.Linear(4, 3), nn.AdaptiveAvgPool1d(2)

    def forward(self, x):
        return BaseModelOutput(last_hidden_state=self.pool(self.fc(x)))
"""


def run(*args: str) -> str:
    result = CliRunner().invoke(main, ["convert", *args])
    assert result.exit_code == 0, result.output
    return result.output


def imports(place: Path, *names: str) -> None:
    """Import ports in a process of their own, and build what they define."""
    made = "".join(f"import {n}; {n}.{n.upper()}(rngs=nnx.Rngs(0))\n" for n in names)
    code = f"from flax import nnx\n{made}"
    done = subprocess.run([sys.executable, "-c", code], cwd=place, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_each_keeps_what_it_needs(tmp_path: Path) -> None:
    for name, text in (("a", FIRST), ("b", SECOND)):
        (tmp_path / f"{name}.py").write_text(text)
        run(str(tmp_path / f"{name}.py"), "-o", str(tmp_path / f"out/{name}.py"))
    imports(tmp_path / "out", "a", "b")
    (tmp_path / "a.py").write_text(FIRST.replace("nn.GroupNorm(1, 3)", "nn.BatchNorm1d(3)"))
    run(str(tmp_path / "a.py"), "-o", str(tmp_path / "out/a.py"))  # it is nobody's edit
    imports(tmp_path / "out", "a", "b")


def test_parts_of_one_file_for_two_others(installed: Path) -> None:  # noqa: F811
    (installed / "a.py").write_text(NET)
    part = "from torch import nn\nfrom transformers.models.tiny.modeling_tiny import scaled\n\n\nclass B(nn.Module):\n    def forward(self, x):\n        return scaled(x)\n"
    (installed / "b.py").write_text(part)
    follow = ["--follow", "transformers"]
    run(str(installed / "a.py"), "-o", str(installed / "out/a.py"), *follow)
    args = [str(installed / "b.py"), "-o", str(installed / "out/b.py"), *follow]
    result = CliRunner().invoke(main, ["convert", *args])
    assert result.exit_code != 0
    assert "holds other parts for a.py" in result.output
    assert (
        "class TinyModel"
        in (installed / "out/transformers_flax/models/tiny/modeling_tiny.py").read_text()
    )
    assert not (installed / "out/b.py").exists()
    run(str(installed / "a.py"), "-o", str(installed / "out/a.py"), *follow)


def test_what_is_said_of_a_definition_goes_with_it() -> None:
    old = "import jax\n\n\n@jax.custom_jvp\ndef f(x):\n    return x\n\n\nf.defjvps(lambda t, ans, x: 3 * t)\n"
    made = merged(old, "import jax\n\n\ndef g(x):\n    return x\n")
    assert made is not None
    found: dict = {}
    exec(made, found)
    assert found["jax"].grad(found["f"])(1.0) == 3.0
    assert merged("from a import x\n", "from b import x\n") is None


OLD = '"""Helpers."""\n\nimport jax\nfrom jax import lax, nn\n\nN = 3\n\n\ndef a(x):\n    return lax.neg(x) + N\n\n\n@jax.jit\ndef b(x):\n    return nn.relu(x)\n'


@pytest.mark.parametrize(
    ("new", "names"),
    [
        (
            '"""Helpers."""\n\nimport jax\n\n\ndef c(x):\n    return x\n',
            ["jax", "lax", "nn", "c", "N", "a", "b"],
        ),
        ("", ["jax", "lax", "nn", "N", "a", "b"]),
        (OLD, ["jax", "lax", "nn", "N", "a", "b"]),
        ("from jax import lax\n\n\ndef a(x):\n    return lax.neg(x) + 1\n", None),
    ],
)
def test_two_texts_in_one(new: str, names: list[str] | None) -> None:
    made = merged(OLD, new)
    if names is None:
        assert made is None
        return
    assert made is not None
    found: dict = {}
    exec(made, found)
    assert set(names) <= set(found)
    ast.parse(made)
    assert merged(OLD, made) == made
