"""Activations and paddings that a program asks for by name."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from rules.compat.activation_layers import PReLU
from rules.compat.activations import elu, hardshrink, hardtanh, leaky_relu, softplus, softshrink
from rules.compat.layer_functions import identity, pad_sides, tanhshrink


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
    """What makes the activation layer of that name in torch.nn; it takes torch's options by their names."""
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
    with_options = {
        "LeakyReLU": leaky_relu,
        "ELU": elu,
        "CELU": jax.nn.celu,
        "Softplus": softplus,
        "Hardtanh": hardtanh,
        "Hardshrink": hardshrink,
        "Softshrink": softshrink,
    }
    if name not in known and name not in ("Identity", "PReLU"):
        raise NotImplementedError(f"{name!r} is none of {', '.join(known)}, Identity, PReLU")

    def make(inplace=False, **options):
        if inplace:
            raise NotImplementedError(f"{name} in place")
        if name == "Identity":
            return identity
        if name == "PReLU":
            return PReLU(**options)
        if not options:
            return activation(known[name])
        if name == "GELU":
            return functools.partial(jax.nn.gelu, approximate=options["approximate"] == "tanh")
        return functools.partial(with_options[name], **options)

    return make


def padding_layer(name):
    """What makes the padding layer of that name in torch.nn: ``ReflectionPad1d``, ``ConstantPad2d``…"""
    modes = {"Reflection": "reflect", "Replication": "replicate", "Circular": "circular"}
    kind, _, axes = name.partition("Pad")
    if axes not in ("1d", "2d", "3d") or kind not in ("Zero", "Constant", *modes):
        raise NotImplementedError(f"{name!r} is no padding layer")
    mode = modes.get(kind, "constant")

    def make(padding, **options):
        return functools.partial(
            pad_sides, rank=int(axes[0]), padding=padding, mode=mode, **options
        )

    return make


def method(value, name, *default):
    """``getattr``; ``forward`` of a module is the module itself, which is called."""
    if name == "forward" and not hasattr(value, name):
        return value
    return getattr(value, name, *default)
