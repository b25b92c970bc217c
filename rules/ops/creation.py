"""torch functions that make tensors: constants, ranges, ``*_like``, ``new_*`` and grids.

torch infers int64 for Python integers and float32 for floats; so does JAX, in 32 bits. Devices and pinned memory
have no meaning in JAX and are dropped.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.compat.ranges import whole_linspace
from rules.registry import is_integer, is_tensor, op, sizes, surely, unsupported


@op(
    "torch.tensor",
    example={
        "torch.tensor([1.0, 2.0])": "jnp.array([1.0, 2.0])",
        "torch.tensor(3, dtype=torch.float32)": "jnp.array(3, dtype=jnp.float32)",
    },
)
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """A tensor from numbers or nested lists, copied."""
    return jnp.array(data, dtype=dtype)


@op(
    "torch.as_tensor",
    "torch.asarray",
    example={"torch.as_tensor([1, 2])": "jnp.asarray([1, 2])"},
)
def as_tensor(data, dtype=None, device=None, *, copy=None, requires_grad=False) -> Tensor:
    """A tensor from an array or numbers; never shares memory in JAX."""
    return jnp.asarray(data, dtype=dtype)


@op("torch.from_numpy", example={"torch.from_numpy(n)": "jnp.asarray(n)"})
def from_numpy(ndarray) -> Tensor:
    """A tensor with the values of a numpy array."""
    return jnp.asarray(ndarray)


@op("torch.scalar_tensor", example={"torch.scalar_tensor(2.0)": "jnp.array(2.0, jnp.float32)"})
def scalar_tensor(
    s, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A 0-d tensor, float32 unless told."""
    return jnp.array(s, jnp.float32 if dtype is None else dtype)


@op(
    "torch.zeros",
    example={
        "torch.zeros(2, 3)": "jnp.zeros((2, 3))",
        "torch.zeros((2, n), dtype=torch.long)": "jnp.zeros((2, n), dtype=jnp.int32)",
    },
)
def zeros(
    *size,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    names=None,
) -> Tensor:
    """A tensor of zeros."""
    if layout is not None:
        unsupported("a sparse layout")
    return jnp.zeros(sizes(size, True), dtype=dtype)


@op("torch.ones", example={"torch.ones(2, 3)": "jnp.ones((2, 3))"})
def ones(
    *size,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    names=None,
) -> Tensor:
    """A tensor of ones."""
    if layout is not None:
        unsupported("a sparse layout")
    return jnp.ones(sizes(size, True), dtype=dtype)


@op("torch.empty", example={"torch.empty(2, 3)": "jnp.empty((2, 3))"})
def empty(
    *size,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    memory_format=None,
    names=None,
) -> Tensor:
    """A tensor to be filled; JAX's holds zeros."""
    if layout is not None:
        unsupported("a sparse layout")
    return jnp.empty(sizes(size, True), dtype=dtype)


@op("torch.empty_permuted")
def empty_permuted(
    size,
    physical_layout,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """A tensor to be filled; the memory order is XLA's business."""
    return jnp.empty(size, dtype=dtype)


@op("torch.empty_strided")
def empty_strided(
    size,
    stride,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """A tensor to be filled; JAX arrays have no strides."""
    return jnp.empty(size, dtype=dtype)


@op(
    "torch.full",
    example={
        "torch.full((2, 3), 1.5)": "jnp.full((2, 3), 1.5)",
        "torch.full((n,), 0, dtype=torch.float32)": "jnp.full((n,), 0, dtype=jnp.float32)",
    },
)
def full(
    size,
    fill_value,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    names=None,
) -> Tensor:
    """A tensor filled with one value."""
    if layout is not None:
        unsupported("a sparse layout")
    return jnp.full(size, fill_value, dtype=dtype)


@op(
    "torch.zeros_like",
    example={
        "torch.zeros_like(x)": "jnp.zeros_like(x)",
        "torch.zeros_like(x, dtype=torch.bool)": "jnp.zeros_like(x, dtype=jnp.bool_)",
    },
)
def zeros_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    pin_memory=False,
) -> Tensor["same"]:
    """Zeros with shape and dtype of another tensor."""
    return jnp.zeros_like(input, dtype=dtype)


@op("torch.ones_like", example={"torch.ones_like(x)": "jnp.ones_like(x)"})
def ones_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    pin_memory=False,
) -> Tensor["same"]:
    """Ones with shape and dtype of another tensor."""
    return jnp.ones_like(input, dtype=dtype)


