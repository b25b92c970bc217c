"""What is read from a program compiled for a TPU; the compiler itself only where libtpu is installed."""

from __future__ import annotations

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from click.testing import CliRunner
from flax import nnx

from migrator.cli import main
from migrator.config import load_config
from migrator.verifying import lower_case, select, verify_case
from numerics.lowering import CHIPS, Lowered, available, fallen, lower, matrix_unit_fill
from tests.numerics.models import FlaxNet

ROOT = Path(__file__).resolve().parents[2]


def test_how_full_the_matrix_unit_is() -> None:
    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return x @ w

    jaxpr = jax.make_jaxpr(product)(jnp.ones((8, 64)), jnp.ones((64, 128)))
    fill, products = matrix_unit_fill(jaxpr, 128)
    assert products == 1
    assert fill == pytest.approx(0.5 * 8 / 128)  # 64 of 128 summed, 8 rows in the place of columns
    full = jax.make_jaxpr(product)(jnp.ones((256, 128)), jnp.ones((128, 256)))
    assert matrix_unit_fill(full, 128) == (1.0, 1)
    assert matrix_unit_fill(full, 256)[0] == 0.5


def test_products_in_loops_and_convolutions_count() -> None:
    def loop(x: jax.Array) -> jax.Array:
        small = x[:, :64] @ jnp.ones((64, 128))
        return jax.lax.scan(lambda c, _: (c @ jnp.ones((128, 128)), None), small, None, length=9)[0]

    fill, products = matrix_unit_fill(jax.make_jaxpr(loop)(jnp.ones((128, 128))), 128)
    assert products == 2
    assert fill == pytest.approx((9 + 0.5) / 10)

    def conv(x: jax.Array, w: jax.Array) -> jax.Array:
        return jax.lax.conv_general_dilated(x, w, (1, 1), "SAME")

    traced = jax.make_jaxpr(conv)(jnp.ones((2, 64, 8, 8)), jnp.ones((128, 64, 2, 2)))
    assert matrix_unit_fill(traced, 128) == (1.0, 1)


HLO = """
  %convolution.3 = f32[100,70]{0,1:T(8,128)} convolution(%a, %b), metadata={op_name="jit(f)/layer/dot_general" x=3}
  %multiply.1 = f32[100]{0} multiply(%a, %b), metadata={op_name="jit(f)/layer/dot_general" x=3}
  %multiply.2 = f32[100]{0} multiply(%a, %b), metadata={op_name="jit(f)/head/dot_general" x=3}
  %reduce.2 = f32[]{} reduce(%c, %d), metadata={op_name="jit(f)/head/dot_general" x=3}
  %copy.2 = f32[]{} copy(%c), metadata={op_name="jit(f)/other/dot_general" x=3}
"""


def test_products_that_fell_off_the_matrix_unit() -> None:
    assert fallen(HLO) == ["head/dot_general"]


def test_a_line_a_person_reads() -> None:
    line = str(Lowered("v5e", "forward", memory=2**30, available=2**34, flops=1e9, moved=2048))
    assert "1 GiB of 16 GiB" in line
    assert "2 KiB moved" in line
    assert "does not compile: too big" in str(Lowered("v5e", "forward", error="too big"))
    assert "not compiled: no v9" in str(Lowered("v9", "forward", untried="no v9"))


def test_an_unknown_chip() -> None:
    result = CliRunner().invoke(main, ["verify", "--lower-for", "v9", str(ROOT / "samples/mlp.py")])
    assert result.exit_code == 2
    assert "v9" in result.stderr


def test_without_libtpu_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from migrator.verifying import verify_cases

    monkeypatch.setattr("numerics.lowering.find_spec", lambda name: None)
    config = load_config(ROOT / "pyproject.toml")
    (report,) = verify_cases(config, ["mlp"], examples=1, lower_for=["v5e"])
    assert report.ok
    assert any("libtpu is missing" in note for note in report.notes)


def test_a_compiler_that_cannot_be_asked_says_nothing_of_the_port(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuses(**_: str) -> None:
        raise RuntimeError("the compiler is in use")

    monkeypatch.setattr("jax.experimental.topologies.get_topology_desc", refuses)
    port = FlaxNet(rngs=nnx.Rngs(0))
    for result in lower(port, [np.ones((2, 8), np.float32)], {}, ["v5e"]):
        assert result.untried
        assert not result.error


@pytest.mark.slow
@pytest.mark.skipif(not available(), reason="libtpu is not installed: pip install 'migrator[tpu]'")
@pytest.mark.parametrize("sample", ["mlp", "gpt", "vit", "vae", "lstm_tagger"])
def test_samples_compile_for_every_generation(sample: str) -> None:
    config = load_config(ROOT / "pyproject.toml")
    results = lower_case(select(config, [sample])[0], config, list(CHIPS))
    assert len(results) == 2 * len(CHIPS)
    for result in results:
        assert not result.error, str(result)
        assert 0 < result.memory < result.available
        assert result.flops > 0
        assert result.products > 0
        assert result.padding >= 1


@pytest.mark.slow
def test_the_mesh_of_simulated_devices() -> None:
    import subprocess
    import sys

    command = [sys.executable, "-m", "migrator", "verify", "mlp", "--examples", "2"]
    command += ["--mesh", "data=2,model=2"]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "equal" in result.stdout


def test_the_error_of_a_matrix_unit_is_reported() -> None:
    config = load_config(ROOT / "pyproject.toml")
    (case,) = select(config, ["mlp"])
    from dataclasses import replace

    report = verify_case(replace(case, examples=1, train=False), config, emulate_tpu=True)
    assert report.ok, str(report)
    assert 1e-4 < report.tpu_errors["eval outputs"] < 0.1
    assert report.max_error < 1e-5
