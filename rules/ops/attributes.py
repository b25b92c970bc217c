"""What a tensor says of itself: shape, dtype, device, and its values as Python numbers."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.registry import op, unsupported


@op("Tensor.shape", example={"x.shape": "x.shape"})
def shape(input) -> Shape:
    """The sizes of all axes."""
    return input.shape


@op("Tensor.size", example={"x.size()": "x.shape", "x.size(0)": "x.shape[0]"})
def size(input, dim=None) -> Shape:
    """The sizes of all axes, or of one."""
    if dim is None:
        return input.shape
    return input.shape[dim]


@op(
    "Tensor.ndim",
    "Tensor.dim",
    "Tensor.ndimension",
    example={"x.dim()": "x.ndim", "x.ndim": "x.ndim"},
)
def ndim(input) -> Int:
    """The number of axes."""
    return input.ndim


@op("torch.numel", "Tensor.numel", "Tensor.nelement", example={"x.numel()": "x.size"})
def numel(input) -> Int:
    """The number of elements."""
    return input.size


@op("Tensor.__len__", example={"len(x)": "len(x)"})
def length(input) -> Int:
    """The size of the first axis."""
    return len(input)


@op("Tensor.dtype", example={"x.dtype": "x.dtype"})
def dtype(input) -> DType:
    """The dtype."""
    return input.dtype


@op("Tensor.device", example={"x.device": "None"})
def device(input) -> Device:
    """Devices are JAX's business: nothing takes one in converted code."""
    return None


@op("Tensor.element_size", "Tensor.itemsize", example={"x.element_size()": "x.dtype.itemsize"})
def element_size(input) -> Int:
    """Bytes of an element."""
    return input.dtype.itemsize


@op("Tensor.nbytes", example={"x.nbytes": "x.nbytes"})
def nbytes(input) -> Int:
    """Bytes of all elements."""
    return input.nbytes


@op(
    "Tensor.is_cuda",
    "Tensor.is_sparse",
    "Tensor.is_quantized",
    "Tensor.is_mps",
    "Tensor.is_meta",
    "Tensor.is_mkldnn",
    "Tensor.is_nested",
    "Tensor.is_conj",
    "torch.is_conj",
    "Tensor.is_neg",
    "torch.is_neg",
    example={"x.is_cuda": "False"},
)
def is_cuda(input) -> Bool:
    """What a JAX array never is."""
    return False


@op("Tensor.is_contiguous", example={"x if x.is_contiguous() else x.contiguous()": "x"})
def is_contiguous(input, memory_format=None) -> Bool:
    """JAX arrays have no strides; the converter asks that both answers lead to the same numbers."""
    return True


@op(
    "torch.is_floating_point",
    "Tensor.is_floating_point",
    example={"x.is_floating_point()": "jnp.issubdtype(x.dtype, jnp.floating)"},
)
def is_floating_point(input) -> Bool:
    """Whether the dtype is a real floating one."""
    return jnp.issubdtype(input.dtype, jnp.floating)


@op(
    "torch.is_complex",
    "Tensor.is_complex",
    example={"x.is_complex()": "jnp.iscomplexobj(x)"},
)
def is_complex(input) -> Bool:
    """Whether the dtype is complex."""
    return jnp.iscomplexobj(input)


@op("Tensor.is_signed")
def is_signed(input) -> Bool:
    """Whether the dtype has negative numbers."""
    return input.dtype != jnp.bool_ and not jnp.issubdtype(input.dtype, jnp.unsignedinteger)


@op("torch.is_tensor", example={"torch.is_tensor(x)": "isinstance(x, jax.Array)"})
def is_tensor(obj) -> Bool:
    """Whether an object is an array."""
    return isinstance(obj, jax.Array)


@op("torch.is_same_size", example={"torch.is_same_size(x, y)": "x.shape == y.shape"})
def is_same_size(input, other) -> Bool:
    """Whether two shapes are equal."""
    return input.shape == other.shape


@op("Tensor.is_same_size", example={"x.is_same_size(y)": "x.shape == y.shape"})
def is_same_size_method(input, other) -> Bool:
    """Whether two shapes are equal."""
    return input.shape == other.shape


@op("torch.result_type", example={"torch.result_type(x, 1)": "jnp.result_type(x, 1)"})
def result_type(tensor1, tensor2) -> DType:
    """The dtype of an operation on both."""
    return jnp.result_type(tensor1, tensor2)


@op(
    "torch.promote_types",
    example={
        "torch.promote_types(torch.float16, torch.float32)": "jnp.promote_types(jnp.float16, jnp.float32)"
    },
)
def promote_types(type1, type2) -> DType:
    """The smallest dtype that holds both."""
    return jnp.promote_types(type1, type2)


@op("torch.finfo", example={"torch.finfo(torch.float32).min": "jnp.finfo(jnp.float32).min"})
def finfo(type=None):
    """Limits of a floating dtype, float32 unless told."""
    return jnp.finfo(jnp.float32 if type is None else type)


@op("torch.iinfo", example={"torch.iinfo(torch.int32).max": "jnp.iinfo(jnp.int32).max"})
def iinfo(type):
    """Limits of an integer dtype."""
    return jnp.iinfo(type)


@op("torch.get_default_dtype", example={"torch.get_default_dtype()": "jnp.float32"})
def get_default_dtype() -> DType:
    """The dtype of new floating tensors."""
    return jnp.float32


@op("Tensor.item", "Tensor.__float__", "Tensor.__int__", "Tensor.__bool__", "Tensor.__index__")
def item(input):
    """A Python number: its value is not known while a program is traced."""
    return unsupported(
        "a Python number from a tensor: not known under jit; keep it a 0-d array, or use jnp.where or lax.cond"
    )


@op("Tensor.tolist")
def tolist(input):
    """Nested lists of Python numbers, not known while a program is traced."""
    return unsupported("tolist(): values are not known under jit; keep the array")


@op(
    "Tensor.stride",
    "Tensor.storage_offset",
    "Tensor.data_ptr",
    "Tensor.storage",
    "Tensor.untyped_storage",
)
def stride(input, dim=None):
    """Memory layout, which JAX arrays do not show."""
    return unsupported("memory layout: JAX arrays have no strides and no address")


@op("Tensor.grad", "Tensor.requires_grad", "Tensor.is_leaf", "Tensor.grad_fn")
def grad(input):
    """Autograd state, which JAX arrays do not have."""
    return unsupported("autograd state of a tensor: jax.grad differentiates functions")


@op("Tensor.backward", "Tensor.register_hook", "torch.autograd.backward")
def backward(input, *args, **kwargs):
    """Reverse-mode differentiation by side effect."""
    return unsupported("backward() and hooks: differentiate the loss function with jax.grad")
