"""torch.device and what asks for accelerators: JAX places arrays by itself."""

from __future__ import annotations

import jax

from rules.registry import op


@op("torch.device", example={'torch.device("cuda")': "jax.devices()[0]"})
def device(type=None, index=None) -> Device:
    """The default device; devices handed to layers and functions are dropped."""
    return jax.devices()[0]


@op(
    "torch.cuda.is_available",
    example={"torch.cuda.is_available()": 'jax.default_backend() == "gpu"'},
)
def cuda_is_available() -> Bool:
    """Whether computations run on a GPU."""
    return jax.default_backend() == "gpu"


@op("torch.cuda.device_count", example={"torch.cuda.device_count()": "jax.device_count()"})
def device_count() -> Int:
    """How many devices JAX sees."""
    return jax.device_count()
