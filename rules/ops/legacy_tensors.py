"""torch's old constructors of tensors of one dtype, of sizes or of values: ``torch.Tensor(2, 3)``, ``torch.LongTensor([1])``."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.data import legacy_tensor
from rules.registry import op


@op("torch.Tensor", "torch.FloatTensor")
def FloatTensor(data: tuple | list | Array, *, device=None) -> Tensor["float"]:
    """The legacy constructor with values."""
    return jnp.array(data, jnp.float32)


@op(
    "torch.Tensor",
    "torch.FloatTensor",
    example={"torch.Tensor()": "jnp.empty(0, jnp.float32)"},
)
def FloatTensor_of_nothing(*, device=None) -> Tensor["float"]:
    """The legacy constructor without a size: one axis of no elements."""
    return jnp.empty(0, jnp.float32)


@op(
    "torch.LongTensor",
    "torch.IntTensor",
    example={"torch.LongTensor()": "jnp.empty(0, jnp.int32)"},
)
def LongTensor_of_nothing(*, device=None) -> Tensor["int"]:
    """The legacy constructor without a size: one axis of no elements."""
    return jnp.empty(0, jnp.int32)


@op(
    "torch.Tensor",
    "torch.FloatTensor",
    example={"torch.Tensor(2, 3)": "jnp.empty((2, 3), jnp.float32)"},
)
def FloatTensor_of_size(*size: int, device=None) -> Tensor["float"]:
    """The legacy constructor with sizes."""
    return jnp.empty(size, jnp.float32)


@op(
    "torch.LongTensor",
    "torch.IntTensor",
    example={"torch.LongTensor([1, 2])": "jnp.array([1, 2], jnp.int32)"},
)
def LongTensor(data: tuple | list | Array, *, device=None) -> Tensor["int"]:
    """The legacy constructor of an integer tensor."""
    return jnp.array(data, jnp.int32)


@op(
    "torch.LongTensor",
    "torch.IntTensor",
    example={"torch.LongTensor(2, 3)": "jnp.empty((2, 3), jnp.int32)"},
)
def LongTensor_of_size(*size: int, device=None) -> Tensor["int"]:
    """The legacy constructor with sizes."""
    return jnp.empty(size, jnp.int32)


@op("torch.Tensor", "torch.FloatTensor", general=True)
def FloatTensor_of_any(data, *, device=None) -> Tensor["float"]:
    """The legacy constructor: of a number, which is a size, or of what has the values."""
    return legacy_tensor(data, jnp.float32)


@op("torch.LongTensor", "torch.IntTensor", general=True)
def LongTensor_of_any(data, *, device=None) -> Tensor["int"]:
    """The legacy constructor: of a number, which is a size, or of what has the values."""
    return legacy_tensor(data, jnp.int32)


@op("torch.DoubleTensor")
def DoubleTensor(data: tuple | list | Array, *, device=None) -> Tensor["float"]:
    """The legacy constructor of a float64 tensor; float32 without x64, as float64 is everywhere."""
    return jnp.array(data, jnp.float64)


@op("torch.DoubleTensor")
def DoubleTensor_of_nothing(*, device=None) -> Tensor["float"]:
    """The legacy constructor without a size: one axis of no elements."""
    return jnp.empty(0, jnp.float64)


@op("torch.DoubleTensor", example={"torch.DoubleTensor(2, 3)": "jnp.empty((2, 3), jnp.float64)"})
def DoubleTensor_of_size(*size: int, device=None) -> Tensor["float"]:
    """The legacy constructor with sizes."""
    return jnp.empty(size, jnp.float64)


@op("torch.DoubleTensor", general=True)
def DoubleTensor_of_any(data, *, device=None) -> Tensor["float"]:
    """The legacy constructor: of a number, which is a size, or of what has the values."""
    return legacy_tensor(data, jnp.float64)


@op("torch.BoolTensor", example={"torch.BoolTensor([True])": "jnp.array([True], jnp.bool_)"})
def BoolTensor(data: tuple | list | Array, *, device=None) -> Tensor["bool"]:
    """The legacy constructor of a boolean tensor."""
    return jnp.array(data, jnp.bool_)


@op("torch.BoolTensor")
def BoolTensor_of_nothing(*, device=None) -> Tensor["bool"]:
    """The legacy constructor without a size: one axis of no elements."""
    return jnp.empty(0, jnp.bool_)


@op("torch.BoolTensor", example={"torch.BoolTensor(2, 3)": "jnp.empty((2, 3), jnp.bool_)"})
def BoolTensor_of_size(*size: int, device=None) -> Tensor["bool"]:
    """The legacy constructor with sizes."""
    return jnp.empty(size, jnp.bool_)


@op("torch.BoolTensor", general=True)
def BoolTensor_of_any(data, *, device=None) -> Tensor["bool"]:
    """The legacy constructor: of a number, which is a size, or of what has the values."""
    return legacy_tensor(data, jnp.bool_)