@op("torch.empty_like", example={"torch.empty_like(x)": "jnp.empty_like(x)"})
def empty_like(
    input,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    pin_memory=False,
) -> Tensor["same"]:
    """A tensor to be filled, with shape and dtype of another."""
    return jnp.empty_like(input, dtype=dtype)


@op("torch.full_like", example={"torch.full_like(x, 2)": "jnp.full_like(x, 2)"})
def full_like(
    input,
    fill_value,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    memory_format=None,
    pin_memory=False,
) -> Tensor["same"]:
    """One value with shape and dtype of another tensor."""
    return jnp.full_like(input, fill_value, dtype=dtype)


@op(
    "Tensor.new_zeros",
    example={"x.new_zeros(2, 3)": "jnp.zeros((2, 3), x.dtype)"},
)
def new_zeros(
    input,
    *size,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=False,
) -> Tensor:
    """Zeros of a new shape with the dtype of ``input``."""
    return jnp.zeros(sizes(size, True), input.dtype if dtype is None else dtype)


@op("Tensor.new_ones", example={"x.new_ones(2, 3)": "jnp.ones((2, 3), x.dtype)"})
def new_ones(
    input,
    *size,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=False,
) -> Tensor:
    """Ones of a new shape with the dtype of ``input``."""
    return jnp.ones(sizes(size, True), input.dtype if dtype is None else dtype)


@op("Tensor.new_empty", example={"x.new_empty(2, 3)": "jnp.empty((2, 3), x.dtype)"})
def new_empty(
    input,
    *size,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=False,
) -> Tensor:
    """A tensor to be filled, with the dtype of ``input``."""
    return jnp.empty(sizes(size, True), input.dtype if dtype is None else dtype)


@op("Tensor.new", example={"x.new(2, 3)": "jnp.empty((2, 3), x.dtype)"})
def new(input, *size: int, device=None) -> Tensor:
    """The legacy constructor with sizes, of the dtype of ``input``; without one, of no elements."""
    return jnp.empty(size or 0, input.dtype)


@op("Tensor.new", example={"x.new([1, 2])": "jnp.array([1, 2], x.dtype)"})
def new_with(input, data: tuple | list, *, device=None) -> Tensor:
    """The legacy constructor with values, of the dtype of ``input``."""
    return jnp.array(data, input.dtype)


@op("Tensor.new_empty_strided")
def new_empty_strided(
    input,
    size,
    stride,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=False,
) -> Tensor:
    """A tensor to be filled; JAX arrays have no strides."""
    return jnp.empty(size, input.dtype if dtype is None else dtype)


@op("Tensor.new_full", example={"x.new_full((2,), 1.5)": "jnp.full((2,), 1.5, x.dtype)"})
def new_full(
    input,
    size,
    fill_value,
    *,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=False,
) -> Tensor:
    """One value in a new shape with the dtype of ``input``."""
    return jnp.full(size, fill_value, input.dtype if dtype is None else dtype)


@op("Tensor.new_tensor", example={"x.new_tensor([1, 2])": "jnp.array([1, 2], x.dtype)"})
def new_tensor(
    input,
    data,
    *,
    dtype=None,
    device=None,
    requires_grad=False,
    layout=None,
    pin_memory=False,
) -> Tensor:
    """Values as a tensor with the dtype of ``input``."""
    return jnp.array(data, input.dtype if dtype is None else dtype)


