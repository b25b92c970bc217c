"""``dtype.is_floating_point``: what torch's dtypes say of themselves, and JAX's do not."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from flax import nnx

from tests.convert.tools import X, both, convert, loaded, rules_of

SOURCE = """
from typing import Optional

import torch
from torch import nn


def check(dtype: Optional[torch.dtype]) -> str:
    if dtype is None or dtype.is_floating_point:
        return "floating"
    return "complex" if dtype.is_complex else "whole"


def of(x: torch.Tensor) -> str:
    if x.dtype.is_floating_point and not x.dtype.is_complex:
        return check(x.dtype)
    return "no " + check(x.dtype)


CONSTANT = (torch.float16.is_floating_point, torch.int32.is_floating_point, torch.complex64.is_complex)
"""


@pytest.mark.parametrize("name", "float32 float16 bfloat16 int32 uint8 bool complex64".split())
def test_they_say_the_same(name: str) -> None:
    theirs, ours, _ = loaded(SOURCE)
    dtype = getattr(torch, name)
    x = torch.zeros(2, dtype=dtype)
    y = ours["jnp"].zeros(2, name)
    assert ours["of"](y) == theirs["of"](x)
    assert ours["check"](y.dtype) == theirs["check"](dtype)
    assert tuple(map(bool, ours["CONSTANT"])) == theirs["CONSTANT"]


def test_the_others_are_findings() -> None:
    source = "import torch\n\n\ndef f(x: torch.Tensor):\n    return x.dtype.is_signed\n"
    assert [f.rule for f in convert(source).findings if f.blocks] == ["API001"]


LEAST = """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        least = float(numpy.finfo(TYPE).min)
        return x.masked_fill(x > 0, least)
"""


@pytest.mark.parametrize(
    "written",
    [
        "torch.tensor(0, dtype=x.dtype).numpy().dtype",
        "x.detach().cpu().numpy().dtype",
        "x.numpy().dtype",
    ],
)
def test_the_type_that_numpy_has_for_a_tensor(written: str) -> None:
    model, port, _ = both("import numpy\n" + LEAST.replace("TYPE", written))
    np.testing.assert_array_equal(nnx.jit(port)(X.numpy()), model(X))
    assert "TRC007" in rules_of("import numpy\n" + LEAST.replace("TYPE", "x.numpy()"))
