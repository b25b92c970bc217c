"""What inference says of a result is what torch gives: kind, dtype and rank, on torch's own sample inputs."""

from __future__ import annotations

from typing import Any

import libcst as cst
import pytest
import torch
from torch.testing._internal.common_methods_invocations import op_db

from migrator.convert.passes import load
from migrator.infer import Facts
from migrator.infer import kinds as k
from migrator.infer.definitions import Definitions
from migrator.infer.observed import contradicts, described
from migrator.observe.facts import kind_of
from migrator.observe.record import Recorder
from migrator.tree import Tree
from rules import definitions

SAMPLES = 40
DTYPES = (torch.float32, torch.complex64, torch.int64, torch.bool)
MORE_WITH_A_FLAG = frozenset(
    "lu nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d unique unique_consecutive "
    "nn.functional.adaptive_max_pool3d atleast_1d atleast_2d atleast_3d nonzero linalg.lstsq".split()
)
"""They give a tuple, or a longer one, for a flag or several arguments, which has its own definition or a finding."""
RARE = frozenset("masked.argmax masked.argmin nn.functional.local_response_norm square".split())
"""Of masks without a True, of integers, of bools: nothing that a model does."""
OPS = [
    op
    for op in op_db
    if (definitions.ops(f"torch.{op.name}") or definitions.ops(f"Tensor.{op.name}"))
    and op.name not in MORE_WITH_A_FLAG | RARE
]
RECORDER = Recorder()


def kind(value: Any) -> k.Kind:
    """The kind that inference has for an argument that stands in the call."""
    if value is None or isinstance(value, bool | int | float | complex | str):
        return k.Const(value)
    if isinstance(value, torch.dtype):
        return k.DType(str(value).removeprefix("torch."))
    if type(value) in (tuple, list):
        items = k.Tuple(tuple(kind(part) for part in value))
        return items if type(value) is tuple else k.Sequence(k.element(items))
    return kind_of(RECORDER.describe(value, 0), {})


def differs(found: k.Kind, given: k.Kind) -> bool:
    if isinstance(found, k.Tuple) and isinstance(given, k.Tuple):
        pairs = zip(found.items, given.items, strict=False)
        return len(found.items) != len(given.items) or any(contradicts(*pair) for pair in pairs)
    return contradicts(found, given)


@pytest.mark.sweep
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.formatted_name)
def test_the_kind_of_a_result(op: Any) -> None:
    load()
    walker = Definitions(Facts(Tree(cst.parse_module(""))), "file")
    names = [name for name in (f"torch.{op.name}", f"Tensor.{op.name}") if definitions.ops(name)]
    for dtype in (dtype for dtype in DTYPES if dtype in op.dtypes):
        for sample in list(op.sample_inputs("cpu", dtype))[:SAMPLES]:
            try:
                result = op(sample.input, *sample.args, **sample.kwargs)
            except (RuntimeError, ValueError, TypeError):
                continue  # a dtype or a library that this build of torch has not
            plain = tuple(result) if isinstance(result, tuple) else result
            given = kind(plain) if isinstance(plain, tuple | torch.Tensor) else k.UNKNOWN
            args = [(None, kind(value)) for value in (sample.input, *sample.args)]
            args += [(name, kind(value)) for name, value in sample.kwargs.items()]
            for name in names:
                found = walker.call_op(name, args)
                assert not differs(found, given), f"{name}: {described(found)}, {described(given)}"
