"""Linear layers: torch.nn.Linear, Bilinear, Identity."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.layer_functions import identity
from rules.compat.linear import Bilinear, LazyLinear, Linear
from rules.registry import layer


@layer(
    "torch.nn.Linear",
    "torch.nn.modules.linear.NonDynamicallyQuantizableLinear",
    weights={"weight": "kernel.T", "bias": "bias"},
    example={
        "nn.Linear(8, 4)": "Linear(8, 4, rngs=rngs)",
        "nn.Linear(8, 4, bias=False)": "Linear(8, 4, use_bias=False, rngs=rngs)",
    },
)
def linear_layer(in_features, out_features, bias=True, device=None, dtype=None, *, rngs) -> Linear:
    """``nnx.Linear`` stores the weight transposed; torch draws kernel and bias from U(±1/√in_features)."""
    return Linear(
        in_features, out_features, use_bias=bias, param_dtype=dtype or jnp.float32, rngs=rngs
    )


@layer("torch.nn.LazyLinear", weights={"weight": "kernel.T", "bias": "bias"})
def lazy_linear_layer(out_features, bias=True, device=None, dtype=None, *, rngs) -> LazyLinear:
    """Built on the first call, from the last axis of its input."""
    return LazyLinear(out_features, use_bias=bias, param_dtype=dtype or jnp.float32, rngs=rngs)


@layer("torch.nn.Bilinear", example={"nn.Bilinear(3, 4, 5)": "Bilinear(3, 4, 5, rngs=rngs)"})
def bilinear_layer(
    in1_features, in2_features, out_features, bias=True, device=None, dtype=None, *, rngs
) -> Bilinear:
    """x1ᵀ A x2 + b."""
    return Bilinear(in1_features, in2_features, out_features, bias=bias, dtype=dtype, rngs=rngs)


@layer("torch.nn.Identity", example={"nn.Identity()": "identity"})
def Identity(*args, rngs=None, **kwargs) -> Callable:
    """Takes and ignores any argument."""
    return identity
