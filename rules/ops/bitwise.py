"""Bit operations on integer and boolean tensors, and integer arithmetic (gcd, lcm)."""

from __future__ import annotations

import jax.numpy as jnp

from rules.registry import op


@op("torch.bitwise_not", "Tensor.bitwise_not", "Tensor.__invert__", example={"~mask": "~mask"})
def bitwise_not(input) -> Tensor["same"]:
    """All bits flipped; of booleans, not."""
    return ~input


@op(
    "torch.bitwise_and",
    "Tensor.bitwise_and",
    "Tensor.__and__",
    example={"mask & (x > 0)": "mask & (x > 0)"},
)
def bitwise_and(input, other) -> Tensor["same"]:
    """Bitwise and."""
    return input & other


@op("torch.bitwise_or", "Tensor.bitwise_or", "Tensor.__or__", example={"i | j": "i | j"})
def bitwise_or(input, other) -> Tensor["same"]:
    """Bitwise or."""
    return input | other


@op("torch.bitwise_xor", "Tensor.bitwise_xor", "Tensor.__xor__", example={"i ^ j": "i ^ j"})
def bitwise_xor(input, other) -> Tensor["same"]:
    """Bitwise exclusive or."""
    return input ^ other


@op("Tensor.__rand__", example={"1 & i": "1 & i"})
def rand(input, other) -> Tensor["same"]:
    """Bitwise and with the tensor on the right."""
    return other & input


@op("Tensor.__ror__", example={"1 | i": "1 | i"})
def ror(input, other) -> Tensor["same"]:
    """Bitwise or with the tensor on the right."""
    return other | input


@op("Tensor.__rxor__", example={"1 ^ i": "1 ^ i"})
def rxor(input, other) -> Tensor["same"]:
    """Bitwise exclusive or with the tensor on the right."""
    return other ^ input


@op(
    "torch.bitwise_left_shift",
    "Tensor.bitwise_left_shift",
    "Tensor.__lshift__",
    example={"i << 2": "i << 2"},
)
def bitwise_left_shift(input, other) -> Tensor["same"]:
    """Shifted left."""
    return input << other


@op(
    "torch.bitwise_right_shift",
    "Tensor.bitwise_right_shift",
    "Tensor.__rshift__",
    example={"i >> 2": "i >> 2"},
)
def bitwise_right_shift(input, other) -> Tensor["same"]:
    """Shifted right, the sign kept."""
    return input >> other


@op("Tensor.__rlshift__", example={"1 << i": "1 << i"})
def rlshift(input, other) -> Tensor["same"]:
    """other << input."""
    return other << input


@op("Tensor.__rrshift__", example={"8 >> i": "8 >> i"})
def rrshift(input, other) -> Tensor["same"]:
    """other >> input."""
    return other >> input


@op("torch.gcd", "Tensor.gcd", example={"torch.gcd(i, j)": "jnp.gcd(i, j)"})
def gcd(input, other) -> Tensor["int"]:
    """Greatest common divisor."""
    return jnp.gcd(input, other)


@op("torch.lcm", "Tensor.lcm", example={"torch.lcm(i, j)": "jnp.lcm(i, j)"})
def lcm(input, other) -> Tensor["int"]:
    """Least common multiple."""
    return jnp.lcm(input, other)
