"""torch.nn.init: each name with ``_`` is the new value of a tensor of the same shape and dtype.

Weights are (out, in, …) as in torch, so JAX's initialisers get ``in_axis=1, out_axis=0``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.compat.initializers import dirac, sparse
from rules.registry import op


@op(
    "torch.nn.init.uniform_",
    "torch.nn.init.uniform",
    example={
        "nn.init.uniform_(x)": "rngs.params.uniform(x.shape, x.dtype)",
        "nn.init.uniform_(x, -1., 1.)": "rngs.params.uniform(x.shape, x.dtype, -1., 1.)",
    },
)
def uniform_(tensor, a=0.0, b=1.0, generator=None, *, rngs) -> Tensor["same"]:
    """U(a, b)."""
    if a == 0 and b == 1:
        return rngs.params.uniform(tensor.shape, tensor.dtype)
    return rngs.params.uniform(tensor.shape, tensor.dtype, a, b)


@op(
    "torch.nn.init.normal_",
    "torch.nn.init.normal",
    example={"nn.init.normal_(x, std=0.02)": "0.02 * rngs.params.normal(x.shape, x.dtype)"},
)
def normal_(tensor, mean=0.0, std=1.0, generator=None, *, rngs) -> Tensor["same"]:
    """N(mean, std²)."""
    if mean == 0 and std == 1:
        return rngs.params.normal(tensor.shape, tensor.dtype)
    if mean == 0:
        return std * rngs.params.normal(tensor.shape, tensor.dtype)
    return mean + std * rngs.params.normal(tensor.shape, tensor.dtype)


@op(
    "torch.nn.init.trunc_normal_",
    example={
        "nn.init.trunc_normal_(x, std=0.02)": (
            "0.02 * rngs.params.truncated_normal(-100.0, 100.0, x.shape, x.dtype)"
        )
    },
)
def trunc_normal_(
    tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None, *, rngs
) -> Tensor["same"]:
    """N(mean, std²) cut to [a, b], which are values, not multiples of std."""
    low, high = (a - mean) / std, (b - mean) / std
    if mean == 0 and std == 1:
        return rngs.params.truncated_normal(low, high, tensor.shape, tensor.dtype)
    if mean == 0:
        return std * rngs.params.truncated_normal(low, high, tensor.shape, tensor.dtype)
    return mean + std * rngs.params.truncated_normal(low, high, tensor.shape, tensor.dtype)


@op(
    "torch.nn.init.constant_",
    "torch.nn.init.constant",
    example={"nn.init.constant_(x, 0.5)": "jnp.full_like(x, 0.5)"},
)
def constant_(tensor, val) -> Tensor["same"]:
    """The constant ``val``."""
    return jnp.full_like(tensor, val)


@op("torch.nn.init.ones_", example={"nn.init.ones_(x)": "jnp.ones_like(x)"})
def ones_(tensor) -> Tensor["same"]:
    """Ones."""
    return jnp.ones_like(tensor)


@op("torch.nn.init.zeros_", example={"nn.init.zeros_(x)": "jnp.zeros_like(x)"})
def zeros_(tensor) -> Tensor["same"]:
    """Zeros."""
    return jnp.zeros_like(tensor)


@op(
    "torch.nn.init.eye_",
    "torch.nn.init.eye",
    example={"nn.init.eye_(x)": "jnp.eye(*x.shape, dtype=x.dtype)"},
)
def eye_(tensor) -> Tensor["same"]:
    """The identity matrix."""
    return jnp.eye(*tensor.shape, dtype=tensor.dtype)


@op(
    "torch.nn.init.dirac_",
    "torch.nn.init.dirac",
    example={"nn.init.dirac_(x)": "dirac(x.shape, x.dtype)"},
)
def dirac_(tensor, groups=1) -> Tensor["same"]:
    """The convolution kernel that copies its input channels."""
    return dirac(tensor.shape, tensor.dtype, groups=groups)


@op(
    "torch.nn.init.sparse_",
    "torch.nn.init.sparse",
    example={
        "nn.init.sparse_(x, 0.1)": "sparse(x.shape, x.dtype, 0.1, rngs=rngs)",
    },
)
def sparse_(tensor, sparsity, std=0.01, generator=None, *, rngs) -> Tensor["same"]:
    """N(0, std²) with a fraction of each column set to zero."""
    return sparse(tensor.shape, tensor.dtype, sparsity, std=std, rngs=rngs)


@op(
    "torch.nn.init.orthogonal_",
    "torch.nn.init.orthogonal",
    example={
        "nn.init.orthogonal_(x)": (
            "jax.nn.initializers.orthogonal(column_axis=0)(rngs.params(), x.shape, x.dtype)"
        )
    },
)
def orthogonal_(tensor, gain=1.0, generator=None, *, rngs) -> Tensor["same"]:
    """A random (semi-)orthogonal matrix of the first axis against all others."""
    return jax.nn.initializers.orthogonal(scale=gain, column_axis=0)(
        rngs.params(), tensor.shape, tensor.dtype
    )


@op(
    "torch.nn.init.xavier_uniform_",
    "torch.nn.init.xavier_uniform",
    example={
        "nn.init.xavier_uniform_(x)": (
            "jax.nn.initializers.glorot_uniform(in_axis=1, out_axis=0)(rngs.params(), x.shape, x.dtype)"
        )
    },
)
def xavier_uniform_(tensor, gain=1.0, generator=None, *, rngs) -> Tensor["same"]:
    """Uniform of variance gain² · 2 / (fan_in + fan_out)."""
    if gain == 1:
        return jax.nn.initializers.glorot_uniform(in_axis=1, out_axis=0)(
            rngs.params(), tensor.shape, tensor.dtype
        )
    return jax.nn.initializers.variance_scaling(
        gain**2, "fan_avg", "uniform", in_axis=1, out_axis=0
    )(rngs.params(), tensor.shape, tensor.dtype)


@op(
    "torch.nn.init.xavier_normal_",
    "torch.nn.init.xavier_normal",
    example={
        "nn.init.xavier_normal_(x)": (
            "jax.nn.initializers.variance_scaling(1.0, 'fan_avg', 'normal', in_axis=1, out_axis=0)"
            "(rngs.params(), x.shape, x.dtype)"
        )
    },
)
def xavier_normal_(tensor, gain=1.0, generator=None, *, rngs) -> Tensor["same"]:
    """Normal of variance gain² · 2 / (fan_in + fan_out); JAX's glorot_normal is a truncated one."""
    return jax.nn.initializers.variance_scaling(
        gain**2, "fan_avg", "normal", in_axis=1, out_axis=0
    )(rngs.params(), tensor.shape, tensor.dtype)


