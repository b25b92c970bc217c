"""Changes of dtype and device. Devices have no meaning in a JAX program; long is int32 there."""

from __future__ import annotations

from builtins import type as Class

import jax.numpy as jnp
import numpy as np
from jax import lax

from rules.registry import op, sizes, unsupported


@op("Tensor.to", example={"x.to(torch.float16)": "x.astype(jnp.float16)"})
def to_dtype(input, dtype: DType, non_blocking=False, copy=False, *, memory_format=None) -> Tensor:
    """Another dtype."""
    return input.astype(dtype)


@op("Tensor.to", example={"x.to(y)": "x.astype(y.dtype)"})
def to_other(input, other: Tensor, non_blocking=False, copy=False, *, memory_format=None) -> Tensor:
    """The dtype of another tensor."""
    return input.astype(other.dtype)


@op(
    "Tensor.to",
    example={
        'x.to("cuda")': "x",
        "x.to(x.device)": "x",
        'x.to("cuda", torch.float16)': "x.astype(jnp.float16)",
        "x.to(device=None, dtype=torch.float16)": "x.astype(jnp.float16)",
    },
)
def to_device(
    input,
    device: Device | None = None,
    dtype=None,
    non_blocking=False,
    copy=False,
    *,
    memory_format=None,
) -> Tensor:
    """Another device, which JAX chooses by itself, and maybe another dtype."""
    if dtype is None:
        return input
    return input.astype(dtype)


@op("Tensor.to", general=True)
def to(
    input,
    *args,
    device=None,
    dtype=None,
    other=None,
    non_blocking=False,
    copy=False,
    memory_format=None,
) -> Tensor:
    """The dtype that is given, that of a tensor that is given; a device, which JAX chooses by itself, says nothing."""
    for given in (*args, dtype, other):
        if isinstance(given, (Class, np.dtype)):
            return input.astype(given)
        if hasattr(given, "astype"):
            return input.astype(given.dtype)
    return input


@op("Tensor.type", example={"x.type(torch.float16)": "x.astype(jnp.float16)"})
def type(input, dtype: DType, non_blocking=False) -> Tensor:
    """Another dtype."""
    return input.astype(dtype)


@op("Tensor.type", example={"x.type()": "x.dtype"})
def type_of(input) -> DType:
    """torch gives its name; what may be done with it in a conversion is to compare it and to hand it on."""
    return input.dtype


@op("Tensor.type")
def type_name(input, dtype=None, non_blocking=False) -> Tensor:
    """torch's name of the type, or another type by name."""
    return unsupported("Tensor.type with a type name; use a dtype")


@op("Tensor.type_as", example={"x.type_as(y)": "x.astype(y.dtype)"})
def type_as(input, other) -> Tensor:
    """The dtype of another tensor."""
    return input.astype(other.dtype)


@op("Tensor.float", example={"i.float()": "i.astype(jnp.float32)"})
def float(input, memory_format=None) -> Tensor["float"]:
    """float32."""
    return input.astype(jnp.float32)


@op("Tensor.double", example={"x.double()": "x.astype(jnp.float64)"})
def double(input, memory_format=None) -> Tensor["float"]:
    """float64, which needs JAX's x64 mode."""
    return input.astype(jnp.float64)


@op("Tensor.half", example={"x.half()": "x.astype(jnp.float16)"})
def half(input, memory_format=None) -> Tensor["float"]:
    """float16."""
    return input.astype(jnp.float16)


@op("Tensor.bfloat16", example={"x.bfloat16()": "x.astype(jnp.bfloat16)"})
def bfloat16(input, memory_format=None) -> Tensor["float"]:
    """bfloat16."""
    return input.astype(jnp.bfloat16)


@op("Tensor.cfloat", example={"x.cfloat()": "x.astype(jnp.complex64)"})
def cfloat(input, memory_format=None) -> Tensor["complex"]:
    """complex64."""
    return input.astype(jnp.complex64)


@op("Tensor.cdouble", example={"x.cdouble()": "x.astype(jnp.complex128)"})
def cdouble(input, memory_format=None) -> Tensor["complex"]:
    """complex128, which needs JAX's x64 mode."""
    return input.astype(jnp.complex128)


@op("Tensor.chalf")
def chalf(input, memory_format=None) -> Tensor["complex"]:
    """Half-precision complex numbers."""
    return unsupported("half-precision complex numbers do not exist in JAX")


