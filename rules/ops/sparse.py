"""torch.spmm, torch.sparse.mm: products with a matrix that torch may hold in sparse form."""

from __future__ import annotations

from rules.registry import op


@op("torch.spmm", "torch.sparse.mm", "torch.dsmm", example={"torch.spmm(x, y)": "x @ y"})
def spmm(mat1, mat2) -> Tensor:
    """The product of dense matrices; sparse operands have to be made dense."""
    return mat1 @ mat2
