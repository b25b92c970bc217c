"""torch.nn.functional, activation functions.

``jax.nn`` has most of them. What differs: ``gelu`` is exact by default in torch; ``leaky_relu``, ``hardtanh`` and
their kin have another slope exactly where they bend.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from rules.compat.activations import (
    elu,
    gumbel_softmax,
    hardshrink,
    hardtanh,
    leaky_relu,
    prelu,
    rrelu,
    softplus,
    softshrink,
)
from rules.registry import axes, is_bool, is_integer, op, surely


@op(
    "torch.nn.functional.relu",
    "torch.relu",
    "Tensor.relu",
    example={"F.relu(x)": "jax.nn.relu(x)", "x.relu()": "jax.nn.relu(x)"},
)
def f_relu(input, inplace=False) -> Tensor["same"]:
    """max(x, 0), slope 0 at 0."""
    return jax.nn.relu(input)


@op("torch.nn.functional.relu6", example={"F.relu6(x)": "jax.nn.relu6(x)"})
def f_relu6(input, inplace=False) -> Tensor["same"]:
    """min(max(x, 0), 6)."""
    if surely(is_integer(input)):
        return jnp.clip(input, 0, 6)
    return jax.nn.relu6(input)


@op(
    "torch.nn.functional.gelu",
    example={
        "F.gelu(x)": "jax.nn.gelu(x, approximate=False)",
        "F.gelu(x, approximate='tanh')": "jax.nn.gelu(x)",
    },
)
def f_gelu(input, *, approximate="none") -> Tensor["same"]:
    """x · Φ(x); exact by default, where JAX approximates by tanh."""
    return jax.nn.gelu(input, approximate=approximate == "tanh")


@op("torch.nn.functional.silu", example={"F.silu(x)": "jax.nn.silu(x)"})
def f_silu(input, inplace=False) -> Tensor["same"]:
    """x · σ(x)."""
    return jax.nn.silu(input)


@op("torch.nn.functional.mish", example={"F.mish(x)": "jax.nn.mish(x)"})
def f_mish(input, inplace=False) -> Tensor["same"]:
    """x · tanh(softplus(x))."""
    return jax.nn.mish(input)


@op("torch.nn.functional.sigmoid", example={"F.sigmoid(x)": "jax.nn.sigmoid(x)"})
def f_sigmoid(input) -> Tensor["float"]:
    """1 / (1 + exp(-x))."""
    if surely(is_integer(input) or is_bool(input)):
        return jax.nn.sigmoid(input.astype(jnp.float32))
    return jax.nn.sigmoid(input)


@op("torch.nn.functional.tanh", example={"F.tanh(x)": "jnp.tanh(x)"})
def f_tanh(input) -> Tensor["float"]:
    """Hyperbolic tangent."""
    return jnp.tanh(input)


@op("torch.nn.functional.logsigmoid", example={"F.logsigmoid(x)": "jax.nn.log_sigmoid(x)"})
def f_logsigmoid(input) -> Tensor["same"]:
    """log σ(x)."""
    return jax.nn.log_sigmoid(input)


@op("torch.nn.functional.hardsigmoid", example={"F.hardsigmoid(x)": "jax.nn.hard_sigmoid(x)"})
def f_hardsigmoid(input, inplace=False) -> Tensor["same"]:
    """clip(x / 6 + 1/2, 0, 1)."""
    return jax.nn.hard_sigmoid(input)


@op("torch.nn.functional.hardswish", example={"F.hardswish(x)": "jax.nn.hard_silu(x)"})
def f_hardswish(input, inplace=False) -> Tensor["same"]:
    """x · hardsigmoid(x)."""
    return jax.nn.hard_silu(input)


@op(
    "torch.nn.functional.hardtanh",
    example={"F.hardtanh(x, -2., 2.)": "hardtanh(x, min_val=-2., max_val=2.)"},
)
def f_hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False) -> Tensor["same"]:
    """clip(x, min_val, max_val); JAX's slope at the ends is 1, torch's is 0."""
    return hardtanh(input, min_val=min_val, max_val=max_val)


@op(
    "torch.nn.functional.leaky_relu",
    example={"F.leaky_relu(x, 0.2)": "leaky_relu(x, negative_slope=0.2)"},
)
def f_leaky_relu(input, negative_slope=0.01, inplace=False) -> Tensor["same"]:
    """x where x > 0, else negative_slope · x; JAX's slope at 0 is 1, torch's is negative_slope."""
    return leaky_relu(input, negative_slope=negative_slope)


@op(
    "torch.nn.functional.elu",
    example={"F.elu(x)": "jax.nn.elu(x)", "F.elu(x, 0.5)": "jax.nn.elu(x, 0.5)"},
)
def f_elu(input, alpha=1.0, inplace=False) -> Tensor["same"]:
    """x where x > 0, else alpha · (exp(x) - 1)."""
    if alpha == 1:
        return jax.nn.elu(input)
    return jax.nn.elu(input, alpha)


@op(
    "torch.nn.functional.celu",
    "torch.celu",
    example={"F.celu(x, 0.5)": "elu(x, 0.5, input_scale=2.0)"},
)
def f_celu(input, alpha=1.0, inplace=False) -> Tensor["same"]:
    """max(x, 0) + min(alpha · (exp(x / alpha) - 1), 0)."""
    if alpha == 1:
        return jax.nn.elu(input)
    return elu(input, alpha, input_scale=1 / alpha)


@op("torch.nn.functional.selu", "torch.selu", example={"F.selu(x)": "jax.nn.selu(x)"})
def f_selu(input, inplace=False) -> Tensor["same"]:
    """Scaled ELU that keeps mean 0 and variance 1."""
    return jax.nn.selu(input)


@op(
    "torch.nn.functional.prelu",
    "torch.prelu",
    "Tensor.prelu",
    example={"F.prelu(x, y)": "prelu(x, y)"},
)
def f_prelu(input, weight) -> Tensor["same"]:
    """x where x > 0, else weight · x, one weight or one per channel."""
    return prelu(input, weight)


@op(
    "torch.nn.functional.rrelu",
    "torch.rrelu",
    example={"F.rrelu(x, 0.1, 0.3)": "rrelu(x, lower=0.1, upper=0.3)"},
)
def f_rrelu_eval(input, lower=0.125, upper=0.3333333333333333) -> Tensor["same"]:
    """Outside training: leaky ReLU with the mean slope."""
    return rrelu(input, lower=lower, upper=upper)


@op(
    "torch.nn.functional.rrelu",
    "torch.rrelu",
    example={
        "F.rrelu(x, training=True)": "rrelu(x, lower=0.125, upper=0.3333333333333333, training=True, rngs=rngs)"
    },
)
def f_rrelu(
    input, lower=0.125, upper=0.3333333333333333, training=False, inplace=False, *, rngs
) -> Tensor["same"]:
    """Leaky ReLU with a slope drawn from U(lower, upper) in training, their mean otherwise."""
    return rrelu(input, lower=lower, upper=upper, training=training, rngs=rngs)


@op(
    "torch.nn.functional.softplus",
    example={
        "F.softplus(x)": "jax.nn.softplus(x)",
        "F.softplus(x, beta=2)": "softplus(x, beta=2)",
    },
)
def f_softplus(input, beta=1.0, threshold=20.0) -> Tensor["same"]:
    """log(1 + exp(beta · x)) / beta, linear above the threshold (which float32 cannot tell apart)."""
    if beta == 1 and threshold == 20:
        return jax.nn.softplus(input)
    return softplus(input, beta=beta, threshold=threshold)


@op("torch.nn.functional.softsign", example={"F.softsign(x)": "jax.nn.soft_sign(x)"})
def f_softsign(input) -> Tensor["float"]:
    """x / (1 + |x|)."""
    return jax.nn.soft_sign(input)


@op("torch.nn.functional.tanhshrink", example={"F.tanhshrink(x)": "x - jnp.tanh(x)"})
def f_tanhshrink(input) -> Tensor["float"]:
    """x - tanh(x)."""
    return input - jnp.tanh(input)


@op(
    "torch.nn.functional.softshrink",
    example={"F.softshrink(x, 0.1)": "softshrink(x, lambd=0.1)"},
)
def f_softshrink(input, lambd=0.5) -> Tensor["same"]:
    """x moved towards 0 by lambd, 0 within it."""
    return softshrink(input, lambd=lambd)


@op(
    "torch.nn.functional.hardshrink",
    "torch.hardshrink",
    "Tensor.hardshrink",
    example={"F.hardshrink(x, 0.1)": "hardshrink(x, lambd=0.1)"},
)
def f_hardshrink(input, lambd=0.5) -> Tensor["same"]:
    """x where |x| > lambd, else 0."""
    return hardshrink(input, lambd=lambd)


@op(
    "torch.nn.functional.threshold",
    "torch.nn.functional._threshold",
    "torch.threshold",
    example={"F.threshold(x, 0.1, 20)": "jnp.where(x <= 0.1, 20, x)"},
)
def f_threshold(input, threshold, value, inplace=False) -> Tensor["same"]:
    """x where x > threshold, else value."""
    return jnp.where(input <= threshold, value, input)


@op(
    "torch.nn.functional.glu",
    example={"F.glu(x)": "jax.nn.glu(x)", "F.glu(x, 1)": "jax.nn.glu(x, axis=1)"},
)
def f_glu(input, dim=-1) -> Tensor["same"]:
    """First half of the axis times σ(second half)."""
    return jax.nn.glu(input, axis=dim)


@op(
    "torch.nn.functional.softmax",
    example={
        "F.softmax(x, dim=-1)": "jax.nn.softmax(x)",
        "F.softmax(x, 1, dtype=torch.float32)": "jax.nn.softmax(x.astype(jnp.float32), axis=1)",
    },
)
def f_softmax(input, dim=None, _stacklevel=3, dtype=None) -> Tensor["float"]:
    """exp(x) / Σ exp(x) over ``dim``; without it torch takes axis 0 for rank 0, 1 and 3, else 1."""
    if dtype is not None:
        input = input.astype(dtype)
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return jax.nn.softmax(input, axis=axes(dim, input))


@op(
    "torch.softmax",
    "Tensor.softmax",
    "torch.special.softmax",
    example={
        "torch.softmax(x, -1)": "jax.nn.softmax(x)",
        "x.softmax(dim=1)": "jax.nn.softmax(x, axis=1)",
    },
)
def softmax(input, dim, dtype=None) -> Tensor["float"]:
    """exp(x) / Σ exp(x) over ``dim``."""
    if dtype is not None:
        input = input.astype(dtype)
    return jax.nn.softmax(input, axis=axes(dim, input))


@op("torch._softmax_backward_data")
def softmax_backward(grad_output, output, dim, input_dtype) -> Tensor["float"]:
    """The slope of a softmax whose result is known: y (g - Σ g y)."""
    scaled = grad_output * output
    slope = scaled - output * jnp.sum(scaled, axis=dim, keepdims=True)
    return slope.astype(input_dtype)


@op("torch._log_softmax_backward_data")
def log_softmax_backward(grad_output, output, dim, input_dtype) -> Tensor["float"]:
    """The slope of a log softmax whose result is known: g - exp(y) Σ g."""
    slope = grad_output - jnp.exp(output) * jnp.sum(grad_output, axis=dim, keepdims=True)
    return slope.astype(input_dtype)


@op(
    "torch.nn.functional.softmin",
    example={"F.softmin(x, dim=1)": "jax.nn.softmax(-x, axis=1)"},
)
def f_softmin(input, dim=None, _stacklevel=3, dtype=None) -> Tensor["float"]:
    """softmax of -x."""
    if dtype is not None:
        input = input.astype(dtype)
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return jax.nn.softmax(-input, axis=axes(dim, input))


@op(
    "torch.nn.functional.log_softmax",
    example={"F.log_softmax(x, dim=-1)": "jax.nn.log_softmax(x)"},
)
def f_log_softmax(input, dim=None, _stacklevel=3, dtype=None) -> Tensor["float"]:
    """log softmax over ``dim``; without it torch takes axis 0 for rank 0, 1 and 3, else 1."""
    if dtype is not None:
        input = input.astype(dtype)
    if dim is None:
        dim = 0 if input.ndim in (0, 1, 3) else 1
    return jax.nn.log_softmax(input, axis=axes(dim, input))


@op(
    "torch.log_softmax",
    "Tensor.log_softmax",
    "torch.special.log_softmax",
    example={"x.log_softmax(1)": "jax.nn.log_softmax(x, axis=1)"},
)
def log_softmax(input, dim, dtype=None) -> Tensor["float"]:
    """log softmax over ``dim``."""
    if dtype is not None:
        input = input.astype(dtype)
    return jax.nn.log_softmax(input, axis=axes(dim, input))


@op(
    "torch.nn.functional.gumbel_softmax",
    example={"F.gumbel_softmax(x, tau=0.5)": "gumbel_softmax(x, tau=0.5, rngs=rngs)"},
)
def f_gumbel_softmax(logits, tau=1, hard=False, eps=1e-10, dim=-1, *, rngs) -> Tensor["same"]:
    """A softened sample of the categorical distribution (``eps`` has no effect in torch either)."""
    return gumbel_softmax(logits, tau=tau, hard=hard, dim=dim, rngs=rngs)
