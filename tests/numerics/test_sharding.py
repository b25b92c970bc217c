"""Meshes as they are written, and where arrays go on them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from numerics.sharding import Placement, parse_mesh


def test_a_mesh_as_written() -> None:
    assert parse_mesh("data=4,model=2") == {"data": 4, "model": 2}


@pytest.mark.parametrize("text", ["", "data", "data=0", "data=2,data=2", "data=2;model=2"])
def test_a_mesh_that_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="written as data=4,model=2"):
        parse_mesh(text)


def test_too_few_devices() -> None:
    with pytest.raises(ValueError, match="the mesh has 8 devices, JAX has 1"):
        Placement({"data": 4, "model": 2})


PROGRAM = """
from numerics.sharding import Placement, simulate_devices
simulate_devices(8)
import jax.numpy as jnp
from flax import nnx
placement = Placement({"data": 4, "model": 2})
class Net(nnx.Module):
    def __init__(self):
        self.weight = nnx.Param(jnp.ones((3, 6)))
        self.own = nnx.Param(jnp.ones((4, 6)), out_sharding=("model", None), eager_sharding=False)
        self.bias, self.buffer = nnx.Param(jnp.ones(6)), nnx.Variable(jnp.ones((6, 6)))
state = placement.state(nnx.state(Net()))
print([str(state[n][...].sharding.spec) for n in ("weight", "own", "bias", "buffer")])
print([str(x.sharding.spec) for x in placement.inputs((jnp.ones((8, 2)), jnp.ones(3)))])
odd = Placement({"data": 4, "model": 2})
odd.state(nnx.state(nnx.Linear(3, 5, rngs=nnx.Rngs(0))))
odd.inputs(jnp.ones((3, 2)))
print(placement.unused(), odd.unused())
"""


@pytest.mark.slow
def test_where_arrays_go() -> None:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120
    )
    assert result.returncode == 0, result.stderr
    spec = "P"
    assert result.stdout.splitlines() == [
        str([f"{spec}(None, 'model')", f"{spec}('model', None)", f"{spec}()", f"{spec}()"]),
        str([f"{spec}('data',)", f"{spec}()"]),
        "[] ['data', 'model']",
    ]
