"""Activations: a function, or a ``functools.partial`` of one, stands for the layer."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from rules.compat.activation_layers import PReLU, RReLU
from rules.compat.activations import (
    elu,
    hardshrink,
    hardtanh,
    leaky_relu,
    softplus,
    softshrink,
    threshold,
)
from rules.compat.layer_functions import log_softmax, softmax, softmin, tanhshrink
from rules.registry import layer


@layer("torch.nn.ReLU", example={"nn.ReLU(inplace=True)": "jax.nn.relu"})
def ReLU(inplace=False, *, rngs=None) -> Callable:
    """max(x, 0)."""
    return jax.nn.relu


@layer("torch.nn.ReLU6", example={"nn.ReLU6()": "jax.nn.relu6"})
def ReLU6(inplace=False, *, rngs=None) -> Callable:
    """min(max(x, 0), 6)."""
    return jax.nn.relu6


@layer(
    "torch.nn.LeakyReLU",
    example={"nn.LeakyReLU(0.2)": "functools.partial(leaky_relu, negative_slope=0.2)"},
)
def LeakyReLU(negative_slope=0.01, inplace=False, *, rngs=None) -> Callable:
    """The slope at 0 is ``negative_slope``; in JAX it is 1."""
    return functools.partial(leaky_relu, negative_slope=negative_slope)


@layer("torch.nn.PReLU", example={"nn.PReLU()": "PReLU(1, rngs=rngs)"})
def prelu_layer(num_parameters=1, init=0.25, device=None, dtype=None, *, rngs) -> PReLU:
    """A learned slope for all, or one per channel."""
    return PReLU(num_parameters, init=init, dtype=dtype, rngs=rngs)


@layer("torch.nn.RReLU")
def rrelu_layer(lower=1 / 8, upper=1 / 3, inplace=False, *, rngs) -> RReLU:
    """A slope drawn from U(lower, upper) in training, their mean in evaluation."""
    return RReLU(lower=lower, upper=upper, rngs=rngs)


@layer(
    "torch.nn.ELU",
    example={
        "nn.ELU()": "jax.nn.elu",
        "nn.ELU(0.5)": "functools.partial(jax.nn.elu, alpha=0.5)",
    },
)
def ELU(alpha=1.0, inplace=False, *, rngs=None) -> Callable:
    """x where x > 0, else alpha · (exp(x) - 1)."""
    return functools.partial(jax.nn.elu, alpha=alpha)


@layer("torch.nn.CELU", example={"nn.CELU()": "jax.nn.elu"})
def CELU(alpha=1.0, inplace=False, *, rngs=None) -> Callable:
    """max(x, 0) + min(alpha · (exp(x / alpha) - 1), 0)."""
    if alpha == 1:
        return jax.nn.elu
    return functools.partial(elu, alpha=alpha, input_scale=1 / alpha)


@layer("torch.nn.SELU", example={"nn.SELU()": "jax.nn.selu"})
def SELU(inplace=False, *, rngs=None) -> Callable:
    """Scaled ELU."""
    return jax.nn.selu


@layer(
    "torch.nn.GELU",
    example={
        "nn.GELU()": "functools.partial(jax.nn.gelu, approximate=False)",
        "nn.GELU(approximate='tanh')": "jax.nn.gelu",
    },
)
def GELU(approximate="none", *, rngs=None) -> Callable:
    """Exact by default, where JAX approximates by tanh."""
    return functools.partial(jax.nn.gelu, approximate=approximate == "tanh")


@layer("torch.nn.GLU", example={"nn.GLU(1)": "functools.partial(jax.nn.glu, axis=1)"})
def GLU(dim=-1, *, rngs=None) -> Callable:
    """First half of the axis times σ(second half)."""
    return functools.partial(jax.nn.glu, axis=dim)


@layer("torch.nn.SiLU", example={"nn.SiLU()": "jax.nn.silu"})
def SiLU(inplace=False, *, rngs=None) -> Callable:
    """x · σ(x)."""
    return jax.nn.silu


@layer("torch.nn.Mish", example={"nn.Mish()": "jax.nn.mish"})
def Mish(inplace=False, *, rngs=None) -> Callable:
    """x · tanh(softplus(x))."""
    return jax.nn.mish


@layer("torch.nn.Sigmoid", example={"nn.Sigmoid()": "jax.nn.sigmoid"})
def Sigmoid(*, rngs=None) -> Callable:
    """1 / (1 + exp(-x))."""
    return jax.nn.sigmoid


@layer("torch.nn.LogSigmoid", example={"nn.LogSigmoid()": "jax.nn.log_sigmoid"})
def LogSigmoid(*, rngs=None) -> Callable:
    """log σ(x)."""
    return jax.nn.log_sigmoid


@layer("torch.nn.Hardsigmoid", example={"nn.Hardsigmoid()": "jax.nn.hard_sigmoid"})
def Hardsigmoid(inplace=False, *, rngs=None) -> Callable:
    """clip(x / 6 + 1/2, 0, 1)."""
    return jax.nn.hard_sigmoid


@layer("torch.nn.Hardswish", example={"nn.Hardswish()": "jax.nn.hard_silu"})
def Hardswish(inplace=False, *, rngs=None) -> Callable:
    """x · hardsigmoid(x)."""
    return jax.nn.hard_silu


@layer("torch.nn.Tanh", example={"nn.Tanh()": "jnp.tanh"})
def Tanh(*, rngs=None) -> Callable:
    """Hyperbolic tangent."""
    return jnp.tanh


@layer("torch.nn.Tanhshrink", example={"nn.Tanhshrink()": "tanhshrink"})
def Tanhshrink(*, rngs=None) -> Callable:
    """x - tanh(x)."""
    return tanhshrink


@layer(
    "torch.nn.Hardtanh",
    example={"nn.Hardtanh(-2.0, 2.0)": "functools.partial(hardtanh, min_val=-2.0, max_val=2.0)"},
)
def Hardtanh(
    min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None, *, rngs=None
) -> Callable:
    """clip(x, min_val, max_val), with slope 0 at the ends."""
    return functools.partial(
        hardtanh,
        min_val=min_val if min_value is None else min_value,
        max_val=max_val if max_value is None else max_value,
    )


@layer("torch.nn.Hardshrink")
def Hardshrink(lambd=0.5, *, rngs=None) -> Callable:
    """x where |x| > lambd, else 0."""
    return functools.partial(hardshrink, lambd=lambd)


@layer("torch.nn.Softshrink")
def Softshrink(lambd=0.5, *, rngs=None) -> Callable:
    """x moved towards 0 by lambd, 0 within it."""
    return functools.partial(softshrink, lambd=lambd)


@layer(
    "torch.nn.Softplus",
    example={
        "nn.Softplus()": "jax.nn.softplus",
        "nn.Softplus(beta=2)": "functools.partial(softplus, beta=2)",
    },
)
def Softplus(beta=1.0, threshold=20.0, *, rngs=None) -> Callable:
    """log(1 + exp(beta · x)) / beta, linear above the threshold."""
    if beta == 1 and threshold == 20:
        return jax.nn.softplus
    return functools.partial(softplus, beta=beta, threshold=threshold)


@layer("torch.nn.Softsign", example={"nn.Softsign()": "jax.nn.soft_sign"})
def Softsign(*, rngs=None) -> Callable:
    """x / (1 + |x|)."""
    return jax.nn.soft_sign


@layer("torch.nn.Threshold")
def Threshold(threshold_, value, inplace=False, *, rngs=None) -> Callable:
    """x where x > threshold, else value."""
    return functools.partial(threshold, threshold=threshold_, value=value)


@layer("torch.nn.Softmax", example={"nn.Softmax(dim=-1)": "jax.nn.softmax"})
def Softmax(dim=None, *, rngs=None) -> Callable:
    """Without ``dim`` torch takes axis 0 for rank 0, 1 and 3, else 1."""
    if dim is None:
        return softmax
    return functools.partial(jax.nn.softmax, axis=dim)


@layer(
    "torch.nn.Softmax2d", example={"nn.Softmax2d()": "functools.partial(jax.nn.softmax, axis=-3)"}
)
def Softmax2d(*, rngs=None) -> Callable:
    """Over the channels of (N, C, H, W) or (C, H, W)."""
    return functools.partial(jax.nn.softmax, axis=-3)


@layer("torch.nn.LogSoftmax", example={"nn.LogSoftmax(dim=-1)": "jax.nn.log_softmax"})
def LogSoftmax(dim=None, *, rngs=None) -> Callable:
    """Without ``dim`` torch takes axis 0 for rank 0, 1 and 3, else 1."""
    if dim is None:
        return log_softmax
    return functools.partial(jax.nn.log_softmax, axis=dim)


@layer("torch.nn.Softmin")
def Softmin(dim=None, *, rngs=None) -> Callable:
    """softmax of -x."""
    return functools.partial(softmin, axis=dim)
