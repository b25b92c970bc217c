"""Parameters of layers drawn anew from the distributions that torch's constructors use."""

from __future__ import annotations

import math

import jax.numpy as jnp
from flax import nnx

from rules.compat.factories import build


def reset_weights(layer, *, rngs: nnx.Rngs):
    """Draw weight and bias of a linear layer or a convolution from U(±1/√fan_in)."""
    if isinstance(layer, nnx.Linear):
        weight, fan_in = layer.kernel, layer.kernel.shape[0]
    else:
        weight, fan_in = layer.weight, math.prod(layer.weight.shape[1:])
    bound = max(fan_in, 1) ** -0.5
    for param in (weight, layer.bias):
        if param is not None:
            param[...] = rngs.params.uniform(param.shape, param.dtype, -bound, bound)


def reset_bilinear(layer, *, rngs: nnx.Rngs):
    """Draw weight and bias of a bilinear layer from U(±1/√in1_features)."""
    bound = max(layer.weight.shape[1], 1) ** -0.5
    for param in (layer.weight, layer.bias):
        if param is not None:
            param[...] = rngs.params.uniform(param.shape, param.dtype, -bound, bound)


def reset_embedding(layer, *, rngs: nnx.Rngs):
    """Draw the rows of an embedding from N(0, 1); the row ``padding_idx`` is zero."""
    table, padding = layer.embedding, getattr(layer, "padding_idx", None)
    rows = rngs.params.normal(table.shape, table.dtype)
    table[...] = rows if padding is None else rows.at[padding].set(0)


def reset_recurrent(layer, *, rngs: nnx.Rngs):
    """Draw the weights and biases of a recurrent layer or cell from U(±1/√hidden_size)."""
    bound = max(layer.hidden_size, 1) ** -0.5
    for param in vars(layer).values():
        if isinstance(param, nnx.Param):
            param[...] = rngs.params.uniform(param.shape, param.dtype, -bound, bound)


def reset_norm(layer):
    """Make a norm's scale 1 and its bias 0, and forget the running statistics."""
    ones, zeros = (
        ("scale", "weight", "running_var"),
        ("bias", "running_mean", "num_batches_tracked"),
    )
    for name in (*ones, *zeros):
        variable = getattr(layer, name, None)
        if variable is not None:
            variable[...] = jnp.full_like(variable[...], name in ones)


_RECURRENT = frozenset("RNN GRU LSTM RNNCell GRUCell LSTMCell".split())
_RESET = _RECURRENT | frozenset(
    "ConvNd Conv1d Conv2d Conv3d ConvTransposeNd ConvTranspose1d ConvTranspose2d ConvTranspose3d BatchNorm BatchNorm1d "
    "BatchNorm2d BatchNorm3d SyncBatchNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d GroupNorm LayerNormNd "
    "RMSNormNd Bilinear EmbeddingBag PReLU".split()
)
"""Names of the classes that stand for layers of torch that have such a method."""


def _is_one_of(module, names):
    return not names.isdisjoint(cls.__name__ for cls in type(module).__mro__)


def has_reset(module):
    """Whether a module has a method ``reset_parameters``, or stands for a layer of torch's that has one."""
    layers = (nnx.Linear, nnx.Embed, nnx.LayerNorm, nnx.RMSNorm)
    known = isinstance(module, layers) or _is_one_of(module, _RESET)
    return known or hasattr(module, "reset_parameters")


def reset_parameters(module, *, rngs: nnx.Rngs):
    """``module.reset_parameters()`` of a module that has such a method, or of a layer that stands for one of torch's."""
    method = getattr(module, "reset_parameters", None)
    if method is not None:
        build(method, rngs=rngs)
    elif isinstance(module, nnx.Embed):
        reset_embedding(module, rngs=rngs)
    elif _is_one_of(module, {"Bilinear"}):
        reset_bilinear(module, rngs=rngs)
    elif isinstance(module, nnx.Linear) or getattr(getattr(module, "weight", None), "ndim", 0) > 2:
        reset_weights(module, rngs=rngs)
    elif _is_one_of(module, _RECURRENT):
        reset_recurrent(module, rngs=rngs)
    elif hasattr(module, "scale") or hasattr(module, "eps"):
        reset_norm(module)
    else:
        raise AttributeError(f"{type(module).__name__} draws no parameters anew")
