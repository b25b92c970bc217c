"""torch.nn.functional, normalisation functions; variances are the biased ones, in two passes."""

from __future__ import annotations

import jax.numpy as jnp

from rules.compat.norm_functional import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    moments,
    normalize,
    rms_norm,
)
from rules.registry import op, surely, unsupported


@op(
    "torch.nn.functional.layer_norm",
    "torch.layer_norm",
    example={"F.layer_norm(x, (8,))": "layer_norm(x, (8,))"},
)
def f_layer_norm(
    input, normalized_shape, weight=None, bias=None, eps=1e-5, cudnn_enable=True
) -> Tensor["same"]:
    """Normalise over the last axes."""
    return layer_norm(input, normalized_shape, weight=weight, bias=bias, eps=eps)


@op(
    "torch.nn.functional.rms_norm",
    "torch.rms_norm",
    example={"F.rms_norm(x, (8,), y)": "rms_norm(x, (8,), weight=y)"},
)
def f_rms_norm(input, normalized_shape, weight=None, eps=None) -> Tensor["same"]:
    """x / sqrt(mean(x²) + eps); ``eps`` is by default that of the dtype."""
    return rms_norm(input, normalized_shape, weight=weight, eps=eps)


@op(
    "torch.nn.functional.group_norm",
    "torch.group_norm",
    example={"F.group_norm(x, 4)": "group_norm(x, 4)"},
)
def f_group_norm(
    input, num_groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True
) -> Tensor["same"]:
    """Normalise over groups of channels and all later axes."""
    return group_norm(input, num_groups, weight=weight, bias=bias, eps=eps)


@op(
    "torch.nn.functional.batch_norm",
    example={"F.batch_norm(x, y, z)": "batch_norm(x, y, z)"},
)
def f_batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
) -> Tensor["same"]:
    """Normalise the channels; training with running statistics would update them in place."""
    if training and running_mean is not None:
        unsupported("batch_norm updates running_mean and running_var in place; use nn.BatchNorm")
    return batch_norm(
        input, running_mean, running_var, weight=weight, bias=bias, training=training, eps=eps
    )


@op(
    "torch.nn.functional.instance_norm",
    example={"F.instance_norm(x)": "instance_norm(x)"},
)
def f_instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
) -> Tensor["same"]:
    """Normalise each channel of each sample."""
    if use_input_stats and running_mean is not None:
        unsupported("instance_norm updates running_mean and running_var in place")
    return instance_norm(
        input,
        running_mean=running_mean,
        running_var=running_var,
        weight=weight,
        bias=bias,
        use_input_stats=use_input_stats,
        eps=eps,
    )


@op(
    "torch.nn.functional.local_response_norm",
    example={"F.local_response_norm(x, 5)": "local_response_norm(x, 5)"},
)
def f_local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0) -> Tensor["same"]:
    """Divide by the energy of neighbouring channels."""
    return local_response_norm(input, size, alpha=alpha, beta=beta, k=k)


@op(
    "torch.nn.functional.normalize",
    example={
        "F.normalize(x, dim=-1)": (
            "x / jnp.sqrt(jnp.maximum(jnp.sum(x * x, axis=-1, keepdims=True), 1e-24))"
        ),
        "F.normalize(x, p=1)": "normalize(x, p=1)",
    },
)
def f_normalize(input, p=2.0, dim=1, eps=1e-12) -> Tensor["same"]:
    """x / max(‖x‖, eps); the square root is of no less than eps² so that its slope stays finite."""
    if surely(p == 2):
        squares = jnp.sum(input * input, axis=dim, keepdims=True)
        return input / jnp.sqrt(jnp.maximum(squares, eps * eps))
    return normalize(input, p=p, dim=dim, eps=eps)


@op("torch.native_layer_norm")
def native_layer_norm(input, normalized_shape, weight, bias, eps) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm, the means and the reciprocal standard deviations."""
    axes = tuple(range(-len(normalized_shape), 0))
    mean, rstd = moments(input, axes, eps)
    return layer_norm(input, normalized_shape, weight=weight, bias=bias, eps=eps), mean, rstd


@op("torch.native_group_norm")
def native_group_norm(input, weight, bias, N, C, HxW, group, eps) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm of (N, C, H·W), the means and the reciprocal standard deviations (N, group)."""
    mean, rstd = moments(input.reshape(N, group, C // group * HxW), -1, eps, keepdims=False)
    return group_norm(input, group, weight=weight, bias=bias, eps=eps), mean, rstd


@op("torch.native_batch_norm", "torch._native_batch_norm_legit")
def native_batch_norm(*args, **kwargs) -> tuple[Tensor, Tensor, Tensor]:
    """Refused: it updates the running statistics it is handed, which have to be some module's buffers."""
    return unsupported("native_batch_norm updates its arguments in place; use F.batch_norm")
