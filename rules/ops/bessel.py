"""Bessel and Airy functions of ``torch.special``, which JAX lacks; neither has torch a gradient for them."""

from __future__ import annotations

from rules.compat.bessel import airy_ai as airy
from rules.compat.bessel import bessel_j0 as j0
from rules.compat.bessel import bessel_j1 as j1
from rules.compat.bessel import bessel_k0 as k0
from rules.compat.bessel import bessel_k1 as k1
from rules.compat.bessel import bessel_y0 as y0
from rules.compat.bessel import bessel_y1 as y1
from rules.registry import op


@op("torch.special.airy_ai", example={"torch.special.airy_ai(x)": "airy_ai(x)"})
def airy_ai(x) -> Tensor["float"]:
    """Airy function Ai."""
    return airy(x)


@op("torch.special.bessel_j0", example={"torch.special.bessel_j0(x)": "bessel_j0(x)"})
def bessel_j0(input) -> Tensor["float"]:
    """Bessel function of the first kind of order 0."""
    return j0(input)


@op("torch.special.bessel_j1", example={"torch.special.bessel_j1(x)": "bessel_j1(x)"})
def bessel_j1(input) -> Tensor["float"]:
    """Bessel function of the first kind of order 1."""
    return j1(input)


@op("torch.special.bessel_y0", example={"torch.special.bessel_y0(x)": "bessel_y0(x)"})
def bessel_y0(input) -> Tensor["float"]:
    """Bessel function of the second kind of order 0."""
    return y0(input)


@op("torch.special.bessel_y1", example={"torch.special.bessel_y1(x)": "bessel_y1(x)"})
def bessel_y1(input) -> Tensor["float"]:
    """Bessel function of the second kind of order 1."""
    return y1(input)


@op(
    "torch.special.modified_bessel_k0",
    example={"torch.special.modified_bessel_k0(x)": "bessel_k0(x)"},
)
def modified_bessel_k0(input) -> Tensor["float"]:
    """Modified Bessel function of the second kind of order 0."""
    return k0(input)


@op(
    "torch.special.scaled_modified_bessel_k0",
    example={"torch.special.scaled_modified_bessel_k0(x)": "bessel_k0(x, scaled=True)"},
)
def scaled_modified_bessel_k0(x) -> Tensor["float"]:
    """The same times eˣ."""
    return k0(x, scaled=True)


@op(
    "torch.special.modified_bessel_k1",
    example={"torch.special.modified_bessel_k1(x)": "bessel_k1(x)"},
)
def modified_bessel_k1(input) -> Tensor["float"]:
    """Modified Bessel function of the second kind of order 1."""
    return k1(input)


@op(
    "torch.special.scaled_modified_bessel_k1",
    example={"torch.special.scaled_modified_bessel_k1(x)": "bessel_k1(x, scaled=True)"},
)
def scaled_modified_bessel_k1(x) -> Tensor["float"]:
    """The same times eˣ."""
    return k1(x, scaled=True)
