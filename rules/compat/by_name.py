"""Activations that a program asks for by name."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from rules.compat.activations import hardshrink, hardtanh, leaky_relu, softshrink
from rules.compat.layer_functions import identity, tanhshrink


def activation(name):
    """The activation function of that name in torch.nn.functional, with its default options."""
    known = {
        "relu": jax.nn.relu,
        "relu6": jax.nn.relu6,
        "leaky_relu": leaky_relu,
        "elu": jax.nn.elu,
        "selu": jax.nn.selu,
        "celu": jax.nn.elu,
        "gelu": functools.partial(jax.nn.gelu, approximate=False),
        "silu": jax.nn.silu,
        "mish": jax.nn.mish,
        "sigmoid": jax.nn.sigmoid,
        "logsigmoid": jax.nn.log_sigmoid,
        "tanh": jnp.tanh,
        "softplus": jax.nn.softplus,
        "softsign": jax.nn.soft_sign,
        "hardtanh": hardtanh,
        "hardswish": jax.nn.hard_silu,
        "hardsigmoid": jax.nn.hard_sigmoid,
        "hardshrink": hardshrink,
        "softshrink": softshrink,
        "tanhshrink": tanhshrink,
        "glu": jax.nn.glu,
    }
    if name not in known:
        raise NotImplementedError(f"{name!r} is none of {', '.join(known)}")
    return known[name]


def activation_layer(name):
    """What makes the activation layer of that name in torch.nn, with its default options."""
    known = {
        "ReLU": "relu",
        "ReLU6": "relu6",
        "LeakyReLU": "leaky_relu",
        "ELU": "elu",
        "SELU": "selu",
        "CELU": "celu",
        "GELU": "gelu",
        "SiLU": "silu",
        "Mish": "mish",
        "Sigmoid": "sigmoid",
        "LogSigmoid": "logsigmoid",
        "Tanh": "tanh",
        "Softplus": "softplus",
        "Softsign": "softsign",
        "Hardtanh": "hardtanh",
        "Hardswish": "hardswish",
        "Hardsigmoid": "hardsigmoid",
        "Hardshrink": "hardshrink",
        "Softshrink": "softshrink",
        "Tanhshrink": "tanhshrink",
    }
    if name == "Identity":
        return lambda: identity
    if name not in known:
        raise NotImplementedError(f"{name!r} is none of {', '.join(known)}, Identity")
    return lambda: activation(known[name])


def method(value, name, *default):
    """``getattr``; ``forward`` of a module is the module itself, which is called."""
    if name == "forward" and not hasattr(value, name):
        return value
    return getattr(value, name, *default)
