"""The rank that inference gives a result whose dtype is that of the first argument is the one torch gives."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from migrator.infer.annotations import OTHER_RANK
from rules import definitions

SAMPLES = 60
OPS = [
    op
    for op in op_db
    if op.name.rpartition(".")[2] not in OTHER_RANK
    and any(
        "same" in rule.returns
        for prefix in ("torch", "Tensor")
        for rule in definitions.ops(f"{prefix}.{op.name}")
    )
]


@pytest.mark.sweep
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.formatted_name)
def test_a_result_like_the_first_argument_has_its_rank(op: Any) -> None:
    dtype = torch.float32 if torch.float32 in op.dtypes else torch.int64
    for sample in list(op.sample_inputs("cpu", dtype))[:SAMPLES]:
        if not isinstance(sample.input, torch.Tensor):
            continue
        try:
            result = op(sample.input, *sample.args, **sample.kwargs)
        except (RuntimeError, ValueError, TypeError):
            continue  # a dtype or a library that this build of torch has not
        for part in result if isinstance(result, tuple | list) else [result]:
            if isinstance(part, torch.Tensor):
                assert part.dim() == sample.input.dim()