@op(
    "torch.arange",
    example={
        "torch.arange(n)": "jnp.arange(n)",
        "torch.arange(n, dtype=torch.float32)": "jnp.arange(n, dtype=jnp.float32)",
    },
)
def arange(
    end,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """0, 1, … below ``end``."""
    if surely(isinstance(end, float)) and dtype is not None and is_integer(dtype):
        return jnp.arange(int(end), dtype=dtype)
    return jnp.arange(end, dtype=dtype)


@op("torch.arange", example={"torch.arange(1, n, 2)": "jnp.arange(1, n, 2)"})
def arange_from(
    start,
    end,
    step=1,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """``start``, ``start + step``, … below ``end``."""
    fractional = isinstance(start, float) or isinstance(end, float) or isinstance(step, float)
    if surely(fractional) and dtype is not None and is_integer(dtype):
        return jnp.arange(int(start), int(end), int(step), dtype=dtype)
    if isinstance(step, int) and step == 1:
        return jnp.arange(start, end, dtype=dtype)
    return jnp.arange(start, end, step, dtype=dtype)


@op("torch.range")
def range_(
    start=0,
    end=None,
    step=1,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor["float"]:
    """Like arange, with ``end`` included (deprecated in torch)."""
    count = int((end - start) / step) + 1
    return start + step * jnp.arange(count, dtype=jnp.float32 if dtype is None else dtype)


@op("torch.linspace", example={"torch.linspace(0, 1, n)": "jnp.linspace(0, 1, n)"})
def linspace(
    start,
    end,
    steps,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """``steps`` evenly spaced values, both ends included."""
    if dtype is not None and is_integer(dtype):
        if surely(is_tensor(start) or is_tensor(end)):
            unsupported("a linspace of integers whose ends are tensors")
        return jnp.asarray(whole_linspace(start, end, steps), dtype=dtype)
    if surely(is_tensor(start) or is_tensor(end)):  # whose gradient torch does not follow
        return lax.stop_gradient(jnp.linspace(start, end, steps, dtype=dtype))
    return jnp.linspace(start, end, steps, dtype=dtype)


@op("torch.logspace", example={"torch.logspace(0, 2, 5)": "jnp.logspace(0, 2, 5)"})
def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """Powers of ``base`` with evenly spaced exponents."""
    if dtype is not None and is_integer(dtype):
        unsupported("logspace of integers")
    if surely(is_tensor(start) or is_tensor(end)):  # whose gradient torch does not follow
        return lax.stop_gradient(jnp.logspace(start, end, steps, base=base, dtype=dtype))
    return jnp.logspace(start, end, steps, base=base, dtype=dtype)


@op("torch.eye", example={"torch.eye(n)": "jnp.eye(n)", "torch.eye(2, 3)": "jnp.eye(2, M=3)"})
def eye(
    n,
    m=None,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """Ones on the diagonal."""
    return jnp.eye(n, M=m, dtype=dtype)


@op(
    "torch.tril_indices",
    example={"torch.tril_indices(3, 3)": "jnp.stack(jnp.tril_indices(3, 0, 3))"},
)
def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None) -> Tensor["int"]:
    """Row and column indices of the lower triangle, as a (2, n) tensor."""
    return jnp.stack(jnp.tril_indices(row, offset, col))


@op(
    "torch.triu_indices",
    example={"torch.triu_indices(3, 3, 1)": "jnp.stack(jnp.triu_indices(3, 1, 3))"},
)
def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None) -> Tensor["int"]:
    """Row and column indices of the upper triangle, as a (2, n) tensor."""
    return jnp.stack(jnp.triu_indices(row, offset, col))


@op(
    "torch.complex",
    example={"torch.complex(x, y)": "lax.complex(*jnp.broadcast_arrays(x, y))"},
)
def complex(real, imag) -> Tensor["complex"]:
    """A complex tensor from its parts."""
    return lax.complex(*jnp.broadcast_arrays(real, imag))


@op("torch.polar", example={"torch.polar(x, y)": "x * jnp.exp(1j * y)"})
def polar(abs, angle) -> Tensor["complex"]:
    """A complex tensor from modulus and angle."""
    return abs * jnp.exp(1j * angle)


@op(
    "torch.meshgrid",
    example={
        'torch.meshgrid(x, y, indexing="ij")': 'jnp.meshgrid(x, y, indexing="ij")',
        "torch.meshgrid([x, y])": 'jnp.meshgrid(x, y, indexing="ij")',
    },
)
def meshgrid(*tensors, indexing="ij") -> list[Tensor]:
    """Coordinate grids; torch's default is matrix indexing, JAX's is xy."""
    if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)):
        tensors = tensors[0]
    if surely(any(t.ndim == 0 for t in tensors)):
        return jnp.meshgrid(*[t.reshape(-1) for t in tensors], indexing=indexing)
    return jnp.meshgrid(*tensors, indexing=indexing)
