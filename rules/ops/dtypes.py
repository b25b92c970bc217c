"""torch dtypes by their JAX names. int64 is int32 and complex128 is complex64: x64 mode is off on TPUs."""

from __future__ import annotations

DTYPES = {
    "torch.float32": "jnp.float32",
    "torch.float": "jnp.float32",
    "torch.float64": "jnp.float64",
    "torch.double": "jnp.float64",
    "torch.float16": "jnp.float16",
    "torch.half": "jnp.float16",
    "torch.bfloat16": "jnp.bfloat16",
    "torch.complex64": "jnp.complex64",
    "torch.cfloat": "jnp.complex64",
    "torch.complex128": "jnp.complex128",
    "torch.cdouble": "jnp.complex128",
    "torch.uint8": "jnp.uint8",
    "torch.uint16": "jnp.uint16",
    "torch.uint32": "jnp.uint32",
    "torch.int8": "jnp.int8",
    "torch.int16": "jnp.int16",
    "torch.short": "jnp.int16",
    "torch.int32": "jnp.int32",
    "torch.int": "jnp.int32",
    "torch.int64": "jnp.int32",
    "torch.long": "jnp.int32",
    "torch.bool": "jnp.bool_",
}
