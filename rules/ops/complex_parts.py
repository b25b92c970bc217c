"""Complex numbers: parts, conjugates and views as pairs of reals."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from rules.compat.pointwise import angle as compat_angle
from rules.registry import op


@op("torch.angle", "Tensor.angle", example={"x.angle()": "angle(x)"})
def angle(input) -> Tensor["float"]:
    """Argument of a complex number."""
    return compat_angle(input)


@op("torch.real", "Tensor.real", example={"x.real": "x.real"})
def real(input) -> Tensor:
    """Real part."""
    return input.real


@op("torch.imag", "Tensor.imag", example={"x.imag": "x.imag"})
def imag(input) -> Tensor:
    """Imaginary part."""
    return input.imag


@op(
    "torch.conj",
    "torch.conj_physical",
    "Tensor.conj",
    "Tensor.conj_physical",
    example={"x.conj()": "x.conj()"},
)
def conj(input) -> Tensor["same"]:
    """Complex conjugate."""
    return input.conj()


@op(
    "torch.resolve_conj",
    "torch.resolve_neg",
    "Tensor.resolve_conj",
    "Tensor.resolve_neg",
    example={"x.resolve_conj()": "x"},
)
def resolve_conj(input) -> Tensor["same"]:
    """JAX has no lazy conjugation."""
    return input


@op(
    "torch.view_as_real",
    example={"torch.view_as_real(x)": "jnp.stack([x.real, x.imag], axis=-1)"},
)
def view_as_real(input) -> Tensor["float"]:
    """Real and imaginary parts on a new last axis."""
    return jnp.stack([input.real, input.imag], axis=-1)


@op(
    "torch.view_as_complex",
    example={"torch.view_as_complex(x)": "lax.complex(x[..., 0], x[..., 1])"},
)
def view_as_complex(input) -> Tensor["complex"]:
    """The last axis, of size two, as a complex number."""
    return lax.complex(input[..., 0], input[..., 1])