@op(
    "torch.nn.init.kaiming_uniform_",
    "torch.nn.init.kaiming_uniform",
    example={
        "nn.init.kaiming_uniform_(x, nonlinearity='relu')": (
            "jax.nn.initializers.variance_scaling(2.0, 'fan_in', 'uniform', in_axis=1, out_axis=0)"
            "(rngs.params(), x.shape, x.dtype)"
        )
    },
)
def kaiming_uniform_(
    tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None, *, rngs
) -> Tensor["same"]:
    """Uniform of variance gain² / fan, the gain that of ``nonlinearity``."""
    if nonlinearity == "leaky_relu":
        square = 2 / (1 + a**2)
    elif nonlinearity == "relu":
        square = 2.0
    elif nonlinearity == "tanh":
        square = 25 / 9
    elif nonlinearity == "selu":
        square = 9 / 16
    else:
        square = 1.0
    return jax.nn.initializers.variance_scaling(square, mode, "uniform", in_axis=1, out_axis=0)(
        rngs.params(), tensor.shape, tensor.dtype
    )


@op(
    "torch.nn.init.kaiming_normal_",
    "torch.nn.init.kaiming_normal",
    example={
        "nn.init.kaiming_normal_(x, mode='fan_out', nonlinearity='relu')": (
            "jax.nn.initializers.variance_scaling(2.0, 'fan_out', 'normal', in_axis=1, out_axis=0)"
            "(rngs.params(), x.shape, x.dtype)"
        )
    },
)
def kaiming_normal_(
    tensor, a=0, mode="fan_in", nonlinearity="leaky_relu", generator=None, *, rngs
) -> Tensor["same"]:
    """Normal of variance gain² / fan; JAX's he_normal is a truncated one."""
    if nonlinearity == "leaky_relu":
        square = 2 / (1 + a**2)
    elif nonlinearity == "relu":
        square = 2.0
    elif nonlinearity == "tanh":
        square = 25 / 9
    elif nonlinearity == "selu":
        square = 9 / 16
    else:
        square = 1.0
    return jax.nn.initializers.variance_scaling(square, mode, "normal", in_axis=1, out_axis=0)(
        rngs.params(), tensor.shape, tensor.dtype
    )


@op(
    "torch.nn.init.calculate_gain",
    example={"nn.init.calculate_gain('relu')": "1.4142135623730951"},
)
def calculate_gain(nonlinearity, param=None) -> Float:
    """The recommended gain of a nonlinearity."""
    if nonlinearity == "relu":
        return 2**0.5
    if nonlinearity == "tanh":
        return 5 / 3
    if nonlinearity == "selu":
        return 0.75
    if nonlinearity == "leaky_relu":
        if param is None:
            return 1.4141428569978354
        return (2 / (1 + param**2)) ** 0.5
    return 1


@op("torch.nn.init._calculate_fan_in_and_fan_out")
def _calculate_fan_in_and_fan_out(tensor) -> tuple[Int, Int]:
    """Inputs and outputs of a weight (out, in, *kernel), each times the size of the kernel."""
    return tensor.shape[1] * tensor[0, 0].size, tensor.shape[0] * tensor[0, 0].size


@op("torch.nn.init._calculate_correct_fan")
def _calculate_correct_fan(tensor, mode) -> Int:
    """One of the two fans by name."""
    fan = tensor.shape[1] if mode.lower() == "fan_in" else tensor.shape[0]
    return fan * tensor[0, 0].size