@op("Tensor.long", example={"x.long()": "x.astype(jnp.int32)"})
def long(input, memory_format=None) -> Tensor["int"]:
    """The integer type: int64 in torch, int32 in JAX unless x64 mode is on."""
    return input.astype(jnp.int32)


@op("Tensor.int", example={"x.int()": "x.astype(jnp.int32)"})
def int(input, memory_format=None) -> Tensor["int"]:
    """int32."""
    return input.astype(jnp.int32)


@op("Tensor.short", example={"x.short()": "x.astype(jnp.int16)"})
def short(input, memory_format=None) -> Tensor["int"]:
    """int16."""
    return input.astype(jnp.int16)


@op("Tensor.char", example={"x.char()": "x.astype(jnp.int8)"})
def char(input, memory_format=None) -> Tensor["int"]:
    """int8."""
    return input.astype(jnp.int8)


@op("Tensor.byte", example={"x.byte()": "x.astype(jnp.uint8)"})
def byte(input, memory_format=None) -> Tensor["int"]:
    """uint8."""
    return input.astype(jnp.uint8)


@op("Tensor.bool", example={"i.bool()": "i.astype(jnp.bool_)"})
def bool(input, memory_format=None) -> Tensor["bool"]:
    """Whether each element is nonzero."""
    return input.astype(jnp.bool_)


@op(
    "torch.clone",
    "Tensor.clone",
    example={"x.clone()": "x", "torch.clone(x)": "x"},
)
def clone(input, *, memory_format=None) -> Self:
    """The tensor itself: JAX arrays never change."""
    return input


@op("Tensor.contiguous", example={"x.contiguous()": "x"})
def contiguous(input, memory_format=None) -> Self:
    """The tensor itself: memory order is XLA's business."""
    return input


@op("Tensor.cpu", example={"x.cpu()": "x"})
def cpu(input, memory_format=None) -> Self:
    """The tensor itself."""
    return input


@op("Tensor.cuda", "Tensor.pin_memory", "Tensor.xpu", example={"x.cuda()": "x"})
def cuda(input, device=None, non_blocking=False, memory_format=None) -> Self:
    """The tensor itself."""
    return input


@op(
    "torch.detach",
    "torch.detach_copy",
    "Tensor.detach",
    "Tensor.data",
    example={"x.detach()": "lax.stop_gradient(x)", "x.data": "lax.stop_gradient(x)"},
)
def detach(input) -> Self:
    """The values, without a gradient."""
    return lax.stop_gradient(input)


@op("torch.alias_copy", example={"torch.alias_copy(x)": "x"})
def alias_copy(input) -> Self:
    """The tensor itself."""
    return input


@op("Tensor.requires_grad_", example={"x.requires_grad_()": "x"})
def requires_grad_(input, requires_grad=True) -> Self:
    """The tensor itself: what is differentiated is chosen by jax.grad."""
    if not requires_grad:
        return lax.stop_gradient(input)
    return input


@op("Tensor.retain_grad", "Tensor.share_memory_", example={"x.share_memory_()": "x"})
def retain_grad(input) -> Self:
    """The tensor itself."""
    return input


@op("Tensor.numpy", "Tensor.__array__", example={"x.numpy()": "np.asarray(x)"})
def numpy(input, *, force=False):
    """A numpy array."""
    return np.asarray(input)


@op("torch.fill", "torch.fill_", "Tensor.fill_")
def fill(input, value) -> Self:
    """All elements replaced by one value."""
    return jnp.full_like(input, value)


@op("torch.zero_", "Tensor.zero_")
def zero_(input) -> Self:
    """All elements replaced by zero."""
    return jnp.zeros_like(input)


@op("Tensor.copy_")
def copy_(input, src, non_blocking=False) -> Self:
    """The values of another tensor in this one's shape and dtype."""
    return jnp.broadcast_to(src, input.shape).astype(input.dtype)


@op("Tensor.resize_")
def resize_(input, *size, memory_format=None) -> Self:
    """The elements in another shape; those that torch leaves undefined repeat."""
    return jnp.resize(input, sizes(size, True))


@op("torch.resize_as_", "Tensor.resize_as_")
def resize_as_(input, the_template, *, memory_format=None) -> Self:
    """The elements in the shape of another tensor."""
    return jnp.resize(input, the_template.shape)
