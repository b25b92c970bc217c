"""Signatures that torch has deprecated and still takes: factors stand before the tensors (tools/autograd/deprecated.yaml)."""

from __future__ import annotations

from rules.registry import op


@op("Tensor.add", example={"x.add(2, y)": "x + 2 * y"})
def add_by_position(input, alpha, other) -> Tensor:
    """input + alpha · other."""
    return input + alpha * other


@op("Tensor.sub", example={"x.sub(2, y)": "x - 2 * y"})
def sub_by_position(input, alpha, other) -> Tensor:
    """input − alpha · other."""
    return input - alpha * other


@op("Tensor.addcmul", example={"x.addcmul(2, y, z)": "x + 2 * y * z"})
def addcmul_by_position(input, value, tensor1, tensor2) -> Tensor:
    """input + value · tensor1 · tensor2."""
    return input + value * tensor1 * tensor2


@op("Tensor.addcdiv", example={"x.addcdiv(2, y, z)": "x + 2 * y / z"})
def addcdiv_by_position(input, value, tensor1, tensor2) -> Tensor:
    """input + value · tensor1 / tensor2."""
    return input + value * tensor1 / tensor2


@op(
    "Tensor.addmm",
    "Tensor.addmv",
    "Tensor.baddbmm",
    example={
        "x.addmm(1, -2, y, z)": "x + -2 * (y @ z)",
        "x.baddbmm(3, 1, y, z)": "3 * x + y @ z",
        "x.addmv(0, 1, y, z)": "y @ z",
    },
)
def addmm_by_position(input, beta, alpha, mat1, mat2) -> Tensor:
    """beta · input + alpha · (mat1 @ mat2); a beta of 0 ignores input, NaN included."""
    product = mat1 @ mat2
    if alpha != 1:
        product = alpha * product
    if beta == 0:
        return product
    return input + product if beta == 1 else beta * input + product
